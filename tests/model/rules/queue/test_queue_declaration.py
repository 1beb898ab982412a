"""queue.declare and queue.delete: which error comes, with which words. The texts are those of real brokers."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.protocol.methods import Method, event_of
from amqpspec.model.rules.inputs import process

THREE, FOUR_0, FOUR_3 = DIALECTS = ("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3")


def answer_to(dialect: str, *lines: str) -> Method | None:
    """What a broker answers to the last line, after it has answered all others."""
    plan = Plan(dialect_named(dialect))
    *before, last = map(parse_command, ("a.1 channel.open", "b.1 channel.open", *lines))
    for command in before:
        plan.carry_out(command)
    process(plan.broker, event_of(last.connection, last.channel, last.method, dict(last.arguments), sent=True))
    return next(permitted(plan.broker), None)


def refusal(dialect: str, *lines: str) -> str:
    answer = answer_to(dialect, *lines)
    assert answer is not None
    assert answer.name == "channel.close", str(answer)
    assert answer.arguments["reply_code"] == 406
    text: str = answer.arguments["reply_text"]
    return text.removeprefix("PRECONDITION_FAILED - ")


def is_accepted(dialect: str, *lines: str) -> bool:
    answer = answer_to(dialect, *lines)
    return answer is not None and answer.name in ("queue.declare-ok", "queue.delete-ok")


def invalid(argument: str, reason: str) -> str:
    return f"invalid arg '{argument}' for queue 'q' in vhost '/': {reason}"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("arguments", "argument", "reason"),
    [
        ("x-message-ttl=-1", "x-message-ttl", "{value_negative,-1}"),
        ("x-message-ttl=soon", "x-message-ttl", '"expected integer, got longstr"'),
        ("x-message-ttl=315360000001", "x-message-ttl", "{value_too_large,315360000001}"),
        ("x-expires=0", "x-expires", "{value_zero,0}"),
        ("x-expires=-5", "x-expires", "{value_negative,-5}"),
        ("x-message-ttl=-1 x-expires=0", "x-expires", "{value_zero,0}"),
        ("x-dead-letter-routing-key=k", "x-dead-letter-routing-key", "routing_key_but_no_dlx_defined"),
        (
            "x-dead-letter-exchange=x x-dead-letter-routing-key=7",
            "x-dead-letter-routing-key",
            "{unacceptable_type,signedint}",
        ),
        ("x-max-length=1.5", "x-max-length", '"expected integer, got double"'),
        ("x-max-length=true", "x-max-length", '"expected integer, got bool"'),
        ("x-max-length-bytes=-1", "x-max-length-bytes", "{value_negative,-1}"),
        ("x-max-priority=256", "x-max-priority", "{max_value_exceeded,256}"),
        ("x-overflow=foo x-delivery-limit=5", "x-overflow", "invalid_overflow"),
        ("x-overflow=1", "x-overflow", "{unacceptable_type,signedint}"),
        ("x-queue-version=3", "x-queue-version", "\"unsupported queue version '3'\""),
        ("x-single-active-consumer=yes", "x-single-active-consumer", "{unacceptable_type,longstr}"),
        ("x-queue-type=foo x-message-ttl=-1", "x-queue-type", "\"unsupported queue type 'foo'\""),
        ("x-queue-type=5", "x-queue-type", "{unacceptable_type,signedint}"),
        ("x-queue-type=[1]", "x-queue-type", "{unacceptable_type,array}"),
        ("x-queue-type=quorum x-dead-letter-strategy=never", "x-dead-letter-strategy", "invalid_dlx_strategy"),
        ("x-queue-type=quorum x-quorum-initial-group-size=0", "x-quorum-initial-group-size", "{value_zero,0}"),
        ("x-queue-type=quorum x-queue-leader-locator=no", "x-queue-leader-locator", "invalid_queue_locator_arg"),
        ("x-queue-type=stream x-max-age=5", "x-max-age", "{unacceptable_type,signedint}"),
        ("x-queue-type=stream x-max-age=0D", "x-max-age", "invalid_max_age"),
        ("x-queue-type=stream x-max-age=5x", "x-max-age", "invalid_max_age"),
    ],
)
def test_wrong_values(dialect: str, arguments: str, argument: str, reason: str) -> None:
    """QUEUE-013."""
    assert refusal(dialect, f"a.1 queue.declare q durable {arguments}") == invalid(argument, reason)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "arguments",
    ["x-foo=-1", "x-message-ttl=0", "x-queue-type=quorum x-delivery-limit=few", "x-queue-type=stream x-max-age=7D"],
)
def test_right_values_and_those_that_nobody_looks_at(dialect: str, arguments: str) -> None:
    assert is_accepted(dialect, f"a.1 queue.declare q durable {arguments}")


def test_what_is_checked_depends_on_the_version() -> None:
    lazy = "a.1 queue.declare q durable x-queue-mode=eager"
    expected = invalid("x-queue-mode", "\"unsupported queue mode 'eager'\"")
    assert refusal(THREE, lazy) == refusal(FOUR_0, lazy) == expected
    assert refusal(FOUR_3, lazy) is not None
    first = "a.1 queue.declare q durable x-queue-version=1"
    assert is_accepted(THREE, first)
    assert refusal(FOUR_3, first) == invalid("x-queue-version", "\"unsupported queue version '1'\"")
    timeout = "a.1 queue.declare q durable x-consumer-timeout=-5"
    assert is_accepted(THREE, timeout)
    assert is_accepted(FOUR_0, timeout)
    of_type = "invalid arg 'x-consumer-timeout' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"
    assert refusal(FOUR_3, timeout) == of_type
    filtered = "a.1 queue.declare q durable x-queue-type=stream x-stream-filter-size-bytes=15"
    assert is_accepted(THREE, filtered)
    assert refusal(FOUR_0, filtered) == "Invalid value for  x-stream-filter-size-bytes"
    assert refusal(FOUR_3, filtered) == "Invalid value for x-stream-filter-size-bytes"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_dead_letter_exchange_comes_before_everything_else(dialect: str) -> None:
    """QUEUE-014."""
    expected = "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'"
    line = "a.1 queue.declare q x-queue-type=foo x-expires=0 x-dead-letter-exchange=5"
    assert refusal(dialect, line) == expected


@pytest.mark.parametrize(
    ("dialect", "arguments", "argument", "kind"),
    [
        (THREE, "x-max-age=1D x-delivery-limit=5", "x-max-age", "classic"),
        # a missing type is put in, which sorts the table
        (FOUR_0, "x-max-age=1D x-delivery-limit=5", "x-delivery-limit", "classic"),
        (FOUR_0, "x-queue-type=classic x-max-age=1D x-delivery-limit=5", "x-max-age", "classic"),
        (FOUR_3, "x-queue-type=quorum x-queue-mode=lazy x-max-priority=300", "x-queue-mode", "quorum"),
        (FOUR_3, "x-queue-type=stream x-message-ttl=-5", "x-message-ttl", "stream"),
        (THREE, "x-queue-leader-locator=no", "x-queue-leader-locator", "classic"),
    ],
)
def test_arguments_of_other_types(dialect: str, arguments: str, argument: str, kind: str) -> None:
    """QUEUE-015: the first of the table is named, whatever its value."""
    expected = f"invalid arg '{argument}' for queue 'q' in vhost '/' of queue type rabbit_{kind}_queue"
    assert refusal(dialect, f"a.1 queue.declare q durable {arguments}") == expected


@pytest.mark.parametrize("kind", ["quorum", "stream"])
@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ("", "non-durable"),
        ("durable exclusive", "exclusive-owner"),
        ("exclusive auto-delete", "auto-delete"),
        ("durable auto-delete", "auto-delete"),
    ],
)
def test_properties_that_only_classic_queues_have(kind: str, flags: str, named: str) -> None:
    """QUEUE-017."""
    text = refusal(FOUR_0, f"a.1 queue.declare q {flags} x-queue-type={kind}")
    assert text == f"invalid property '{named}' for queue 'q' in vhost '/'"


CURRENT = "a.1 queue.declare q durable x-message-ttl=60000 x-max-length=5"


@pytest.mark.parametrize(
    ("again", "argument", "difference"),
    [
        ("x-max-length=6 x-message-ttl=-1", "x-message-ttl", "received '-1' but current is '60000'"),
        (
            "x-max-length=6",
            "x-message-ttl",
            "received none but current is the value '60000' of type 'signedint'",
        ),
        ("x-message-ttl=60000 x-max-length=5.0", "x-max-length", "received '5.0' but current is '5'"),
        ("x-message-ttl=true", "x-message-ttl", "received 'true' but current is '60000'"),
        (
            'x-message-ttl=[1,"a"]',
            "x-message-ttl",
            "received '[{signedint,1},{longstr,<<\"a\">>}]' but current is '60000'",
        ),
        (
            "x-message-ttl=60000 x-max-length=5 x-overflow=drop-head",
            "x-overflow",
            "received the value 'drop-head' of type 'longstr' but current is none",
        ),
        (
            "x-message-ttl=60000 x-max-length=5 x-queue-type=foo",
            "x-queue-type",
            "received 'foo' but current is 'classic'",
        ),
        ("x-queue-type=quorum", "x-message-ttl", "received none but current is the value '60000' of type 'signedint'"),
    ],
)  # fmt: skip
def test_redeclaring(again: str, argument: str, difference: str) -> None:
    """QUEUE-010, QUEUE-012: compared in the order of the existing queue's type, and not checked."""
    text = refusal(FOUR_0, CURRENT, f"a.1 queue.declare q durable {again}")
    assert text == f"inequivalent arg '{argument}' for queue 'q' in vhost '/': {difference}"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_makes_no_difference_on_redeclaring(dialect: str) -> None:
    assert is_accepted(dialect, CURRENT, "a.1 queue.declare q durable x-max-length=5 x-message-ttl=60000 x-foo=1")
    assert is_accepted(dialect, CURRENT, CURRENT + " x-queue-type=classic x-max-age=1D")
    assert is_accepted(dialect, "a.1 queue.declare q exclusive", "a.1 queue.declare q exclusive durable")


