"""A program that shows a failure in as few lines as it takes, for whoever maintains the broker, and for `git bisect`.

It has what its commands need, and no more: by pika's own calls (`plain_pika`) where these can do it, else method by
method (`pika_methods`). What neither can say is left to `conformance.failures.reproducer`.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from amqpspec.conformance.failures import by_hand
from amqpspec.conformance.failures.shows_by import COME, ShownBy
from amqpspec.conformance.language.command import Command
from amqpspec.model.broker.nodes import node_of
from amqpspec.model.protocol.methods import CLOCK_WAIT

#: Writes a value as Python does.
Literal = Callable[[Any], str]

#: Seconds: in which what is sent has been carried out; in which what comes is there; that a missing frame may take.
SOON, WHILE, PATIENCE = 0.5, 2, 5
#: Modules that a program has only where it uses them.
_MODULES = ("copy", "datetime", "functools", "os", "re", "sys", "threading", "time")
_CLASSES = ("Basic", "Channel", "Confirm", "Connection", "Exchange", "Queue", "Tx")
_START = """\
sys.excepthook = lambda *error: (sys.__excepthook__(*error), os._exit(2))  # exit code 2: it cannot be told
threading.Timer({limit}, os._exit, [2]).start()  # nor if a call is never answered
"""
#: Names that programs use themselves.
_TAKEN = frozenset({
    *_MODULES, *_CLASSES, "pika", "URL", "P", "n", "own", "each", "came", "note", "come", "pause", "send", "wait",
    "post", "leave", "connect", "cleaner", "seen", "known", "code", "codes", "closed", "before",
})  # fmt: skip
_MOST_IN_A_LOOP = 3


@dataclass
class Parts:
    """Of a program: what it defines, what it does, and the names that it has for those on the broker."""

    definitions: str
    steps: list[str]
    names: dict[str, str]
    #: lines that delete what it made
    clean_up: list[str]


def written(head: str, parts: Parts, shown: ShownBy) -> str:
    """The text of the program."""
    limit = 60 if not any("input(" in each for each in parts.steps) else 3600
    limit += sum(each.arguments.get("milliseconds", 0) // 1000 for each in shown.commands if each.method == CLOCK_WAIT)
    body = "\n".join(in_loops(parts.steps))
    ending = _ending(shown, parts.clean_up)
    definitions = parts.definitions + (COME if "come(" in ending + body else "")
    start = 'URL = pika.URLParameters(sys.argv[1] if len(sys.argv) > 1 else "amqp://guest:guest@localhost:5672/%2F")\n'
    nodes = sorted({node_of(each.connection) or 1 for each in shown.commands})
    if nodes != [1]:
        start = "".join(f"URL{n} = pika.URLParameters(sys.argv[{n}])\n" for n in nodes)
        start += f"URL = URL{nodes[0]}  # to delete what it made\n" if parts.clean_up else ""
    start += _START.format(limit=limit)
    start += _names(parts.names, parts.definitions + body)
    start += "came = []\n"
    text = f"{start}{definitions}\n{body}\n{ending}"
    modules = [each for each in _MODULES if re.search(rf"\b{each}\.", text)]
    imports = f"import {', '.join(modules)}\n"
    spec = [each for each in _CLASSES if re.search(rf"(?<![\w.<\"]){each}\b", text)]
    more = f"from pika.spec import {', '.join(spec)}\n" if "_send_method" in text else ""
    return f"{head}{imports}\nimport pika\n{more}\n{text}"


def _names(names: dict[str, str], body: str) -> str:
    used = {name: json.dumps(text) for text, name in names.items() if re.search(rf"\b{name}\b", body)}
    needs_prefix = used or "PREFIX-" in body or re.search(r"\bP\b", body)
    text = 'P = f"bug-{os.urandom(4).hex()}-"  # begins all names\n' if needs_prefix else ""
    if len(used) > 2:
        return f"{text}{', '.join(used)} = (P + each for each in ({', '.join(used.values())}))\n"
    return text + "".join(f"{name} = P + {quoted}\n" for name, quoted in used.items())


def names_of(texts: Sequence[str], taken: Sequence[str]) -> dict[str, str]:
    """A variable for each of these names on the broker."""
    names: dict[str, str] = {}
    for text in texts:
        name = re.sub(r"\W", "_", text)
        used = {*taken, *_TAKEN, *names.values()}
        if not name.isidentifier() or keyword.iskeyword(name) or name in used:
            name = next(each for n in count(len(names)) if (each := f"name_{n}") not in used)
        names[text] = name
    return names


def _ending(shown: ShownBy, clean_up: list[str]) -> str:
    if shown.told:
        told = ", ".join(f'({code}, r"{line.pattern}")' for code, line in shown.told)
        lines = [
            f"known = ({told},)",
            "codes = [code for line in came for code, words in known if re.search(words, line)]",
            f"code = codes[0] if codes else {shown.otherwise}",
            'print(*came, ["NOT SEEN", "SEEN", "it cannot be told"][code], sep="\\n", flush=True)',
        ]
        return "\n".join([*lines, *_last(shown, clean_up, "code")]) + "\n"
    ways = [(way.where, _expression(number, way.stages)) for number, way in enumerate(shown.ways)]
    if len(ways) == 1:
        where, expression = ways[0]
        said = f"SEEN, as on {where}" if where else "SEEN"
        lines = [f"seen = {expression}", f'print(*came, "{said}" if seen else "NOT SEEN", sep="\\n", flush=True)']
    else:
        lines = ["seen = [", *(f'    "SEEN, as on {where}" if {text} else "",' for where, text in ways), "]"]
        lines.append('print(*came, "\\n".join(filter(None, seen)) or "NOT SEEN", sep="\\n", flush=True)')
    code = "seen" if len(ways) == 1 else "any(seen)"
    return "\n".join([*lines, *_last(shown, clean_up, code)]) + "\n"


def _last(shown: ShownBy, clean_up: Sequence[str], code: str) -> list[str]:
    """Deleting what may be gone already, or is never answered, changes nothing of the exit code."""
    lines = [f"os._exit({code})"]
    if clean_up:
        hook = f"sys.excepthook = lambda *error: os._exit({code})  # what is gone need not be deleted"
        lines = [hook, *clean_up, *lines]
    if clean_up and shown.waits_for_nothing:
        lines.insert(0, f"threading.Timer({PATIENCE}, os._exit, [{code}]).start()  # nor what is never answered")
    return lines


def _expression(number: int, stages: Sequence[Any]) -> str:
    before = [before_name(number, place) for place in range(len(stages) - 1)]
    return " and ".join([*before, stages[-1].expression()])


def before_name(way: int, stage: int) -> str:
    return f"before_{way + stage + 1}" if way + stage else "before"


def at_places(shown: ShownBy) -> dict[int, list[str]]:
    """By command: lines that stand before it, as only what comes from it on counts."""
    lines: dict[int, list[str]] = {}
    for number, way in enumerate(shown.ways):
        for index, stage in enumerate(way.stages):
            if stage.place is not None:
                here = lines.setdefault(stage.place, [])
                if index:
                    here.insert(0, f"{before_name(number, index - 1)} = {way.stages[index - 1].expression()}")
                if "came.clear()" not in here:
                    here.append("came.clear()")
    if shown.told:
        lines[len(shown.commands) - 1] = ["came.clear()"]
    return lines


def clean_up(made: Mapping[str, Sequence[str]]) -> list[str]:
    """Lines that delete what there is of these variables, by the kind of thing."""
    calls = [f"{kind}_delete({name})" for kind, names in made.items() for name in names]
    if len(calls) < 2:
        return [f"pika.BlockingConnection(URL).channel().{each}" for each in calls]
    lines = ["cleaner = pika.BlockingConnection(URL).channel()"]
    for kind, names in made.items():
        if len(names) > 2:
            lines += [f"for each in {', '.join(names)}:", f"    cleaner.{kind}_delete(each)"]
        else:
            lines += [f"cleaner.{kind}_delete({name})" for name in names]
    return lines


def made_by(commands: Sequence[Command], prefix: str) -> dict[str, list[str]]:
    """Names, without the prefix, of queues and exchanges that these commands declare; exclusive ones end by themselves.
    """
    made: dict[str, list[str]] = {"queue": [], "exchange": []}
    for each in commands:
        kind, _, method = each.method.partition(".")
        name = each.arguments.get(kind, "")
        if method == "declare" and name.startswith(prefix) and not each.arguments.get("exclusive"):
            made[kind].append(name.removeprefix(prefix))
    return {kind: list(dict.fromkeys(names)) for kind, names in made.items()}


def by_an_operator(command: Command) -> str:
    """The line in which a person is asked to do what is the operator's."""
    _, (_, *lines) = by_hand.call(command)
    asked = f"on the broker's machine: {'; '.join(lines)}   and then Enter: "
    text = repr(asked) if '"' in asked else f'"{asked}"'
    return f'input({text}.replace("PREFIX-", P))' if "PREFIX-" in text else f"input({text})"


