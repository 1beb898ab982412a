"""Windows: what arms them, what lies within them, and what is credited to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import Connection
from amqpspec.model.broker.queues import Queue
from amqpspec.model.judging.acceptor import Acceptor
from amqpspec.model.judging.defects_followed import DefectsFollowed
from amqpspec.model.judging.windows import (
    EVERYTHING,
    SERVICE,
    Armed,
    Difference,
    Part,
    Scope,
    Window,
    Windows,
    difference_of,
    of_channel,
    of_connection,
    of_queues,
)
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Shape, Verdict
from amqpspec.model.protocol.methods import Method, event_of
from tests.model.judging.test_acceptor import Conversation, consuming, declared

QOS = Method("a", 1, "basic.qos", {"prefetch_count": 1}, sent=True)


def window(name: str = "w", requirement: str = "QOS-001", **changes: Any) -> Window:
    """A basic.qos arms it for `q`, where it spoils who gets what."""
    made = Window(
        name=name,
        requirement=requirement,
        strength=Strength.PROMISED,
        statement="It errs.",
        source="seen",
        dialects=("rabbitmq-4.3",),
        spoils=SERVICE,
        kinds=("basic.qos",),
        arms=lambda broker, event: Scope(frozenset({"q"})),
    )
    return replace(made, **changes)


def difference(part: Part = Part.DELIVERY, queue: str | None = "q", **changes: Any) -> Difference:
    made = Difference(part, Shape.UNEXPECTED, "basic.deliver", ("a", 1), queue, "QOS-001", None)
    return replace(made, **changes)


# ------------------------------------------------------------------------------------------------------- where


@pytest.mark.parametrize(
    ("scope", "wrong", "is_within"),
    [
        (EVERYTHING, difference(queue=None), True),
        (Scope(frozenset({"q"})), difference(), True),
        (Scope(frozenset({"r"})), difference(), False),
        (Scope(frozenset({"q"})), difference(queue=None), True),
        (Scope(frozenset({"q"})), difference(Part.CONFIRM, None), True),
        (Scope(frozenset({"q"})), difference(Part.REPLY, None), False),
        (Scope(), difference(queue=None), False),
        (Scope(channels=frozenset({("a", 1)})), difference(queue="r"), True),
        (Scope(channels=frozenset({("a", 2)})), difference(), False),
        (Scope(channels=frozenset({("a", 2)})), difference(served=frozenset({("a", 2)})), True),
        (Scope(channels=frozenset({("a", 2)})), difference(Part.REPLY, served=frozenset({("a", 2)})), False),
        (Scope(channels=frozenset({("a", 2)})), difference(Part.CONNECTION_CLOSE, None, channel=("a", 0)), True),
        (Scope(channels=frozenset({("b", 2)})), difference(Part.CONNECTION_CLOSE, None, channel=("a", 0)), False),
        (Scope(connections=frozenset({"a"})), difference(Part.REPLY, None), True),
        (Scope(connections=frozenset({"b"})), difference(), False),
    ],
)
def test_what_lies_within_a_scope(scope: Scope, wrong: Difference, is_within: bool) -> None:
    assert wrong.is_within(scope) is is_within


def test_scopes_of_queues_channels_and_connections() -> None:
    talk = consuming().send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1")
    broker, queue = talk.acceptor.broker, talk.acceptor.broker.queues["q"]
    assert of_queues(broker, [queue], ("a", 1)) == Scope(frozenset({"q"}), frozenset({("a", 1)}))
    assert of_channel(QOS) == Scope(channels=frozenset({("a", 1)}))
    assert of_connection(broker, QOS) == Scope(frozenset({"q"}), connections=frozenset({"a"}))
    letters = Queue("r", QueueType.CLASSIC, arguments={"x-dead-letter-exchange": ""})
    assert of_queues(broker, [letters]) == EVERYTHING, "what it dead-letters may go anywhere"
    assert of_connection(broker, QOS, letters).is_everything


@pytest.mark.parametrize(
    ("method", "arguments", "shape", "detail", "part", "queue"),
    [
        ("basic.deliver", {"consumer_tag": "t"}, Shape.UNEXPECTED, "", Part.DELIVERY, "q"),
        ("basic.deliver", {"consumer_tag": "t"}, Shape.WRONG_ARGUMENT, "redelivered", Part.CONTENT, "q"),
        ("basic.deliver", {"consumer_tag": "nobody"}, Shape.UNEXPECTED, "", Part.DELIVERY, None),
        ("basic.get-ok", {}, Shape.WRONG_ARGUMENT, "basic.get-ok message-count", Part.COUNT, None),
        ("queue.declare-ok", {"queue": "q"}, Shape.WRONG_ARGUMENT, "consumer_count", Part.COUNT, "q"),
        ("queue.declare-ok", {"queue": "q"}, Shape.UNEXPECTED, "", Part.REPLY, "q"),
        ("basic.nack", {}, Shape.UNEXPECTED, "", Part.CONFIRM, None),
        ("basic.cancel", {"consumer_tag": "t"}, Shape.UNEXPECTED, "", Part.CANCEL, "q"),
        ("channel.close", {}, Shape.UNEXPECTED, "", Part.CHANNEL_CLOSE, None),
        ("socket.closed", {}, Shape.UNEXPECTED, "", Part.CONNECTION_CLOSE, None),
    ],
)
def test_what_a_frame_is_about(
    method: str, arguments: dict[str, Any], shape: Shape, detail: str, part: Part, queue: str | None
) -> None:
    event = event_of("a", 0 if method == "socket.closed" else 1, method, arguments, sent=False)
    found = difference_of(consuming().acceptor.broker, event, Mismatch("ACK-001", shape, detail, True, ""))
    assert (found.part, found.queue) == (part, queue)
    assert found.served == (frozenset({("a", 1)}) if queue else frozenset())


# ------------------------------------------------------------------------------------------------------ arming


class Arming:
    """Windows, and which of them these inputs arm."""

    def __init__(self, *windows: Window, events: tuple[Method, ...] = (QOS,)) -> None:
        self.broker = Broker(DEFAULT_DIALECT)
        self.broker.connections["a"] = Connection("a")
        self.windows = Windows(windows)
        self.armed: frozenset[Armed] = frozenset()
        for event in events:
            self.broker.stamp += 1
            self.armed |= frozenset(self.windows.armed_by(self.broker, event))

    @property
    def names(self) -> set[str]:
        return {each.name for each in self.armed}

    def explaining(self, wrong: Difference) -> object:
        return self.windows.explaining(self.broker, wrong, self.armed)


def test_an_input_of_its_kind_arms_it() -> None:
    assert Arming(window()).names == {"w"}
    assert Arming(window(kinds=("basic.get",))).names == set()
    assert Arming(window(arms=lambda broker, event: None)).names == set()


def test_only_what_is_armed_there_and_can_be_spoiled_is_explained() -> None:
    found = Arming(window())
    assert found.explaining(difference()) is not None
    assert found.explaining(difference(queue="r")) is None, "elsewhere"
    assert found.explaining(difference(Part.CANCEL)) is None, "of another kind"
    assert Arming(window(), events=()).explaining(difference()) is None, "not armed"
    found = Arming(window(explains=lambda broker, it: it.shape is Shape.MISSING))
    assert found.explaining(difference()) is None
    assert found.explaining(difference(shape=Shape.MISSING)) is not None


def test_one_without_inputs_is_always_there() -> None:
    found = Arming(window(kinds=()), events=())
    assert found.explaining(difference(queue="r")) is not None
    assert found.names == set()


def test_of_several_it_is_one_that_was_armed_and_of_the_requirement() -> None:
    always, other, right = window("always", kinds=()), window("other", "ACK-001"), window("right")
    found = Arming(always, other, right)
    assert found.explaining(difference()) is right
    assert found.explaining(difference(requirement="CHAN-001")) is other, "the first"
    assert found.explaining(difference(queue="r")) is always


def test_of_several_it_is_the_one_that_was_armed_last() -> None:
    gets = replace(QOS, name="basic.get")
    first, last = window("first"), window("last", kinds=("basic.get",))
    assert Arming(first, last, events=(QOS, gets)).explaining(difference()) is last
    assert Arming(first, last, events=(gets, QOS)).explaining(difference()) is first


@pytest.mark.parametrize(
    ("options", "stays", "would_have_shown"),
    [({}, True, set()), ({"is_brief": True}, False, set()), ({"shows_at_once": True}, True, {"w"})],
)
def test_what_is_over_at_rest(options: dict[str, Any], stays: bool, would_have_shown: set[str]) -> None:
    found = Arming(window(**options))
    assert found.windows.would_have_shown(found.armed) == would_have_shown
    found.armed = found.windows.left_at_rest(found.armed)
    assert (found.explaining(difference()) is not None) is stays


# ------------------------------------------------------------------------------------------------- the acceptor


def judging(*windows: Window, limit: int = 1) -> Conversation:
    """a.1 may have one message of `q`; there are two. `limit`: 0: nothing was armed."""
    talk = Conversation()
    talk.acceptor = Acceptor(talk.acceptor.dialect, defects=DefectsFollowed(windows=windows))
    talk.send("a.1 queue.declare q").see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    if limit:
        talk.send("b.1 basic.qos 1").see("b.1", "basic.qos-ok")
    return talk


def test_a_difference_within_it_has_its_name_and_its_queue_is_open_from_then_on() -> None:
    talk = judging(window(requirement="ACK-001")).deliver("a.1", 1, "m1")
    assert (talk.failure.defect, talk.failure.requirement) == ("w", "ACK-001")
    assert not talk.acceptor.finished and talk.acceptor.verdict is Verdict.FAIL
    assert talk.acceptor.broker.queues["q"].open_by
    assert talk.acceptor.windows == {"w"}
    assert len(talk.deliver("a.1", 2, "m2").acceptor.failures) == 1


def test_silence_may_lie_within_it_as_well() -> None:
    talk = judging(window()).send("c.1 basic.publish q body=m1")
    talk.acceptor.overdue()
    assert (talk.failure.defect, talk.failure.shape) == ("w", Shape.MISSING)
    assert talk.acceptor.broker.queues["q"].open_by


def test_what_is_lawful_is_no_failure_in_it() -> None:
    talk = judging(window()).send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    assert talk.acceptor.verdict is Verdict.PASS
    assert talk.acceptor.windows == {"w"} and not talk.acceptor.refuted


def test_one_that_would_have_shown_is_refuted() -> None:
    assert judging(window(shows_at_once=True)).rest().acceptor.refuted == {"w"}
    shown = judging(window(shows_at_once=True)).deliver("a.1", 1, "m1").rest()
    assert not shown.acceptor.refuted


@pytest.mark.parametrize(
    ("known", "limit"),
    [(window(), 0), (window(spoils=frozenset({Part.CANCEL})), 1), (window(arms=lambda b, e: Scope(frozenset("r"))), 1)],
)
def test_else_it_is_nobodys(known: Window, limit: int) -> None:
    """Not armed, of another kind, elsewhere."""
    talk = judging(known, limit=limit).send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m2")
    assert talk.failure.defect == ""


@pytest.mark.known_defects
def test_of_another_product_nothing_is_armed() -> None:
    for product, name in (("RabbitMQ", "exclusive-consumer-ignored"), ("Another broker", "")):
        talk = declared("quorum", product=product).send("a.1 basic.consume q tag=t exclusive")
        talk.see("a.1", "basic.consume-ok", consumer_tag="t").rest().send("b.1 basic.consume q tag=u")
        talk.see("b.1", "basic.consume-ok", consumer_tag="u")
        assert talk.failure.defect == name
        assert talk.acceptor.windows == ({name} if name else set())