def test_whole_numbers_of_all_sizes_are_of_one_kind() -> None:
    made = 'a.1 queue.declare q x-max-length={"$b":5} x-message-ttl={"$s":30000}'
    assert is_accepted(FOUR_3, made, "a.1 queue.declare q x-max-length=5 x-message-ttl=30000")
    text = refusal(FOUR_3, made, 'a.1 queue.declare q x-max-length={"$f":5} x-message-ttl=30000')
    assert "'x-max-length'" in text and "'x-message-ttl'" not in text


def test_ages_are_compared_by_length_where_the_broker_does() -> None:
    made = "a.1 queue.declare q durable x-queue-type=stream x-max-age=7D"
    again = "a.1 queue.declare q durable x-queue-type=stream x-max-age=168h"
    assert is_accepted(FOUR_3, made, again)
    assert refusal(FOUR_0, made, again).endswith("received '168h' but current is '7D'")


def test_owner_and_flags_come_before_arguments() -> None:
    made = "a.1 queue.declare q durable"
    answer = answer_to(FOUR_3, made, "a.1 queue.declare q exclusive auto-delete x-message-ttl=5")
    assert answer is not None
    assert answer.arguments["reply_code"] == 405
    assert "'durable'" in refusal(FOUR_3, made, "a.1 queue.declare q auto-delete x-message-ttl=5")
    assert "'auto_delete'" in refusal(FOUR_3, made, "a.1 queue.declare q durable auto-delete x-message-ttl=5")


