"""What follows from a known defect later on, and inputs that bring it about by what they end in."""

from __future__ import annotations

import pytest
from amqpspec.model.defects.delivery_numbers import settled_for_queue, told_as
from amqpspec.model.defects.transitions import DEFECT_TRANSITIONS, HOOKS

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.rules.inputs import process
from tests.model.defects.test_defect_transitions import input_of
from tests.model.judging.test_acceptor import declared


def defect(name: str) -> DefectTransition:
    return next(each for each in DEFECT_TRANSITIONS if each.name == name)


def planned(*lines: str, dialect: str = "rabbitmq-4.3") -> Plan:
    plan = Plan(dialect_named(dialect), HOOKS)
    for line in lines:
        plan.carry_out(parse_command(line))
    return plan


def test_room_that_a_reused_tag_gains_shows_by_what_an_error_gives_back() -> None:
    """c.1 gives m3 back because of its error, which is as good as if it had done so itself."""
    gains = defect("reused-tag-gains-room")
    broker = planned(
        "a.1 queue.declare q durable", "a.1 basic.qos 1", "a.1 basic.consume q tag=t", "b.1 basic.publish q body=m1",
        "a.1 basic.cancel t", "a.1 basic.consume q tag=t", "b.1 basic.publish q body=m2", "b.1 basic.publish q body=m3",
        "c.1 basic.get q", "a.1 basic.ack 1",
    ).broker  # fmt: skip
    error = input_of(parse_command("c.1 queue.declare q"))
    assert gains.applies(broker, error)
    broker.bookkeeping.counting = False
    assert not gains.applies(broker, error), "the questions of a barrier end in no error"


def test_a_deletion_may_count_what_a_quorum_queue_hands_out_meanwhile() -> None:
    """Its numbers are asked for first. At rest there is nothing of that kind."""

    def deleted(kind: str, count: int, meanwhile: bool) -> bool:
        talk = declared(kind).send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2").rest()
        talk.send("b.1 basic.get q").got("b.1", 1, "m1", left=1)
        if not meanwhile:
            talk.rest()
        talk.send("a.1 queue.delete q").see("a.1", "queue.delete-ok", message_count=count).rest()
        return not talk.acceptor.failures

    assert deleted("quorum", 1, meanwhile=True) and deleted("quorum", 2, meanwhile=True)
    assert deleted("quorum", 1, meanwhile=False) and not deleted("quorum", 2, meanwhile=False)
    assert deleted("classic", 1, meanwhile=True) and not deleted("classic", 2, meanwhile=True)


@pytest.mark.parametrize("taker", ["d.1 basic.get q", ""])
def test_a_queue_takes_back_once_more_what_it_still_counts_for_a_channel_that_ends(taker: str) -> None:
    """By the number of a delivery of old b.1 gives back what a.1 holds; whoever has it when a.1 ends loses it."""
    plan = planned(
        "b.1 queue.declare q durable", "c.1 basic.publish q body=m1", "b.1 basic.get q", "c.1 queue.delete q",
        "c.1 queue.declare q durable", "c.1 basic.publish q body=m2", "a.1 basic.get q",
        "c.1 basic.publish q body=m3", "b.1 basic.get q",
        dialect="rabbitmq-4.0",
    )  # fmt: skip
    settled = input_of(parse_command("b.1 basic.nack 1 requeue"))
    defect("deleted-queue-settles-in-next-queue").process(plan.broker, settled)
    [entry] = plan.broker.channels["a", 1].unacknowledged.values()
    assert entry.queue.deleted
    for broker in (plan.broker, copy_broker(plan.broker)):
        settled_before = settled_for_queue(broker, broker.channels["a", 1], 1)
        assert settled_before is not None
        assert settled_before.given_back_at is broker.queues["q"]
    assert [message.content.body for message in plan.broker.queues["q"].messages] == [b"m2"]
    if taker:
        plan.carry_out(parse_command(taker))
    process(plan.broker, input_of(parse_command("a.1 channel.close")))
    assert plan.broker.bookkeeping.is_unpredictable is bool(taker)


@pytest.mark.parametrize(("active", "left"), [("", 0), ("b.1 basic.consume q tag=s", 2)])
def test_who_only_waits_to_become_active_is_handed_nothing_before_its_channel_crashes(active: str, left: int) -> None:
    plan = planned(
        "a.1 queue.declare q", "a.1 basic.get q", "b.1 queue.delete q",
        "b.1 queue.declare q durable x-single-active-consumer=true", "b.1 basic.qos 1", *([active] if active else []),
        *(f"b.1 basic.publish q body=m{number}" for number in range(2 + bool(active))),
    )  # fmt: skip
    consume = input_of(parse_command("a.1 basic.consume q tag=t no-ack"))
    plan.broker.channels["a", 1].known_types["q"] = QueueType.QUORUM
    defect("stale-queue-type").process(plan.broker, consume)
    assert len(plan.broker.queues["q"].messages) == left