_NUMBERS = re.compile(r'b"[^"\\]*"|"[^"\\]*"|\b\d+\b')


def in_loops(lines: Sequence[str]) -> Iterator[str]:
    """The same with a loop in place of lines that are alike but for numbers that go up by one."""
    place = 0
    while place < len(lines):
        end, line = _run(lines, place)
        if end - place > _MOST_IN_A_LOOP:
            first = next((int(found[0]) for found in _differing(lines[place], lines[place + 1])), 1)
            yield f"for n in range({first}, {first + end - place}):"
            yield f"    {line}"
            place = end
        else:
            yield lines[place]
            place += 1


def _run(lines: Sequence[str], place: int) -> tuple[int, str]:
    """How far lines are like the first of them, and the line that stands for them all."""
    end = place + 1
    while end < len(lines) and _is_next(lines[place], lines[end], end - place):
        end += 1
    if end - place < 2 or not (different := _differing(lines[place], lines[place + 1])):
        return end, lines[place]
    line = lines[place]
    inside = {
        token: [found.start() - token.start() for found in different if token.start() <= found.start() < token.end()]
        for token in _NUMBERS.finditer(line)
    }
    if sum(map(len, inside.values())) != len(different):
        return place + 1, line  # a number within a name of Python's
    for token, places in reversed(inside.items()):
        if places:
            line = line[: token.start()] + _with_n(token[0], places) + line[token.end() :]
    return end, line


