"""The acceptor: the input-output relation, frame by frame."""

from __future__ import annotations

import copy
from itertools import permutations
from typing import Any, Self

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.judging.acceptor import DEFAULT_BOUND
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.model.promises.versions import RABBITMQ
from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import Content, Method, event_of
from tests.handshakes import opening

#: A product of which no known defect is followed: the law alone.
ANOTHER = "Another broker"


class Conversation:
    """Frames of a client and a broker, given to an acceptor. Connections and channels open themselves."""

    def __init__(self, dialect: str = "rabbitmq-4.3", bound: int = DEFAULT_BOUND, product: str = RABBITMQ) -> None:
        self.acceptor = acceptor_for(dialect_named(dialect), bound, product=product)
        self._open: set[tuple[str, int]] = set()

    def send(self, *lines: str) -> Self:
        for line in lines:
            command = parse_command(line)
            self._ensure_open(command.connection, command.channel)
            self.acceptor.command = line
            self.acceptor.overlapping = command.in_flight
            self._sent(command.connection, command.channel, command.method, command.arguments, command.content)
            self.acceptor.overlapping = False
        return self

    def see(self, channel: str, method: str, body: str | None = None, **arguments: Any) -> Self:
        """The broker sends this; `properties` are the content's."""
        connection, _, number = channel.partition(".")
        content = None if body is None else Content(arguments.pop("properties", {}), body.encode())
        self.acceptor.received(event_of(connection, int(number or 0), method, arguments, sent=False, content=content))
        return self

    def deliver(self, channel: str, tag: int, body: str, redelivered: bool = False, consumer: str = "t") -> Self:
        return self.see(
            channel, "basic.deliver", body,
            consumer_tag=consumer, delivery_tag=tag, redelivered=redelivered, exchange="", routing_key="q",
        )  # fmt: skip

    def confirm(self, channel: str, tag: int, multiple: bool = False) -> Self:
        return self.see(channel, "basic.ack", delivery_tag=tag, multiple=multiple)

    def got(self, channel: str, tag: int, body: str, left: int, redelivered: bool = False) -> Self:
        return self.see(
            channel, "basic.get-ok", body,
            delivery_tag=tag, redelivered=redelivered, exchange="", routing_key="q", message_count=left,
        )  # fmt: skip

    def rest(self) -> Self:
        """A barrier is complete."""
        self.acceptor.quiescent()
        return self

    def fork(self) -> Conversation:
        return copy.deepcopy(self)

    @property
    def failure(self) -> Failure:
        (failure,) = self.acceptor.failures
        return failure

    @property
    def explanations(self) -> int:
        return len(self.acceptor.explanations)

    @property
    def pending(self) -> int:
        return max(len(explanation.pending) for explanation in self.acceptor.explanations)

    def _ensure_open(self, connection: str, number: int) -> None:
        if (connection, 0) not in self._open:
            self._open.add((connection, 0))
            for method in opening(connection, self.acceptor.dialect):
                if method.sent:
                    self.acceptor.sent(method)
                else:
                    self.acceptor.received(method)
        if number and (connection, number) not in self._open:
            self._open.add((connection, number))
            self._sent(connection, number, "channel.open", {})
            self.see(f"{connection}.{number}", "channel.open-ok")

    def _sent(self, connection: str, number: int, method: str, arguments: Any, content: Content | None = None) -> None:
        self.acceptor.sent(event_of(connection, number, method, arguments, sent=True, content=content))


def declared(kind: str = "classic", dialect: str = "rabbitmq-4.3", **options: Any) -> Conversation:
    """A conversation in which the queue `q` was declared by a.1."""
    talk = Conversation(dialect, **options)
    talk.send(f"a.1 queue.declare q durable x-queue-type={kind}")
    return talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()


def consuming(prefetch: int = 1, kind: str = "classic", dialect: str = "rabbitmq-4.3", **options: Any) -> Conversation:
    """a.1 consumes from `q` with that limit, b.1 is in confirm mode."""
    talk = declared(kind, dialect, **options)
    talk.send(f"a.1 basic.qos {prefetch}").see("a.1", "basic.qos-ok")
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t")
    talk.send("b.1 confirm.select").see("b.1", "confirm.select-ok").rest()
    return talk


# --------------------------------------------------------------------------------------- the worked example