def test_what_a_dropped_consumer_was_handed_may_be_in_front_of_what_the_next_one_gives_back() -> None:
    """Both were handed to s, and came back; m1 comes back once more when t ends."""
    talk = declared("quorum x-single-active-consumer=true")
    for body in ("m1", "m2"):
        talk.send(f"c.1 basic.publish q body={body}").rest()
    for connection, most in (("a", 1), ("b", 2)):
        talk.send(f"{connection}.1 basic.qos {most}").see(f"{connection}.1", "basic.qos-ok").rest()
    talk.send("b.1 basic.consume q tag=s &", "b.1 basic.cancel s")
    talk.see("b.1", "basic.cancel-ok", consumer_tag="s").rest()

    def redelivered(channel: str, number: int, body: str, tag: str, **headers: int) -> None:
        counts = {f"x-{name}-count": count for name, count in headers.items()}
        about = {"consumer_tag": tag, "delivery_tag": number, "redelivered": True, "exchange": "", "routing_key": "q"}
        talk.see(channel, "basic.deliver", body, properties={"headers": counts}, **about)

    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t")
    redelivered("a.1", 1, "m1", "t", acquired=1)
    talk.rest().send("b.1 basic.consume q tag=u").see("b.1", "basic.consume-ok", consumer_tag="u").rest()
    talk.send("a connection.close").see("a", "connection.close-ok")
    redelivered("b.1", 1, "m2", "u", acquired=1)
    redelivered("b.1", 2, "m1", "u", delivery=1, acquired=2)
    talk.rest()
    assert [failure.defect for failure in talk.acceptor.failures] == ["consume-ok-dropped"]


