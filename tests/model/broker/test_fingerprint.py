"""Fingerprints: equal for states that nothing can tell apart later, different for all others."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.effects import DeletionAnswered
from amqpspec.model.broker.fingerprint import fingerprint, parts_of_fingerprint
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.protocol.methods import event_of
from amqpspec.model.rules.inputs import process


def after(*lines: str, dialect: str = "rabbitmq-4.3") -> Broker:
    """The state after these commands, each of them answered."""
    plan = Plan(dialect_named(dialect))
    for line in lines:
        plan.carry_out(parse_command(line))
    return plan.broker


def unanswered(broker: Broker, *lines: str) -> Broker:
    """The same state with further inputs, not answered."""
    broker = copy.deepcopy(broker)
    for line in lines:
        command = parse_command(line)
        process(
            broker,
            event_of(command.connection, command.channel, command.method, command.arguments, True, command.content),
        )
    return broker


BASE = (
    "a.1 queue.declare q durable",
    "a.1 queue.declare s durable x-queue-type=stream",
    "a.1 basic.qos 1",
    "a.1 basic.consume q tag=t",
    "a.2 channel.open",
    "b.1 basic.publish q body=m1",
    "b.1 basic.publish q body=m2",
    "b.1 basic.publish s body=m1",
)

#: Each of these leads to a state that something can be seen of later.
STEPS = (
    "b.1 basic.publish q body=m3",
    "b.1 basic.publish q body=m4",
    "b.1 basic.publish q body=m3 priority=1",
    "b.1 basic.publish s body=m3",
    "a.2 basic.publish s body=m4",
    "a.1 basic.ack 1",
    "a.1 basic.nack 1 requeue",
    "a.1 basic.get q",
    "a.1 basic.get q no-ack",
    "a.2 basic.get q",
    "a.1 basic.qos 2",
    "a.2 basic.qos 1",
    "a.1 basic.cancel t",
    "a.2 basic.consume q tag=t",
    "a.2 basic.consume q tag=t no-ack",
    "a.1 confirm.select",
    "a.1 channel.close",
    "a.2 channel.close",
    "a.3 channel.open",
    "b connection.close",
    "a.1 queue.purge q",
    "a.1 queue.delete q",
    "a.1 queue.declare r",
    "a.1 queue.declare r exclusive",
    "a.1 queue.declare r durable",
    "a.1 queue.declare r auto-delete",
    "a.1 queue.declare r x-max-length=1",
    "a.1 queue.declare r x-max-length=2",
    "a.1 exchange.declare x direct",
    "a.1 exchange.declare x fanout",
    "a.1 queue.bind q amq.direct routing-key=k",
    "a.1 queue.bind q amq.direct routing-key=l",
)


def test_states_that_differ_have_different_fingerprints() -> None:
    seen = {fingerprint(after(*BASE)): "nothing"}
    for step in STEPS:
        mark = fingerprint(after(*BASE, step))
        assert mark not in seen, f"{step} looks like {seen.get(mark)}"
        seen[mark] = step


def test_parts_of_fingerprints_tell_apart_what_fingerprints_do() -> None:
    def parts(broker: Broker) -> tuple[object, ...]:
        return tuple(view(broker, broker) for view in parts_of_fingerprint(broker))

    states = [after(*BASE, *step) for step in ((), *zip(STEPS, strict=True))]
    assert len({parts(state) for state in states}) == len(states)
    for state in states:
        assert parts(state) == parts(copy.deepcopy(state))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # what is owed
        (("a.1 basic.get q",), ("a.1 basic.get q no-ack",)),
        (("a.1 basic.get q",), ("a.2 basic.get q",)),
        (("a.1 basic.qos 1",), ("a.1 basic.get q",)),
        (("a.1 basic.cancel t",), ("a.1 basic.cancel u",)),
        (("a.1 basic.ack 1", "a.1 basic.ack 1"), ("a.1 basic.ack 1", "a.1 basic.nack 1")),
        (("b connection.close",), ("b connection.update-secret",)),
        # what is on its way
        (("b.1 basic.publish q body=m", "a.2 basic.publish q body=n"),
         ("a.2 basic.publish q body=m", "b.1 basic.publish q body=n")),
        (("b.1 basic.publish s body=m", "a.2 basic.publish s body=n"),
         ("a.2 basic.publish s body=n", "b.1 basic.publish s body=m")),
        (("a.1 basic.consume s tag=u", "b.1 basic.publish s body=m"),
         ("b.1 basic.publish s body=m", "a.1 basic.consume s tag=u")),
        (("b.1 basic.publish q body=m", "a.2 queue.purge q"), ("a.2 queue.purge q", "b.1 basic.publish q body=m")),
    ],
)  # fmt: skip
def test_the_order_of_processing_that_makes_a_difference(one: Sequence[str], other: Sequence[str]) -> None:
    base = after(*BASE)
    assert fingerprint(unanswered(base, *one)) != fingerprint(unanswered(base, *other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a.1 basic.qos 5", "b.1 basic.publish q body=m"), ("b.1 basic.publish q body=m", "a.1 basic.qos 5")),
        (("a.1 basic.ack 1", "b.1 basic.publish s body=m"), ("b.1 basic.publish s body=m", "a.1 basic.ack 1")),
        (("a.2 basic.consume q tag=u", "b.1 basic.consume q tag=v"),
         ("b.1 basic.consume q tag=v", "a.2 basic.consume q tag=u")),
        (("a.1 queue.declare r", "b.1 basic.publish q body=m"), ("b.1 basic.publish q body=m", "a.1 queue.declare r")),
    ],
)  # fmt: skip
def test_the_order_of_processing_that_makes_none(one: Sequence[str], other: Sequence[str]) -> None:
    base = after(*BASE)
    assert fingerprint(unanswered(base, *one)) == fingerprint(unanswered(base, *other))


def test_it_makes_no_difference_how_a_message_came_to_be_held() -> None:
    """Delivered while the next publish was under way, or before: once both are over, nobody can tell."""
    base = after("a.1 queue.declare q", "a.1 basic.qos 1", "a.1 basic.consume q tag=t", "b.1 channel.open")

    def delivered(broker: Broker) -> None:
        event = next(event for event in permitted(broker) if event.name == "basic.deliver")
        assert not observe(broker, event)

    early = unanswered(base, "b.1 basic.publish q body=m1")
    delivered(early)
    early = unanswered(early, "b.1 basic.publish q body=m2")
    late = unanswered(base, "b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2")
    delivered(late)
    assert fingerprint(early) == fingerprint(late)


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_what_only_words_failures_makes_no_difference(dialect: str) -> None:
    base = after(*BASE, dialect=dialect)
    longer = after(*BASE, "a.1 basic.get s", dialect=dialect)  # an error, and the connection is gone
    assert fingerprint(base) != fingerprint(longer)
    base.bookkeeping.exercised["ACK-001"] += 1
    base.reason, base.stamp = "ACK-001", 999
    for queue in base.queues.values():
        queue.reason = "ACK-001"
    assert fingerprint(base) == fingerprint(after(*BASE, dialect=dialect))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(STEPS), max_size=12), st.lists(st.sampled_from(STEPS), max_size=2))
def test_copies_have_equal_fingerprints_and_go_their_own_ways(steps: list[str], further: list[str]) -> None:
    broker = unanswered(after(*BASE, *steps), *further)
    mark = fingerprint(broker)
    hash(mark)
    twin = copy.deepcopy(broker)
    assert fingerprint(twin) == mark
    frames = [str(event) for event in permitted(broker)]
    assert frames == [str(event) for event in permitted(twin)]
    assert fingerprint(unanswered(twin, "c connection.close")) != mark, "another connection"
    for event in list(permitted(twin))[:1]:
        assert not observe(twin, event)
        assert fingerprint(twin) != mark
    assert fingerprint(broker) == mark, "the copy shares nothing that changes"


# ------------------------------------------------------------------ what `amqpspec explore` found not to be compared


def alike(one: Broker, other: Broker) -> bool:
    return fingerprint(one) == fingerprint(other)


def test_it_makes_a_difference_whether_a_dead_letter_was_handed_out_where_it_is() -> None:
    """By that redelivered and its counts are judged (DLX-010)."""
    one = after(
        "a.1 queue.declare q x-dead-letter-exchange=\"\" x-dead-letter-routing-key=d", "a.1 queue.declare d",
        "a.1 basic.publish q body=m", "a.1 basic.get q", "a.1 basic.reject 1",
    )  # fmt: skip
    other = copy.deepcopy(one)
    (letter,) = other.queues["d"].messages
    assert letter.is_first_here
    letter.is_first_here = False
    assert not alike(one, other)


def test_it_makes_none_by_which_requirement_a_message_is_there() -> None:
    one = after("a.1 queue.declare q", "a.1 basic.publish q body=m")
    other = copy.deepcopy(one)
    other.queues["q"].messages[0].reason = "ACK-014"
    assert alike(one, other)


def test_it_makes_a_difference_what_was_ready_when_a_consumer_gave_way() -> None:
    """That may have been handed to it unseen (SAC-004)."""
    base = after(
        "a.1 queue.declare q durable x-queue-type=quorum x-single-active-consumer=true",
        "a.1 basic.consume q tag=t no-ack", "a.2 channel.open", "b.1 channel.open",
    )  # fmt: skip
    publish, consume = "b.1 basic.publish q body=m", "a.2 basic.consume q tag=u x-priority=1"
    assert not alike(unanswered(base, publish, consume), unanswered(base, consume, publish))


def test_it_makes_a_difference_with_what_a_held_message_was_on_its_way() -> None:
    """A classic queue puts it back among these, in either order."""
    one = after(*BASE)
    other = copy.deepcopy(one)
    (ready,) = other.queues["q"].messages
    ((_, held),) = other.channels[("a", 1)].unacknowledged.items()
    assert held.message.transit_group != ready.transit_group
    held.message.transit_group = ready.transit_group
    assert not alike(one, other)


def test_it_makes_a_difference_whether_a_held_message_is_later_than_a_get() -> None:
    one = unanswered(after(*BASE), "a.2 basic.get q")
    other = copy.deepcopy(one)
    (get,) = other.channels[("a", 2)].owed
    assert isinstance(get, PendingGet)
    get.position_limit = 0
    one.queues["q"].messages.clear()
    other.queues["q"].messages.clear()
    assert not alike(one, other)


def test_it_makes_a_difference_for_a_confirm_whether_a_queue_is_gone() -> None:
    """Then it may be a nack as well (CONFIRM-012)."""
    base = after("a.1 queue.declare q", "b.1 confirm.select")
    one = unanswered(base, "b.1 basic.publish q body=m", "a.1 queue.delete q")
    other = unanswered(base, "a.1 queue.delete q", "b.1 basic.publish q body=m")
    (nacked, acked) = ({each.name for each in permitted(broker)} for broker in (one, other))
    assert nacked == acked  # a simple broker acks
    assert not alike(one, other)


def test_it_makes_a_difference_who_is_told_of_a_deletion() -> None:
    one = unanswered(after(*BASE), "a.1 queue.delete q")
    other = copy.deepcopy(one)
    (owed,) = other.channels[("a", 1)].owed
    assert isinstance(owed, Expected)
    assert isinstance(owed.effect, DeletionAnswered)
    assert owed.effect.tags == ("t",)
    other.channels[("a", 1)].owed[0] = replace(owed, effect=replace(owed.effect, tags=()))
    assert not alike(one, other)


def test_it_makes_none_whom_a_wrong_answer_is_blamed_on() -> None:
    one = unanswered(after(*BASE), "a.2 queue.declare q durable passive")
    other = copy.deepcopy(one)
    (owed,) = other.channels[("a", 2)].owed
    assert isinstance(owed, Expected)
    other.channels[("a", 2)].owed[0] = replace(owed, blame={"message_count": "QUEUE-001"}, counted=False)
    assert alike(one, other)


def test_it_makes_none_what_became_of_the_turns_of_a_consumer_that_is_alone() -> None:
    """When another one comes, all begins anew."""
    one = after("a.1 queue.declare q", "a.1 basic.consume q tag=t", "a.2 channel.open")
    other = copy.deepcopy(one)
    (alone,) = other.queues["q"].consumers
    alone.overtaken_by, alone.is_doubtful = frozenset({(("a", 3), "gone")}), not alone.is_doubtful
    assert alike(one, other)
    assert alike(unanswered(one, "a.2 basic.consume q tag=u"), unanswered(other, "a.2 basic.consume q tag=u"))


def test_it_makes_a_difference_what_is_known_of_a_message_of_a_deleted_queue() -> None:
    one = unanswered(after("a.1 queue.declare q", "a.1 basic.consume q tag=t"), "a.1 basic.publish q body=m",
                     "a.1 queue.delete q")  # fmt: skip
    other = copy.deepcopy(one)
    (gone,) = other.channels[("a", 1)].may_still_be_served.values()
    gone.queue.dropped_at_deletion[0].recalled = 1
    assert not alike(one, other)
