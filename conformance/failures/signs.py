"""By what a person, or a program, sees that a failure is there: lines of what a reproducer prints.

They stand as remarks in a file of commands, a line for each way in which brokers show it:

    # always on 3.10, 4.0: a.0 < Connection.Close reply_code=541
    # by chance on 4.3: > a.1 basic.cancel t; a.1 < Basic.CancelOk; no a.1 < Basic.ConsumeOk

After the versions come signs, with ";" between them. One is there if a line that a reproducer prints has its words, in
that order, after the line of the sign before it; one with "no" in front if no line after that has.

`CLIENT_PART` goes into programs that have signs, after `conformance.failures.standalone_client`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Often(StrEnum):
    """How often the commands show it."""

    ALWAYS = "always"
    #: at one time and not at another: a few tries are enough
    BY_CHANCE = "by chance"
    #: many tries, or a broker with much to do
    RARELY = "rarely"
    #: always, and nobody can use the broker afterwards
    AT_THE_END = "at the broker's end"


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs by which some versions of a broker show a failure."""

    often: Often
    versions: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def where(self) -> str:
        return ", ".join(self.versions)


#: A remark beside the commands of which the program has frames by hand, though pika has calls for them.
ONLY_BY_FRAMES = "# pika's own calls do not show it"
_REMARK = re.compile(rf"^# ({'|'.join(Often)}) on ([^:]+): (.+)\n", re.MULTILINE)

CLIENT_PART = '''

def has(line: str, words: list[str]) -> bool:
    rest = iter(line.split())
    return all(word in rest for word in words)


def is_seen(signs: list[str]) -> bool:
    """Each sign is a line with its words in that order, after the line of the one before; with "no" there is none."""
    rest = PRINTED
    for sign in signs:
        words = sign.removeprefix("no ").split()
        found = next((number for number, line in enumerate(rest) if has(line, words)), None)
        if (found is None) != sign.startswith("no "):
            return False
        rest = rest if found is None else rest[found + 1 :]
    return True


def wait_for_signs() -> None:
    """What is not to come has the whole time to come."""
    coming = [signs for _, signs in SIGNS if not any(sign.startswith("no ") for sign in signs)]
    wait(lambda: any(map(is_seen, coming)), DEADLINE)


def conclude() -> None:
    """Exit code 1: the broker does it; 0: it did not this time."""
    seen = [f"SEEN, as on {where}: {'; '.join(signs)}" for where, signs in SIGNS if is_seen(signs)]
    print(*seen or ["NOT SEEN"], sep="\\n")
    sys.exit(1 if seen else 0)
'''


def signs_in(text: str) -> list[Signs]:
    """Those of a file of commands."""
    return list(_read(text))


def without_signs(text: str) -> str:
    """The file of commands without them."""
    return _REMARK.sub("", text).replace(f"{ONLY_BY_FRAMES}\n", "")


def _read(text: str) -> Iterator[Signs]:
    for often, versions, lines in _REMARK.findall(text):
        yield Signs(
            Often(often), tuple(each.strip() for each in versions.split(",")),
            tuple(each.strip() for each in lines.split(";")),
        )  # fmt: skip
