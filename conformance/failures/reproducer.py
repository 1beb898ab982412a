"""A program that shows a failure without this suite: plain pika, to paste into a bug report.

It sends the very methods that the suite sent, right and wrong ones, and prints all that the broker sends. Its client
part is `conformance.failures.standalone_client`; here the commands become calls of it, and the failure its head.
"""

from __future__ import annotations

import math
import re
import symtable
import textwrap
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

from amqpspec.conformance.failures import (
    by_hand,
    pika_gaps,
    pika_methods,
    plain_pika,
    short_program,
    shows_by,
    signs,
    step_by_step,
)
from amqpspec.conformance.failures.signs_of_failure import conclusion, known_by
from amqpspec.conformance.language.command import EXPECT, Command
from amqpspec.conformance.language.command_arguments import LAST_HEADERS
from amqpspec.conformance.language.faults import is_left_broken
from amqpspec.conformance.language.names import on_the_broker, plain_failure
from amqpspec.conformance.session.handshake_steps import STEPS
from amqpspec.model.broker.nodes import node_of
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.protocol.field_types import Float32, WireInteger
from amqpspec.model.protocol.methods import OPERATOR, OTHER_EVENTS, Method, RawFrame
from amqpspec.targets.codec.methods_codec import encode

_WIDTH = 118
#: Stands for the prefix of names, which a program makes when it starts.
_PREFIX = "\0prefix\0"
#: Stands for the latest address of direct replies, which a program learns while it runs.
_ADDRESS = "amq.\0address\0"
#: Seconds of silence after which a program takes a frame to be missing.
_PATIENCE = 5
#: Where the broker's clock is waited for, what a program does besides must take little time.
_LESS_QUIET = ("QUIET, DEADLINE = 0.2,", "QUIET, DEADLINE = 0.02,")
#: Where pika's name of an argument is not ours.
_PIKA_NAMES = {"global_": "global_qos"}

_DIVIDER = "# " + " A client that sends what it is told, and prints what comes: ".center(_WIDTH - 2, "-")
_TAIL = """

try:
    sequence()
    settle()
{look}finally:
    clean_up()
"""
#: A broker that is gone after the first connection may be what is to be seen.
_TAIL_WITH_SIGNS = """

try:
    sequence()
    settle()
    wait_for_signs()
{look}except SystemExit:
    if not CONNECTIONS:
        raise
finally:
    clean_up()
"""


def program(commands: Sequence[Command], failure: Failure) -> str:
    """The text of a Python program that shows the failure, and whose exit code says whether it did: 1 if it did, 0 if
    the broker does not do it, 2 if that cannot be told. It is short where pika can do it.
    """
    failure = plain_failure(failure)
    known, sent = known_by(failure), [each for each in commands if each.connection != EXPECT]
    if known is not None and sent and str(sent[-1]) == failure.command:  # it looks at what the last command brings
        text = _short(shows_by.by_known(known, sent), failure)
        if text:
            return text
    return reproducer(commands, failure, ends=conclusion(failure))


def program_of_finding(
    commands: Sequence[Command], failure: Failure, shown_by: Sequence[signs.Signs], *, only_by_methods: bool = False
) -> str:
    """The same for a finding, whose signs say by what it is seen on which versions. Exit code 1 if it is seen, else 0.

    `only_by_methods`: pika's own calls do not show it.
    """
    failure = plain_failure(failure)
    text = _short(shows_by.by_signs(shown_by, commands), failure, only_by_methods) if shown_by else ""
    return text or reproducer(commands, failure, shown_by)


def _short(shown: shows_by.ShownBy, failure: Failure, only_by_methods: bool = False) -> str:
    """By pika's calls, or else by methods; "": by neither."""
    way: type[plain_pika.PlainPika] | type[pika_methods.PikaMethods]
    if not only_by_methods and plain_pika.can_be_said(shown):
        shown, way = plain_pika.as_heard(shown), plain_pika.PlainPika
    elif pika_methods.can_be_said(shown):
        way = pika_methods.PikaMethods
    else:
        return ""
    if not shown.can_be_told:
        return ""
    names: dict[str, str] = {}

    def literal(value: Any) -> str:
        if isinstance(value, str) and value.removeprefix(_PREFIX) in names and value.startswith(_PREFIX):
            return names[value.removeprefix(_PREFIX)]
        if isinstance(value, dict):
            return "{" + ", ".join(f"{literal(name)}: {literal(item)}" for name, item in value.items()) + "}"
        return f"[{', '.join(map(literal, value))}]" if isinstance(value, list) else _literal(value)

    made = way(shown, literal, _PREFIX)
    names.update(made.names)
    return short_program.written(_short_head(failure), made.parts(), shown)