@pytest.mark.parametrize("line", ["a.1 queue.declare amq.x durable x-queue-type=foo", "a.1 queue.declare amq.x"])
def test_reserved_names_come_before_arguments(line: str) -> None:
    answer = answer_to(FOUR_3, line)
    assert answer is not None
    assert answer.arguments["reply_code"] == 403


def test_conditions_of_deletion() -> None:
    """QUEUE-023: not empty before in use on classic queues; not offered by quorum queues; ignored by streams."""
    used = ("a.1 basic.qos 1", "a.1 basic.consume q", "b.1 basic.publish q body=m", "b.1 basic.publish q body=n")
    both = "b.1 queue.delete q if-unused if-empty"
    assert refusal(FOUR_3, "a.1 queue.declare q durable", *used, both) == "queue 'q' in vhost '/' not empty"
    unused = "b.1 queue.delete q if-unused"
    assert refusal(FOUR_3, "a.1 queue.declare q durable", *used, unused) == "queue 'q' in vhost '/' in use"
    hard = answer_to(FOUR_3, "a.1 queue.declare q durable x-queue-type=quorum", both)
    assert hard is not None
    assert hard.name == "connection.close"
    assert hard.arguments["reply_code"] == 540
    assert "if-unused flag" in hard.arguments["reply_text"]
    assert is_accepted(FOUR_3, "a.1 queue.declare q durable x-queue-type=stream", *used, both)
    assert is_accepted(FOUR_3, both)
