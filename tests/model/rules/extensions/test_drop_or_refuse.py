"""Limits on queues: what stays, what goes, who is refused, and what of it is open while things are under way."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.length_limits import handed_over
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import event_of
from amqpspec.model.rules.inputs import process
from tests.model.judging.test_acceptor import Conversation

EVERYWHERE = pytest.mark.parametrize("dialect", [name for name, each in DIALECTS.items() if each.extensions])
REJECTING = "x-overflow=reject-publish"
TO_D = 'x-dead-letter-exchange="" x-dead-letter-routing-key=d'


def after(dialect: str, *lines: str) -> Broker:
    """The broker when these commands have been answered, with all that it delivers."""
    plan = Plan(dialect_named(dialect))
    for line in lines:
        plan.carry_out(parse_command(line))
    return plan.broker


def ready(broker: Broker, queue: str = "q") -> list[str]:
    return [message.content.body.decode() for message in broker.queues[queue].messages]


def classic(arguments: str) -> str:
    return f"a.1 queue.declare q durable {arguments}"


def quorum(arguments: str) -> str:
    return f"a.1 queue.declare q durable x-queue-type=quorum {arguments}"


def publish(*bodies: str, on: str = "a.1") -> list[str]:
    return [f"{on} basic.publish q body={body}" for body in bodies]


def answers(broker: Broker, line: str) -> list[str]:
    """What the broker owes for the command, by method."""
    command = parse_command(line)
    arguments = dict(command.arguments)
    process(broker, event_of(command.connection, command.channel, command.method, arguments, True, command.content))
    return [event.name for event in permitted(broker)]


@EVERYWHERE
@pytest.mark.parametrize("declare", [classic, quorum])
@pytest.mark.parametrize(
    ("limit", "bodies", "left"),
    [
        ("x-max-length=2", ["1", "2", "3"], ["2", "3"]),
        ("x-max-length=0", ["1"], []),
        ("x-max-length-bytes=4", ["11", "22", "3"], ["22", "3"]),
        ("x-max-length-bytes=4", ["11", "22", "4444"], ["4444"]),
        ("x-max-length-bytes=4", ["11", "55555"], []),
        ("x-max-length=2 x-max-length-bytes=4", ["1", "2", "3", "4444"], ["4444"]),
    ],
)
def test_the_head_goes_until_the_rest_is_within_the_limits(
    dialect: str, declare: object, limit: str, bodies: list[str], left: list[str]
) -> None:
    assert callable(declare)
    assert ready(after(dialect, declare(limit), *publish(*bodies))) == left


@EVERYWHERE
def test_what_a_consumer_waits_for_does_not_count(dialect: str) -> None:
    lines = (quorum("x-max-length=1"), "b.1 basic.qos 2", "b.1 basic.consume q tag=t")
    broker = after(dialect, *lines, *publish("1", "2", "3", "4"))
    assert ready(broker) == ["4"]
    assert len(broker.channel("b", 1).unacknowledged) == 2


def test_of_what_is_under_way_as_much_is_handed_over_as_there_is_room() -> None:
    broker = after("rabbitmq-4.3", quorum("x-max-length=1"), "b.1 basic.qos 1", "b.1 basic.consume q tag=t")
    for line in publish("1", "2", "3"):
        answers(broker, line)
    assert handed_over(broker, broker.queues["q"]) == 1
    assert ready(broker) == ["1", "3"], "the first is on its way"


def test_a_classic_queue_of_no_length_drops_what_comes_back_and_a_quorum_queue_hands_it_out_again() -> None:
    lines = ("b.1 basic.qos 1", "b.1 basic.consume q tag=t", *publish("1"), "b.1 basic.nack 1 requeue")
    assert not after("rabbitmq-4.3", classic("x-max-length=0"), *lines).channel("b", 1).unacknowledged
    assert after("rabbitmq-4.3", quorum("x-max-length=0"), *lines).channel("b", 1).unacknowledged


@EVERYWHERE
def test_a_classic_queue_refuses_by_what_it_has(dialect: str) -> None:
    broker = after(dialect, classic(f"x-max-length=1 {REJECTING}"), "a.1 confirm.select", *publish("1"))
    assert answers(broker, "a.1 basic.publish q body=2") == ["basic.nack"]
    assert ready(broker) == ["1"]


@EVERYWHERE
def test_a_quorum_queue_refuses_by_what_it_has_told(dialect: str) -> None:
    broker = after(dialect, quorum(f"x-max-length=5 {REJECTING}"), "a.1 confirm.select", *publish(*"1234567"))
    assert ready(broker) == list("123456"), "one more than its limit"
    assert answers(broker, "a.1 basic.publish q body=8") == ["basic.nack"]


@EVERYWHERE
@pytest.mark.parametrize(("gets", "taken"), [(1, False), (2, True)])
def test_a_quorum_queue_lets_go_on_at_four_fifths_and_takes_new_channels_at_its_limit(
    dialect: str, gets: int, taken: bool
) -> None:
    lines = (quorum(f"x-max-length=5 {REJECTING}"), *publish(*"1234567"), *["b.1 basic.get q"] * gets)
    assert ("8" in ready(after(dialect, *lines, *publish("8")))) is taken
    assert "9" in ready(after(dialect, *lines, *publish("9", on="c.1")))


@EVERYWHERE
def test_several_that_one_drives_out_are_dead_lettered_in_their_order(dialect: str) -> None:
    lines = ("a.1 queue.declare d", quorum(f"x-max-length-bytes=4 {TO_D}"), *publish("11", "22", "4444"))
    assert ready(after(dialect, *lines), "d") == ["11", "22"]


# -------------------------------------------------------------------------------------------- what is seen


def full(arguments: str) -> Conversation:
    """A queue of length 1 that has m1, and a channel that publishes with confirms."""
    talk = Conversation().send(f"a.1 queue.declare q durable x-max-length=1 {arguments}")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 confirm.select").see("a.1", "confirm.select-ok")
    return talk.send("a.1 basic.publish q body=m1").confirm("a.1", 1).rest()


def nack(talk: Conversation, tag: int) -> Conversation:
    return talk.see("a.1", "basic.nack", delivery_tag=tag, multiple=True, requeue=True)


@pytest.mark.parametrize(
    ("arguments", "requirement"),
    [
        (REJECTING, "CONFIRM-013"),
        (f"x-overflow=reject-publish-dlx {TO_D}", "OVERFLOW-006"),
    ],
)
def test_the_confirm_of_what_is_refused(arguments: str, requirement: str) -> None:
    talk = full(arguments).send("a.1 basic.publish q body=m2")
    assert nack(talk.fork(), 2).rest().acceptor.verdict is Verdict.PASS
    assert talk.fork().confirm("a.1", 2).failure.requirement == requirement
    assert talk.rest().failure.requirement == requirement, "nothing comes"


@pytest.mark.parametrize(("arguments", "requirement"), [("", "OVERFLOW-001"), (REJECTING, "CONFIRM-013")])
def test_a_nack_of_what_there_was_room_for(arguments: str, requirement: str) -> None:
    talk = full(arguments).send("b.1 basic.get q").got("b.1", 1, "m1", left=0).rest()
    assert nack(talk.send("a.1 basic.publish q body=m2"), 2).failure.requirement == requirement


@pytest.mark.parametrize(
    ("first", "second", "passes"), [("m1", "m2", True), ("m1", "m3", True), ("m2", "m1", False), ("m3", "m1", False)]
)
def test_what_is_to_be_driven_out_is_there_until_that_has_come_which_does(
    first: str, second: str, passes: bool
) -> None:
    talk = full("").send("a.1 basic.publish q body=m2 &", "a.1 basic.publish q body=m3 &")
    for tag, body in enumerate((first, second), 1):
        talk.send("b.1 basic.get q &").got("b.1", tag, body, left=0)
    assert (talk.acceptor.verdict is Verdict.PASS) is passes


def test_what_was_confirmed_has_driven_out_what_it_does() -> None:
    talk = full("").send("a.1 basic.publish q body=m2").confirm("a.1", 2).send("b.1 basic.get q")
    assert talk.got("b.1", 1, "m1", left=0).failure.requirement == "OVERFLOW-001"


@pytest.mark.parametrize(
    ("length", "seen", "letters"),
    [
        (1, "m3", ["m2"]), (2, "m3", ["m1", "m2"]), (3, "m3", ["m1", "m2"]),
        (1, "m2", ["m3"]), (2, "m2", ["m1", "m3"]), (1, "m4", ["m3"]), (2, "m4", ["m2", "m3"]),
    ],
)  # fmt: skip
def test_what_was_not_driven_out_has_driven_out_nothing_elsewhere(length: int, seen: str, letters: list[str]) -> None:
    """The dead letters go to a queue with a limit of its own. `seen`: what a get finds before the next one has come."""
    talk = Conversation().send(f"a.1 queue.declare d durable x-max-length={length}")
    talk.see("a.1", "queue.declare-ok", queue="d", message_count=0, consumer_count=0)
    talk.send(f"a.1 queue.declare q durable x-queue-type=quorum x-max-length=1 {TO_D}")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 confirm.select").see("a.1", "confirm.select-ok")
    for tag in (1, 2):
        talk.send(f"a.1 basic.publish q body=m{tag}").confirm("a.1", tag).rest()
    talk.send("a.1 basic.publish q body=m3 &", "a.1 basic.publish q body=m4 &", "b.1 basic.get q &")
    talk.confirm("a.1", 3).confirm("a.1", 4).got("b.1", 1, seen, left=0)
    talk.send("b.1 queue.declare d passive")
    talk.see("b.1", "queue.declare-ok", queue="d", message_count=len(letters), consumer_count=0)
    assert ready(talk.rest().acceptor.broker, "d") == letters
    assert not talk.acceptor.failures


@pytest.mark.parametrize(("prefetch", "stays"), [(1, False), (2, True)])
@pytest.mark.parametrize("ends", [("a.1 basic.reject 1 requeue",), ("a.1 channel.close",)])
def test_what_was_handed_out_before_something_came_back_takes_no_room(
    prefetch: int, stays: bool, ends: tuple[str, ...]
) -> None:
    """b.1 holds m2 and may be handed m3 as well, if its limit is 2, before m1 comes back to a queue of length 1."""
    talk = full("").send("a.1 basic.get q").got("a.1", 1, "m1", left=0).rest()
    talk.send(f"b.1 basic.qos {prefetch}").see("b.1", "basic.qos-ok").rest()
    talk.send("b.1 basic.consume q tag=t").see("b.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("a.1 basic.publish q body=m2").confirm("a.1", 2).deliver("b.1", 1, "m2").rest()
    talk.send("a.1 basic.publish q body=m3 &", *ends)
    if "channel.close" in ends[0]:
        talk.see("a.1", "channel.close-ok")
    else:
        talk.confirm("a.1", 3)
    if stays:
        talk.deliver("b.1", 2, "m3")
    talk.rest().send("c.1 basic.get q")
    talk.got("c.1", 1, *(("m1", 0) if stays else ("m3", 0)), redelivered=stays)
    assert not talk.rest().acceptor.failures


@pytest.mark.parametrize(("prefetch", "stays"), [(1, False), (2, True)])
def test_room_that_comes_with_what_is_given_back_is_used_behind_it(prefetch: int, stays: bool) -> None:
    """The consumer itself gives m1 back: where it had no room before, m2 was not handed out."""
    talk = full("").send(f"b.1 basic.qos {prefetch}").see("b.1", "basic.qos-ok").rest()
    talk.send("b.1 basic.consume q tag=t").see("b.1", "basic.consume-ok", consumer_tag="t")
    talk.deliver("b.1", 1, "m1").rest()
    talk.send("b.1 basic.publish q body=m2 &", "b.1 basic.reject 1 requeue &")
    expected = [("m2", False), ("m1", True)] if stays else [("m2", False)]
    for tag, (body, redelivered) in enumerate(expected, 2):
        talk.deliver("b.1", tag, body, redelivered=redelivered)
    assert not talk.rest().acceptor.failures


@pytest.mark.parametrize(("confirms", "passes"), [("aann", True), ("aaan", True), ("nnnn", False), ("aana", False)])
def test_a_quorum_queue_takes_more_until_its_channel_is_told(confirms: str, passes: bool) -> None:
    """`confirms`: acks and nacks of four that are published together after the first."""
    talk = full(f"x-queue-type=quorum {REJECTING}").send(*(f"a.1 basic.publish q body=n{i} &" for i in range(4)))
    for number, confirm in enumerate(confirms, 2):
        talk = talk.confirm("a.1", number) if confirm == "a" else nack(talk, number)
    assert (talk.acceptor.verdict is Verdict.PASS) is passes


@pytest.mark.parametrize("confirmed_first", [False, True])
def test_an_answer_to_a_get_may_come_behind_the_confirm_of_what_drives_its_message_out(confirmed_first: bool) -> None:
    talk = full("").send("a.1 basic.publish q body=m2 &", "b.1 basic.get q")
    if confirmed_first:
        assert not talk.confirm("a.1", 2).got("b.1", 1, "m1", left=0).rest().acceptor.failures
    else:
        assert not talk.got("b.1", 1, "m1", left=0).confirm("a.1", 2).rest().acceptor.failures
    assert not talk.send("b.1 basic.get q").got("b.1", 2, "m2", left=0).rest().acceptor.failures


def test_of_many_messages_that_were_driven_out_each_may_be_seen_yet() -> None:
    talk = Conversation().send("a.1 queue.declare q durable x-max-length=1")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send(*publish(*map(str, range(100))), "b.1 basic.get q")
    assert not talk.got("b.1", 1, "0", left=0).acceptor.failures


@pytest.mark.parametrize("timed_out", [True, False])
def test_who_has_timed_out_takes_nothing(timed_out: bool) -> None:
    held = "x-max-length=2 x-consumer-timeout=60000"
    consumers = ["a.2 basic.qos 3", "a.2 basic.consume q tag=t", "a.2 basic.qos 1", "a.2 basic.consume q tag=u"]
    broker = after("rabbitmq-4.3", quorum(held), *consumers)
    broker.queues["q"].consumers[0].timed_out = int(timed_out)
    for line in publish("1", "2", "3", "4", "5", "6"):
        command = parse_command(line)
        process(broker, event_of("a", 1, command.method, dict(command.arguments), True, command.content))
    assert handed_over(broker, broker.queues["q"]) == (1 if timed_out else 4)


@EVERYWHERE
@pytest.mark.parametrize(("limit", "dropped"), [(0, 0), (1, 1), (2, 0)])
def test_a_consumer_without_acknowledgements_takes_no_more_at_once_than_its_channel_may(
    dialect: str, limit: int, dropped: int
) -> None:
    """What comes back to a quorum queue all at once counts, until that channel has settled what it was handed."""
    lines = [quorum("x-max-length=1"), f"b.1 basic.qos {limit}", "a.2 basic.consume q tag=u", *publish("1", "2", "3")]
    broker = after(dialect, *lines, "b.1 basic.consume q tag=t no-ack", "a.2 channel.close")
    assert [each.requirement for each in broker.queues["q"].gone].count("OVERFLOW-002") == dropped


@pytest.mark.parametrize("came", [0, 1, 2])
def test_a_purge_may_overtake_publishes_of_its_channel_to_a_quorum_queue(came: int) -> None:
    talk = Conversation().send(quorum("")).see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.rest().send("a.1 basic.publish q body=m1 &", "a.1 basic.publish q body=m2 &", "a.1 queue.purge q")
    talk.see("a.1", "queue.purge-ok", message_count=came)
    talk.send("a.1 queue.declare q passive")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=2 - came, consumer_count=0).rest()
    assert talk.acceptor.verdict is Verdict.PASS


def test_what_has_come_to_a_classic_queue_is_purged() -> None:
    talk = Conversation().send(classic("")).see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.rest().send("a.1 basic.publish q body=m1 &", "a.1 queue.purge q")
    talk.see("a.1", "queue.purge-ok", message_count=1)
    talk.send("a.1 queue.declare q passive")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=1, consumer_count=0).rest()
    assert talk.acceptor.verdict is Verdict.FAIL


@pytest.mark.parametrize(("at_once", "count", "is_right"), [
    (True, 1, True), (True, 2, True), (False, 1, True), (False, 2, False),
])  # fmt: skip
def test_a_channel_asks_a_quorum_queue_before_it_publishes_to_it_for_the_first_time(
    at_once: bool, count: int, is_right: bool
) -> None:
    """What another one publishes may come between (rabbit_fifo: #register_enqueuer{}, and then #enqueue{})."""
    talk = Conversation().send(quorum("x-max-length=0 x-overflow=reject-publish"))
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("b.1 basic.publish q body=m1 &")
    if not at_once:
        talk.rest()
    talk.send("c.1 basic.publish q body=m2", "a.1 queue.declare q passive")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=count, consumer_count=0)
    assert (not talk.acceptor.failures) is is_right
