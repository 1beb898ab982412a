"""The command language: what is printed is read back, and what is wrong is named with its column."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from amqpspec.conformance.language.command import Command, print_command
from amqpspec.conformance.language.command_arguments import (
    ARGUMENTS,
    BODY_METHODS,
    CAPABILITIES,
    MAX_WAIT,
    PROPERTIES,
    TABLE_METHODS,
)
from amqpspec.conformance.language.command_parsing import MAX_BODY, CommandSyntaxError, parse_command
from amqpspec.model.protocol.methods import (
    CONTENT_METHODS,
    FAULTS,
    METHOD_IDS,
    OPERATOR,
    OPERATOR_METHODS,
    OTHER_INPUTS,
    Content,
    Table,
)

METHODS = sorted({*METHOD_IDS, *OTHER_INPUTS})

#: Words that could be taken for something else.
TRICKY = [
    "", "&", "#", "#x", "a=b", "=a", "true", "false", "null", "7", "-7", "1.5", "1e5", "durable", "no-ack", "no_ack",
    "nowait", "global", "tag", "prefetch", "x-queue-type", "x-max=1", "[", "{", '"', "\\", "$type", "@title", "a b",
    "m1 ", "q&", " ", "é", "\N{SNOWMAN}", "\x00", "\n", "\u2028", "\x85", "٣", "'",
]  # fmt: skip

texts = st.one_of(st.sampled_from(TRICKY), st.text(max_size=12), st.text("abq.-_=#&\"'[]{} \\", max_size=8))
numbers = st.integers(-(10**20), 10**20)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.floats(allow_nan=False, allow_infinity=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
KINDS = {
    "text": texts,
    "number": numbers,
    "number of milliseconds": st.integers(0, MAX_WAIT),
    "bit": st.booleans(),
    "table": st.dictionaries(texts, json_values, max_size=3),
    "hexadecimal text": st.binary(max_size=12).map(bytes.hex),
}
table_names = st.one_of(
    st.sampled_from(["x-queue-type", "x-max-length", "x-a.b_c", "x-é", "x-", "alternate-exchange"]), texts
)
bodies = st.one_of(
    texts.map(str.encode),
    st.builds(lambda text, filling: text.encode() + b"." * filling, texts, st.integers(0, 3000)),
)


@st.composite
def commands(draw: st.DrawFn, method: str | None = None) -> Command:
    method = method or draw(st.sampled_from(METHODS))
    known = ARGUMENTS.get(method, {})
    arguments: Table = {}
    for name in draw(st.lists(st.sampled_from(sorted(known)), unique=True)) if known else ():
        arguments[name] = draw(KINDS[known[name]])
    if method in TABLE_METHODS:
        table = draw(st.dictionaries(table_names, json_values, max_size=3))
        if table:
            arguments["arguments"] = table
    if method == "connection.open":
        capabilities = draw(st.dictionaries(st.sampled_from(CAPABILITIES), st.booleans(), max_size=3))
        if capabilities:
            arguments["capabilities"] = capabilities
    content = None
    if method == "basic.publish" and draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(sorted(PROPERTIES)), unique=True))
        content = Content({name: draw(KINDS[PROPERTIES[name]]) for name in names}, draw(bodies))
    elif method in BODY_METHODS - CONTENT_METHODS:
        content = Content({}, draw(bodies))
    elif method in CONTENT_METHODS - BODY_METHODS:
        content = Content()
    return Command(
        OPERATOR if method in OPERATOR_METHODS else draw(st.sampled_from(["a", "b@2", "consumer2"])),
        0 if method in FAULTS else draw(st.sampled_from([0, 1, 2, 2047, 65535])),
        method,
        arguments,
        content,
        as_it_stands=method not in FAULTS and draw(st.booleans()),
        in_flight=draw(st.booleans()),
    )


def typed(value: Any) -> Any:
    """A value that equals another's only if the types are equal as well: True is not 1, and 1 is not 1.0."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value), value, math.copysign(1, value) if isinstance(value, float) else None


@settings(deadline=None, max_examples=600)
@given(commands())
@example(Command("a", 1, "queue.bind", {"queue": "nowait", "exchange": "nowait", "routing_key": "nowait"}))
@example(Command("a", 1, "queue.declare", {"queue": "q", "arguments": {"x-queue-type": "true", "x-max-length": 1.5}}))
@example(Command("a", 1, "basic.publish", {}, Content({"headers": {}}, b"." * 41)))
def test_what_is_printed_is_read_back(command: Command) -> None:
    text = print_command(command)
    assert len(text.splitlines()) == 1
    again = parse_command(text)
    assert again == command, text
    assert typed(again.arguments) == typed(command.arguments), text
    if command.content is not None and again.content is not None:
        assert typed(dict(again.content.properties)) == typed(dict(command.content.properties)), text
    assert print_command(again) == text, "the printed text is the canonical one"
    assert parse_command(text + "  # q &") == command


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_read_back(method: str) -> None:
    @settings(deadline=None, max_examples=15, database=None)
    @given(commands(method))
    def check(command: Command) -> None:
        assert parse_command(print_command(command)) == command

    check()