def test_the_worked_example() -> None:
    talk = consuming(prefetch=1)
    assert talk.explanations == 1
    before = talk.acceptor.exercised["QOS-001"]
    talk.send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2")
    # permitted now, each by itself: the delivery of m1, and a confirm of 1, of 2, or of both
    assert talk.fork().confirm("b.1", 1).acceptor.verdict is Verdict.PASS
    assert talk.fork().confirm("b.1", 2).acceptor.verdict is Verdict.PASS
    assert talk.fork().confirm("b.1", 2, multiple=True).acceptor.verdict is Verdict.PASS
    assert talk.fork().confirm("b.1", 3).failure.requirement == "CONFIRM-002"
    assert talk.fork().deliver("a.1", 1, "m2").failure.requirement == "PUBLISH-015"
    assert talk.fork().deliver("a.1", 2, "m1").failure.requirement == "CONSUME-014"
    assert talk.fork().rest().failure.shape is Shape.MISSING

    talk.deliver("a.1", 1, "m1")
    assert talk.acceptor.verdict is Verdict.PASS
    # t holds 1 of 1: m2 may not come, which is what exercises the limit
    beyond = talk.fork().deliver("a.1", 2, "m2").failure
    assert (beyond.requirement, beyond.shape) == ("QOS-001", Shape.UNEXPECTED)
    talk.confirm("b.1", 2, multiple=True)
    assert talk.acceptor.exercised["QOS-001"] > before
    assert talk.fork().confirm("b.1", 1).failure.requirement == "CONFIRM-005", "both were settled"
    assert not talk.acceptor.owes()
    talk.rest()
    assert talk.acceptor.verdict is Verdict.PASS
    assert talk.explanations == 1

    talk.send("a.1 basic.ack 1")
    assert talk.acceptor.owes(), "however it is processed, m2 must come"
    assert talk.fork().rest().failure == Failure(
        requirement="ACK-001",
        shape=Shape.MISSING,
        detail="basic.deliver",
        command="a.1 basic.ack 1",
        observed="nothing",
        allowed=("a.1 < basic.deliver consumer-tag=t delivery-tag=2 redelivered=false routing-key=q body=m2",),
        state=(
            "channel a.1 open: unacknowledged [], consumer t on q holds 0 of 1",
            "queue q (classic): ready [m2], consumers 1",
        ),
    )
    talk.deliver("a.1", 2, "m2").rest()
    assert talk.acceptor.failures == []
    assert talk.acceptor.exercised["ACK-001"] == 1
    assert talk.acceptor.exercised["QOS-004"] == 1


def test_an_acknowledgement_that_is_not_pinned_stays_pending() -> None:
    talk = consuming(prefetch=1)
    talk.send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2")
    talk.deliver("a.1", 1, "m1").confirm("b.1", 1)
    # the second confirm is still owed, so the broker need not have seen the acknowledgement when it sends that
    talk.send("a.1 basic.ack 1")
    talk.confirm("b.1", 2)
    assert (talk.explanations, talk.pending) == (1, 1)
    talk.deliver("a.1", 2, "m2")
    assert (talk.explanations, talk.pending) == (1, 0), "only the one with the acknowledgement processed permits m2"
    assert talk.rest().acceptor.verdict is Verdict.PASS


def test_a_barrier_pins_everything() -> None:
    talk = consuming(prefetch=2)
    talk.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1")
    talk.send("a.1 basic.ack 1").confirm("b.1", 1)
    assert (talk.explanations, talk.pending) == (1, 1)
    talk.rest()
    assert (talk.explanations, talk.pending) == (1, 0)
    talk.send("a.1 basic.ack 1")
    talk.see("a.1", "channel.close", reply_code=406, reply_text="PRECONDITION_FAILED - unknown delivery tag 1",
             class_id=60, method_id=80)  # fmt: skip
    assert talk.rest().acceptor.failures == [], "the first acknowledgement had been processed"


def test_a_reply_pins_what_was_sent_before_it_on_its_channel_only() -> None:
    talk = consuming(prefetch=1)
    talk.send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2")
    talk.send("a.2 basic.qos 5")
    talk.see("a.2", "basic.qos-ok")
    assert talk.pending == 1, "what b.1 published need not be processed yet"
    talk.send("b.1 basic.qos 5").see("b.1", "basic.qos-ok")
    assert talk.pending == 0
    talk.deliver("a.1", 1, "m1").confirm("b.1", 2, multiple=True).rest()
    assert talk.acceptor.failures == []


# ------------------------------------------------------------------------------------------------- failures


def test_a_delivery_beyond_the_limit() -> None:
    talk = consuming(prefetch=1)
    talk.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1").confirm("b.1", 1).rest()
    talk.send("b.1 basic.publish q body=m2").confirm("b.1", 2)
    talk.deliver("a.1", 2, "m2")
    assert talk.failure == Failure(
        requirement="QOS-001",
        shape=Shape.UNEXPECTED,
        detail="basic.deliver beyond the limit",
        command="b.1 basic.publish q body=m2",
        observed="a.1 < basic.deliver consumer-tag=t delivery-tag=2 redelivered=false routing-key=q body=m2",
        allowed=("nothing: the broker should be silent",),
        state=(
            "channel a.1 open: unacknowledged [1=m1], consumer t on q holds 1 of 1",
            "queue q (classic): ready [m2], consumers 1",
        ),
    )
    assert talk.acceptor.finished
    assert talk.acceptor.verdict is Verdict.FAIL
    # nothing is judged any more
    talk.deliver("a.1", 77, "nonsense").send("a.1 basic.ack 1").rest()
    talk.acceptor.overdue()
    assert len(talk.acceptor.failures) == 1


