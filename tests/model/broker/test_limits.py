"""Limits: whom they hold back, by which requirement, and that each counts only where it made a difference."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.limits import counted
from amqpspec.model.broker.limits_shown import broken_by_delivery, shown_by_waiting
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.outputs.debts import debts
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import event_of
from amqpspec.model.rules.inputs import process
from tests.model.judging.test_acceptor import Conversation

CHANNEL_LIMITS = pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0"])


def after(dialect: str, *lines: str) -> Broker:
    """The broker when these commands have been answered, with all that it delivers."""
    plan = Plan(dialect_named(dialect))
    for line in ("a.1 queue.declare q", "a.1 queue.declare r", *lines):
        plan.carry_out(parse_command(line))
    return plan.broker


def channel(broker: Broker, number: int = 1) -> Channel:
    return broker.channel("a", number)


def consumer(broker: Broker, tag: str = "t", number: int = 1) -> Consumer:
    return channel(broker, number).consumers[tag]


def handed(broker: Broker, tag: str = "t", number: int = 1) -> int:
    return consumer(broker, tag, number).outstanding


def publish(queue: str, *bodies: str) -> list[str]:
    return [f"b.1 basic.publish {queue} body={body}" for body in bodies]


BACKLOG = publish("q", "m1", "m2", "m3", "m4", "m5")


# ----------------------------------------------------------------------------------- the limit of a consumer


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
def test_a_limit_is_that_of_each_consumer_made_later(dialect: str) -> None:
    broker = after(
        dialect, "a.1 basic.qos 1", "a.1 basic.consume q tag=t", "a.1 basic.qos 2", "a.1 basic.consume q tag=u",
        "a.1 basic.qos 0", *BACKLOG,
    )  # fmt: skip
    assert (handed(broker, "t"), handed(broker, "u")) == (1, 2)
    assert broken_by_delivery(broker, consumer(broker, "t")) == "QOS-003", "the present limit would leave room"
    assert broker.quiet


@pytest.mark.parametrize(
    ("settle", "requirement"),
    [((), "QOS-001"), (("a.1 basic.ack 1",), "QOS-006"), (("a.1 basic.nack 1 requeue",), "QOS-006")],
)
def test_one_more_than_the_limit_breaks(settle: tuple[str, ...], requirement: str) -> None:
    broker = after("rabbitmq-4.3", "a.1 basic.qos 1", "a.1 basic.consume q tag=t", *BACKLOG, *settle)
    assert handed(broker) == 1
    assert broken_by_delivery(broker, consumer(broker)) == requirement


def test_several_settled_at_once_make_room_for_several() -> None:
    broker = after("rabbitmq-4.3", "a.1 basic.qos 2", "a.1 basic.consume q tag=t", *BACKLOG, "a.1 basic.ack 2 multiple")
    assert handed(broker) == 2
    assert len(broker.queues["q"].messages) == 1
    assert broker.bookkeeping.exercised["QOS-004"] == 1


def test_a_limit_is_exercised_when_it_holds_something_back() -> None:
    start = ("a.1 basic.qos 2", "a.1 basic.consume q tag=t")
    assert not after("rabbitmq-4.3", *start, *publish("q", "m1", "m2")).bookkeeping.exercised["QOS-001"]
    assert after("rabbitmq-4.3", *start, *publish("q", "m1", "m2", "m3")).bookkeeping.exercised["QOS-001"]
    elsewhere = ("c.1 basic.consume q tag=t",)
    broker = after("rabbitmq-4.3", *start, *elsewhere, *BACKLOG)
    assert not broker.bookkeeping.exercised["QOS-001"], "somebody else takes what is left"


def test_unlimited_consumers() -> None:
    explicit = after("rabbitmq-4.3", "a.1 basic.qos 0", "a.1 basic.consume q tag=t", *BACKLOG)
    assert (handed(explicit), explicit.bookkeeping.exercised["QOS-002"]) == (5, 4)
    never_told = after("rabbitmq-4.3", "a.1 basic.consume q tag=t", *BACKLOG)
    assert (handed(never_told), never_told.bookkeeping.exercised["QOS-002"]) == (5, 0)


def test_the_last_of_two_calls_limits_where_global_means_nothing() -> None:
    both = ("a.1 basic.qos 1", "a.1 basic.qos 2 global", "a.1 basic.consume q tag=t", *BACKLOG)
    broker = after("rabbitmq-4.3", *both)
    assert handed(broker) == 2
    assert broken_by_delivery(broker, consumer(broker)) == "QOS-010"
    alone = after("rabbitmq-4.3", *both[1:])
    assert broken_by_delivery(alone, consumer(alone)) == "QOS-009"


def test_an_answer_alone_shows_nothing() -> None:
    for dialect in ("rabbitmq-3", "rabbitmq-4.3"):
        broker = after(dialect, "a.1 basic.qos 1", "a.1 basic.qos 1 global", "a.1 basic.qos 0")
        assert not [each for each in broker.bookkeeping.exercised if each.startswith("QOS")]


# ------------------------------------------------------------------------------------ the limit of a channel


@CHANNEL_LIMITS
def test_consumers_of_several_queues_share_it(dialect: str) -> None:
    start = ("a.1 basic.qos 2 global", "a.1 basic.consume q tag=t", "a.1 basic.consume r tag=u")
    broker = after(dialect, *start, *publish("q", "m1", "m2"), *publish("r", "m3", "m4"))
    assert (handed(broker, "t"), handed(broker, "u")) == (2, 0)
    assert broker.quiet
    broker = after(dialect, *start, *publish("q", "m1", "m2"), *publish("r", "m3", "m4"), "a.1 basic.ack 1")
    assert (handed(broker, "t"), handed(broker, "u")) == (1, 1), "what one settles makes room for the other"
    assert broker.bookkeeping.exercised["QOS-008"]


@CHANNEL_LIMITS
def test_neither_limit_is_exceeded(dialect: str) -> None:
    broker = after(
        dialect, "a.1 basic.qos 2", "a.1 basic.qos 3 global", "a.1 basic.consume q tag=t", "a.1 basic.consume r tag=u",
        *BACKLOG,
    )  # fmt: skip
    assert handed(broker, "t") == 2
    assert broken_by_delivery(broker, consumer(broker, "t")) == "QOS-010"
    more = after(
        dialect, "a.1 basic.qos 2", "a.1 basic.qos 3 global", "a.1 basic.consume q tag=t", "a.1 basic.consume r tag=u",
        *BACKLOG, *publish("r", "n1", "n2"),
    )  # fmt: skip
    assert (handed(more, "t"), handed(more, "u")) == (2, 1)
    assert broken_by_delivery(more, consumer(more, "u")) == "QOS-010"


@CHANNEL_LIMITS
def test_a_limit_of_consumers_leaves_it_alone(dialect: str) -> None:
    broker = after(dialect, "a.1 basic.qos 1 global", "a.1 basic.qos 5", "a.1 basic.consume q tag=t", *BACKLOG)
    assert handed(broker) == 1


@CHANNEL_LIMITS
def test_zero_ends_it(dialect: str) -> None:
    start = ("a.1 basic.qos 1 global", "a.1 basic.consume q tag=t", *BACKLOG)
    assert handed(after(dialect, *start)) == 1
    assert handed(after(dialect, *start, "a.1 basic.qos 0 global")) == 5


@CHANNEL_LIMITS
def test_it_takes_nothing_back(dialect: str) -> None:
    start = ("a.1 basic.consume q tag=t", *BACKLOG[:3], "a.1 basic.qos 2 global", *BACKLOG[3:])
    broker = after(dialect, *start)
    assert handed(broker) == 3
    assert broken_by_delivery(broker, consumer(broker)) == "QOS-011"
    assert handed(after(dialect, *start, "a.1 basic.ack 1")) == 2, "no more than the limit from now on"
    assert handed(after(dialect, *start, "a.1 basic.ack 2 multiple")) == 2


@CHANNEL_LIMITS
def test_what_was_got_before_counts_and_what_is_got_later_does_not(dialect: str) -> None:
    start = (*BACKLOG, "a.1 basic.get q", "a.1 basic.qos 2 global", "a.1 basic.get q", "a.1 basic.consume q tag=t")
    broker = after(dialect, *start)
    assert (handed(broker), counted(broker, channel(broker))) == (1, 2)
    assert broken_by_delivery(broker, consumer(broker)) == "QOS-013"
    assert handed(after(dialect, *start, "a.1 basic.ack 1")) == 2
    assert handed(after(dialect, *start, "a.1 basic.ack 2")) == 1


@CHANNEL_LIMITS
def test_what_a_cancelled_consumer_holds_counts(dialect: str) -> None:
    start = ("a.1 basic.qos 1 global", "a.1 basic.consume q tag=t", *BACKLOG, "a.1 basic.cancel t")
    assert handed(after(dialect, *start, "a.1 basic.consume q tag=u"), "u") == 0
    assert handed(after(dialect, *start, "a.1 basic.consume q tag=u", "a.1 basic.reject 1"), "u") == 1


@CHANNEL_LIMITS
def test_consumers_without_acknowledgements_are_outside(dialect: str) -> None:
    broker = after(
        dialect, "a.1 basic.qos 1 global", "a.1 basic.consume q tag=t", *BACKLOG, "a.1 basic.consume r tag=u no-ack",
        *publish("r", "n1", "n2"),
    )  # fmt: skip
    assert (handed(broker), len(broker.queues["r"].messages)) == (1, 0)
    assert broker.bookkeeping.exercised["QOS-005"] == 1


@pytest.mark.known_defects
@CHANNEL_LIMITS
def test_deliveries_under_way_may_exceed_it_once(dialect: str) -> None:
    talk = Conversation(dialect).send("a.1 queue.declare q")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send(*(f"{line} &" for line in BACKLOG[:3]), "a.1 basic.qos 1 global").see("a.1", "basic.qos-ok")
    for tag in (1, 2, 3):
        talk.deliver("a.1", tag, f"m{tag}")
    talk.rest()
    assert talk.acceptor.verdict is Verdict.PASS
    assert talk.acceptor.exercised["QOS-014"] == 1
    late = talk.fork().send(BACKLOG[3]).deliver("a.1", 4, "m4")
    assert [failure.defect for failure in late.acceptor.failures] == ["uncounted-deliveries-make-room"]
    assert talk.send(BACKLOG[3]).rest().acceptor.failures == []


# -------------------------------------------------------------------------------- as the text reads global


def test_the_text_limits_the_channel() -> None:
    broker = after(
        "amqp-0-9-1", "a.1 basic.consume q tag=t", "a.1 basic.qos 2", "a.1 basic.consume r tag=u", *BACKLOG[:3],
        *publish("r", "n1"), "a.2 basic.consume r tag=v",
    )  # fmt: skip
    assert (handed(broker, "t"), handed(broker, "u"), handed(broker, "v", 2)) == (2, 0, 1)
    assert broken_by_delivery(broker, consumer(broker)) == "QOS-016"


def test_the_text_limits_the_connection() -> None:
    start = (
        "a.1 basic.qos 2 global", "a.1 basic.consume q tag=t", "a.2 basic.consume r tag=u", *BACKLOG[:2],
        *publish("r", "n1", "n2"),
    )  # fmt: skip
    broker = after("amqp-0-9-1", *start)
    assert (handed(broker, "t"), handed(broker, "u", 2)) == (2, 0)
    settled = after("amqp-0-9-1", *start, "a.1 basic.ack 1")
    assert (handed(settled, "t"), handed(settled, "u", 2)) == (1, 1)
    closed = after("amqp-0-9-1", *start, "a.1 channel.close")
    assert handed(closed, "u", 2) == 2


# ------------------------------------------------------------------------------------ who is not served


@pytest.mark.parametrize(
    ("dialect", "lines", "requirement"),
    [
        ("rabbitmq-4.3", ("a.1 basic.qos 0", "a.1 basic.consume q tag=t", *BACKLOG[:2]), "QOS-002"),
        ("rabbitmq-4.3", ("a.1 basic.qos 2", "a.1 basic.consume q tag=t", "a.1 basic.qos 1", *BACKLOG[:2]), "QOS-003"),
        ("rabbitmq-4.3", ("a.1 basic.qos 2", "a.1 basic.consume q tag=t", *BACKLOG[:3], "a.1 basic.ack 1"), "QOS-004"),
        ("rabbitmq-4.3", ("a.1 basic.qos 1", "a.1 basic.consume q tag=t no-ack", *BACKLOG[:2]), "QOS-005"),
        ("rabbitmq-4.0", ("a.1 basic.qos 1 global", "a.1 basic.consume q tag=t", BACKLOG[0],
                          "a.1 basic.consume r tag=u no-ack", "b.1 basic.publish r body=n1"), "QOS-005"),
        ("rabbitmq-4.3", ("a.1 basic.qos 1", "a.1 basic.consume q tag=t", "a.1 basic.consume r tag=u", BACKLOG[0],
                          "b.1 basic.publish r body=n1"), "QOS-001"),
        ("rabbitmq-4.3", ("a.1 basic.qos 1 global", "a.1 basic.consume q tag=t", "a.1 basic.consume r tag=u",
                          BACKLOG[0], "b.1 basic.publish r body=n1"), "QOS-009"),
        ("rabbitmq-4.3", ("b.1 basic.publish r body=n1", "a.1 basic.get r", "a.1 basic.qos 1",
                          "a.1 basic.consume q tag=t", BACKLOG[0]), "GET-003"),
        ("rabbitmq-4.3", ("a.1 basic.qos 2", "a.1 basic.consume q tag=t", *BACKLOG[:2]), "PUBLISH-002"),
    ],
)  # fmt: skip
def test_who_has_room_and_is_not_served(dialect: str, lines: tuple[str, ...], requirement: str) -> None:
    *before, last = lines
    broker = after(dialect, *before)
    command = parse_command(last)
    arguments = dict(command.arguments)
    process(broker, event_of(command.connection, command.channel, command.method, arguments, True, command.content))
    assert [debt.requirement for debt in debts(broker) if debt.detail == "basic.deliver"][:1] == [requirement]


def test_of_a_single_active_consumer_the_limit_counts_and_of_no_other() -> None:
    """The active one, of the higher priority, is at its limit; the first that came has none."""
    declare = "a.1 queue.declare s durable x-queue-type=quorum x-single-active-consumer=true"
    broker = after(
        "rabbitmq-4.3", declare, "a.1 basic.consume s tag=first", "a.1 basic.qos 1",
        "a.1 basic.consume s tag=active x-priority=5", "a.1 basic.publish s body=m1", "a.1 basic.publish s body=m2",
    )  # fmt: skip
    assert handed(broker, "active") == 1
    assert "QOS-001" in set(shown_by_waiting(broker, broker.queues["s"]))
