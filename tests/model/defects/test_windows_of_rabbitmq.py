"""Each window of RabbitMQ: an input that arms it and something wrong that is credited to it, which else is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from amqpspec.model.broker.dead_letter_headers import chosen
from amqpspec.model.defects.known_defects import WINDOWS
from amqpspec.model.judging.acceptor import Acceptor
from amqpspec.model.judging.windows import Window
from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import Content, event_of
from tests.model.defects.lawful_answers import Answered
from tests.model.rules.operator.test_operator import FORCED, Talk, in_a_vhost
from tests.model.timed_client import QUORUM as TIMED_QUORUM
from tests.model.timed_client import Timed

QUORUM = "a.1 queue.declare q durable x-queue-type=quorum"
CLASSIC = "a.1 queue.declare q durable"
STREAM = "a.1 queue.declare s durable x-queue-type=stream"
SINGLE = f"{QUORUM} x-single-active-consumer=true"
REFUSING = "x-max-length=0 x-overflow=reject-publish"
COUNT = "c.1 queue.declare q passive"
MOMENT = '{"$datetime": "2024-02-29T12:00:00+00:00"}'


def to(queue: str) -> str:
    """The arguments by which dead letters go there."""
    return f'x-dead-letter-exchange="" x-dead-letter-routing-key={queue}'


TO_D = to("d")


@dataclass(frozen=True)
class Way:
    """Commands, and what the broker says or does not say behind the last of them.

    `armed`: those by which the window comes in; `instead`: others, behind which the same is wrong and has no such name.
    """

    before: Sequence[str]
    armed: Sequence[str]
    wrong: Callable[[Answered], Any]
    instead: Sequence[str] = ()
    then: Sequence[str] = ()


def crash(connection: str) -> Callable[[Answered], Any]:
    return lambda talk: talk.crash(connection)


def silence(talk: Answered) -> None:
    talk.silence()


def publish(*bodies: str, queue: str = "q", by: str = "c.1") -> list[str]:
    return [f"{by} basic.publish {queue} body={body}" for body in bodies]


def get_empty(channel: str) -> Callable[[Answered], Any]:
    return lambda talk: talk.see(channel, "basic.get-empty").silence()


def delivered(channel: str, tag: int, body: str, consumer: str = "t", **about: Any) -> Callable[[Answered], Any]:
    """`about`: other properties, another queue."""
    queue = about.pop("queue", "q")
    return lambda talk: talk.see(
        channel, "basic.deliver", body, consumer_tag=consumer, delivery_tag=tag, exchange="", routing_key=queue,
        redelivered=about.pop("redelivered", False), **about,
    )  # fmt: skip


#: What comes of basic.get.
GOT = {"delivery_tag": 1, "redelivered": False, "exchange": "", "routing_key": "q", "message_count": 0}
#: The policy of the queue.
POLICY = "broker operator.set-policy p queue=q"


def again(tag: str, queue: str = QUORUM, limit: int = 0, *more: str) -> list[str]:
    """A consumer of that tag is cancelled with m1 in hand, and there is one of the tag t then."""
    return [
        queue, f"a.1 basic.qos {limit}", f"a.1 basic.consume q tag={tag}", *publish("m1"), *more,
        f"a.1 basic.cancel {tag}", "a.1 basic.consume q tag=t",
    ]  # fmt: skip


def next_queue(*held: str, next_arguments: str = "", first: str = CLASSIC) -> list[str]:
    """a.1 holds m1 of a deleted queue, and there is one of the same name."""
    return [
        first, *publish("m1"), "a.1 basic.get q", "c.1 queue.delete q", f"c.1 queue.declare q durable {next_arguments}",
        *held,
    ]  # fmt: skip


#: A letter of m1 is in d, and was made by a quorum queue.
DEAD = [
    "a.1 queue.declare d durable", f"{QUORUM} {TO_D}", "c.1 basic.publish q delivery-mode=2 body=m1", "a.1 basic.get q",
    "a.1 basic.reject 1",
]  # fmt: skip


def letter_again(talk: Answered) -> None:
    held = talk.lawful.channels[("e", 1)].unacknowledged[1].message
    talk.answer().send("e.1 basic.get d").see(
        "e.1", "basic.get-ok", "m1", properties=chosen(held.content.properties),
        delivery_tag=2, redelivered=False, exchange="", routing_key="d", message_count=0,
    )  # fmt: skip


WAYS: dict[str, Way] = {
    # -------------------------------------------------------------------------------------------------- restarts
    "transient-exchange-survives": Way(
        [], ["a.1 exchange.declare x fanout", "broker.kill", "broker.restart", "e.1 exchange.declare x passive"],
        lambda talk: talk.see("e.1", "exchange.declare-ok"),
        instead=["broker.kill", "broker.restart", "e.1 exchange.declare x passive"],
    ),
    "kill-forgets-new-queue": Way(
        [QUORUM, *publish("m1"), COUNT], ["broker.kill", "broker.restart", "e.1 basic.get q"], get_empty("e.1"),
        instead=["broker.stop", "broker.restart", "e.1 basic.get q"],
    ),
    "kill-repeats-dead-letters": Way(
        DEAD, ["broker.kill", "broker.restart", "e.1 basic.get d", "e.1 basic.qos 1"], letter_again,
        instead=["broker.stop", "broker.restart", "e.1 basic.get d", "e.1 basic.qos 1"],
    ),
    # ------------------------------------------------------------------------------------------------- crossings
    "cancel-before-consume-ok-breaks": Way(
        [CLASSIC], ["a.1 basic.consume q tag=t &", "a.1 basic.cancel t"], crash("a"),
        instead=["a.1 basic.consume q tag=t", "a.1 basic.cancel t"],
    ),
    "cancel-before-consume-ok-beside-breaks": Way(
        [CLASSIC, "a.1 basic.consume q tag=s"], ["a.1 basic.consume q tag=t &", "a.1 basic.cancel t"], crash("a"),
        instead=["a.1 basic.consume q tag=t", "a.1 basic.cancel t"],
    ),
    "consume-ok-dropped": Way(
        [CLASSIC], ["a.1 basic.consume q tag=t &", "a.1 basic.cancel t"], silence,
        instead=["a.1 basic.consume q tag=t"],
    ),
    "reused-tag-before-consume-ok-breaks": Way(
        [CLASSIC], ["a.1 basic.consume q tag=t &", "a.1 basic.cancel t &", "a.1 basic.consume q tag=t"], crash("a"),
        instead=["a.1 basic.consume q tag=t", "a.1 basic.cancel t", "a.1 basic.consume q tag=t"],
    ),
    "cancel-crossing-deletion-answered-twice": Way(
        [QUORUM, "a.1 basic.consume q tag=t", "b.1 basic.qos 1"], ["b.1 queue.delete q &", "a.1 basic.cancel t"],
        lambda talk: talk.answer().see("a.1", "basic.cancel-ok", consumer_tag="t"), instead=["a.1 basic.cancel t"],
    ),
    "cancel-crossing-deletion-breaks": Way(
        [QUORUM, "a.1 basic.consume q tag=t", "b.1 basic.qos 1"], ["b.1 queue.delete q &", "a.1 basic.cancel t"],
        crash("a"), instead=["a.1 basic.cancel t"],
    ),
    "publish-crossing-deletion-breaks": Way(
        [QUORUM, "b.1 basic.qos 1"], ["a.1 queue.delete q &", "b.1 basic.publish q body=m1"], crash("b"),
        instead=["b.1 basic.publish q body=m1"],
    ),
    "use-crossing-deletion-breaks": Way(
        [QUORUM, "b.1 basic.qos 1"], ["a.1 queue.delete q &", "b.1 basic.consume q tag=t"], crash("b"),
        instead=["b.1 basic.consume q tag=t"],
    ),
    "closing-overtakes-publishes": Way(
        [QUORUM, "a.1 basic.publish q body=m1"], ["a.1 basic.publish q body=m2 &", "a.1 channel.close"],
        lambda talk: talk.count(1).silence(), instead=["a.1 basic.publish q body=m2"], then=[COUNT],
    ),
    "exclusive-queue-outlives-connection": Way(
        ["a.1 queue.declare q exclusive", "b.1 basic.qos 1"], ["a connection.close"],
        lambda talk: talk.see(
            "b.1", "channel.close", reply_code=405, class_id=60, method_id=70,
            reply_text="RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'",
        ),
        instead=["a.1 queue.delete q"], then=["b.1 basic.get q"],
    ),
    "delivers-behind-channel-close": Way(
        [CLASSIC, "a.1 basic.consume q tag=t"], ["a.1 queue.declare nosuch passive"], delivered("a.1", 1, "m1"),
        instead=["a.1 basic.cancel t"], then=publish("m1"),
    ),
    "get-overtakes-deliveries": Way(
        [CLASSIC, "a.1 basic.qos 1"],
        ["a.1 basic.consume q tag=t", *publish("m1 &", "m2 &"), "a.1 basic.get q"],
        lambda talk: talk.got("a.1", 1, "m2", 0), instead=[*publish("m1", "m2"), "a.1 basic.get q"],
    ),
    "stream-serves-before-consume-ok": Way(
        [STREAM, *publish("m0", queue="s"), "a.1 basic.qos 5"],
        ["a.1 basic.consume s tag=t", "a.1 basic.consume s tag=u x-stream-offset=first"],
        delivered("a.1", 1, "m0", "u", queue="s", properties={"headers": {"x-stream-offset": Int64(0)}}),
        instead=["a.1 basic.consume s tag=u x-stream-offset=first"],
    ),
    "longer-body-unnoticed": Way(
        [CLASSIC, "a.1 basic.publish q unfinished"], ["a.1 frame.header body-size=3", "a.1 frame.body body=abcdef"],
        silence, instead=["a.1 frame.body body=abcdef"],
    ),
    # ---------------------------------------------------------------------------------------- nodes of a cluster
    "purge-overtakes-publishes-at-other-node": Way(
        ["a@2.1 queue.declare q durable", "b@3.1 basic.qos 1"],
        ["b@3.1 basic.publish q body=m1 &", "b@3.1 queue.purge q"],
        lambda talk: talk.see("c.1", "basic.get-ok", "m1", **GOT),
        instead=["b@3.1 queue.purge q"], then=["c.1 basic.get q"],
    ),
    "close-overtakes-settlements-at-other-node": Way(
        ["a@2.1 queue.declare q durable", "b@3.1 basic.consume q tag=t", *publish("m1"), "b@3.1 basic.ack 1"],
        ["b@3.1 channel.close"],
        lambda talk: talk.see("c.1", "basic.get-ok", "m1", **{**GOT, "redelivered": True}),
        instead=["b@3.1 basic.cancel t"], then=["c.1 basic.get q"],
    ),
    # ---------------------------------------------------------------------------------------- names used again
    "deleted-queue-crashes-next-queue": Way(
        next_queue("a.1 basic.consume q tag=t", next_arguments="x-max-priority=4"), ["a.1 basic.ack 1"],
        lambda talk: talk.see("a.1", "basic.cancel", consumer_tag="t", nowait=True), instead=["a.1 basic.get q"],
    ),
    "crashed-next-queue-is-empty": Way(
        next_queue(*publish("m2"), "a.1 basic.get q", next_arguments="x-max-priority=4"),
        ["a.1 basic.nack 0 multiple requeue"], get_empty("a.1"), instead=["a.1 basic.nack 2 requeue"],
        then=["a.1 basic.get q"],
    ),
    "deleted-queue-settles-in-next-queue": Way(
        next_queue(*publish("m2"), "a.1 basic.get q"), ["a.1 basic.ack 1"], get_empty("b.1"),
        then=["a.1 basic.reject 2 requeue", "b.1 basic.get q"],
    ),
    "next-stream-refuses-settlement": Way(
        next_queue("a.1 basic.publish q body=m2", next_arguments="x-queue-type=stream"), ["a.1 basic.nack 1 requeue"],
        crash("a"),
    ),
    "stale-queue-type": Way(
        [CLASSIC, "b.1 basic.publish q body=m1", "a.1 queue.delete q"],
        [QUORUM, "b.1 basic.publish q body=m2"], crash("b"), instead=[CLASSIC, "b.1 basic.publish q body=m2"],
    ),
    "next-queue-keeps-tag": Way(
        [QUORUM, "u.1 basic.consume q tag=t"], ["a.1 queue.delete q", QUORUM],
        lambda talk: talk.see(
            "u", "connection.close", reply_code=530, class_id=60, method_id=20,
            reply_text="NOT_ALLOWED - attempt to reuse consumer tag 't'",
        ),
        instead=["u.1 basic.cancel t"], then=["u.1 basic.consume q tag=t"],
    ),
    "next-queue-gets-consumers": Way(
        [QUORUM, "u.1 basic.consume q tag=t"], ["a.1 queue.delete q", CLASSIC], lambda talk: talk.count(0).silence(),
        instead=["u.1 basic.cancel t", "a.1 queue.delete q", CLASSIC], then=[*publish("m1"), COUNT],
    ),
    "next-queue-keeps-consumers": Way(
        [QUORUM, "b.1 basic.consume q tag=t"], ["a.1 queue.delete q &", QUORUM],
        lambda talk: talk.see("a.1", "queue.delete-ok", message_count=0)
        .see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).silence(),
        instead=["a.1 queue.delete q &", COUNT],
    ),
    "commit-cancels-consumers-of-next-queue": Way(
        [CLASSIC, "b.1 tx.select", "b.1 basic.publish q body=m1", "a.1 queue.delete q", CLASSIC,
         "b.1 basic.consume q tag=t"],
        ["b.1 tx.commit"], lambda talk: talk.see("b.1", "basic.cancel", consumer_tag="t", nowait=True),
        instead=["b.1 basic.qos 1"],
    ),
    # ----------------------------------------------------------------------------------------- tags used again
    "reused-tag-gains-room": Way(
        [], again("t", CLASSIC, 1), delivered("a.1", 3, "m3"), instead=again("s", CLASSIC, 1),
        then=[*publish("m2", "m3"), "a.1 basic.ack 1"],
    ),
    "reused-tag-keeps-place": Way(
        [], again("t", QUORUM, 5, "a.1 basic.consume q tag=u x-priority=1"), delivered("a.1", 2, "m2"),
        instead=again("s", QUORUM, 5, "a.1 basic.consume q tag=u x-priority=1"), then=publish("m2"),
    ),
    "consumer-of-same-tag-never-active": Way(
        [], again("t", SINGLE, 0, "b.1 basic.consume q tag=u"), silence,
        instead=again("s", SINGLE, 0, "b.1 basic.consume q tag=u"), then=["b.1 basic.cancel u", *publish("m2")],
    ),
    "consumer-of-same-tag-waits-on": Way(
        [*again("t", SINGLE, 0, "b.1 basic.consume q tag=u"), "d.1 basic.consume q tag=v"], ["a.1 basic.cancel t"],
        silence, then=["b.1 basic.cancel u", *publish("m2")],
    ),
    "consumer-of-same-tag-stays-active": Way(
        [], again("t", SINGLE), silence, instead=again("s", SINGLE),
        then=["d.1 basic.consume q tag=u x-priority=1", *publish("m2")],
    ),
    "takeover-forgets-deliveries": Way(
        [SINGLE, "b.1 basic.consume q tag=low x-priority=-1"], again("t", SINGLE)[1:], get_empty("c.1"),
        instead=again("s", SINGLE)[1:],
        then=["a.1 channel.close", "b.1 basic.cancel low", "c.1 basic.get q"],
    ),
    "reused-tag-keeps-room": Way(
        [], again("t", QUORUM, 1), delivered("a.1", 3, "m3"), instead=again("s", QUORUM, 1),
        then=["a.1 basic.ack 1", *publish("m2", "m3")],
    ),
    "reused-tag-breaks-at-delivery": Way(
        [], again("t"), crash("a"), instead=again("s"), then=publish("m2"),
    ),
    "reused-tag-inherits-deliveries": Way(
        [], again("t", QUORUM, 1), silence, instead=again("s", QUORUM, 1), then=publish("m2"),
    ),
    "reply-consumer-tag-taken-twice": Way(
        [CLASSIC, "a.1 basic.consume amq.rabbitmq.reply-to tag=t no-ack"], ["a.1 basic.consume q tag=t"],
        lambda talk: talk.see("a.1", "basic.consume-ok", consumer_tag="t"),
        instead=["a.1 basic.consume q tag=u", "a.1 basic.consume q tag=u"],
    ),
    # --------------------------------------------------------------------------------------- active consumers
    "cancel-leaves-backlog": Way(
        [f"{CLASSIC} x-single-active-consumer=true", "a.1 basic.qos 1", "a.1 basic.consume q tag=t",
         "b.1 basic.consume q tag=u", *publish("m1", "m2")],
        ["a.1 basic.cancel t"], silence, instead=["a.1 channel.close"],
    ),
    "return-activates-nobody": Way(
        [SINGLE, "a.1 basic.consume q tag=t", *publish("m1"), "b.1 basic.consume q tag=u x-priority=1"],
        ["a.1 basic.nack 1 requeue"], silence, instead=["a.1 basic.ack 1", *publish("m1")],
    ),
    "quiescing-consumer-starves": Way(
        [SINGLE, "a.1 basic.consume q tag=t", *publish("m1")],
        ["b.1 basic.consume q tag=u x-priority=1", "b.1 basic.cancel u"], silence, then=publish("m2"),
    ),
    "closed-consumer-keeps-messages": Way(
        [SINGLE, *publish("m1"), "a.1 basic.consume q tag=t"],
        ["b.1 basic.consume q tag=u x-priority=10", "a.1 channel.close"],
        lambda talk: talk.count(0).silence(),
        instead=["a.1 channel.close", "b.1 basic.consume q tag=u x-priority=10"], then=["b.1 channel.close", COUNT],
    ),
    # ---------------------------------------------------------------------------------------------- the others
    "stream-serves-chunks": Way(
        [STREAM, "a.1 basic.qos 1"], ["c.1 basic.publish s body=m0 &", "c.1 basic.publish s body=m1"],
        delivered("a.1", 2, "m1", queue="s", properties={"headers": {"x-stream-offset": Int64(1)}}),
        then=["a.1 basic.consume s tag=t x-stream-offset=first", "a.1 basic.qos 1"],
    ),
    "stream-refuses-rejection": Way(
        [STREAM, *publish("m0", queue="s"), "a.1 basic.qos 1", "a.1 basic.consume s tag=t x-stream-offset=first"],
        ["a.1 basic.nack 1"], crash("a"), instead=["a.1 basic.ack 1"],
    ),
    "recover-breaks-on-stream": Way(
        [STREAM, *publish("m0", queue="s"), "a.1 basic.qos 1", "a.1 basic.consume s tag=t x-stream-offset=first"],
        ["a.1 basic.recover requeue"], crash("a"), instead=["a.1 basic.ack 1", "a.1 basic.recover requeue"],
    ),
    "commit-forgets-refusals": Way(
        ["a.1 tx.select"], [f"{QUORUM} {REFUSING}", *publish("m1"), "a.1 basic.publish q body=m2"],
        lambda talk: talk.see("a.1", "tx.commit-ok"), instead=[f"{CLASSIC} {REFUSING}", "a.1 basic.publish q body=m2"],
        then=["a.1 tx.commit"],
    ),
    "transaction-replies-at-once": Way(
        ["a.1 basic.consume amq.rabbitmq.reply-to tag=r no-ack", "b.1 basic.qos 1"],
        ["b.1 tx.select", "b.1 basic.publish amq.rabbitmq.reply-to.0000000000000000000001 body=m1"],
        delivered("a.1", 1, "m1", "r", queue="amq.rabbitmq.reply-to.0000000000000000000001"),
        instead=["b.1 basic.publish q body=m1"],
    ),
    "quorum-bytes-count-properties": Way(
        [], [f"{QUORUM} x-max-length-bytes=5", *publish("m1", "123")], lambda talk: talk.count(1).silence(),
        instead=[f"{QUORUM} x-max-length=2", *publish("m1", "123")], then=[COUNT],
    ),
    "drops-latest-letter-first": Way(
        ["a.1 queue.declare d"], [f"{QUORUM} x-max-length-bytes=4 {TO_D}", *publish("11", "22", "4444")],
        lambda talk: talk.got_letter("a.1", 1, "22", 1),
        instead=[f"{QUORUM} {TO_D}", *publish("11", "22"), "c.1 basic.get q", "c.1 basic.reject 1", "c.1 basic.get q",
                 "c.1 basic.reject 2"],
        then=["a.1 basic.get d"],
    ),
    "refuses-on-after-reject-publish": Way(
        [QUORUM, "a.1 confirm.select", "a.1 basic.publish q body=m1"],
        [f"{POLICY} max-length=0 overflow=reject-publish", "a.1 basic.publish q body=m2", f"{POLICY} max-length=9"],
        lambda talk: talk.see("a.1", "basic.nack", delivery_tag=3, multiple=False, requeue=False),
        instead=["a.1 basic.publish q body=m2"], then=["a.1 basic.publish q body=m3"],
    ),
    "limit-comes-before-reject-publish": Way(
        [CLASSIC, *publish("m1", "m2")], [f"{POLICY} max-length=1 overflow=reject-publish"],
        lambda talk: talk.count(1).silence(), instead=[f"{POLICY} max-length=2"], then=[COUNT],
    ),
    "exclusive-consumer-ignored": Way(
        [QUORUM, "a.1 basic.consume q tag=t exclusive"], ["b.1 basic.consume q tag=u"],
        lambda talk: talk.see("b.1", "basic.consume-ok", consumer_tag="u"), instead=["b.1 basic.qos 1"],
    ),
    "stream-takes-no-dead-letters": Way(
        [], ["a.1 queue.declare d durable x-queue-type=stream"],
        lambda talk: talk.see("b.1", "basic.consume-ok", consumer_tag="t").silence(),
        instead=["a.1 queue.declare d durable"],
        then=[f"{CLASSIC} {TO_D}", *publish("m1"), "a.1 basic.get q", "a.1 basic.reject 1", "b.1 basic.qos 1",
              "b.1 basic.consume d tag=t x-stream-offset=first"],
    ),
    "turned-history-mistakes-cycles": Way(
        [f"{CLASSIC} {to('w1')}", f"a.1 queue.declare w2 x-max-length=0 {to('q')}"],
        [f"a.1 queue.declare w1 x-max-length=0 {to('w2')}"], get_empty("a.1"),
        instead=[f"a.1 queue.declare w1 x-max-length=0 {to('q')}"],
        then=[*publish("m1"), "a.1 basic.get q", "a.1 basic.reject 1", "b.1 basic.qos 1", "a.1 basic.get q"],
    ),
    "timestamp-headers-never-match": Way(
        [CLASSIC, "a.1 exchange.declare e headers", f'a.1 queue.bind q e arguments={{"at": {MOMENT}}} x-match=any'],
        [f'c.1 basic.publish exchange=e body=m headers={{"at": {MOMENT}}}'], get_empty("c.1"),
        instead=['c.1 basic.publish q body=m'], then=["c.1 basic.get q"],
    ),
    # -------------------------------------------------------------------------------------------- the limiter
    "consumer-limit-lifts-channel-limit": Way(
        [CLASSIC, "a.1 basic.qos 1 global", "a.1 basic.consume q tag=t", *publish("m1", "m2")], ["a.1 basic.qos 1"],
        lambda talk: talk.answer().deliver("a.1", 2, "m2"), instead=["a.1 basic.qos 1 global"],
    ),
    "settled-gets-keep-their-room": Way(
        [CLASSIC, *publish("m1", "m2")],
        ["a.1 basic.get q", "a.1 basic.qos 1 global"], silence,
        instead=["a.1 basic.qos 1 global"], then=["a.1 basic.consume q tag=t", "a.1 basic.ack 1"],
    ),
    "uncounted-deliveries-make-room": Way(
        [CLASSIC, "a.1 queue.declare k durable x-queue-type=quorum"],
        ["a.1 basic.consume k tag=k", "a.1 basic.qos 1 global"], delivered("a.1", 3, "m2"),
        instead=["a.1 basic.qos 1 global", "a.1 basic.qos 1 global"],
        then=["a.1 basic.consume q tag=t", *publish("m1"), *publish("m2")],
    ),
    "channel-limit-holds-no-ack": Way(
        [CLASSIC, "a.1 queue.declare r", "a.1 basic.qos 1 global", "a.1 basic.consume r tag=t"],
        ["a.1 basic.consume q tag=u no-ack"], silence, instead=["b.1 basic.consume q tag=u no-ack"],
        then=[*publish("r1", queue="r"), *publish("m1")],
    ),
    "exceeded-limit-gives-room-twice": Way(
        [f"{QUORUM} x-delivery-limit=0", "a.1 basic.qos 1", "a.1 basic.consume q tag=t", *publish("m1")],
        ["a.1 basic.reject 1 requeue"], delivered("a.1", 3, "m3"), instead=["a.1 basic.reject 1"],
        then=publish("m2", "m3"),
    ),
}  # fmt: skip


SECOND = "x-consumer-timeout=1000"


def held(queue: str = TIMED_QUORUM) -> Timed:
    """c has got m1, which times out at 2.0."""
    return Timed(queue).hold(SECOND)


def two_held() -> Timed:
    """The same, and m2, which times out at 2.7."""
    return held().publish(1.7, "m2").deliver(1.72, 2, "m2").rest()


def cancelled(timed: Timed) -> Timed:
    return timed.ask(1.8, "a.1 basic.cancel c", "basic.cancel-ok", consumer_tag="c")


def cancelled_late(timed: Timed) -> Timed:
    return timed.ask(2.3, "a.1 basic.cancel c", "basic.cancel-ok", consumer_tag="c")


def got(timed: Timed) -> Timed:
    about: dict[str, Any] = {
        "delivery_tag": 1,
        "redelivered": False,
        "message_count": 0,
        "exchange": "",
        "routing_key": "q",
    }
    return timed.send(3.0, "a.1 basic.get q").see(3.01, "basic.get-ok", Content({"expiration": "500"}, b"m1"), **about)


def expired(arguments: str) -> Timed:
    return Timed(f"durable {arguments}").send(1.0, "a.1 basic.publish q body=m1 expiration=500").count(1.2, 1)


def refused_tag(timed: Timed) -> Timed:
    text = "NOT_ALLOWED - attempt to reuse consumer tag 'c'"
    timed.send(2.6, "a.1 basic.consume q tag=c").acceptor.received(
        event_of("a", 0, "connection.close", {"reply_code": 530, "reply_text": text, "class_id": 60, "method_id": 20},
                 sent=False, time=2.61)
    )  # fmt: skip
    return timed


def beside(settles: bool) -> Timed:
    """c held m1, which has timed out, and m2, which has not; d has followed it."""
    timed = Timed(f"{TIMED_QUORUM} x-single-active-consumer=true").hold(SECOND).publish(1.7, "m2")
    timed.deliver(1.72, 2, "m2").rest().consume(1.8, tag="d", on="b").rest().told(2.1)
    timed.redeliver(2.11, 1, tag="d", on="b").rest()
    if settles:
        timed.send(2.3, "a.1 basic.ack 1").rest()
    return timed.publish(2.4, "m3").deliver(2.42, 3, "m3").rest()


#: The same for what comes of the time: armed, and not.
TIMED_WAYS: dict[str, tuple[Callable[[], Timed | Talk], Callable[[], Timed | Talk]]] = {
    "late-ack-resumes-consumer": (
        lambda: held().cancelled(2.1).send(2.3, "a.1 basic.ack 1").redeliver(2.32, 2),
        lambda: held().cancelled(2.1).redeliver(2.32, 2),
    ),
    "late-reject-resumes-consumer": (
        lambda: held().cancelled(2.1).send(2.3, "a.1 basic.reject 1").redeliver(2.32, 2),
        lambda: held().cancelled(2.1).redeliver(2.32, 2),
    ),
    "late-requeue-resumes-consumer": (
        lambda: (
            held()
            .cancelled(2.1)
            .send(2.3, "a.1 basic.recover requeue")
            .see(2.31, "basic.recover-ok")
            .redeliver(2.32, 2)
        ),
        lambda: held().cancelled(2.1).redeliver(2.32, 2),
    ),
    "late-requeue-resumes-consumer-later": (
        lambda: (
            two_held()
            .cancelled(2.1)
            .send(2.2, "a.1 basic.reject 1 requeue")
            .rest()
            .send(2.3, "a.1 basic.ack 2")
            .redeliver(2.32, 3)
        ),
        lambda: two_held().cancelled(2.1).send(2.3, "a.1 basic.ack 2").redeliver(2.32, 3),
    ),
    "two-active-consumers-after-timeout": (lambda: beside(settles=True), lambda: beside(settles=False)),
    "next-deadline-forgotten": (lambda: two_held().in_vain(4.0), lambda: held().in_vain(4.0)),
    "timeout-told-again": (
        lambda: two_held().cancelled(2.1).cancelled(2.8),
        lambda: Timed().hold().cancelled(2.8),
    ),
    "late-settlement-settles-for-next-consumer": (
        lambda: (
            cancelled_late(held().cancelled(2.1))
            .consume(2.4)
            .redeliver(2.42, 2)
            .rest()
            .send(2.5, "a.1 basic.reject 1 requeue")
            .deliver(2.51, 3, acquired=2)
        ),
        lambda: (
            cancelled_late(held().cancelled(2.1)).consume(2.4).redeliver(2.42, 2).rest().deliver(2.51, 3, acquired=2)
        ),
    ),
    "timeout-after-cancel-closes-channel": (
        lambda: cancelled(held()).closed(2.1, -1),
        lambda: cancelled(held().send(1.2, "a.1 basic.ack 1")).closed(2.1, -1),
    ),
    "timed-out-tag-stays-in-use": (
        lambda: refused_tag(held().cancelled(2.1)),
        lambda: refused_tag(cancelled_late(held().cancelled(2.1))),
    ),
    "timed-out-channel-closed-again": (
        lambda: closed_twice(Timed(capabilities={}).hold(SECOND)),
        lambda: closed_twice(Timed(capabilities={}).hold().send(1.5, "a.1 basic.ack 1 multiple").rest()),
    ),
    "expired-priority-message-delivered": (
        lambda: got(expired("x-max-priority=4")),
        lambda: got(expired("")),
    ),
    "vhost-closes-before-stream-ends": (lambda: vhost_deleted("stream"), lambda: vhost_deleted("quorum")),
}


def closed_twice(timed: Timed) -> Timed:
    timed.wait(2.1).see(2.11, "channel.close", **timed.closing(1000))
    return timed.see(2.12, "channel.close", **timed.closing(1000))


def vhost_deleted(queue_type: str) -> Talk:
    talk = in_a_vhost(queue_type).send("broker operator.delete-vhost v")
    talk.see("b", 0, "connection.close", reply_text="CONNECTION_FORCED - vhost 'v' is deleted", **FORCED)
    talk.acceptor.overdue()
    return talk


def gone(name: str, is_armed: bool) -> Acceptor:
    if name in TIMED_WAYS:
        return TIMED_WAYS[name][not is_armed]().acceptor
    way = WAYS[name]
    talk = Answered(WINDOW[name].dialects[-1])
    talk.carry_out(*way.before, *(way.armed if is_armed else way.instead), *way.then)
    assert talk.acceptor.failures == [], "nothing is wrong yet"
    way.wrong(talk)
    return talk.acceptor


WINDOW: dict[str, Window] = {window.name: window for window in WINDOWS}
NAMES = (*WAYS, *TIMED_WAYS)


def test_there_is_a_way_into_each() -> None:
    assert sorted(NAMES) == sorted(WINDOW)


#: Windows that are never armed without another one that explains the same, and that comes before them.
HIDDEN_BY = {
    "takeover-forgets-deliveries": "consumer-of-same-tag-never-active",
    "late-requeue-resumes-consumer-later": "late-requeue-resumes-consumer",
    "two-active-consumers-after-timeout": "late-ack-resumes-consumer",
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_wrong_is_credited_to_it(name: str) -> None:
    acceptor = gone(name, is_armed=True)
    failure = acceptor.failures[0]
    credited = HIDDEN_BY.get(name, name)
    assert (failure.defect, failure.requirement) == (credited, WINDOW[credited].requirement)
    needs_no_input = any(not window.kinds for window in WINDOWS if window.name == name)
    assert needs_no_input or name in acceptor.windows


@pytest.mark.parametrize("name", NAMES)
def test_and_is_not_where_nothing_has_armed_it(name: str) -> None:
    acceptor = gone(name, is_armed=False)
    assert acceptor.failures and acceptor.failures[0].defect != name
    assert name not in acceptor.windows


@pytest.mark.parametrize(("first", "defect"), [("m", "turned-history-mistakes-cycles"), ("w1", "")])
def test_what_was_rejected_once_may_go_round_for_ever(first: str, defect: str) -> None:
    talk = Answered("rabbitmq-3").carry_out(
        f"a.1 queue.declare m {to('w1')}", f"a.1 queue.declare w1 x-max-length=0 {to('q')}",
        f"a.1 queue.declare q x-max-length=0 {to('w1')}", *publish("m1", queue=first), "b.1 basic.qos 1",
        *(["a.1 basic.get m", "a.1 basic.reject 1", "b.1 basic.qos 2"] if first == "m" else []), COUNT,
    )  # fmt: skip
    talk.count(1).rest()
    assert [failure.defect for failure in talk.acceptor.failures] == [defect]


@pytest.mark.parametrize("use", ["basic.get q", "queue.purge q"])
def test_a_use_that_crosses_the_deletion_of_a_quorum_queue_may_break_the_connection(use: str) -> None:
    talk = Answered("rabbitmq-4.3").carry_out(QUORUM, "b.1 basic.qos 1", "a.1 queue.delete q &", f"b.1 {use}")
    talk.crash("b")
    assert [failure.defect for failure in talk.acceptor.failures] == ["use-crossing-deletion-breaks"]
