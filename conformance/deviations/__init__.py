"""What released brokers are known to do otherwise than they promise: files for `--deviations builtin:NAME`."""

from __future__ import annotations

from pathlib import Path

DIRECTORY = Path(__file__).parent
#: Stands before the name of a file that comes with the suite.
BUILTIN = "builtin:"


def builtin_names() -> tuple[str, ...]:
    """The names that can stand after `BUILTIN`: those of the files, without their ending."""
    return tuple(sorted(file.stem for file in DIRECTORY.glob("*.toml")))


def builtin_file(name: str) -> Path | None:
    """The file of that name; None: there is none."""
    return DIRECTORY / f"{name}.toml" if name in builtin_names() else None
