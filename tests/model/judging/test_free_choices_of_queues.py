"""Free choices of queues: whatever no text promises, a broker may do either way, and does it alike from then on."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.broker.broker import Broker
from amqpspec.model.judging.alternatives import alternatives_to
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import event_of
from amqpspec.model.rules.inputs import process
from tests.model.judging.test_acceptor import Conversation, declared

VERSIONS = [name for name in DIALECTS if name.startswith("rabbitmq")]
MADE: dict[str, Any] = {"queue": "q", "message_count": 0, "consumer_count": 0}


def is_right(talk: Conversation) -> bool:
    return talk.rest().acceptor.verdict is Verdict.PASS


def declare(talk: Conversation, arguments: str, **reply: Any) -> Conversation:
    talk.send(f"a.1 queue.declare q durable {arguments}")
    return talk.see("a.1", "queue.declare-ok", **{**MADE, **reply}).rest()


def refused(talk: Conversation, text: str, code: int = 406, class_id: int = 50, method_id: int = 10) -> Conversation:
    text = f"PRECONDITION_FAILED - {text}" if code == 406 else text
    return talk.see(
        "a.1", "channel.close", reply_code=code, reply_text=text, class_id=class_id, method_id=method_id
    )  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("first", ["m1", "m2"])
def test_nobody_says_what_no_priorities_are(dialect: str, first: str) -> None:
    """Priorities 0 and 1, or only one."""
    with_it = f"{dialect}+x-max-priority" if dialect == "amqp-0-9-1" else dialect
    talk = declare(Conversation(with_it), "x-max-priority=0")
    talk.send("a.1 basic.publish q body=m1").rest().send("a.1 basic.publish q body=m2 priority=1").rest()
    talk.send("a.1 basic.publish q body=m3").rest().send("a.1 basic.publish q body=m4 priority=1").rest()
    talk.send("a.1 basic.get q").see("a.1", "basic.get-ok", first, **got(1, 3, priority=first == "m2"))
    assert is_right(talk)
    then = {"m1": "m2", "m2": "m4"}[first]
    same = talk.fork().send("a.1 basic.get q").see("a.1", "basic.get-ok", then, **got(2, 2, priority=True))
    assert is_right(same)
    other = talk.send("a.1 basic.get q").see("a.1", "basic.get-ok", "m3", **got(2, 2))
    assert not is_right(other), "the broker does not do it now so, and now so"


def got(tag: int, left: int, *, priority: bool = False, redelivered: bool = False) -> dict[str, Any]:
    properties = {"priority": 1} if priority else {}
    return {
        "delivery_tag": tag, "redelivered": redelivered, "exchange": "", "routing_key": "q", "message_count": left,
        "properties": properties,
    }  # fmt: skip


@pytest.mark.parametrize(("dialect", "may_be_gone"), [("rabbitmq-3", True), ("rabbitmq-4.0", False)])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_limit_of_minus_one_is_none_from_4_0_on_and_nobody_says_what_it_was(
    dialect: str, may_be_gone: bool, is_gone: bool
) -> None:
    talk = declare(Conversation(dialect), "x-queue-type=quorum x-delivery-limit=-1")
    talk.send("a.1 basic.publish q body=m1").rest().send("a.1 basic.get q")
    arguments = got(1, 0)
    if dialect == "rabbitmq-3":
        arguments["properties"] = {"headers": {"x-delivery-count": Int64(0)}}
    talk.see("a.1", "basic.get-ok", "m1", **arguments).rest()
    talk.send("a.1 basic.reject 1 requeue").rest().send("a.1 basic.get q")
    if is_gone:
        talk.see("a.1", "basic.get-empty").rest().send("a.1 queue.declare q passive")
        talk.see("a.1", "queue.declare-ok", **MADE)
        talk.acceptor.overdue()
    else:
        again = {**got(2, 0, redelivered=True), "properties": {"headers": {"x-delivery-count": Int64(1)}}}
        talk.see("a.1", "basic.get-ok", "m1", **again)
    assert is_right(talk) is (may_be_gone or not is_gone)


@pytest.mark.parametrize("dialect", VERSIONS)
@pytest.mark.parametrize("current", ["none", "'classic'"])
def test_a_type_that_was_not_given_is_named_or_not(dialect: str, current: str) -> None:
    received = "'quorum'" if current == "'classic'" else "the value 'quorum' of type 'longstr'"
    talk = declare(Conversation(dialect), "").send("a.1 queue.declare q durable x-queue-type=quorum")
    difference = f"received {received} but current is {current}"
    assert is_right(refused(talk, f"inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': {difference}"))


@pytest.mark.parametrize("dialect", VERSIONS)
@pytest.mark.parametrize("named", ["'queue 'q' in vhost '/''", "stream queue 'q' in vhost '/'"])
def test_a_stream_is_named_one_way_or_the_other(dialect: str, named: str) -> None:
    talk = declared("stream", dialect).send("a.1 basic.consume q tag=t")
    assert is_right(refused(talk.fork(), f"consumer prefetch count is not set for {named}", 406, 60, 20))
    assert not is_right(refused(talk, "consumer prefetch count is not set", 406, 60, 20))


@pytest.mark.parametrize("dialect", VERSIONS)
@pytest.mark.parametrize("is_equal", [True, False])
def test_ages_may_be_compared_by_their_length_or_by_their_text(dialect: str, is_equal: bool) -> None:
    talk = declare(Conversation(dialect), "x-queue-type=stream x-max-age=7D")
    talk.send("a.1 queue.declare q durable x-queue-type=stream x-max-age=168h")
    text = "inequivalent arg 'x-max-age' for queue 'q' in vhost '/': received '168h' but current is '7D'"
    assert is_right(talk.see("a.1", "queue.declare-ok", **MADE) if is_equal else refused(talk, text))


@pytest.mark.parametrize("dialect", ["rabbitmq-4.0", "rabbitmq-4.3"])
@pytest.mark.parametrize("is_known", [True, False])
def test_the_word_of_another_argument_may_say_where_the_leader_is(dialect: str, is_known: bool) -> None:
    talk = Conversation(dialect).send("a.1 queue.declare q durable x-queue-leader-locator=min-masters")
    text = "invalid arg 'x-queue-leader-locator' for queue 'q' in vhost '/': invalid_queue_locator_arg"
    assert is_right(talk.see("a.1", "queue.declare-ok", **MADE) if is_known else refused(talk, text))


@pytest.mark.parametrize("dialect", VERSIONS)
@pytest.mark.parametrize("is_compared", [True, False])
def test_the_size_of_filters_may_be_compared_or_not(dialect: str, is_compared: bool) -> None:
    talk = declare(Conversation(dialect), "x-queue-type=stream x-stream-filter-size-bytes=20")
    talk.send("a.1 queue.declare q durable x-queue-type=stream x-stream-filter-size-bytes=30")
    difference = "received '30' but current is '20'"
    text = f"inequivalent arg 'x-stream-filter-size-bytes' for queue 'q' in vhost '/': {difference}"
    assert is_right(refused(talk, text) if is_compared else talk.see("a.1", "queue.declare-ok", **MADE))


@pytest.mark.parametrize("dialect", VERSIONS)
@pytest.mark.parametrize("blanks", [0, 1, 2])
def test_a_filter_of_a_wrong_size_is_refused_in_so_many_words(dialect: str, blanks: int) -> None:
    """0: it is taken, as it was before there were filters."""
    talk = Conversation(dialect).send("a.1 queue.declare q durable x-queue-type=stream x-stream-filter-size-bytes=15")
    if blanks:
        assert is_right(refused(talk, f"Invalid value for{' ' * blanks}x-stream-filter-size-bytes"))
    else:
        assert is_right(talk.see("a.1", "queue.declare-ok", **MADE)) is (dialect == "rabbitmq-3")


def committing(dialect: str, kind: str) -> Conversation:
    """a.1 commits a publish to the queue q, which b.1 has deleted meanwhile."""
    talk = Conversation(dialect).send(f"b.1 queue.declare q durable x-queue-type={kind}")
    talk.see("b.1", "queue.declare-ok", **MADE).rest()
    talk.send("a.1 tx.select").see("a.1", "tx.select-ok").send("a.1 basic.publish q body=m1").rest()
    talk.send("b.1 queue.delete q").see("b.1", "queue.delete-ok", message_count=0).rest()
    return talk.send("a.1 tx.commit")


@pytest.mark.parametrize("dialect", VERSIONS)
@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_a_commit_to_a_queue_that_is_gone_is_done_or_broken(dialect: str, kind: str) -> None:
    broken = committing(dialect, kind)
    text = 'RESOURCE_ERROR - failed to deliver message: {not_found,{resource,<<"/">>,queue,<<"q">>}}'
    broken.see("a", "connection.close", reply_code=506, reply_text=text, class_id=90, method_id=20)
    assert is_right(broken)
    assert is_right(committing(dialect, kind).see("a.1", "tx.commit-ok"))
    assert not is_right(committing(dialect, kind)), "it is answered"


def lost(dialect: str) -> Conversation:
    """a.1 has ended, which held m1 and m2 for its consumer z, m3 for c, and m4 and m5 by gets."""
    talk = declared("quorum", dialect).send("a.1 basic.qos 2").see("a.1", "basic.qos-ok").rest()
    for number in range(1, 3):
        talk.send(f"b.1 basic.publish q body=m{number}").rest()
    talk.send("a.1 basic.consume q tag=z").see("a.1", "basic.consume-ok", consumer_tag="z")
    talk.deliver("a.1", 1, "m1", consumer="z").deliver("a.1", 2, "m2", consumer="z").rest()
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").send("a.1 basic.consume q tag=c")
    talk.see("a.1", "basic.consume-ok", consumer_tag="c").rest().send("b.1 basic.publish q body=m3")
    talk.deliver("a.1", 3, "m3", consumer="c").rest()
    for number in (4, 5):
        talk.send(f"b.1 basic.publish q body=m{number}").rest().send("a.1 basic.get q")
        headers = {"headers": {"x-delivery-count": Int64(0)}} if dialect == "rabbitmq-3" else {}
        talk.see("a.1", "basic.get-ok", f"m{number}", **{**got(number, 0), "properties": headers}).rest()
    talk.send("a.1 channel.close").see("a.1", "channel.close-ok").rest().send("b.1 queue.declare q passive")
    return talk.see("b.1", "queue.declare-ok", queue="q", message_count=5, consumer_count=0).rest()


@pytest.mark.parametrize("dialect", VERSIONS)
@pytest.mark.parametrize(
    ("order", "is_so"),
    [("12345", True), ("31245", True), ("45312", True), ("54123", True), ("13245", True), ("21345", False)],
)
def test_what_several_consumers_of_a_channel_held_comes_back_in_any_order(
    dialect: str, order: str, is_so: bool
) -> None:
    """But what one of them held in the order in which it was handed it."""
    talk = lost(dialect)
    headers: dict[str, Any] = {"x-delivery-count": Int64(1)}
    if dialect == "rabbitmq-4.3":
        headers["x-acquired-count"] = Int64(1)
    for tag, number in enumerate(order, 1):
        talk.send("b.1 basic.get q")
        arguments = {**got(tag, 5 - tag, redelivered=True), "properties": {"headers": headers}}
        talk.see("b.1", "basic.get-ok", f"m{number}", **arguments).rest()
    assert is_right(talk) is is_so


def test_where_several_choices_meet_each_combination_is_tried() -> None:
    """An argument that is checked in either wording, or not, and compared or not."""
    broker = Broker(dialect_named("rabbitmq-3"))
    process(broker, event_of("a", 1, "channel.open", {}, sent=True))
    arguments = {"x-queue-type": "stream", "x-stream-filter-size-bytes": 17}
    declare = event_of("a", 1, "queue.declare", {"queue": "s", "durable": True, "arguments": arguments}, sent=True)
    names = [each.name for each in alternatives_to(broker, declare)]
    assert len(names) == len(set(names)) == 2 * 3 - 1, "all but the usual one"
    both = [each for each in names if "arguments.stream: " in each and "arguments.filter_size_text: " in each]
    assert len(both) == 2


@pytest.mark.parametrize("dialect", ["amqp-0-9-1", *VERSIONS])
@pytest.mark.parametrize("is_there", [True, False])
def test_in_the_text_what_was_for_a_queue_that_is_gone_may_be_gone_too(dialect: str, is_there: bool) -> None:
    """RabbitMQ tells of it, or gives the message to the queue that has its name now."""
    talk = Conversation(dialect).send("a.1 queue.declare q").see("a.1", "queue.declare-ok", **MADE).rest()
    talk.send("a.1 tx.select").see("a.1", "tx.select-ok").send("a.1 basic.publish q body=m1").rest()
    talk.send("b.1 queue.delete q").see("b.1", "queue.delete-ok", message_count=0).rest()
    talk.send("b.1 queue.declare q").see("b.1", "queue.declare-ok", **MADE).rest()
    talk.send("a.1 tx.commit").see("a.1", "tx.commit-ok").rest().send("b.1 basic.get q")
    if is_there:
        got = {"delivery_tag": 1, "redelivered": False, "exchange": "", "routing_key": "q", "message_count": 0}
        talk.see("b.1", "basic.get-ok", "m1", **got)
    else:
        talk.see("b.1", "basic.get-empty")
    assert is_right(talk.rest()) is (is_there or dialect == "amqp-0-9-1")