def _short_head(failure: Failure) -> str:
    """What it shows, in a few lines."""
    rule = requirements().get(failure.requirement)
    expected = " or ".join(each for each in failure.allowed if each != "see the rule")
    said = [
        ("", f"{failure.requirement}: {rule.title if rule else 'not in the registry'}"),
        ("Expected: ", expected or (rule.statement if rule else "nothing")),
        ("Observed: ", failure.observed),
        ("", "python THIS_FILE amqp://user:password@host:port/%2F   exit code 1: the broker does it, 0: it does not"),
    ]
    lines = (line for name, text in said for line in textwrap.wrap(f"{name}{_beginning(_one_line(text))}", _WIDTH - 2))
    return "".join(f"# {line}\n" for line in lines)


def _beginning(text: str) -> str:
    """Its first sentences: as many as fit into two lines or so, and one at least."""
    sentences = re.split(r"(?<=[.;:]) (?=[A-Z`])", text)
    while len(sentences) > 1 and len(" ".join(sentences)) > 2 * _WIDTH - 20:
        sentences.pop()
    return " ".join(sentences)


def reproducer(
    commands: Sequence[Command], failure: Failure, shown_by: Sequence[signs.Signs] = (), ends: str = ""
) -> str:
    """The text of a Python program that carries out the commands and prints what the broker sends.

    It takes the broker's URL as its argument, gives all names a random prefix, and deletes what it made. With signs to
    go by its last line says whether it has seen the failure, as its exit code does: 1 if it has, else 0. `ends`: where
    there are none, the definition of the function that says so.
    """
    failure = plain_failure(failure)
    shows = _where_it_shows(commands, failure)
    stepwise = step_by_step.stepwise(commands)
    calls = []
    for place, command in enumerate(commands):
        patient = place == shows and failure.shape is Shape.MISSING
        calls.append(_call(command, commands[:place], stepwise[place], patient))
        if place == shows:
            calls += _report(failure)
    sequence = "def sequence() -> None:\n" + textwrap.indent("\n".join(calls or [_joined("connect", ['"a"'])]), "    ")
    imports, additions = pika_gaps.imports_and_additions(commands)
    operator = by_hand.CLIENT_PART if any(each.connection == OPERATOR for each in commands) else ""
    steps = step_by_step.CLIENT_PART if any(stepwise) else ""
    look = "    look()\n" if any(each.method == "queue.declare" for each in commands) else ""
    tail = (_TAIL_WITH_SIGNS if shown_by else _TAIL).format(look=look) + _left_behind(commands)
    tail += "conclude()\n" if shown_by or ends else ""
    concluding = signs.CLIENT_PART if shown_by else ends
    helpers = _used(f"{imports}{_client()}{additions}{steps}{operator}{concluding}", sequence + tail)
    if any(each.method == "clock.wait" for each in commands):
        helpers = helpers.replace(*_LESS_QUIET)
    return f"{_head(failure)}\n\n{_signs(shown_by)}{sequence}\n\n\n{_DIVIDER}\n\n{helpers}{tail}"


def _signs(shown_by: Sequence[signs.Signs]) -> str:
    if not shown_by:
        return ""
    lines = []
    for each in shown_by:
        lines += [f"    ({_literal(each.where)}, [", *(f"        {_literal(line)}," for line in each.lines), "    ]),"]
    return "\n".join(["#: By version, what is printed where the broker does it.", "SIGNS = [", *lines, "]\n\n\n"])


