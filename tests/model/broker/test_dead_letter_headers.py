"""Dead letters and the counts of quorum queues, by dialect: what is delivered, and what is blamed when it is not so."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.dead_letter_headers import as_seen, chosen, in_a_cycle
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import Content, Method, event_of
from amqpspec.model.protocol.patterns import AnyMoment
from amqpspec.model.rules.inputs import process

WITH_EXTENSIONS = [name for name, dialect in DIALECTS.items() if dialect.extensions]
TO_D = 'x-dead-letter-exchange="" x-dead-letter-routing-key=d'
D, QUORUM_D = "a.1 queue.declare d durable", "a.1 queue.declare d durable x-queue-type=quorum"


def quorum(arguments: str = "") -> str:
    return f"a.1 queue.declare q durable x-queue-type=quorum {arguments}"


def classic(arguments: str = "") -> str:
    return f"a.1 queue.declare q durable {arguments}"


def right_answer(dialect: str, *lines: str) -> tuple[Plan, Method]:
    """The state after these commands, the last of which is not answered; and its right answer."""
    plan = Plan(dialect_named(dialect))
    for line in lines[:-1]:
        plan.carry_out(parse_command(line))
    last = parse_command(lines[-1])
    process(plan.broker, event_of(last.connection, last.channel, last.method, dict(last.arguments), True, last.content))
    return plan, next(permitted(plan.broker))


def got(dialect: str, *lines: str) -> Method:
    return right_answer(dialect, *lines)[1]


def headers(method: Method) -> dict[str, Any]:
    assert method.content is not None
    return dict(method.content.properties.get("headers") or {})


def counts(method: Method) -> tuple[bool, int | None, int | None]:
    told = headers(method)
    return method.arguments["redelivered"], told.get("x-delivery-count"), told.get("x-acquired-count")


def blamed(dialect: str, *lines: str, told: dict[str, Any] | None = None, **arguments: Any) -> list[str]:
    """What is blamed for the answer to the last command, where it has these headers and arguments in place of its."""
    plan, answer = right_answer(dialect, *lines)
    assert answer.content is not None
    changed = {name: value for name, value in {**headers(answer), **(told or {})}.items() if value is not None}
    content = Content({**answer.content.properties, "headers": changed}, answer.content.body)
    wrong = replace(answer, arguments={**answer.arguments, **arguments}, content=content)
    return [mismatch.requirement for mismatch in observe(plan.broker, wrong)]


DIED = (D, classic(TO_D), "a.1 basic.publish q body=m", "a.1 basic.get q", "a.1 basic.nack 1", "a.1 basic.get d")


# ------------------------------------------------------------------------------------------------- history


@pytest.mark.parametrize("dialect", WITH_EXTENSIONS)
def test_a_dead_letter_tells_its_history(dialect: str) -> None:
    method = got(dialect, *DIED)
    death = headers(method)["x-death"][0]
    assert isinstance(death.pop("time"), datetime)
    assert death == {"count": 1, "reason": "rejected", "queue": "q", "exchange": "", "routing-keys": ["q"]}
    assert method.arguments["routing_key"] == "d"
    assert headers(method)["x-first-death-queue"] == "q"
    assert ("x-last-death-queue" in headers(method)) is (dialect != "rabbitmq-3")


@pytest.mark.parametrize("dialect", WITH_EXTENSIONS)
def test_deaths_are_counted_by_queue_and_reason_the_latest_first(dialect: str) -> None:
    method = got(
        dialect,
        'a.1 queue.declare d durable x-dead-letter-exchange="" x-dead-letter-routing-key=q',
        *DIED[1:],
        "a.1 basic.nack 2",
        "a.1 basic.get q",
        "a.1 basic.nack 3",
        "a.1 basic.get d",
    )
    assert [(each["queue"], each["count"]) for each in headers(method)["x-death"]] == [("q", 2), ("d", 1)]
    assert headers(method)["x-first-death-queue"] == "q"


@pytest.mark.parametrize(("dialect", "count"), [("rabbitmq-3", 4), ("rabbitmq-4.0", 1), ("rabbitmq-4.3", 1)])
def test_whose_history_it_is(dialect: str, count: int) -> None:
    sent = 'a.1 basic.publish q headers={"x-death": [{"count": 3, "queue": "q", "reason": "rejected"}]} body=m'
    method = got(dialect, *DIED[:2], sent, *DIED[3:])
    assert headers(method)["x-death"][0]["count"] == count


@pytest.mark.parametrize("dialect", WITH_EXTENSIONS)
def test_the_expiration_goes_into_the_history(dialect: str) -> None:
    method = got(dialect, *DIED[:2], "a.1 basic.publish q expiration=60000 body=m", *DIED[3:])
    assert method.content is not None and "expiration" not in method.content.properties
    assert headers(method)["x-death"][0]["original-expiration"] == "60000"


@pytest.mark.parametrize("dialect", WITH_EXTENSIONS)
def test_a_key_of_the_queue_takes_the_place_of_cc_and_bcc(dialect: str) -> None:
    sent = 'a.1 basic.publish q headers={"CC": ["c"], "BCC": ["b"]} body=m'
    method = got(dialect, *DIED[:2], sent, *DIED[3:])
    assert headers(method)["x-death"][0]["routing-keys"] == ["q", "c"]
    assert ("CC" in headers(method)) is (dialect != "rabbitmq-3")


def test_a_rejection_breaks_a_cycle() -> None:
    limit = {"queue": "q", "reason": "delivery_limit"}
    rejected = {"queue": "d", "reason": "rejected"}
    assert in_a_cycle([limit], "q")
    assert not in_a_cycle([limit], "d")
    assert not in_a_cycle([rejected, limit], "q")
    assert in_a_cycle([limit, rejected], "q")


def test_patterns_within() -> None:
    moment = datetime(2020, 2, 2, tzinfo=UTC)
    expected = {"h": [{"time": AnyMoment(), "n": 1}]}
    assert as_seen(expected, {"h": [{"time": moment, "n": 2}]}) == {"h": [{"time": moment, "n": 1}]}
    assert as_seen(expected, {"h": [{"time": "noon"}]}) == expected
    assert isinstance(chosen(expected)["h"][0]["time"], datetime)


# --------------------------------------------------------------------------------------- where it goes, or not


def ready(dialect: str, queue: str, *lines: str) -> int:
    plan = Plan(dialect_named(dialect))
    for line in lines:
        plan.carry_out(parse_command(line))
    return len(plan.broker.queues[queue].messages)


@pytest.mark.parametrize(
    "end", ["basic.ack 1", "basic.nack 1 requeue", "basic.reject 1 requeue", "channel.close", "queue.purge q"]
)
def test_what_makes_no_dead_letter(end: str) -> None:
    assert ready("rabbitmq-4.3", "d", *DIED[:4], f"a.1 {end}") == 0


def test_a_queue_that_is_gone_makes_no_dead_letters() -> None:
    assert ready("rabbitmq-4.3", "d", *DIED[:4], "b.1 queue.delete q", "a.1 basic.nack 1") == 0


def test_without_its_exchange_a_message_is_gone() -> None:
    lines = (D, classic("x-dead-letter-exchange=missing"), *DIED[2:5])
    plan = Plan(dialect_named("rabbitmq-4.3"))
    for line in lines:
        plan.carry_out(parse_command(line))
    assert not plan.broker.queues["d"].messages
    assert plan.broker.bookkeeping.exercised["DLX-007"] == 1


@pytest.mark.parametrize("dialect", WITH_EXTENSIONS)
def test_beyond_the_limit_a_message_is_a_dead_letter_with_that_reason(dialect: str) -> None:
    method = got(dialect, D, quorum(f"x-delivery-limit=0 {TO_D}"), *DIED[2:4], "a.1 basic.reject 1 requeue", DIED[-1])
    assert headers(method)["x-death"][0]["reason"] == "delivery_limit"


@pytest.mark.parametrize("dialect", WITH_EXTENSIONS)
def test_the_limit_does_not_send_a_message_round(dialect: str) -> None:
    lines = (quorum('x-delivery-limit=0 x-dead-letter-exchange=""'), *DIED[2:4], "a.1 basic.reject 1 requeue")
    assert ready(dialect, "q", *lines) == 0
    assert ready(dialect, "q", *lines[:-1], "a.1 basic.reject 1") == 1


# -------------------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize(
    ("dialect", "way", "seen"),
    [
        ("rabbitmq-3", "basic.nack 1 requeue", (True, 1, None)),
        ("rabbitmq-4.0", "basic.nack 1 requeue", (True, 1, None)),
        ("rabbitmq-4.3", "basic.nack 1 requeue", (True, None, 1)),
        ("rabbitmq-4.3", "basic.recover requeue", (True, None, 1)),
        ("rabbitmq-4.3", "basic.reject 1 requeue", (True, 1, 1)),
        ("rabbitmq-4.3", "channel.close", (True, 1, 1)),
    ],
)
def test_what_counts_as_failed(dialect: str, way: str, seen: tuple[bool, int | None, int | None]) -> None:
    lines = (quorum(), *DIED[2:4], "b.1 channel.open", f"a.1 {way}", "b.1 basic.get q")
    assert counts(got(dialect, *lines)) == seen


@pytest.mark.parametrize(
    ("dialect", "source", "target", "way", "seen"),
    [
        ("rabbitmq-3", "quorum", "quorum", "reject", (False, 0, None)),
        ("rabbitmq-4.0", "quorum", "quorum", "nack", (True, 1, None)),
        ("rabbitmq-4.0", "quorum", "classic", "reject", (False, None, None)),
        ("rabbitmq-4.0", "classic", "quorum", "reject", (False, None, None)),
        ("rabbitmq-4.3", "quorum", "quorum", "nack", (False, None, None)),
        ("rabbitmq-4.3", "quorum", "quorum", "reject", (True, 1, 1)),
        ("rabbitmq-4.3", "classic", "classic", "nack", (False, None, None)),
        ("rabbitmq-4.3", "classic", "classic", "reject", (True, None, None)),
        ("rabbitmq-4.3", "classic", "quorum", "reject", (True, 1, 1)),
    ],
)
def test_what_a_dead_letter_brings_along(
    dialect: str, source: str, target: str, way: str, seen: tuple[bool, int | None, int | None]
) -> None:
    method = got(
        dialect,
        QUORUM_D if target == "quorum" else D,
        quorum(TO_D) if source == "quorum" else classic(TO_D),
        *DIED[2:4],
        f"a.1 basic.{way} 1",
        DIED[-1],
    )
    assert counts(method) == seen


@pytest.mark.parametrize(("dialect", "left"), [("rabbitmq-3", 0), ("rabbitmq-4.0", 1), ("rabbitmq-4.3", 1)])
def test_a_negative_limit(dialect: str, left: int) -> None:
    assert ready(dialect, "q", quorum("x-delivery-limit=-1"), *DIED[2:4], "a.1 basic.reject 1 requeue") == left


def test_a_limit_that_is_no_number_is_the_usual_one() -> None:
    assert ready("rabbitmq-4.3", "q", quorum("x-delivery-limit=many"), *DIED[2:4], "a.1 basic.reject 1 requeue") == 1


# --------------------------------------------------------------------------------------------------- blame


@pytest.mark.parametrize(
    ("told", "arguments", "requirement"),
    [
        ({"x-death": None}, {}, "DLX-001"),
        ({"x-first-death-reason": "expired"}, {}, "DLX-003"),
        ({"x-last-death-queue": None}, {}, "DLX-003"),
        ({}, {"routing_key": "q"}, "DLX-005"),
        ({}, {"exchange": "amq.direct"}, "DLX-005"),
        ({"x-delivery-count": Int64(2)}, {}, "QUORUM-001"),
    ],
)
def test_who_is_to_blame(told: dict[str, Any], arguments: dict[str, Any], requirement: str) -> None:
    assert blamed("rabbitmq-4.3", *DIED, told=told, **arguments) == [requirement]


@pytest.mark.parametrize(("key", "value", "requirement"), [("reason", "expired", "DLX-001"), ("count", 2, "DLX-002")])
def test_who_is_to_blame_for_an_entry(key: str, value: Any, requirement: str) -> None:
    death = headers(got("rabbitmq-4.3", *DIED))["x-death"][0]
    assert blamed("rabbitmq-4.3", *DIED, told={"x-death": [{**death, key: value}]}) == [requirement]


@pytest.mark.parametrize(
    ("told", "requirement"),
    [
        ({"x-acquired-count": None}, "QUORUM-001"),
        ({"x-acquired-count": Int64(2)}, "QUORUM-001"),
        ({"x-delivery-count": Int64(1)}, "QUORUM-002"),
    ],
)
def test_who_is_to_blame_for_a_count(told: dict[str, Any], requirement: str) -> None:
    lines = (quorum(), *DIED[2:4], "a.1 basic.nack 1 requeue", "a.1 basic.get q")
    assert blamed("rabbitmq-4.3", *lines, told=told) == [requirement]


def test_of_two_copies_it_is_the_one_that_its_history_tells() -> None:
    lines = (
        "a.1 exchange.declare x type=fanout",
        D,
        classic("x-dead-letter-exchange=x"),
        "a.1 queue.bind d x",
        "a.1 queue.bind q x",
        "a.1 basic.publish exchange=x routing-key=k body=m",
        "a.1 basic.get q",
        "a.1 basic.nack 1",
    )
    plan, first = right_answer("rabbitmq-4.3", *lines, "a.1 basic.get d")
    assert "x-death" not in headers(first)
    assert observe(plan.broker, first) == ()
    plan, first = right_answer("rabbitmq-4.3", *lines, "a.1 basic.get d no-ack", "a.1 basic.get d")
    # the dead letter, of which there is one more as x goes to q as well
    assert headers(first)["x-death"][0]["queue"] == "q"
    assert observe(plan.broker, first) == ()
    assert len(plan.broker.queues["q"].messages) == 1