@pytest.mark.parametrize(
    ("line", "requirement", "allowed"),
    [
        ("a.1 basic.qos 3", "QOS-014", "a.1 < basic.qos-ok"),
        ("a.1 basic.get q", "GET-001", "a.1 < basic.get-empty"),
        ("a.1 basic.cancel t", "CANCEL-001", "a.1 < basic.cancel-ok consumer-tag=t"),
        ("a.1 basic.cancel nobody", "CANCEL-003", "a.1 < basic.cancel-ok consumer-tag=nobody"),
        ("a.1 basic.recover requeue", "RECOVER-001", "a.1 < basic.recover-ok"),
        ("a.1 queue.purge q", "QUEUE-024", "a.1 < queue.purge-ok message-count=0"),
        ("a.1 channel.close", "CHAN-003", "a.1 < channel.close-ok"),
        ("c.1 basic.publish q body=m1", "PUBLISH-002",
         "a.1 < basic.deliver consumer-tag=t delivery-tag=1 redelivered=false routing-key=q body=m1"),
        ("b.1 basic.publish nowhere body=m1", "CONFIRM-008", "b.1 < basic.ack delivery-tag=1"),
        ("b.1 basic.publish nowhere mandatory", "PUBLISH-007",
         "b.1 < basic.return reply-code=312 reply-text=NO_ROUTE routing-key=nowhere body=''"),
        ("a.1 basic.ack 9", "ACK-006",
         "a.1 < channel.close reply-code=406 reply-text='PRECONDITION_FAILED - unknown delivery tag 9' class-id=60"
         " method-id=80"),
        ("a.1 basic.consume missing", "CONSUME-006",
         "a.1 < channel.close reply-code=404 reply-text=\"NOT_FOUND - no queue 'missing' in vhost '/'\" class-id=60"
         " method-id=20"),
    ],
)  # fmt: skip
def test_a_frame_that_is_missing(line: str, requirement: str, allowed: str) -> None:
    talk = consuming(prefetch=1).send(line)
    assert talk.acceptor.owes()
    late = talk.fork()
    talk.rest()
    assert talk.failure.requirement == requirement
    assert talk.failure.shape is Shape.MISSING
    assert talk.failure.observed == "nothing"
    assert talk.failure.allowed == (allowed,)
    assert talk.failure.command == line
    assert talk.failure.state
    late.acceptor.overdue()
    assert late.failure == talk.failure, "the end of the deadline says the same as a barrier"


@pytest.mark.parametrize(
    ("channel", "method", "arguments", "requirement"),
    [
        ("a.1", "basic.ack", {"delivery_tag": 1}, "CONFIRM-002"),
        ("b.1", "basic.ack", {"delivery_tag": 1}, "CONFIRM-002"),
        ("b.1", "basic.nack", {"delivery_tag": 1}, "CONFIRM-002"),
        ("a.1", "basic.cancel", {"consumer_tag": "t"}, "CANCEL-007"),
        ("a.1", "basic.get-empty", {}, "GET-001"),
        ("b.1", "basic.return", {"reply_code": 312}, "PUBLISH-008"),
        ("c.1", "basic.cancel", {"consumer_tag": "t"}, "CANCEL-002"),
        ("a.9", "basic.qos-ok", {}, "CHAN-001"),
        ("a", "socket.closed", {"reason": "reset"}, "CONFIRM-001"),
        ("a", "connection.close", {"reply_code": 541}, "CONFIRM-001"),
        ("a", "connection.blocked", {"reason": "memory"}, "CAP-004"),
    ],
)
def test_a_frame_that_nothing_asked_for(channel: str, method: str, arguments: dict[str, Any], requirement: str) -> None:
    talk = consuming(prefetch=1)
    talk.see(channel, method, **arguments)
    assert talk.failure.shape is Shape.UNEXPECTED
    assert talk.failure.requirement == requirement
    assert talk.failure.allowed == ("nothing: the broker should be silent",)


def test_what_is_wrong_without_leaving_doubt_is_recorded_once_and_judging_goes_on() -> None:
    talk = consuming(prefetch=0)
    talk.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1", redelivered=True).confirm("b.1", 1).rest()
    assert (talk.failure.requirement, talk.failure.shape) == ("ACK-015", Shape.WRONG_ARGUMENT)
    assert talk.failure.detail == "basic.deliver redelivered"
    assert talk.failure.allowed == ("false",)
    assert not talk.acceptor.finished
    for tag in (2, 3):
        talk.send("b.1 basic.publish q body=m").deliver("a.1", tag, "m", redelivered=True).confirm("b.1", tag).rest()
    assert len(talk.acceptor.failures) == 1, "one of each"
    # another one, and then one after which nothing can be said
    talk.send("a.1 queue.purge q").see("a.1", "queue.purge-ok", message_count=7).rest()
    assert [failure.requirement for failure in talk.acceptor.failures] == ["ACK-015", "QUEUE-024"]
    talk.send("a.1 basic.qos 1").rest()
    assert [failure.requirement for failure in talk.acceptor.failures] == ["ACK-015", "QUEUE-024", "QOS-014"]
    assert talk.acceptor.finished


