"""By what a short program tells that a failure shows: expressions of Python over `came`, the lines that it kept.

A line is such as `a.1 <Basic.Deliver(['consumer_tag=t', 'delivery_tag=1', …])> <BasicProperties> body=b'm1'`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from amqpspec.conformance.failures.signs import Signs
from amqpspec.conformance.failures.signs_of_failure import SHOWS, FailureKnownBy, KnownBy
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_arguments import PROPERTIES

_SIGN = re.compile(r"(no )?(?:([a-z][a-z0-9@]*)\.(\d+) )?(?:< )?(.+)")
_LEFT = "> what is left in "
#: Most messages that are fetched to see what is left in a queue.
_MOST_LEFT = 5
#: Definition of the function that expressions of several lines need.
COME = """
def come(*lines):  # in this order
    rest = iter(came)
    return all(any(re.search(line, each) for each in rest) for line in lines)
"""


@dataclass(frozen=True, slots=True)
class Line:
    """Of a frame that comes, or does not: where, and the words of its line in their order. `on` "": anywhere."""

    on: str
    words: tuple[str, ...]
    is_absent: bool = False

    @property
    def method(self) -> str:
        return self.words[0]

    @property
    def pattern(self) -> str:
        """A regular expression. pika prints arguments in the order of their names, without quotes; behind them stand
        the properties and the body.
        """
        groups: list[list[str]] = []
        for word in self.words[1:]:
            if "=" in word or not groups:
                groups.append([])
            groups[-1].append(word)
        parts = [_escaped(self.words[0]), *map(_printed, sorted(groups, key=_order))]
        escaped = ".*".join(f"{part}\\b" if part[-1].isalnum() else part for part in parts)
        return f"{self.on}{' ' if self.on else ''}<{escaped}"


def _order(group: Sequence[str]) -> tuple[int, str]:
    name = group[0].partition("=")[0] if "=" in group[0] else ""
    return 2 if name == "body" else int(not name or name in PROPERTIES), name


def _escaped(word: str) -> str:
    return re.sub(r"([()\[\]{}*+?|^$\\])", r"\\\1", word)


def _printed(group: Sequence[str]) -> str:
    words = [_escaped(word) for word in group]
    if group[0].startswith(("body=", "headers=")):
        return " ".join(words)
    return ".*".join(words if "=" not in group[0] else (word.replace("'", "") for word in words))


@dataclass(frozen=True, slots=True)
class Stage:
    """Lines of what comes from the command of that place on; None: from the beginning."""

    place: int | None
    lines: tuple[Line, ...]

    def expression(self) -> str:
        """Python's, over `came` and by the function `COME` where it takes several."""
        there: list[str] = []
        terms: list[str] = []
        for each in self.lines:
            if each.is_absent:
                terms.append(f"not {_comes([*there, each.pattern])}")
            else:
                there.append(each.pattern)
        return " and ".join([*([_comes(there)] if there else []), *terms])


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which it shows. `where`: the versions; "": it is not of a finding."""

    where: str
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class ShownBy:
    """All ways in which it shows.

    `commands`: with those behind them that look at what is left in a queue. `told`: in place of ways, the lines that
    decide, each with the exit code that it stands for, and `otherwise` that where none of them comes.
    """

    commands: tuple[Command, ...]
    ways: tuple[Way, ...] = ()
    told: tuple[tuple[int, Line], ...] = ()
    otherwise: int = 0

    @property
    def lines(self) -> list[Line]:
        of_ways = (line for way in self.ways for stage in way.stages for line in stage.lines)
        return [*of_ways, *(line for _, line in self.told)]

    @property
    def can_be_told(self) -> bool:
        """Can a program with pika hear it, and are the lines that are right others than those that are wrong?"""
        wrong = {line.pattern for code, line in self.told if code}
        right = {line.pattern for code, line in self.told if not code}
        return not wrong & right and not any("octets_behind" in word for each in self.lines for word in each.words)

    @property
    def waits_for_nothing(self) -> bool:
        """Is it shown by what does not come?"""
        return any(each.is_absent for each in self.lines) or (bool(self.told) and self.otherwise == SHOWS)


def by_signs(signs: Sequence[Signs], commands: Sequence[Command]) -> ShownBy:
    """Of a finding."""
    looked = [*commands, *_looks([line for each in signs for line in each.lines], commands)]
    return ShownBy(tuple(looked), tuple(Way(each.where, tuple(_stages(each.lines, looked))) for each in signs))


def by_known(known: FailureKnownBy, commands: Sequence[Command]) -> ShownBy:
    """Of a failure that a run found: it shows by what comes after the last command."""
    looked = list(commands)
    if known.counted:
        last, passive = commands[-1], {"queue": known.counted, "passive": True}
        looked.append(Command(last.connection, last.channel, "queue.declare", passive))
    told = tuple((code, _line_of(each)) for code, each in known.told)
    if len(told) > 1:
        return ShownBy(tuple(looked), (), told, known.otherwise)
    ((code, line),) = told
    line = replace(line, is_absent=code != SHOWS)
    return ShownBy(tuple(looked), (Way("", (Stage(len(looked) - 1, (line,)),)),))


def _line_of(frame: KnownBy) -> Line:
    on, _, words = frame.words.partition("<")
    texts = {"body": "body=b'{}'", "consumer-tag": "consumer_tag='{}'"}
    more = [texts[name].format(text) for name, text in frame.fields.items() if name in texts and frame.fields[name]]
    return Line("" if frame.method == "queue.declare-ok" else on.strip(), (*words.split(), *more))


def _looks(signs: Sequence[str], commands: Sequence[Command]) -> Iterator[Command]:
    """Commands that look at what is left, where that is a sign; on a connection of their own."""
    read = [found for each in signs if not each.startswith("> ") and (found := _SIGN.fullmatch(each)) is not None]
    nowhere = {found[4].split()[0] for found in read if not found[2]}
    named = [each.removeprefix(_LEFT) for each in signs if each.startswith(_LEFT)]
    declared = [each.arguments.get("queue", "") for each in commands if each.method == "queue.declare"]
    for queue in dict.fromkeys(named or (declared[:1] if "Basic.GetOk" in nowhere else [])):
        yield Command("z", 1, "queue.declare", {"queue": queue, "passive": True})
        published = sum(each.method == "basic.publish" for each in commands)
        for _ in range(min(published, _MOST_LEFT) if "Basic.GetOk" in nowhere else 0):
            yield Command("z", 1, "basic.get", {"queue": queue})


def _stages(signs: Sequence[str], commands: Sequence[Command]) -> Iterator[Stage]:
    place: int | None = None
    lines: list[Line] = []
    for sign in signs:
        if sign.startswith("> "):
            if lines:
                yield Stage(place, tuple(lines))
            place, lines = _place(sign, commands, -1 if place is None else place), []
        else:
            found = _SIGN.fullmatch(sign)
            assert found is not None
            if "<" not in sign and lines and not found[4][0].isupper():  # more of the same line
                lines[-1] = replace(lines[-1], words=(*lines[-1].words, *found[4].split()))
                continue
            on = f"{found[2]}.{found[3]}" if found[2] else ""
            lines.append(Line(on, tuple(found[4].split()), bool(found[1])))
    yield Stage(place, tuple(lines))


def _place(sign: str, commands: Sequence[Command], after: int) -> int:
    """Of the command that the sign names."""
    if sign.startswith(_LEFT):
        return next(place for place, each in enumerate(commands) if each.connection == "z")
    words = sign.removeprefix("> ").split()
    for place in range(after + 1, len(commands)):
        rest = iter(str(commands[place]).split())
        if all(word in rest for word in words):
            return place
    raise ValueError(f"no command is what the sign {sign!r} names")


def _comes(patterns: Sequence[str]) -> str:
    if len(patterns) > 1:
        return f"come({', '.join(map(_text, patterns))})"
    return f"any(re.search({_text(patterns[0])}, line) for line in came)"


def _text(pattern: str) -> str:
    return f'r"{pattern}"' if '"' not in pattern else repr(pattern)