@pytest.mark.parametrize("at_rest", [False, True])
def test_messages_may_be_on_their_way_to_the_previous_active_consumer(at_rest: bool) -> None:
    """So the queue counts them no more, until all is at rest."""
    talk = declared("quorum x-single-active-consumer=true", dialect="rabbitmq-4.0")
    talk.send("c.1 confirm.select").see("c.1", "confirm.select-ok").rest()
    for number in (1, 2):
        talk.send(f"c.1 basic.publish q body=m{number}").confirm("c.1", number).rest()
    talk.send("a.1 basic.consume q tag=s x-priority=-1 &", "b.1 basic.qos 1").see("b.1", "basic.qos-ok")
    talk.send("b.1 basic.consume q tag=t x-priority=5").see("b.1", "basic.consume-ok", consumer_tag="t")
    talk.see("a.1", "basic.consume-ok", consumer_tag="s").deliver("a.1", 1, "m1", consumer="s")
    if at_rest:
        talk.rest()
    talk.send("c.1 queue.declare q passive")
    if not at_rest:
        talk.deliver("a.1", 2, "m2", consumer="s")
    talk.see("c.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=1)
    assert all(failure.defect for failure in talk.acceptor.failures) is not at_rest


@pytest.mark.parametrize(("outcome", "published", "refused"), [
    ("basic.reject 1", "s", True), ("basic.nack 1 requeue", "s", True), ("basic.ack 1", "s", False),
    ("basic.reject 1", "other", False),
])  # fmt: skip
def test_a_commit_refuses_for_the_stream_that_it_publishes_to_first(
    outcome: str, published: str, refused: bool
) -> None:
    refuses = defect("next-stream-refuses-settlement")
    broker = planned(
        "a.1 queue.declare s durable", "b.1 queue.declare other durable", "a.1 basic.publish s body=m1",
        "a.1 basic.get s", "b.1 queue.delete s", "b.1 queue.declare s durable x-queue-type=stream", "a.1 tx.select",
        f"a.1 basic.publish {published} body=m2", f"a.1 {outcome}", dialect="rabbitmq-3",
    ).broker  # fmt: skip
    commit = input_of(parse_command("a.1 tx.commit"))
    assert refuses.applies(broker, commit) is refused
    if refused:
        refuses.process(broker, commit)
        assert [(owed.method, owed.arguments["reply_code"]) for owed in broker.connections["a"].owed] == [
            ("connection.close", 540)
        ]


@pytest.mark.parametrize("crossing", [False, True])
def test_a_publish_that_crosses_what_makes_room_crashes_the_queue_with_a_backlog(crossing: bool) -> None:
    """u is the active consumer after t, is not handed m2, and has room once the limit of its channel is lifted."""
    broker = planned(
        "a.1 queue.declare q durable x-single-active-consumer=true", "a.1 basic.qos 1", "a.1 basic.consume q tag=t",
        "a.1 basic.qos 1 global", "a.1 basic.consume q tag=u", "b.1 basic.publish q body=m1",
        "b.1 basic.publish q body=m2", "a.1 basic.cancel t", dialect="rabbitmq-3",
    ).broker  # fmt: skip
    for message in broker.queues["q"].messages:
        broker.prove(broker.queues["q"], message)
    if crossing:
        process(broker, input_of(parse_command("b.1 basic.publish q body=m3")))
    lift = input_of(parse_command("a.1 basic.qos 0 global"))
    backlog = defect("cancel-leaves-backlog")
    assert backlog.applies(broker, lift)
    backlog.process(broker, lift)
    assert broker.bookkeeping.is_unpredictable is crossing


def test_room_that_an_exceeded_limit_gives_shows_when_what_took_it_is_delivered_again() -> None:
    talk = declared("quorum x-delivery-limit=0", dialect="rabbitmq-3")
    talk.send("b.1 basic.publish q body=m1").rest().send("a.2 basic.qos 1").see("a.2", "basic.qos-ok").rest()
    talk.send("a.2 basic.consume q tag=t").see("a.2", "basic.consume-ok", consumer_tag="t").deliver("a.2", 1, "m1")
    talk.rest().send("a.2 basic.reject 1 requeue").rest()
    assert defect("exceeded-limit-gives-room-twice").shows_within > 1
    assert any(each.defect is not None for each in talk.acceptor.explanations), "it is followed at rest"


def test_what_what_has_the_same_name_has_settled_is_told_of_among_what_its_consumer_holds() -> None:
    """a.1 has settled m2 by the number of m1; when it settles m2 and m3 the queue, in vain looking for the one, forgets
    the other when it counts.
    """
    plan = planned(
        "a.1 queue.declare q durable", "b.1 basic.publish q body=m1", "a.1 basic.get q", "b.1 queue.delete q",
        "b.1 queue.declare q durable", "a.1 basic.qos 2", "a.1 basic.consume q tag=t", "b.1 basic.publish q body=m2",
        "b.1 basic.publish q body=m3", dialect="rabbitmq-4.0",
    )  # fmt: skip
    settles = defect("deleted-queue-settles-in-next-queue")
    settles.process(plan.broker, input_of(parse_command("a.1 basic.ack 1")))
    entry = plan.broker.channels["a", 1].unacknowledged[2]
    assert entry.consumer is None
    for broker in (plan.broker, copy_broker(plan.broker)):
        assert told_as(broker, broker.channels["a", 1], 2) == "t"
    [consumer] = plan.broker.queues["q"].consumers
    assert consumer.outstanding == 1
    both = input_of(parse_command("a.1 basic.ack 3 multiple"))
    assert settles.applies(plan.broker, both)
    settles.process(plan.broker, both)
    assert consumer.outstanding == 1, "it counts against the limit as before"


@pytest.mark.parametrize(("limit", "certain", "left"), [(2, 2, {b"m3": True, b"m4": True}), (0, 4, {}), (1, 1, {
    b"m2": True, b"m3": False, b"m4": False,
})])  # fmt: skip
def test_who_needs_no_acknowledgements_loses_what_its_former_consumer_held_and_perhaps_more(
    limit: int, certain: int, left: dict[bytes, bool]
) -> None:
    """Its former consumer's m1 takes room, which the loss gives back."""
    broker = planned(
        "a.1 queue.declare q durable x-queue-type=quorum", f"a.1 basic.qos {limit}", "b.1 basic.publish q body=m1",
        "a.1 basic.consume q tag=t", "a.1 basic.cancel t",
        *(f"b.1 basic.publish q body=m{number}" for number in (2, 3, 4)), dialect="rabbitmq-3",
    ).broker  # fmt: skip
    breaks = defect("reused-tag-breaks-at-delivery")
    again = input_of(parse_command("a.1 basic.consume q tag=t no-ack"))
    assert breaks.applies(broker, again)
    breaks.process(broker, again)
    queue = broker.queues["q"]
    assert {message.content.body: message.may_be_gone for message in queue.messages} == left
    assert len(queue.gone) == certain