def test_the_wrong_argument_does_not_hide_among_several_explanations() -> None:
    talk = consuming(prefetch=0)
    talk.send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2")
    talk.deliver("a.1", 1, "m1", redelivered=True)
    assert talk.failure.identity == "ACK-015|wrong argument|basic.deliver redelivered"
    talk.deliver("a.1", 2, "m2").confirm("b.1", 2, multiple=True).rest()
    assert len(talk.acceptor.failures) == 1
    assert not talk.acceptor.finished


def test_an_error_of_which_the_wording_is_wrong() -> None:
    talk = declared().send("a.1 basic.ack 9")
    talk.see("a.1", "channel.close", reply_code=406, reply_text="PRECONDITION_FAILED - no", class_id=60, method_id=80)
    assert talk.failure.requirement == "CHAN-008"
    assert talk.failure.detail == "channel.close reply-text"
    assert not talk.acceptor.finished
    bare = declared(dialect="amqp-0-9-1").send("a.1 basic.ack 9")
    bare.see("a.1", "channel.close", reply_code=406, reply_text="no", class_id=60, method_id=80)
    assert bare.acceptor.failures == [], "the text of 0-9-1 leaves the wording open"


# ------------------------------------------------------------------------------------------------- deadlines


def test_overdue_asks_for_proof_and_a_barrier_does_not() -> None:
    talk = declared()
    talk.send("a.1 basic.publish q body=m1")
    assert not talk.acceptor.owes(), "nothing on the wire is owed for a publish that nobody gets"
    assert talk.fork().rest().acceptor.verdict is Verdict.PASS
    counted = talk.fork().send("a.1 queue.declare q passive")
    counted.see("a.1", "queue.declare-ok", queue="q", message_count=1, consumer_count=0)
    counted.acceptor.overdue()
    assert counted.acceptor.verdict is Verdict.PASS, "a count has shown the message"
    talk.send("a.1 queue.declare q passive")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    assert talk.fork().rest().acceptor.verdict is Verdict.PASS, "it may still be on its way"
    talk.acceptor.overdue()
    assert talk.failure.requirement == "PUBLISH-002"
    assert talk.failure.allowed == ("1 of 1 ready messages of q",)


# --------------------------------------------------------------------------------------------- several orders


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_confirms_come_in_any_order(order: tuple[int, ...]) -> None:
    talk = consuming().send("b.1 basic.publish x body=1", "b.1 basic.publish x body=2", "b.1 basic.publish x body=3")
    for number in order:
        talk.confirm("b.1", number + 1)
    assert talk.fork().rest().acceptor.verdict is Verdict.PASS
    assert talk.fork().confirm("b.1", order[0] + 1).failure.requirement == "CONFIRM-003"


def test_a_confirm_of_several_settles_what_is_open_below_it() -> None:
    talk = consuming().send(*(f"b.1 basic.publish x body={number}" for number in range(5)))
    talk.confirm("b.1", 2).confirm("b.1", 4, multiple=True)
    for settled, requirement in ((1, "CONFIRM-005"), (2, "CONFIRM-003"), (3, "CONFIRM-005"), (4, "CONFIRM-003")):
        assert talk.fork().confirm("b.1", settled).failure.requirement == requirement
    assert talk.fork().confirm("b.1", 4, multiple=True).failure.requirement == "CONFIRM-003"
    assert talk.fork().confirm("b.1", 6, multiple=True).failure.requirement == "CONFIRM-002", "never published"
    missing = talk.fork().rest().failure
    assert (missing.shape, missing.allowed) == (Shape.MISSING, ("b.1 < basic.ack delivery-tag=5",))
    assert talk.confirm("b.1", 5).rest().acceptor.verdict is Verdict.PASS


def test_a_negative_confirm_is_recorded_and_counts_as_one() -> None:
    talk = consuming().send("b.1 basic.publish x body=1").see("b.1", "basic.nack", delivery_tag=1)
    assert talk.failure.requirement == "CONFIRM-008"
    talk.rest()
    assert len(talk.acceptor.failures) == 1


def two_consumers(prefetch: int, kind: str = "classic") -> Conversation:
    talk = consuming(prefetch, kind)
    talk.send(f"c.1 basic.qos {prefetch}").see("c.1", "basic.qos-ok")
    return talk.send("c.1 basic.consume q tag=u").see("c.1", "basic.consume-ok", consumer_tag="u").rest()


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("first", ["a", "c"])
@pytest.mark.parametrize("swapped", [False, True])
def test_deliveries_to_two_channels_are_seen_in_either_order(kind: str, first: str, swapped: bool) -> None:
    talk = two_consumers(1, kind).send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2")
    bodies = ("m2", "m1") if swapped else ("m1", "m2")
    other = "c" if first == "a" else "a"
    tags = {"a": "t", "c": "u"}
    talk.deliver(f"{first}.1", 1, bodies[0], consumer=tags[first])
    repeated = talk.fork().deliver(f"{other}.1", 1, bodies[0], consumer=tags[other])
    assert repeated.acceptor.verdict is Verdict.FAIL, "each message goes to one consumer"
    talk.deliver(f"{other}.1", 1, bodies[1], consumer=tags[other])
    talk.confirm("b.1", 2, multiple=True).rest()
    assert talk.acceptor.failures == []


