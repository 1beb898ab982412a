"""An error of this suite: whatever is raised that no broker and no user may cause. It costs what it was raised in.

Each place that has something to lose (a sequence, a report, a connection of the embedded broker) catches it and goes
on. What is said of it is one line, made here, that says where it was raised: with the commands or the trace of the
sequence, that is what the project needs to find it.
"""

from __future__ import annotations

from pathlib import Path
from traceback import walk_tb

#: How the line begins, wherever it is said.
WORDS = "the suite erred: "
#: Characters of a message.
_LONGEST = 200
_SUITE = Path(__file__).resolve().parents[1]


class ErredElsewhere(Exception):
    """An error of this suite in another process, as the line that was made of it there."""


def line_of(error: BaseException) -> str:
    """Type and message of the error, and the innermost line of this suite that it came through."""
    if isinstance(error, ErredElsewhere):
        return str(error)
    text = " ".join(str(error).split())
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "…"
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{WORDS}{said} ({_place(error)})"


def _place(error: BaseException) -> str:
    places = [(Path(frame.f_code.co_filename).resolve(), line) for frame, line in walk_tb(error.__traceback__)]
    for file, line in reversed(places):
        if file.is_relative_to(_SUITE):
            return f"{file.relative_to(_SUITE)}:{line}"
    return f"{places[-1][0].name}:{places[-1][1]}" if places else "place unknown"


def suite_error_in(reason: str | None) -> str | None:
    """The reason of a sequence, if it is an error of this suite."""
    return reason if reason is not None and reason.startswith(WORDS) else None