def _report(failure: Failure) -> Iterator[str]:
    """What the person who sees the output is to compare with what stands above and below it."""
    rule = requirements().get(failure.requirement)
    parts = (
        f"reported here: {failure.requirement}" + (f" {rule.title}" if rule else ""),
        f"source: {rule.source}" if rule else "",
        f"observed: {failure.observed}",
        f"allowed: {' or '.join(failure.allowed) or 'nothing'}",
    )
    for line in (line for part in parts for line in textwrap.wrap(_one_line(part), _WIDTH - 20)):
        yield f"print({_literal(f'  # {line}')})"


def _where_it_shows(commands: Sequence[Command], failure: Failure) -> int:
    """The last command with the failure's text; the last of all if there is none."""
    places = [place for place, command in enumerate(commands) if str(command) == failure.command]
    return places[-1] if places else len(commands) - 1


@cache
def _client() -> str:
    """The client part, without its docstring and without remarks for our tools."""
    text = (resources.files("amqpspec.conformance.failures") / "standalone_client.py").read_text(encoding="utf-8")
    text = text[text.index("\nimport ") :].strip()
    return re.sub(r"  # (fmt: |type: ).*", "", text) + "\n"


def _used(helpers: str, program: str) -> str:
    """The helpers without those functions that neither the program nor another of them names."""
    blocks = {block: _names(block) for block in helpers.rstrip("\n").split("\n\n\n")}
    wanted = _names(program)
    while unused := [
        block
        for block in blocks
        if (function := re.match(r"def (\w+)\(", block))
        and not any(function[1] in names for names in (wanted, *(blocks[each] for each in blocks if each != block)))
    ]:
        for block in unused:
            del blocks[block]
    return "\n\n\n".join(blocks) + "\n"


def _names(text: str) -> set[str]:
    """Not by `ast`: two threads that make trees at once can end in a SystemError (seen with Python 3.11.7)."""

    def names(table: symtable.SymbolTable) -> Iterator[str]:
        yield from table.get_identifiers()
        for inner in table.get_children():
            yield from names(inner)

    return set(names(symtable.symtable(text, "<reproducer>", "exec")))


# ---------------------------------------------------------------------------------------------------- the head


def _head(failure: Failure) -> str:
    rule = requirements().get(failure.requirement)
    parts = [
        ("", f"{failure.requirement}: {rule.title if rule else 'not in the registry'}"),
        ("Rule", rule.statement if rule else ""),
        ("Source", rule.source if rule else ""),
        ("Shape", f"{failure.shape}: {failure.detail}" if failure.detail else str(failure.shape)),
        ("Shows after", failure.command or "the connection is opened"),
        ("Observed", failure.observed),
        ("Allowed", failure.allowed[0] if failure.allowed else "nothing"),
        *(("or", text) for text in failure.allowed[1:]),
        ("Known as", failure.defect),
        ("Needs", "pika 1.x"),
        ("Run with", "python THIS_FILE amqp://user:password@host:port/vhost"),
    ]
    return "\n".join(line for name, text in parts if text for line in _comment(name, text)) + "\n"


def _comment(name: str, text: str) -> Iterator[str]:
    wrapped = textwrap.wrap(_one_line(text), _WIDTH - 16) or [""]
    for number, line in enumerate(wrapped):
        yield f"# {f'{name}:' if name and not number else '':13}{line}" if name else f"# {line}"


def _one_line(text: str) -> str:
    """What was observed may hold anything, a line or the source itself must not end in it."""
    blanks = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in blanks)


# ----------------------------------------------------------------------------------------------------- the calls