def _with_n(token: str, places: Sequence[int]) -> str:
    """The number, or the text with `n` for the numbers at these places."""
    if token.isdigit():
        return "n"
    text, end = "", 0
    for place in places:
        number = re.match(r"\d+", token[place:])
        assert number is not None
        text += _braced(token[end:place]) + "{n}"
        end = place + len(number[0])
    text += _braced(token[end:])
    return f"f{text[1:]}.encode()" if token.startswith("b") else f"f{text}"


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _differing(one: str, other: str) -> list[re.Match[str]]:
    """The numbers in which they differ; each is in the first of them."""
    these, those = list(re.finditer(r"\d+", one)), list(re.finditer(r"\d+", other))
    return [each for each, its in zip(these, those, strict=False) if each[0] != its[0]]


def _is_next(first: str, line: str, steps: int) -> bool:
    if re.sub(r"\d+", "#", first) != re.sub(r"\d+", "#", line) or first[-1:] == ":" or first.startswith(" "):
        return False
    pairs = zip(re.findall(r"\d+", first), re.findall(r"\d+", line), strict=True)
    unequal = [(one, other) for one, other in pairs if one != other]
    different = [(int(one), int(other)) for one, other in unequal]
    if any(one[0] == "0" and len(one) > 1 for one, _ in unequal):
        return False
    return all(other == one + steps and one == different[0][0] for one, other in different)
