"""By what a program tells that a failure is there, or gone: the frame that was wrong, and those that would be right.

They are read from the words of the failure. What is abbreviated there, or quoted, is left out: a frame is known by the
rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from amqpspec.model.promises.verdict import Failure, Shape

_FRAME = re.compile(r"([a-z][a-z0-9@]*\.\d+) < ([a-z]+\.[a-z-]+)( .*)?$", re.DOTALL)
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\{.*\}|\[.*\]", re.DOTALL)
#: How many messages are missing in a queue, and how many should be ready there.
_READY = re.compile(r"\d+ of (\d+) ready messages of (\S+)")
_FIELD = re.compile(r"(?<= )([a-z][a-z-]*)=([\w.$-]+)(?= |$)")
#: Answers to what the suite asks by itself after a command.
_ASKED_BY_SUITE = {
    "basic.get-ok": "basic.get", "basic.get-empty": "basic.get", "queue.declare-ok": "queue.declare",
    "basic.qos-ok": "basic.qos",
}  # fmt: skip
#: Exit codes of a program.
GONE, SHOWS, UNKNOWN = 0, 1, 2
#: What a program prints where the broker ends the TCP stream.
_END = "(end of the TCP connection:"


@dataclass(frozen=True, slots=True)
class KnownBy:
    """A frame: the channel that it comes on, the method, and the arguments (as the text has them) that are compared."""

    on: str
    method: str
    fields: dict[str, str]

    @property
    def words(self) -> str:
        """As a program with frames by hand prints it."""
        name = ".".join("".join(map(str.capitalize, part.split("-"))) for part in self.method.split("."))
        texts = (_END,) if self.method == "socket.closed" else (name, *self._printed())
        return " ".join((*([self.on] if self.on else []), "<", *texts))

    def _printed(self) -> list[str]:
        """Only numbers and bits: texts are printed in several ways."""
        values = {"true": "True", "false": "False"}
        return [
            f"{name.replace('-', '_')}={values.get(value, value)}"
            for name, value in self.fields.items()
            if value in values or value.isdecimal()
        ]


def frame_in(text: str) -> KnownBy | None:
    """The frame that the text describes, such as `a.1 < basic.deliver delivery-tag=1 …`; None: it describes none."""
    found = _FRAME.match(text)
    if found is None or "*" in text:
        return None
    plain = _QUOTED.sub("…", found[3] or "")
    return KnownBy(found[1], found[2], dict(_FIELD.findall(plain)))


@dataclass(frozen=True, slots=True)
class FailureKnownBy:
    """The frames by which it is told, of those that come after the command: the first of them decides.

    `wrong` None: the failure is that none of those that are right comes. `counted`: the queue that is asked for its
    numbers, which is what comes then; "": nothing is asked.
    """

    wrong: KnownBy | None
    right: tuple[KnownBy, ...]
    counted: str = ""

    @property
    def told(self) -> list[tuple[int, KnownBy]]:
        """Each with the exit code that it stands for; of two that are alike the one of which more is known comes first.
        """
        told = [*([(SHOWS, self.wrong)] if self.wrong is not None else []), *((GONE, each) for each in self.right)]
        return sorted(told, key=lambda each: -len(each[1].fields))

    @property
    def otherwise(self) -> int:
        """The exit code if none of them comes."""
        return SHOWS if self.wrong is None else UNKNOWN if self.right else GONE


def known_by(failure: Failure) -> FailureKnownBy | None:
    """None: its words do not tell, or what was wrong came to a question of the suite's own, which no program asks."""
    observed = frame_in(failure.observed)
    if observed is not None and _ASKED_BY_SUITE.get(observed.method, asked := _method(failure.command)) != asked:
        return None
    if observed is not None and "octets-behind" in observed.fields:
        return None  # pika passes over them
    allowed = [text for text in failure.allowed if not text.startswith("nothing")]
    if failure.shape is Shape.WRONG_ARGUMENT:
        return _by_argument(failure, allowed)
    if failure.shape is Shape.MISSING and (counted := _READY.fullmatch(allowed[0] if len(allowed) == 1 else "")):
        queue, messages = counted[2], counted[1]
        right = KnownBy("", "queue.declare-ok", {"queue": queue, "message-count": messages})
        return FailureKnownBy(None, (right,), queue)
    right_ones = tuple(each for text in allowed if (each := frame_in(text)) is not None)
    wrong = None if failure.shape is Shape.MISSING else frame_in(failure.observed)
    if len(right_ones) != len(allowed) or (wrong is None and (failure.shape is not Shape.MISSING or not right_ones)):
        return None
    return FailureKnownBy(wrong, right_ones)


def _method(command: str) -> str:
    return f"{command} ".split(" ")[1]


def _by_argument(failure: Failure, allowed: Sequence[str]) -> FailureKnownBy | None:
    frame, name = frame_in(failure.observed), failure.detail.partition(" ")[2]
    if frame is None or name not in frame.fields:
        return None
    values = [re.fullmatch(rf"(?:{name}=)?([\w.$-]+)", text) for text in allowed]
    by = {key: frame.fields[key] for key in ("delivery-tag", "body", name) if key in frame.fields}
    right = tuple(replace(frame, fields={**by, name: value[1]}) for value in values if value is not None)
    return FailureKnownBy(replace(frame, fields=by), right) if right and all(values) else None


#: The last part of a program with frames by hand, which has said all that came in PRINTED.
_CLIENT_PART = '''

def conclude() -> None:
    """The first line after the command that is known decides; exit code 1: the broker does it, 0: it does not."""
    last = max((number for number, line in enumerate(PRINTED) if line.startswith(AFTER)), default=len(PRINTED))
    lines = (line.split() for line in PRINTED[last + 1 :])
    code = next((code for line in lines for code, words in KNOWN if has(line, words.split())), OTHERWISE)
    code = code if last < len(PRINTED) else 2
    print(["NOT SEEN", "SEEN", "it cannot be told"][code])
    sys.exit(code)


def has(line: list[str], words: list[str]) -> bool:
    rest = iter(line)
    return all(word in rest for word in words)
'''
_UNKNOWN_PART = '''

def conclude() -> None:
    print("whether that is the failure this program cannot tell: compare it with what was reported")
    sys.exit(2)
'''


def conclusion(failure: Failure) -> str:
    """What ends a program with frames by hand: its definition of `conclude`."""
    known = known_by(failure)
    if known is None:
        return _UNKNOWN_PART
    told = [(code, each.words) for code, each in known.told]
    if any(one == other for code, one in told for its, other in told if code != its):
        return _UNKNOWN_PART
    after = f"> what is left in {known.counted}" if known.counted else f"> {failure.command}"
    return f"\n\nAFTER, KNOWN, OTHERWISE = {after!r}, {told!r}, {known.otherwise}\n{_CLIENT_PART}"
