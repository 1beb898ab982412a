"""The checks of this project: `python -m tests [--all] [pytest arguments]` runs ruff, mypy and pytest.

Without `--all` pytest runs the quick tier: what takes long or needs a broker, Docker or Java is left out, and its last
lines say what that is. Where files or folders are named, all tests of them are run. A few tests that failed beside
others are run once more alone, as many of them go by the clock: the last lines say which passed only then. Types are
checked beside the tests, as the first of these leave a processor free.

`python -m tests --clients [TARGET]` runs the suites of client libraries on the embedded broker, or on the target, and
nothing else (`clients/`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent

#: For two processors. Of all tests those of real brokers mostly wait, so that two more workers have something to do.
_QUICK = ("-n", "2", "--quick")
_ALL = ("-n", "4")
_IN_PARALLEL = ("--dist", "loadgroup", "--no-loadscope-reorder")

#: So many that failed are run once more at the most: more of them say something of the code.
MOST_AGAIN = 5
_FAILED = _ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"

#: Those that the whole waits for are listed at the end.
_SLOWEST = ("--durations", "15", "--durations-min", "20")


def main(arguments: list[str]) -> int:
    """Runs each check, also after one failed. Exit code: that of the first which failed, 0 if none did."""
    if "--clients" in arguments:
        from tests.clients.all import main as run_clients

        targets = [argument for argument in arguments if argument != "--clients"]
        if len(targets) > 1:
            print("--clients takes one target", file=sys.stderr)
            return 2
        return run_clients(*targets)
    others = [argument for argument in arguments if argument != "--all"]
    is_quick = len(others) == len(arguments) and not any(map(_is_place, others))
    statuses = {"ruff": _run(["ruff", "check", "."])}
    with ThreadPoolExecutor(1) as beside:
        types = beside.submit(_carry_out, ["mypy"], stdout=subprocess.PIPE)
        statuses["pytest"] = _run(
            ["pytest", "--cache-clear", *(_QUICK if is_quick else _ALL), *_IN_PARALLEL, *_SLOWEST, *others]
        )
        checked = types.result()
    print(f"== mypy, beside them\n{checked.stdout.strip()}", flush=True)
    statuses["mypy"] = checked.returncode
    if statuses["pytest"] == 1 and 0 < len(failed_tests := _failed_tests()) <= MOST_AGAIN:
        statuses["pytest"] = _run(["pytest", "--last-failed", "--last-failed-no-failures", "none", *others])
        if statuses["pytest"] == 0:
            print(f"passed alone, and failed beside others: {', '.join(failed_tests)}", flush=True)
    failed = {name: status for name, status in statuses.items() if status != 0}
    if failed.keys() - {"pytest"}:
        print(f"failed: {', '.join(failed)}", flush=True)
    return next(iter(failed.values()), 0)


def _run(command: list[str]) -> int:
    print(f"== {' '.join(command)}", flush=True)
    return _carry_out(command).returncode


def _carry_out(command: list[str], stdout: int | None = None) -> subprocess.CompletedProcess[str]:
    """Keeps what Python compiles, also where the environment says otherwise: each of the hundreds of processes that
    the tests start would spend a second of the processor on compiling the project.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=_ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=stdout,
        text=True, check=False,
    )  # fmt: skip


def _failed_tests() -> list[str]:
    """The tests that failed when pytest was run last; none where it did not come so far."""
    return sorted(json.loads(_FAILED.read_text(encoding="utf-8"))) if _FAILED.exists() else []


def _is_place(argument: str) -> bool:
    """Whether it names tests by where they are."""
    return not argument.startswith("-") and (_ROOT / argument.partition("::")[0]).exists()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