def test_a_message_that_was_passed_over_by_a_channel_cannot_come_there_later() -> None:
    talk = two_consumers(2).send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2")
    talk.deliver("a.1", 1, "m2")
    assert talk.fork().deliver("c.1", 1, "m1", consumer="u").acceptor.failures == []
    assert talk.deliver("a.1", 2, "m1").failure.requirement == "PUBLISH-015"


@pytest.mark.parametrize("order", list(permutations(["a2", "c2", "confirm"])))
def test_acknowledgements_of_two_channels_at_the_same_time(order: tuple[str, ...]) -> None:
    talk = two_consumers(1).send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2")
    talk.deliver("a.1", 1, "m1").deliver("c.1", 1, "m2", consumer="u").confirm("b.1", 2, multiple=True).rest()
    talk.send("b.1 basic.publish q body=m3", "b.1 basic.publish q body=m4", "a.1 basic.ack 1 &", "c.1 basic.ack 1 &")
    # m3 to whichever acknowledgement is processed first, m4 to the other
    frames = {
        "a2": lambda: talk.deliver("a.1", 2, "m3"),
        "c2": lambda: talk.deliver("c.1", 2, "m4", consumer="u"),
        "confirm": lambda: talk.confirm("b.1", 4, multiple=True),
    }
    for name in order:
        frames[name]()
        assert talk.acceptor.failures == []
    assert talk.rest().acceptor.verdict is Verdict.PASS
    assert (talk.explanations, talk.pending) == (1, 0)
    assert talk.deliver("a.1", 3, "m3").acceptor.verdict is Verdict.FAIL


def test_of_two_acknowledgements_in_flight_one_alone_is_not_enough() -> None:
    talk = two_consumers(1).send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2")
    talk.deliver("a.1", 1, "m1").deliver("c.1", 1, "m2", consumer="u").confirm("b.1", 2, multiple=True).rest()
    talk.send("b.1 basic.publish q body=m3", "b.1 basic.publish q body=m4")
    talk.send("a.1 basic.ack 1 &", "c.1 basic.ack 1").confirm("b.1", 4, multiple=True)
    talk.deliver("a.1", 2, "m3")
    assert talk.acceptor.owes()
    assert talk.rest().failure.allowed == (
        "c.1 < basic.deliver consumer-tag=u delivery-tag=2 redelivered=false routing-key=q body=m4",
    )


def test_what_a_channel_was_given_before_its_error_goes_back() -> None:
    talk = declared().send("a.1 basic.publish q body=m1").rest()
    talk.send("a.1 basic.get q &", "a.1 basic.ack 99").got("a.1", 1, "m1", left=0)
    talk.see("a.1", "channel.close", reply_code=406, reply_text="PRECONDITION_FAILED - unknown delivery tag 99",
             class_id=60, method_id=80)  # fmt: skip
    talk.acceptor.sent(Method("a", 1, "channel.close-ok", {}, sent=True))
    talk.rest()
    assert talk.explanations == 1
    lost = talk.fork().send("b.1 basic.get q").see("b.1", "basic.get-empty")
    lost.acceptor.overdue()
    assert lost.acceptor.verdict is Verdict.FAIL
    assert talk.send("b.1 basic.get q").got("b.1", 1, "m1", left=0, redelivered=True).rest().acceptor.failures == []


def test_a_consumer_that_ended_before_its_tag_was_known() -> None:
    """The tag that the broker chose is told by consume-ok; the notice that the consumer is gone carries it."""
    talk = declared().send("a.1 basic.consume q &", "b.1 queue.delete q")
    talk.see("b.1", "queue.delete-ok", message_count=0)
    talk.see("a.1", "basic.consume-ok", consumer_tag="amq.ctag-x")
    wrong = talk.fork().see("a.1", "basic.cancel", consumer_tag="amq.ctag-y", nowait=True)
    assert wrong.acceptor.verdict is Verdict.FAIL
    talk.see("a.1", "basic.cancel", consumer_tag="amq.ctag-x", nowait=True).rest()
    assert talk.acceptor.failures == []