def _call(command: Command, earlier: Sequence[Command], by_steps: bool, patient: bool) -> str:
    name = command.connection
    if name == EXPECT:
        return _joined("tell", [_literal(f"  # {command}")])
    if name != OPERATOR and is_left_broken(earlier, node_of(name)) and not _is_connected(name, earlier):
        return _joined("tell", [_literal(f"> {command}   (not sent: nobody is there)")])
    if command.method in ("socket.abort", "socket.silence"):
        return f"{command.method.partition('.')[2]}({_literal(command.connection)})"
    if command.connection == OPERATOR:
        function, words = by_hand.call(command)
        return _joined(function, list(map(_literal, words)))
    sent = on_the_broker(command, _PREFIX, _ADDRESS, LAST_HEADERS)
    if by_steps:
        words = [_literal(str(command)), *_named(step_by_step.words_of(sent, earlier))]
        return _joined("steps", [*words, *([f"quiet={_PATIENCE}"] if patient else [])])
    if command.method == STEPS[-1] and not command.channel and not command.as_it_stands:
        again = {"again": True} if any(other.connection == command.connection for other in earlier) else {}
        return _joined("connect", [_literal(command.connection), *_named({**sent.arguments, **again})])
    if OTHER_EVENTS.get(command.method) is RawFrame:
        octets = encode(Method("", sent.channel, sent.method, sent.arguments, True, sent.content))
        return _joined("raw", [_literal(str(command)), _octets(octets), *([f"quiet={_PATIENCE}"] if patient else [])])
    words = [_literal(str(command)), f"spec.{_pika_class(command.method)}"]
    words += _named({_PIKA_NAMES.get(name, name): value for name, value in sent.arguments.items()})
    usual = {} if command.channel else step_by_step.USUAL.get(command.method, {})
    words += [f"{name}={text}" for name, text in usual.items() if name not in sent.arguments]
    if command.method == "connection.update-secret":  # pika cannot decode this one, nor make one of zeros
        zeros = {"new_secret": "", "reason": ""}
        words += _named({name: text for name, text in zeros.items() if name not in sent.arguments})
    if sent.content is not None:
        words += _named({"properties": dict(sent.content.properties)})
        words.append(f"body={_literal(sent.content.body)}")
    if patient:
        words.append(f"quiet={_PATIENCE}")
    return _joined("do", words)


def _is_connected(name: str, earlier: Sequence[Command]) -> bool:
    """Was there a connection of that name since its node was started last?"""
    restarts = (place for place, each in enumerate(earlier) if each.method == "broker.restart")
    node = node_of(name)
    since = max((place for place in restarts if earlier[place].arguments.get("node", node) == node), default=-1)
    return any(each.connection == name for each in earlier[since + 1 :])


def _left_behind(commands: Sequence[Command]) -> str:
    words = by_hand.left_behind(commands)
    return f"\n{_joined('left_behind', list(map(_literal, words)))}\n" if words else ""


def _joined(function: str, words: list[str]) -> str:
    """The call in one line, in two if that is enough, else a line for each word."""
    first, *others = words
    for text in (f"{function}({', '.join(words)})", f"{function}({first},\n   {', '.join(others)})"):
        if max(map(len, text.splitlines())) + 4 <= _WIDTH:
            return text
    return f"{function}(\n" + "".join(f"    {word},\n" for word in words) + ")"


def _pika_class(method: str) -> str:
    """`basic.get-empty` is pika's `Basic.GetEmpty`."""
    return ".".join("".join(map(str.capitalize, part.split("-"))) for part in method.split("."))


def _named(arguments: dict[str, Any]) -> list[str]:
    return [f"{name}={_literal(value)}" for name, value in arguments.items()]


def _literal(value: Any) -> str:
    """Python's text of a value of the command language."""
    if isinstance(value, str) and value.startswith(_PREFIX):
        return f"P + {_literal(value.removeprefix(_PREFIX))}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(name)}: {_literal(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if value == _ADDRESS:
        return "REPLY_ADDRESSES[-1]"
    if value == LAST_HEADERS:
        return "HEADERS[-1]"
    if isinstance(value, WireInteger | Float32):
        # exact: a float of 32 bits is one of 64 bits as well
        return f'Number("{value.code}", ">{value.form}", {value!r})'
    if isinstance(value, Decimal):
        return f'decimal.Decimal("{value}")'
    if isinstance(value, bytearray):
        value = bytes(value)  # pika knows these only, and sends the same
    if isinstance(value, bytes) and len(value) - len(value.rstrip(b".")) > 40:
        return f'{_literal(value.rstrip(b"."))}.ljust({len(value)}, b".")'
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str | bytes) and (text := repr(value)).count("'") == 2 and '"' not in text:
        return text.replace("'", '"')
    return repr(value)


def _octets(octets: bytes) -> str:
    """In hexadecimal digits; what only fills a long body up is not written out."""
    beginning, end = octets[:-1].rstrip(b"."), octets[-1:]
    filled = len(octets) - len(beginning) - len(end)
    return f'{_literal(beginning.hex())} + "2e" * {filled} + "{end.hex()}"' if filled > 40 else _literal(octets.hex())