@settings(deadline=None, max_examples=500)
@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(st.sampled_from(["a.1", "a!", "basic.get", "queue.declare", *TRICKY, "x-y=", "body="])).map(" ".join),
        st.tuples(commands().map(str), st.text(max_size=6), st.integers(0, 200)).map(
            lambda parts: parts[0][: parts[2]] + parts[1] + parts[0][parts[2] :]
        ),
    )
)
def test_any_line_is_a_command_or_an_error_with_a_column_in_the_line(line: str) -> None:
    try:
        command = parse_command(line)
    except CommandSyntaxError as error:
        assert 1 <= error.column <= len(line) + 1
        assert error.message
        assert "\n" not in error.message
    else:
        assert parse_command(str(command)) == command


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("", 1, "a command is missing"),
        ("   # nothing", 1, "a command is missing"),
        ("&", 1, "a command is missing"),
        ("a", 2, "a method is missing"),
        ("a.1", 4, "a method is missing"),
        ("a.1 &", 6, "a method is missing"),
        ("A.1 basic.get q", 1, "'A.1' is not a connection or channel"),
        ("1.a basic.get q", 1, "'1.a' is not a connection or channel"),
        ("  a.x basic.get q", 3, "'a.x' is not a connection or channel"),
        ("a.65536 basic.get q", 1, "channel 65536 is beyond 65535"),
        ("a." + "1" * 5000 + " basic.get q", 1, "is not a connection or channel"),
        ("a.1 basic.fly q", 5, "'basic.fly' is not a method"),
        ("a.1 method=basic.get", 5, "'basic.get' is not a method"),
        ("a.1 basic.get q r", 17, "'r' is not an argument of basic.get"),
        ("a.1 basic.get q durable", 17, "'durable' is not an argument of basic.get"),
        ("a.1 basic.get q colour=red", 17, "'colour' is not an argument of basic.get"),
        ("a.1 basic.get q x-max=1", 17, "'x-max' is not an argument of basic.get"),
        ("a.1 basic.get q body=m1", 17, "'body' is not an argument of basic.get"),
        ("a.1 basic.get q queue=r", 17, "queue is given twice"),
        ("a.1 basic.ack 1 multiple multiple=false", 26, "multiple is given twice"),
        ("a.1 queue.declare q x-y=1 x-y=1", 27, "x-y is given twice"),
        ("a.1 basic.publish q body=a body=b", 28, "body is given twice"),
        ("a.1 basic.publish q priority=1 priority=2", 32, "priority is given twice"),
        ("a.1 basic.qos many", 15, "'many' is not a number"),
        ("a.1 basic.qos prefetch-count=many", 30, "'many' is not a number"),
        ("a.1 basic.qos true", 15, "'true' is not a number"),
        ("a.1 basic.qos " + "1" * 5000, 15, "is not a number"),
        ("a.1 basic.ack 1 multiple=1", 26, "'1' is not a bit"),
        ("a.1 basic.publish q headers=[1]", 29, "'[1]' is not a table"),
        ("a.1 basic.publish q body=[1]", 26, "'[1]' is not a text"),
        ("a.1 basic.publish q body-size=-1", 31, "a body has 0 to"),
        (f"a.1 basic.publish q body-size={MAX_BODY + 1}", 31, "a body has 0 to"),
        ('a.1 basic.publish q body="m1', 26, "no closing quotation mark"),
        ('a.1 basic.publish q "m1', 21, "no closing quotation mark"),
        ('a.1 basic.publish q body="a\\x"', 28, "is not JSON"),
        ('a.1 basic.publish q body="m1"m2', 30, "a blank is missing before 'm2'"),
        ('a.1 basic.publish q body="\\ud800"', 26, "half a character"),
        ('a.1 basic.publish q headers={"a": 1', 36, "not JSON"),
        ('a.1 basic.publish q headers={"a": x}', 35, "not JSON"),
        ('a.1 basic.publish q headers={"a": 1}x', 37, "a blank is missing before 'x'"),
        ("a.1 queue.declare q x-y=" + "[" * 100_000, 25, "nested too deep"),
        *((f"a.1 queue.declare q x-y={'[' * n}{']' * n}", 25, "nested too deep") for n in (202, 900, 2000)),
        ("broker clock.wait 9223372036855", 19, "is not from 0 to 86400000 milliseconds"),
        ("broker clock.wait milliseconds=-5", 32, "is not from 0 to 86400000 milliseconds"),
        ("a.1 queue.declare q x-y=[" + "1" * 5000 + "]", 25, "too many digits"),
        ("broker basic.get q", 8, "is a method of a client's connection"),
        ("a clock.wait 5", 3, "is a method of the connection 'broker'"),
        ("a.1 basic.get q &&", 17, "'&&' is not an argument"),
        ("a.1 basic.get & q", 15, "& stands at the end"),
        ("a.1 & basic.get", 5, "& stands at the end"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_what_is_wrong_is_named_with_its_column(line: str, column: int, message: str) -> None:
    with pytest.raises(CommandSyntaxError) as caught:
        parse_command(line)
    assert message in caught.value.message
    assert caught.value.column == column
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("short", "canonical"),
    [
        ("a.1 basic.ack tag=3", "a.1 basic.ack 3"),
        ("a.1 basic.nack delivery-tag=3 requeue=true", "a.1 basic.nack 3 requeue"),
        ("a.1 basic.reject tag=3", "a.1 basic.reject 3"),
        ("a.1 basic.consume q tag=t", "a.1 basic.consume q consumer-tag=t"),
        ("a.1 basic.cancel tag=t", "a.1 basic.cancel t"),
        ("a.1 basic.qos prefetch=5 global", "a.1 basic.qos 5 global"),
        ("a.1 basic.qos 5 global=false", "a.1 basic.qos 5 global=false"),
        ("  a.1\tbasic.get   q  # all of it", "a.1 basic.get q"),
        ("a.1 basic.get q#", "a.1 basic.get q#"),
        ("a.0 connection.close", "a connection.close"),
        ('a.1 basic.publish q body="m1"', "a.1 basic.publish q body=m1"),
        ('a.1 basic.publish "a b" body="c d"', 'a.1 basic.publish "a b" body="c d"'),
        ("a.1 basic.publish exchange=x k", "a.1 basic.publish k exchange=x"),
        ("a.1 queue.bind q routing-key=k exchange=x", "a.1 queue.bind q x routing-key=k"),
        ("a.1 queue.bind exchange=x", "a.1 queue.bind exchange=x"),
        ("a.1! basic.get q &", "a.1! basic.get q &"),
        ("a socket.abort", "a socket.abort"),
        ("a connection.open consumer-cancel-notify=false", "a connection.open consumer_cancel_notify=false"),
        (f"a.1 basic.publish q body=x{'.' * 99}", "a.1 basic.publish q body=x body-size=100"),
        ("a.1 basic.publish q body=long body-size=2", "a.1 basic.publish q body=long"),
    ],
)
def test_short_forms(short: str, canonical: str) -> None:
    assert str(parse_command(short)) == canonical
    assert parse_command(canonical) == parse_command(short)