@pytest.mark.parametrize("case", ["publish before the delete", "purge before the nack", "purge before the publish"])
def test_inputs_of_two_channels_are_processed_in_either_order(case: str) -> None:
    talk = declared()
    match case:
        case "publish before the delete":
            # routed to the queue, which is deleted then, so nothing is returned
            talk.send("a.1 queue.delete q nowait &", "b.1 basic.publish q mandatory body=m1")
        case "purge before the nack":
            talk.send("a.1 basic.publish q body=m1").rest()
            talk.send("a.1 basic.get q").got("a.1", 1, "m1", left=0).rest()
            talk.send("a.1 basic.nack 1 requeue &", "b.1 queue.purge q")
            talk.see("b.1", "queue.purge-ok", message_count=0).send("b.1 basic.get q")
            talk.got("b.1", 1, "m1", left=0, redelivered=True)
        case "purge before the publish":
            talk.send("a.1 basic.publish q body=m1 &", "b.1 queue.purge q")
            talk.see("b.1", "queue.purge-ok", message_count=0).send("b.1 basic.get q").got("b.1", 1, "m1", left=0)
    assert talk.rest().acceptor.failures == []


# ------------------------------------------------------------------------------------------------- the bound


def many_in_flight(bound: int, channels: int = 5) -> Conversation:
    """Inputs of many channels are under way, none of them pinned."""
    talk = consuming(prefetch=1, bound=bound)
    for number in range(channels):
        talk.send(f"c.{number + 1} basic.qos 1").see(f"c.{number + 1}", "basic.qos-ok")
    talk.send("b.1 basic.publish q body=m1")
    for number in range(channels):
        publish = f"c.{number + 1} basic.publish q mandatory"  # it may come back: the order is followed
        talk.send(f"{publish} body=x{number}", f"{publish} body=y{number}")
    return talk


def test_beyond_the_bound_the_verdict_is_inconclusive() -> None:
    talk = many_in_flight(bound=20)
    talk.confirm("b.1", 1)
    assert talk.acceptor.verdict is Verdict.INCONCLUSIVE
    assert talk.acceptor.reason == "more than 20 explanations are possible"
    assert talk.acceptor.finished
    # and stays so, whatever comes
    talk.deliver("a.1", 1, "m1").rest().deliver("a.1", 2, "nonsense")
    talk.acceptor.overdue()
    assert not talk.acceptor.owes()
    assert talk.acceptor.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 10, 20, 40, 80])
@pytest.mark.parametrize("step", ["barrier", "overdue", "owes", "delivery of the last", "nonsense"])
def test_no_bound_turns_into_a_verdict(bound: int, step: str) -> None:
    """What was cut off may hold the right explanation: neither pass nor fail may come of that."""
    talk = many_in_flight(bound)
    match step:
        case "barrier":
            talk.deliver("a.1", 1, "m1").confirm("b.1", 1).rest()
        case "overdue":
            talk.acceptor.overdue()
        case "owes":
            talk.acceptor.owes()
            talk.deliver("a.1", 1, "m1")
        case "delivery of the last":
            # only after all of c.5 was processed, and nothing else
            talk.deliver("a.1", 1, "y4")
        case "nonsense":
            talk.deliver("a.1", 1, "nonsense")
    assert talk.acceptor.verdict is Verdict.INCONCLUSIVE
    assert talk.acceptor.failures == []


def test_what_fits_into_the_bound_is_decided() -> None:
    talk = many_in_flight(bound=DEFAULT_BOUND, channels=2)
    assert talk.fork().deliver("a.1", 1, "nonsense").acceptor.verdict is Verdict.FAIL
    talk.deliver("a.1", 1, "m1").confirm("b.1", 1).rest()
    assert talk.acceptor.verdict is Verdict.PASS


# ------------------------------------------------------------------------------------------------ known defects


def exclusively_consumed(dialect: str = "rabbitmq-4.3") -> Conversation:
    """a.1 consumes exclusively from a quorum queue, and now b.1 wants to as well."""
    talk = declared("quorum", dialect)
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok")
    talk.send("a.1 basic.consume q tag=t exclusive").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    return talk.send("b.1 basic.consume q tag=u")


REFUSED: dict[str, Any] = {
    "reply_code": 403,
    "reply_text": "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use",
    "class_id": 60,
    "method_id": 20,
}


def test_the_lawful_explanation_is_preferred() -> None:
    talk = exclusively_consumed().see("b.1", "channel.close", **REFUSED).rest()
    assert talk.acceptor.failures == []
    assert talk.explanations == 1
    # and the defective one is gone: that consumer does not exist
    assert talk.see("b.1", "basic.cancel", consumer_tag="u").acceptor.verdict is Verdict.FAIL


@pytest.mark.known_defects
def test_a_defect_is_recorded_with_its_name_and_ends_the_judging() -> None:
    talk = exclusively_consumed().see("b.1", "basic.consume-ok", consumer_tag="u")
    assert talk.failure.requirement == "CONSUME-008"
    assert talk.failure.defect == "exclusive-consumer-ignored"
    assert talk.failure.identity == "CONSUME-008|exclusive-consumer-ignored"
    assert talk.failure.command == "b.1 basic.consume q tag=u"
    assert talk.failure.observed == "b.1 < basic.consume-ok consumer-tag=u"
    assert talk.acceptor.verdict is Verdict.FAIL, "a known defect never makes a run green"
    assert talk.acceptor.finished
    assert len(talk.send("c.1 basic.publish q body=m1").deliver("a.1", 9, "m9").acceptor.failures) == 1


