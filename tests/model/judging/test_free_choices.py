"""Free choices: where versions differ or nobody promises one of two, both are right, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.broker.broker import Broker
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.judging.alternatives import alternatives_to
from amqpspec.model.judging.free_choices import FREE_CHOICES
from amqpspec.model.outputs.free_properties import DELIVERY_MODE, FIRST_COUNT
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.differences_of_choices import ARGUMENTS, CHOICES
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import event_of
from tests.handshakes import opening
from tests.model.judging.test_acceptor import Conversation, declared
from tests.model.rules.operator.test_operator import Talk, limited


def test_each_choice_that_is_said_to_be_free_is() -> None:
    """Deprecated features have a value of their own for that, and an alternative (model.judging.alternatives)."""
    # model.rules.connection.handshake, model.rules.basic.requeue, model.outputs.carried_counts
    elsewhere = {"refuses_with_1_0_header", "lost_consumers_by_creation", "carried_failures"}
    free = {name for name, difference in CHOICES.items() if difference.either_in}
    free |= {f"queue_arguments.{name}" for name, difference in ARGUMENTS.items() if difference.either_in}
    of_inputs, of_frames = {each.choice for each in FREE_CHOICES}, {FIRST_COUNT, DELIVERY_MODE}
    assert free == {"transient_queues", "master_locators"} | of_inputs | of_frames | elsewhere


def test_the_usual_is_among_the_values() -> None:
    for each in FREE_CHOICES:
        assert each.requirement in requirements()
        for name in DIALECTS:
            if each.is_free_in(name):
                assert each.value_in(DIALECTS[name]) in each.values


def bound(dialect: str) -> Conversation:
    return declared(dialect=dialect).send("a.1 queue.bind q amq.topic routing-key=#.a.#.b.#")


def test_a_topic_binding_of_many_wildcards_may_be_taken_where_versions_differ() -> None:
    """Not before 4.3.5, and from then on refused."""
    text = "PRECONDITION_FAILED - Topic binding key '#.a.#.b.#' uses 3 '#' wildcards, at most 2 are allowed"

    def refused(dialect: str) -> Conversation:
        talk = bound(dialect)
        return talk.see("a.1", "channel.close", reply_code=406, reply_text=text, class_id=50, method_id=20)

    assert bound("rabbitmq-4.3").see("a.1", "queue.bind-ok").rest().acceptor.verdict is Verdict.PASS
    assert refused("rabbitmq-4.3").acceptor.verdict is Verdict.PASS
    assert bound("rabbitmq-4.0").see("a.1", "queue.bind-ok").acceptor.verdict is Verdict.PASS
    assert refused("rabbitmq-4.0").acceptor.verdict is Verdict.FAIL


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
def test_an_unknown_exchange_type_may_be_a_soft_error_from_3_13_3_on(dialect: str) -> None:
    talk = Conversation(dialect).send("a.1 exchange.declare x type=nope")
    text = "PRECONDITION_FAILED - unknown exchange type 'nope'"
    talk.see("a.1", "channel.close", reply_code=406, reply_text=text, class_id=40, method_id=10)
    assert talk.acceptor.verdict is Verdict.PASS


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0"])
def test_and_a_hard_one_before_that_only(dialect: str) -> None:
    talk = Conversation(dialect).send("a.1 exchange.declare x type=nope")
    text = "COMMAND_INVALID - unknown exchange type 'nope'"
    talk.see("a", "connection.close", reply_code=503, reply_text=text, class_id=40, method_id=10)
    assert talk.acceptor.verdict is (Verdict.PASS if dialect == "rabbitmq-3" else Verdict.FAIL)


def refused(talk: Talk, name: str, word: str, class_id: int, method_id: int) -> bool:
    """Is it right that b.1, whose user is limited, is closed with a text that names the permission so?"""
    text = f"ACCESS_REFUSED - {word}access to queue '{name}' in vhost '/' refused for user 'lim'"
    arguments = {"reply_code": 403, "reply_text": text, "class_id": class_id, "method_id": method_id}
    talk.acceptor.received(event_of("b", 1, "channel.close", arguments, sent=False))
    return talk.acceptor.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("dialect", "name", "may_be_refused", "may_be_taken"),
    [
        ("rabbitmq-3", "n", False, True),
        ("rabbitmq-4.0", "n", True, True),
        ("rabbitmq-4.0", "w", True, True),
        ("rabbitmq-4.0", "c", False, True),
        ("rabbitmq-4.3", "n", True, False),
        ("rabbitmq-4.3", "w", True, True),
        ("rabbitmq-4.3", "c", False, True),
    ],
)
def test_what_a_passive_declare_needs_differs_within_the_ranges(
    dialect: str, name: str, may_be_refused: bool, may_be_taken: bool
) -> None:
    """The user may configure c and write to w."""
    taken = limited(dialect).send(f"b.1 queue.declare {name} passive")
    counts = {"queue": name, "message_count": 0, "consumer_count": 0}
    taken.acceptor.received(event_of("b", 1, "queue.declare-ok", counts, sent=False))
    assert (taken.acceptor.verdict is Verdict.PASS) is may_be_taken
    word = "" if dialect == "rabbitmq-3" else "configure "
    talk = limited(dialect).send(f"b.1 queue.declare {name} passive")
    assert refused(talk, name, word, 50, 10) is may_be_refused


@pytest.mark.parametrize(("dialect", "may"), [("rabbitmq-3", True), ("rabbitmq-4.0", False), ("rabbitmq-4.3", False)])
def test_a_refusal_may_name_the_permission_before_it_has_to(dialect: str, may: bool) -> None:
    assert refused(limited(dialect).send("b.1 basic.get w"), "w", "", 60, 70) is may
    assert refused(limited(dialect).send("b.1 basic.get w"), "w", "read ", 60, 70)


@pytest.mark.parametrize(("dialect", "may"), [("rabbitmq-3", False), ("rabbitmq-4.0", True), ("rabbitmq-4.3", False)])
@pytest.mark.parametrize("refuses", [True, False])
def test_the_least_frame_is_larger_from_4_1_on(dialect: str, may: bool, refuses: bool) -> None:
    """Refused with the end of the TCP connection."""
    acceptor = acceptor_for(dialect_named(dialect))
    for method in opening("b", acceptor.dialect):
        if method.name == "connection.tune-ok":
            small = {**method.arguments, "frame_max": 4096}
            acceptor.sent(event_of("b", 0, "connection.tune-ok", small, sent=True))
            break
        (acceptor.sent if method.sent else acceptor.received)(method)
    if refuses:
        acceptor.received(event_of("b", 0, "socket.closed", {}, sent=False))
    else:
        acceptor.sent(event_of("b", 0, "connection.open", {"virtual_host": "/"}, sent=True))
        acceptor.received(event_of("b", 0, "connection.open-ok", {}, sent=False))
    usual = refuses is (dialect == "rabbitmq-4.3")
    assert (acceptor.verdict is Verdict.PASS) is (may or usual)


@pytest.mark.parametrize(("size", "is_tried"), [(0, False), (4096, True), (8191, True), (8192, False)])
def test_only_frames_that_one_least_size_refuses_are_tried_with_both(size: int, is_tried: bool) -> None:
    broker = Broker(dialect_named("rabbitmq-4.0"))
    tune_ok = event_of("a", 0, "connection.tune-ok", {"frame_max": size, "channel_max": 0, "heartbeat": 0}, sent=True)
    assert [each.requirement for each in alternatives_to(broker, tune_ok)] == ["CONN-012"] * is_tried


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("equal", [True, False])
def test_nobody_says_whether_1_is_1_0_to_a_headers_exchange(dialect: str, equal: bool) -> None:
    talk = declared(dialect=dialect).send('a.1 queue.bind q amq.headers arguments={"n":1.0}')
    talk.see("a.1", "queue.bind-ok").rest()
    talk.send('a.1 basic.publish exchange=amq.headers headers={"n":1} body=m1').rest()
    talk.send("a.1 queue.declare q passive")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=int(equal), consumer_count=0)
    assert talk.rest().acceptor.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("dialect", "properties", "is_right"),
    [
        ("rabbitmq-3", {"headers": {"x-delivery-count": Int64(0)}}, True),
        ("rabbitmq-3", {}, True),
        ("rabbitmq-3", {"headers": {"x-delivery-count": Int64(1)}}, False),
        ("rabbitmq-4.0", {"headers": {"x-delivery-count": Int64(0)}}, False),
        ("rabbitmq-4.0", {}, True),
    ],
)
def test_a_first_get_tells_of_no_failures_up_to_3_11(dialect: str, properties: dict[str, Any], is_right: bool) -> None:
    talk = declared("quorum", dialect).send("a.1 basic.publish q body=m1").rest().send("a.1 basic.get q")
    arguments: dict[str, Any] = {"redelivered": False, "exchange": "", "routing_key": "q", "message_count": 0}
    talk.see("a.1", "basic.get-ok", "m1", delivery_tag=1, properties=properties, **arguments)
    assert (talk.acceptor.verdict is Verdict.PASS) is is_right


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
@pytest.mark.parametrize(
    ("published", "seen", "is_right"),
    [("", None, True), ("", 1, True), ("", 2, False), ("delivery-mode=1", 1, True), ("delivery-mode=2", None, False)],
)
def test_a_stream_may_name_the_delivery_mode_that_no_mode_means(
    dialect: str, published: str, seen: int | None, is_right: bool
) -> None:
    talk = declared("stream", dialect).send(f"a.1 basic.publish q body=m1 {published}").rest()
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").send("a.1 basic.consume q tag=t x-stream-offset=first")
    talk.see("a.1", "basic.consume-ok", consumer_tag="t")
    properties: dict[str, Any] = {"headers": {"x-stream-offset": Int64(0)}}
    if seen is not None:
        properties["delivery_mode"] = seen
    arguments: dict[str, Any] = {"redelivered": False, "exchange": "", "routing_key": "q", "consumer_tag": "t"}
    talk.see("a.1", "basic.deliver", "m1", delivery_tag=1, properties=properties, **arguments)
    assert (talk.acceptor.verdict is Verdict.PASS) is is_right
