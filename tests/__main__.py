"""The whole check of this project: `python -m tests [pytest arguments]` runs ruff, mypy and pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent

#: Two workers: each starts the brokers that its tests need, which is why there are not as many as processors. The
#: tests of a file take very different times, so what one worker has not come to the other takes over.
_IN_PARALLEL = ("-n", "2", "--dist", "worksteal")

#: Those that the whole waits for are listed at the end.
_SLOWEST = ("--durations", "15", "--durations-min", "20")


def main(arguments: list[str]) -> int:
    """Runs each check, also after one failed. Exit code: that of the first which failed, 0 if none did."""
    checks = {
        "ruff": ["ruff", "check", "."],
        "mypy": ["mypy"],
        # Last, so that its closing line is what remains on the screen.
        "pytest": ["pytest", *_IN_PARALLEL, *_SLOWEST, *arguments],
    }
    statuses = {}
    for name, command in checks.items():
        print(f"== {' '.join(command)}", flush=True)
        statuses[name] = subprocess.run(
            [sys.executable, "-m", *command], cwd=_ROOT, stdin=subprocess.DEVNULL, check=False
        ).returncode
    failed = {name: status for name, status in statuses.items() if status != 0}
    if failed.keys() - {"pytest"}:
        print(f"failed: {', '.join(failed)}", flush=True)
    return next(iter(failed.values()), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