def test_without_defects_the_same_ends_the_judging() -> None:
    talk = exclusively_consumed("amqp-0-9-1").see("b.1", "basic.consume-ok", consumer_tag="u")
    # the text has no types of queues
    assert (talk.failure.requirement, talk.failure.defect) == ("CONSUME-007", "")
    assert talk.acceptor.finished


@pytest.mark.known_defects
def test_silence_can_be_a_defect() -> None:
    talk = declared()
    talk.send("a.1 basic.consume q tag=t &", "a.1 basic.cancel t")
    lawful = talk.fork().see("a.1", "basic.consume-ok", consumer_tag="t")
    assert lawful.see("a.1", "basic.cancel-ok", consumer_tag="t").rest().acceptor.failures == []
    talk.see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    assert (talk.failure.requirement, talk.failure.defect) == ("CONSUME-005", "consume-ok-dropped")
    assert talk.acceptor.finished


@pytest.mark.known_defects
def test_the_first_delivery_tells_the_tag_of_who_is_served_before_its_consume_ok() -> None:
    talk = Conversation().send("a.1 queue.declare q durable x-queue-type=stream")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.qos 5").see("a.1", "basic.qos-ok").rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("b.1 basic.publish q body=m1", "a.1 basic.consume q x-stream-offset=first")
    chosen = "amq.ctag-0123456789"
    content = {"headers": {"x-stream-offset": Int64(0)}, "delivery_mode": 1}
    for tag, number in (("t", 1), (chosen, 2)):
        about = {"consumer_tag": tag, "delivery_tag": number, "redelivered": False, "exchange": "", "routing_key": "q"}
        talk.see("a.1", "basic.deliver", "m1", properties=content, **about)
    talk.see("a.1", "basic.consume-ok", consumer_tag=chosen).rest()
    assert [failure.defect for failure in talk.acceptor.failures] == ["stream-serves-before-consume-ok"]


@pytest.mark.known_defects
def test_who_was_never_announced_may_be_handed_something_all_the_same() -> None:
    talk = declared().send("b.1 basic.publish q body=m1").rest()
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").rest()
    talk.send("a.1 basic.consume q tag=t &", "a.1 basic.cancel t").deliver("a.1", 1, "m1")
    talk.see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    assert [failure.defect for failure in talk.acceptor.failures] == ["consume-ok-dropped"]
    assert len(talk.send("a.1 basic.ack 1").rest().acceptor.failures) == 1


@pytest.mark.known_defects
def test_an_argument_that_a_defect_explains() -> None:
    talk = declared("quorum").send("a.1 basic.publish q body=m1", "a.1 basic.get q").got("a.1", 1, "m1", left=0).rest()
    talk.send("b.1 queue.declare q passive")
    right, wrong = talk.fork(), talk.fork()
    right.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    assert right.acceptor.failures == []
    assert right.acceptor.refuted == {"quorum-consumer-count"}
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=1)
    assert (talk.failure.requirement, talk.failure.defect) == ("QUEUE-026", "quorum-consumer-count")
    assert talk.acceptor.refuted == set()
    wrong.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=9)
    assert (wrong.failure.requirement, wrong.failure.defect) == ("QUEUE-026", "")
    assert wrong.failure.identity != talk.failure.identity


# -------------------------------------------------------------------------------------------- what counts


def test_barrier_traffic_is_judged_but_exercises_nothing() -> None:
    talk = declared()
    talk.acceptor.barrier(True)
    before = dict(talk.acceptor.exercised)
    talk.send("a.1 basic.get q").see("a.1", "basic.get-empty")
    assert dict(talk.acceptor.exercised) == before
    assert talk.fork().send("a.1 basic.get q").got("a.1", 1, "m1", left=0).acceptor.verdict is Verdict.FAIL
    talk.rest().acceptor.barrier(False)
    talk.send("a.1 basic.get q").see("a.1", "basic.get-empty").rest()
    assert talk.acceptor.exercised["GET-001"] == before.get("GET-001", 0) + 1


def test_a_limit_that_holds_nothing_back_is_not_exercised() -> None:
    talk = consuming(prefetch=2)
    talk.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1").confirm("b.1", 1).rest()
    without = talk.acceptor.exercised["QOS-001"]
    talk.send("b.1 basic.publish q body=m2").deliver("a.1", 2, "m2").confirm("b.1", 2).rest()
    assert talk.acceptor.exercised["QOS-001"] == without, "two of two, and nothing is left to hold back"
    talk.send("b.1 basic.publish q body=m3").confirm("b.1", 3).rest()
    assert talk.acceptor.exercised["QOS-001"] == without + 1
    assert talk.acceptor.verdict is Verdict.PASS


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_nothing_seen_is_a_pass_and_exercises_nothing(dialect: str) -> None:
    acceptor = acceptor_for(dialect_named(dialect))
    acceptor.quiescent()
    acceptor.overdue()
    assert (acceptor.verdict, acceptor.failures, dict(acceptor.exercised)) == (Verdict.PASS, [], {})