def test_what_a_line_says() -> None:
    line = (
        'b.2! basic.publish "a key" exchange=x mandatory body="m 1" delivery-mode=2 headers={"n": 1, "s": "1"} &  # all'
    )
    assert parse_command(line) == Command(
        "b",
        2,
        "basic.publish",
        {"routing_key": "a key", "exchange": "x", "mandatory": True},
        Content({"delivery_mode": 2, "headers": {"n": 1, "s": "1"}}, b"m 1"),
        as_it_stands=True,
        in_flight=True,
    )
    assert parse_command("a.1 queue.declare q durable x-a=1 x-b=-1.5 x-c=true x-d=1x x-e=null").arguments == {
        "queue": "q",
        "durable": True,
        "arguments": {"x-a": 1, "x-b": -1.5, "x-c": True, "x-d": "1x", "x-e": None},
    }
    # the routing key and the body are texts whatever they look like
    command = parse_command("a.1 basic.publish 7 body=true")
    assert (command.arguments["routing_key"], command.content) == ("7", Content({}, b"true"))
    # a publish without body has content all the same, other methods have none
    assert parse_command("a.1 basic.publish q").content == Content()
    assert parse_command("a.1 basic.get q").content is None


@pytest.mark.parametrize("line", ["broker.kill", "broker.restart node=2", "network.cut connection=a@3"])
def test_a_line_of_a_fault_begins_with_its_name(line: str) -> None:
    command = parse_command(line)
    assert (command.connection, str(command)) == (OPERATOR, line)
    assert parse_command(f"{OPERATOR} {line}") == command


def test_a_connection_may_name_its_node() -> None:
    assert parse_command("a@2.1 basic.get q").connection == "a@2"