@pytest.mark.parametrize("channel", [0, 1, 65535])
def test_frames_of_connections_that_nobody_opened_do_not_break_the_judge(channel: int) -> None:
    acceptor = acceptor_for(dialect_named("rabbitmq-4.3"))
    acceptor.received(Method("z", channel, "basic.deliver", {"consumer_tag": "t", "delivery_tag": 1}, sent=False))
    acceptor.quiescent()
    assert acceptor.verdict is Verdict.FAIL


@pytest.mark.known_defects
def test_what_is_known_to_be_told_wrong_is_no_reason_to_blame_a_publish_under_way() -> None:
    talk = Conversation().send("a.1 queue.declare q durable x-queue-type=quorum")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.publish q body=m1", "b.1 basic.get q").got("b.1", 1, "m1", 0).rest()
    talk.send("a.1 basic.publish q body=m2 &", "a.1 basic.publish q body=m3 &", "b.1 queue.declare q passive")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=2, consumer_count=1).rest()
    assert [failure.defect for failure in talk.acceptor.failures] == ["quorum-consumer-count"]


@pytest.mark.known_defects
def test_where_a_known_defect_has_shown_limits_are_counted_as_rabbitmq_does() -> None:
    """It lifts the limit of a channel when its consumers get theirs (QOS-010), which need not be told again."""
    talk = declared(dialect="rabbitmq-4.0")
    talk.send("a.2 basic.consume q tag=s &", "a.2 basic.cancel s").see("a.2", "basic.consume-ok", consumer_tag="s")
    talk.see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR", class_id=0, method_id=0)
    talk.send("a connection.close-ok").see("a", "socket.closed")
    assert [failure.defect for failure in talk.rest().acceptor.failures] == ["cancel-before-consume-ok-breaks"]
    for line, reply in (("basic.qos 1 global", "basic.qos-ok"), ("basic.qos 0", "basic.qos-ok")):
        talk.send(f"b.1 {line}").see("b.1", reply).rest()
    talk.send("b.1 basic.consume q tag=t").see("b.1", "basic.consume-ok", consumer_tag="t").rest()
    for number in (1, 2):
        talk.send(f"c.1 basic.publish q body=m{number}").deliver("b.1", number, f"m{number}").rest()
    assert len(talk.acceptor.failures) == 1


@pytest.mark.known_defects
@pytest.mark.parametrize("redelivered", [False, True])
def test_what_was_handed_to_a_consumer_that_broke_its_channel_may_be_redelivered(redelivered: bool) -> None:
    talk = declared(dialect="rabbitmq-4.0").send("b.1 basic.publish q body=m1").rest()
    talk.send("a.1 basic.consume q tag=t &", "a.1 basic.cancel t")
    talk.see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR", class_id=0, method_id=0)
    talk.send("a connection.close-ok").see("a", "socket.closed").rest().send("b.1 basic.get q")
    talk.got("b.1", 1, "m1", left=0, redelivered=redelivered).rest()
    assert [failure.defect for failure in talk.acceptor.failures] == ["cancel-before-consume-ok-breaks"]


@pytest.mark.parametrize(("line", "reply"), [("a.2! basic.qos 1", "basic.qos-ok"), ("a.2! tx.select", "tx.select-ok")])
def test_what_is_carried_out_where_nothing_is_to_be_is_one_failure_whichever_method_it_is(
    line: str, reply: str
) -> None:
    talk = consuming()
    command = parse_command(line)
    talk.acceptor.sent(event_of("a", 2, command.method, dict(command.arguments), sent=True))
    talk.see("a.2", reply)
    assert talk.failure.identity == "CHAN-001|unexpected frame|a reply in place of connection.close"


def test_nor_does_it_matter_which_method_is_not_refused_there() -> None:
    talk = consuming()
    talk.acceptor.sent(event_of("a", 2, "basic.recover-async", {"requeue": True}, sent=True))
    talk.rest()
    assert talk.failure.identity == "CHAN-001|missing frame|connection.close"


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
def test_a_get_may_come_before_publishes_of_others_whenever_their_confirms_are_seen(dialect: str) -> None:
    """It was sent before any of them was confirmed."""
    for order in permutations(("first", "second", "get")):
        if order.index("second") < order.index("first"):
            continue
        talk = declared("classic", dialect)
        talk.send("b.1 confirm.select").see("b.1", "confirm.select-ok").rest()
        talk.send("b.1 basic.publish q body=m1 &", "b.1 basic.publish q body=m2 &", "a.1 basic.get q")
        for each in order:
            if each == "get":
                talk.see("a.1", "basic.get-empty")
            else:
                talk.confirm("b.1", 1 if each == "first" else 2)
        assert talk.rest().acceptor.failures == [], order
