"""Known defects: each is complete, applies where it says, leads on, and never makes anything green."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator

import pytest
from amqpspec.model.defects.channel_limiter import limiter_of
from amqpspec.model.defects.transitions import DEFECT_TRANSITIONS, HOOKS, acceptor_for, defects_of

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.fingerprint import fingerprint
from amqpspec.model.broker.internal_events import DeliveryTimeout, Input, OverdueTimeout
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.outputs.turns import turns_come_to_rest
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Method, RawFrame, event_of
from amqpspec.model.rules.extensions.timeout_schedule import tell_of_timeouts
from amqpspec.model.rules.inputs import process

ids = [defect.name for defect in DEFECT_TRANSITIONS]


def input_of(command: Command) -> Method:
    arguments = dict(command.arguments)
    return event_of(command.connection, command.channel, command.method, arguments, True, command.content)


#: For each known defect a way to it: commands that are answered, then one line in flight after the other.
_SINGLE = "a.1 queue.declare q durable x-single-active-consumer=true"
_QUORUM_SINGLE = f"{_SINGLE} x-queue-type=quorum"
_TIMED = "a.1 queue.declare q durable x-queue-type=quorum x-consumer-timeout=500"
WAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "cancel-leaves-backlog": (
        (_SINGLE, "a.1 basic.qos 1", "a.1 basic.consume q tag=t", "b.1 basic.consume q tag=u",
         "b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2"),
        ("a.1 basic.cancel t",),
    ),
    "quorum-bytes-count-properties": (
        ("a.1 queue.declare d", "a.1 basic.consume d tag=t",
         "a.1 queue.declare q durable x-queue-type=quorum x-max-length-bytes=8 x-dead-letter-exchange=\"\""
         " x-dead-letter-routing-key=d", "a.1 basic.publish q body=m1"),
        ("a.1 basic.publish q body=12345",),
    ),
    "commit-forgets-refusals": (
        ("a.1 queue.declare q durable x-queue-type=quorum x-max-length=0 x-overflow=reject-publish", "a.1 tx.select",
         "a.1 basic.publish q body=m1", "a.1 tx.commit", "a.1 basic.publish q body=m2"),
        ("a.1 tx.commit",),
    ),
    "transaction-replies-at-once": (
        ("a.1 basic.consume amq.rabbitmq.reply-to tag=r no-ack", "b.1 tx.select"),
        ("b.1 basic.publish amq.rabbitmq.reply-to.0000000000000000000001 body=reply",),
    ),
    "return-activates-nobody": (
        (_QUORUM_SINGLE, "a.1 basic.consume q tag=t", "b.1 basic.publish q body=m1",
         "b.1 basic.consume q tag=u x-priority=1"),
        ("a.1 basic.nack 1 requeue",),
    ),
    "quiescing-consumer-starves": (
        (_QUORUM_SINGLE, "a.1 basic.consume q tag=t", "b.1 basic.publish q body=m1",
         "b.1 basic.consume q tag=u x-priority=1", "b.1 basic.cancel u"),
        ("b.1 basic.publish q body=m2",),
    ),
    "closed-consumer-keeps-messages": (
        (_QUORUM_SINGLE, "b.1 basic.publish q body=m1", "a.1 basic.consume q tag=t", "b.1 basic.consume q tag=v",
         "a.1 basic.consume q tag=u x-priority=10"),
        ("a.1 channel.close",),
    ),
    "consumer-of-same-tag-waits-on": (
        (_QUORUM_SINGLE, "b.1 basic.qos 1", "a.1 basic.consume q tag=t", "b.1 basic.consume q tag=u",
         "b.1 basic.publish q body=m1", "a.1 basic.cancel t", "a.1 basic.consume q tag=t", "a.1 basic.cancel t",
         "c.1 basic.consume q tag=v", "b.1 basic.publish q body=m2", "b.1 basic.publish q body=m3"),
        ("b.1 basic.cancel u",),
    ),
    "consumer-of-same-tag-stays-active": (
        (_QUORUM_SINGLE, "b.1 channel.open", "a.1 basic.consume q tag=t", "b.1 basic.publish q body=m1",
         "a.1 basic.cancel t", "a.1 basic.consume q tag=t", "c.1 basic.consume q tag=u x-priority=1"),
        ("b.1 basic.publish q body=m2",),
    ),
    "takeover-forgets-deliveries": (
        (_QUORUM_SINGLE, "a.1 basic.consume q tag=t", "b.1 basic.consume q tag=u x-priority=1",
         "b.1 basic.publish q body=m1", "b.1 basic.cancel u", "b.1 basic.consume q tag=u x-priority=1"),
        ("b.1 channel.close",),
    ),
    "consumer-of-same-tag-never-active": (
        (_QUORUM_SINGLE, "b.1 basic.qos 1", "a.1 basic.consume q tag=t", "b.1 basic.consume q tag=u",
         "b.1 basic.publish q body=m1", "a.1 basic.cancel t", "a.1 basic.consume q tag=t",
         "b.1 basic.publish q body=m2", "b.1 basic.publish q body=m3"),
        ("b.1 basic.cancel u",),
    ),
    "exceeded-limit-gives-room-twice": (
        ("a.1 queue.declare q durable x-queue-type=quorum x-delivery-limit=0", "a.1 basic.publish q body=m1",
         "a.1 basic.publish q body=m2", "a.1 basic.publish q body=m3", "b.1 basic.qos 1", "b.1 basic.consume q tag=t"),
        ("b.1 basic.reject 1 requeue",),
    ),
    "stream-takes-no-dead-letters": (
        ("a.1 queue.declare s durable x-queue-type=stream", "b.1 basic.qos 1", "b.1 basic.consume s tag=t",
         'a.1 queue.declare q durable x-dead-letter-exchange="" x-dead-letter-routing-key=s',
         "a.1 basic.publish q body=m1", "a.1 basic.get q"),
        ("a.1 basic.nack 1",),
    ),
    "drops-latest-letter-first": (
        ("a.1 queue.declare d", "b.1 basic.qos 1", "b.1 basic.consume d tag=t",
         "a.1 queue.declare q durable x-queue-type=quorum x-max-length-bytes=4"
         ' x-dead-letter-exchange="" x-dead-letter-routing-key=d',
         "a.1 basic.publish q body=11", "a.1 basic.publish q body=22"),
        ("a.1 basic.publish q body=4444",),
    ),
    "exclusive-consumer-ignored": (
        ("a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.consume q tag=t exclusive", "b.1 channel.open"),
        ("b.1 basic.consume q tag=u",),
    ),
    "cancel-before-consume-ok-breaks": (
        ("a.1 queue.declare q",),
        ("a.1 basic.consume q tag=t", "a.1 basic.cancel t"),
    ),
    "consume-ok-dropped": (
        ("a.1 queue.declare q",),
        ("a.1 basic.consume q tag=t", "a.1 basic.cancel t"),
    ),
    "cancel-before-consume-ok-beside-breaks": (
        ("a.1 queue.declare q", "a.1 basic.consume q tag=s"),
        ("a.1 basic.consume q tag=t", "a.1 basic.cancel t"),
    ),
    "reused-tag-before-consume-ok-breaks": (
        ("a.1 queue.declare q",),
        ("a.1 basic.consume q tag=t", "a.1 basic.cancel t", "a.1 basic.consume q tag=t"),
    ),
    "reused-tag-keeps-place": (
        ("a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.qos 5", "a.1 basic.consume q tag=t x-priority=3",
         "b.1 basic.publish q body=m1", "a.1 basic.consume q tag=u x-priority=1", "a.1 basic.cancel t",
         "a.1 basic.consume q tag=t"),
        ("b.1 basic.publish q body=m2",),
    ),
    # with something outstanding it breaks besides
    "reused-tag-keeps-place rabbitmq-3": (
        ("a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.qos 5", "a.1 basic.consume q tag=t x-priority=3",
         "b.1 basic.publish q body=m1", "a.1 basic.consume q tag=u x-priority=1", "a.1 basic.ack 1",
         "a.1 basic.cancel t", "a.1 basic.consume q tag=t"),
        ("b.1 basic.publish q body=m2",),
    ),
    "reused-tag-inherits-deliveries": (
        ("a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.qos 1", "a.1 basic.consume q tag=t",
         "b.1 basic.publish q body=m1", "a.1 basic.cancel t", "b.1 basic.publish q body=m2"),
        ("a.1 basic.consume q tag=t",),
    ),
    "reused-tag-keeps-room": (
        ("a.1 queue.declare q durable x-queue-type=quorum", "b.1 basic.publish q body=m1",
         "b.1 basic.publish q body=m2", "a.1 basic.consume q tag=t", "a.1 basic.cancel t", "a.1 basic.qos 1",
         "a.1 basic.consume q tag=t"),
        ("a.1 basic.nack 2 multiple requeue",),
    ),
    "infinite-header-breaks": (
        ("a.1 queue.declare q",),
        ('a.1 basic.publish q body=m1 headers={"far": [{"$float": "inf"}]}',),
    ),
    "stream-breaks-on-decimal": (
        ("a.1 queue.declare s durable x-queue-type=stream",),
        ('a.1 basic.publish s body=m1 headers={"price": {"$decimal": "1.50"}}',),
    ),
    "reused-tag-gains-room": (
        ("a.1 queue.declare s durable x-queue-type=stream", "b.1 confirm.select", "b.1 basic.publish s body=m1",
         "b.1 basic.publish s body=m2", "b.1 basic.publish s body=m3", "a.1 basic.qos 1",
         "a.1 basic.consume s tag=t x-stream-offset=first", "a.1 basic.cancel t",
         "a.1 basic.consume s tag=t x-stream-offset=first"),
        ("a.1 basic.ack 1",),
    ),
    "stream-serves-before-consume-ok": (
        ("a.1 queue.declare s durable x-queue-type=stream", "b.1 confirm.select", "b.1 basic.publish s body=m1",
         "a.1 basic.qos 5", "a.1 basic.consume s tag=t"),
        ("a.1 basic.consume s tag=u x-stream-offset=first",),
    ),
    "deleted-queue-crashes-next-queue": (
        ("a.1 queue.declare q durable", "b.1 basic.publish q body=m1", "a.1 basic.get q", "b.1 queue.delete q",
         "b.1 queue.declare q durable x-max-priority=4", "a.1 basic.consume q tag=t"),
        ("a.1 basic.ack 1",),
    ),
    "crashed-next-queue-is-empty": (
        ("b connection.open consumer_cancel_notify=false",
         "a.1 queue.declare q durable", "a.1 basic.publish q body=m1", "a.1 basic.get q", "a.1 queue.delete q",
         "a.1 queue.declare q durable x-max-priority=4", "a.1 basic.publish q body=m2", "a.1 basic.get q",
         "b.1 basic.consume q tag=t"),
        ("a.1 basic.nack 0 multiple requeue",),
    ),
    "commit-cancels-consumers-of-next-queue": (
        ("a.1 queue.declare q durable", "a.2 tx.select", "a.2 basic.publish q body=m1", "a.1 queue.delete q",
         "a.1 queue.declare q durable", "a.2 basic.consume q tag=t"),
        ("a.2 tx.commit",),
    ),
    "next-stream-refuses-settlement": (
        ("a.1 queue.declare s durable", "a.1 basic.publish s body=m1", "a.1 basic.get s", "b.1 queue.delete s",
         "b.1 queue.declare s durable x-queue-type=stream", "a.1 basic.publish s body=m2"),
        ("a.1 basic.nack 1 requeue",),
    ),
    "stream-refuses-rejection": (
        ("a.1 queue.declare s durable x-queue-type=stream", "b.1 basic.publish s body=m1", "a.1 basic.qos 1",
         "a.1 basic.consume s tag=t x-stream-offset=first"),
        ("a.1 basic.nack 1",),
    ),
    "recover-breaks-on-stream": (
        ("a.1 queue.declare s durable x-queue-type=stream", "b.1 basic.publish s body=m1", "a.1 basic.qos 1",
         "a.1 basic.consume s tag=t x-stream-offset=first"),
        ("a.1 basic.recover requeue",),
    ),
    "queue-mode-is-taken": (("a.1 queue.declare p",), ("a.1 queue.declare q durable x-queue-mode=lazy",)),
    "longer-body-unnoticed": (
        ("a.1 queue.declare q", "a.1 basic.publish q unfinished", "a.1 frame.header body-size=3"),
        ("a.1 frame.body body=abcdef",),
    ),
    "stream-offset-text-breaks": (
        ("a.1 queue.declare s durable x-queue-type=stream", "a.1 basic.qos 1"),
        ("a.1 basic.consume s tag=t x-stream-offset=foo",),
    ),
    "stream-offset-of-wrong-type-breaks": (
        ("a.1 queue.declare s durable x-queue-type=stream", "a.1 basic.qos 1"),
        ("a.1 basic.consume s tag=t x-stream-offset=true",),
    ),
    "close-behind-error-unanswered": (
        ("a.1 channel.open",),
        ("a.1 channel.open", "a connection.close"),
    ),
    "cancel-ok-for-no-consumer-breaks": (
        ("a.1 queue.declare q", "a.1 basic.consume q tag=t", "b.1 queue.delete q"),
        ("a.1 basic.cancel-ok t",),
    ),
    "cancel-crossing-deletion-breaks": (
        ("a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.consume q tag=t", "b.1 channel.open"),
        ("b.1 queue.delete q", "a.1 basic.cancel t"),
    ),
    "cancel-crossing-deletion-answered-twice": (
        ("a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.consume q tag=t", "b.1 channel.open"),
        ("b.1 queue.delete q", "a.1 basic.cancel t"),
    ),
    "server-named-unknown-type-breaks": (
        ("a.1 channel.open",),
        ("a.1 queue.declare exclusive x-queue-type=5",),
    ),
    "age-without-number-breaks": (
        ("a.1 channel.open",),
        ("a.1 queue.declare q durable x-queue-type=stream x-max-age=D",),
    ),
    "reply-consumer-tag-taken-twice": (
        ("a.1 queue.declare q", "a.1 basic.consume amq.rabbitmq.reply-to tag=r no-ack"),
        ("a.1 basic.consume q tag=r",),
    ),
    "timestamp-headers-never-match": (
        ("a.1 queue.declare q", "a.1 exchange.declare e headers",
         'a.1 queue.bind q e arguments={"at": {"$datetime": "2024-02-29T12:00:00+00:00"}}'),
        ('a.1 basic.publish exchange=e mandatory body=m headers={"at": {"$datetime": "2024-02-29T12:00:00+00:00"}}',),
    ),
    "long-error-text-breaks": (
        ("a.1 channel.open",),
        (f"a.1 queue.declare {'é' * 120} passive",),
    ),
    "malformed-reply-address-breaks": (
        ("a.1 channel.open",),
        ("a.1 queue.declare amq.rabbitmq.reply-to.nobody passive",),
    ),
    "deleted-queue-settles-in-next-queue": (
        ("a.1 queue.declare q", "b.1 basic.publish q body=m1", "a.1 basic.get q", "b.1 queue.delete q",
         "b.1 queue.declare q", "b.1 basic.publish q body=m2", "a.1 basic.get q", "b.1 basic.consume q tag=t"),
        ("a.1 basic.reject 1 requeue",),
    ),
    "consumer-limit-lifts-channel-limit": (
        ("a.1 queue.declare q", "a.1 basic.qos 1 global", "a.1 basic.consume q tag=t", "b.1 basic.publish q body=m1",
         "b.1 basic.publish q body=m2"),
        ("a.1 basic.qos 1",),
    ),
    "settled-gets-keep-their-room": (
        ("a.1 queue.declare q", "b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2", "a.1 basic.get q",
         "a.1 basic.qos 1 global", "a.1 basic.consume q tag=t"),
        ("a.1 basic.ack 1",),
    ),
    "uncounted-deliveries-make-room": (
        ("a.1 queue.declare k durable x-queue-type=quorum", "a.1 basic.consume k tag=k", "a.1 basic.qos 1 global",
         "b.1 basic.publish k body=k1", "a.1 queue.declare q", "a.1 basic.consume q tag=t",
         "b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2"),
        ("a.1 basic.ack 1",),
    ),
    "channel-limit-holds-no-ack": (
        ("a.1 queue.declare q", "a.1 queue.declare r", "a.1 basic.qos 1 global", "a.1 basic.consume q tag=t",
         "a.1 basic.consume r tag=u no-ack", "b.1 basic.publish q body=m1"),
        ("b.1 basic.publish r body=m2",),
    ),
    "publish-crossing-deletion-breaks": (
        ("a.1 queue.declare q durable x-queue-type=quorum", "b.1 channel.open"),
        ("a.1 queue.delete q", "b.1 basic.publish q body=m1"),
    ),
    "closing-overtakes-publishes": (
        ("a.1 queue.declare q durable x-queue-type=quorum", "b.1 basic.consume q tag=t", "a.1 basic.publish q body=m1"),
        ("a.1 basic.publish q body=m2", "a.1 channel.close reply-code=200 reply-text=done"),
    ),
    "next-queue-gets-consumers": (
        ("b connection.open consumer_cancel_notify=false",
         "a.1 queue.declare q durable x-queue-type=quorum", "b.1 basic.consume q tag=t", "a.1 queue.delete q",
         "a.1 queue.declare q durable", "c.1 basic.consume q tag=u"),
        ("a.1 basic.publish q body=m1",),
    ),
    "next-queue-serves-consumers": (
        ("b connection.open consumer_cancel_notify=false",
         "a.1 queue.declare q durable x-queue-type=stream", "b.1 basic.qos 1", "b.1 basic.consume q tag=t",
         "a.1 queue.delete q", "a.1 queue.declare q durable"),
        ("a.1 basic.publish q body=m1",),
    ),
    "next-queue-keeps-tag": (
        ("b connection.open consumer_cancel_notify=false",
         "a.1 queue.declare q durable x-queue-type=quorum", "b.1 basic.consume q tag=t", "a.1 queue.delete q",
         "a.1 queue.declare q durable"),
        ("b.1 basic.consume q tag=t",),
    ),
    "exclusive-queue-outlives-connection": (
        ("a.1 queue.declare q exclusive", "b.1 channel.open", "a connection.close reply-code=200 reply-text=done"),
        ("b.1 queue.declare q durable",),
    ),
    "reply-to-nobody-not-returned": (
        ("a.1 basic.consume amq.rabbitmq.reply-to tag=t no-ack", "a.1 channel.close", "b.1 channel.open"),
        (f"b.1 basic.publish amq.rabbitmq.reply-to.{1:022d} mandatory body=m2",),
    ),
    "reused-tag-breaks-at-delivery": (
        ("a.1 queue.declare q durable x-queue-type=quorum", "b.1 basic.publish q body=m1", "a.1 basic.consume q tag=t",
         "a.1 basic.cancel t", "a.1 basic.consume q tag=t"),
        ("b.1 basic.publish q body=m2",),
    ),
    "stale-queue-type": (
        ("a.1 queue.declare q", "a.1 basic.publish q body=m1", "b.1 queue.delete q",
         "b.1 queue.declare q durable x-queue-type=quorum"),
        ("a.1 basic.publish q body=m2",),
    ),
    "late-ack-resumes-consumer": (
        (_TIMED, "b.1 basic.publish q body=m1", "a.1 basic.consume q tag=c", "broker clock.wait 600"),
        ("a.1 basic.ack 1",),
    ),
    "late-reject-resumes-consumer": (
        (_TIMED, "b.1 basic.publish q body=m1", "a.1 basic.consume q tag=c", "broker clock.wait 600"),
        ("a.1 basic.reject 1",),
    ),
    "late-requeue-resumes-consumer": (
        (f"{_QUORUM_SINGLE} x-consumer-timeout=500", "b.1 basic.publish q body=m1", "a.1 basic.consume q tag=c",
         "broker clock.wait 600"),
        ("a.1 basic.reject 1 requeue",),
    ),
    "late-requeue-resumes-consumer-later": (
        (_TIMED, "b.1 basic.publish q body=m1", "a.1 basic.consume q tag=c", "broker clock.wait 300",
         "b.1 basic.publish q body=m2", "broker clock.wait 300"),
        ("a.1 basic.reject 1 requeue",),
    ),
    "timed-out-tag-stays-in-use": (
        (_TIMED, "b.1 basic.publish q body=m1", "a.1 basic.consume q tag=c", "broker clock.wait 600"),
        ("a.1 basic.consume q tag=c",),
    ),
    "late-settlement-settles-for-next-consumer": (
        (_TIMED, "b.1 basic.publish q body=m1", "a.1 basic.consume q tag=c", "broker clock.wait 600",
         "a.1 basic.cancel c", "a.1 basic.consume q tag=c"),
        ("a.1 basic.reject 1 requeue",),
    ),
    "two-active-consumers-after-timeout": (
        (_QUORUM_SINGLE, "a.1 basic.qos 2", "a.1 basic.consume q tag=c x-consumer-timeout=500", "b.1 basic.qos 1",
         "b.1 basic.consume q tag=d", "b.1 basic.publish q body=m1", "broker clock.wait 300",
         "b.1 basic.publish q body=m2", "broker clock.wait 300", "b.1 basic.publish q body=m3"),
        ("a.1 basic.ack 1",),
    ),
    # nothing is sent: time passes
    "timeout-after-cancel-closes-channel": (
        (_TIMED, "b.1 basic.publish q body=m1", "a.1 basic.consume q tag=c", "a.1 basic.cancel c"), (),
    ),
    "next-deadline-forgotten": (
        (_TIMED, "a.1 basic.qos 1", "b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2",
         "a.1 basic.consume q tag=c", "a.1 basic.consume q tag=d"), (),
    ),
}  # fmt: skip


#: Where the lawful answer does not say whether the broker came to what the known defect is about: consume-ok may have
#: been sent before the cancel was looked at, and a cancel may have come before the deletion of its queue, or well
#: after it.
OPEN_WHERE_LAWFUL = {
    "consume-ok-dropped", "cancel-crossing-deletion-breaks", "cancel-crossing-deletion-answered-twice",
    "stream-serves-before-consume-ok", "deleted-queue-crashes-next-queue",
    "next-queue-gets-consumers", "takeover-forgets-deliveries",
}  # fmt: skip

#: By when all deadlines are over.
LATER = 100.0

#: Those of which the acceptor is told by no input but by the time that passes.
SHOWN_BY_TIME = {"next-deadline-forgotten", "timeout-after-cancel-closes-channel"}

#: What the client does after the input that comes under it: till then it does not show.
SHOWN_BEHIND = {"late-requeue-resumes-consumer-later": "a.1 basic.ack 2"}

#: What a broker that goes wrong is made to say first, where it may: the close of the connection is owed at some time,
#: and one that crashes says nothing more; and that by which a known defect shows which is a matter of order.
SAID_FIRST = {"stream-serves-before-consume-ok": "basic.deliver"}


def brought_to(defect: DefectTransition, dialect: str) -> tuple[Broker, Input]:
    """The state in which the known defect applies, and the input that comes under it."""
    assert defect.name in WAYS, f"{defect.name} has no way to it in this test: add one"
    answered, in_flight = WAYS.get(f"{defect.name} {dialect}", WAYS[defect.name])
    plan = Plan(dialect_named(dialect), HOOKS)
    for line in answered:
        plan.carry_out(parse_command(line))
        turns_come_to_rest(plan.broker)
        if plan.broker.quiet:
            plan.broker.come_to_rest()
    if not in_flight:
        plan.broker.looked_ahead_until = LATER
        tell_of_timeouts(plan.broker)
        timeout = plan.broker.internal_events.pop(0)
        assert isinstance(timeout, DeliveryTimeout)
        return plan.broker, OverdueTimeout(timeout.key, timeout.tag) if OverdueTimeout in defect.kinds else timeout
    *before, last = map(parse_command, in_flight)
    for command in before:
        process(plan.broker, input_of(command))
    return plan.broker, input_of(last)


def everywhere() -> Iterator[tuple[DefectTransition, str]]:
    for defect in DEFECT_TRANSITIONS:
        for dialect in defect.dialects:
            yield defect, dialect


@pytest.mark.parametrize("defect", DEFECT_TRANSITIONS, ids=ids)
def test_a_defect_is_complete(defect: DefectTransition) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", defect.name)
    assert defect.requirement in requirements()
    assert defect.statement.endswith(".")
    assert defect.source
    assert defect.dialects
    assert set(defect.dialects) <= set(DIALECTS)
    assert "amqp-0-9-1" not in defect.dialects, "the text itself has no defects"


def test_names_are_unique_and_dialects_have_theirs() -> None:
    assert len(set(ids)) == len(ids)
    assert {name.partition(" ")[0] for name in WAYS} == set(ids), "ways to known defects that are no more"
    for name, dialect in DIALECTS.items():
        own = [each for each in DEFECT_TRANSITIONS if name in each.dialects]
        indexed = defects_of(dialect)
        assert {each.name for several in indexed.values() for each in several} == {each.name for each in own}
        assert all(kind in each.kinds for kind, several in indexed.items() for each in several)
    assert defects_of(dialect_named("amqp-0-9-1")) == {}


@pytest.mark.parametrize(("defect", "dialect"), list(everywhere()), ids=lambda value: getattr(value, "name", value))
def test_it_applies_there_and_leads_elsewhere(defect: DefectTransition, dialect: str) -> None:
    broker, event = brought_to(defect, dialect)
    before = fingerprint(broker)
    assert defect.comes_under(broker, event)
    assert fingerprint(broker) == before, "to ask changes nothing"
    lawful, defective = copy.deepcopy(broker), copy.deepcopy(broker)
    process(lawful, event)
    defect.process(defective, event)
    assert fingerprint(lawful) != fingerprint(defective), "a known defect that is none"
    assert defective.dialect is broker.dialect
    # it can go on from there: everything it permits is accepted, until it is quiet
    for _ in range(100):
        answer = next(permitted(defective), None)
        if answer is None:
            break
        assert observe(defective, answer) == (), str(answer)
    assert defective.quiet


@pytest.mark.parametrize(("defect", "dialect"), list(everywhere()), ids=lambda value: getattr(value, "name", value))
def test_the_acceptor_follows_it_and_says_so(defect: DefectTransition, dialect: str) -> None:
    """What the defective broker sends is a failure under the known defect's name; what a lawful one sends is none."""
    if defect.name in SHOWN_BY_TIME:
        return
    broker, event = brought_to(defect, dialect)
    assert isinstance(event, Method | RawFrame)
    for is_defective in (False, True):
        acceptor = acceptor_for(dialect_named(dialect))
        acceptor.explanations[0].broker = copy.deepcopy(broker)
        acceptor.sent(event)
        target = copy.deepcopy(broker)
        (defect.process if is_defective else process)(target, event)
        if defect.name in SHOWN_BEHIND:
            acceptor.quiescent()
            further = input_of(parse_command(SHOWN_BEHIND[defect.name]))
            acceptor.sent(further)
            process(target, further)
        for _ in range(100):
            first = SAID_FIRST.get(defect.name, "connection.close")
            answer = next(iter(sorted(permitted(target), key=lambda each: each.name != first)), None)
            if answer is None:
                break
            assert observe(target, answer) == ()
            acceptor.received(answer)
        acceptor.quiescent()
        if is_defective:
            assert [failure.defect for failure in acceptor.failures] == [defect.name]
            assert acceptor.failures[0].requirement == defect.requirement
            assert acceptor.verdict is Verdict.FAIL
            assert acceptor.finished is target.bookkeeping.is_unpredictable, "judging goes on where it can"
            assert defect.name not in acceptor.refuted
        else:
            assert acceptor.failures == []
            would_have_shown = defect.name not in OPEN_WHERE_LAWFUL
            assert (defect.name in acceptor.refuted) is would_have_shown, "who upgrades wants to know"


@pytest.mark.parametrize("defect", DEFECT_TRANSITIONS, ids=ids)
def test_it_does_not_apply_to_ordinary_traffic(defect: DefectTransition) -> None:
    for dialect in defect.dialects:
        for kind in ("classic", "quorum"):
            plan = Plan(dialect_named(dialect), HOOKS)
            for line in (
                f"a.1 queue.declare q durable x-queue-type={kind}", "a.1 basic.qos 1", "a.1 basic.consume q tag=t",
                "b.1 basic.consume q tag=t", "b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2",
                "a.1 basic.ack 1", "a.1 basic.cancel t", "a.1 basic.consume q tag=u", "b.1 basic.get q",
                "b.1 basic.cancel nobody", "a.1 queue.delete q", "a.1 basic.publish q body=m3",
                f"a.1 queue.declare q durable x-queue-type={kind}", "a.1 basic.publish q body=m4", "a.1 basic.get q",
                "c.1 basic.cancel t", "c.1 basic.consume missing",
            ):  # fmt: skip
                command = parse_command(line)
                assert command.method not in defect.methods or not defect.applies(plan.broker, input_of(command)), line
                plan.carry_out(command)


def test_settling_what_a_deleted_queue_delivered_does_not_make_the_channel_know_its_type_again() -> None:
    """`stale-queue-type` is about the type that the channel met last."""
    plan = Plan(dialect_named("rabbitmq-4.3"), HOOKS)
    for line in (
        "a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.consume q tag=t", "b.1 basic.publish q body=m1",
        "b.1 queue.delete q", "b.1 queue.declare q durable", "a.1 basic.consume q tag=u", "a.1 basic.ack 1",
    ):  # fmt: skip
        plan.carry_out(parse_command(line))
    stale = next(each for each in DEFECT_TRANSITIONS if each.name == "stale-queue-type")
    assert not stale.applies(plan.broker, input_of(parse_command("a.1 basic.get q")))


@pytest.mark.parametrize("before", [(), ("b.1 basic.consume q tag=t",), ("b.1 basic.publish q body=m1",)])
def test_a_publish_that_crosses_the_deletion_of_a_quorum_queue_breaks_whatever_else_its_channel_did(
    before: tuple[str, ...],
) -> None:
    plan = Plan(dialect_named("rabbitmq-4.0"), HOOKS)
    for line in ("a.1 queue.declare q durable x-queue-type=quorum", "b.1 channel.open", *before):
        plan.carry_out(parse_command(line))
    plan.broker.come_to_rest()
    crossing = next(each for each in DEFECT_TRANSITIONS if each.name == "publish-crossing-deletion-breaks")
    publish = input_of(parse_command("b.1 basic.publish q body=m2"))
    assert not crossing.applies(plan.broker, publish)
    process(plan.broker, input_of(parse_command("a.1 queue.delete q")))
    assert crossing.applies(plan.broker, publish)
    assert crossing.applies(copy.deepcopy(plan.broker), publish)
    by_who_deletes = input_of(parse_command("a.1 basic.publish q body=m2"))
    assert not crossing.applies(plan.broker, by_who_deletes), "its channel knows that the queue is gone"
    plan.broker.come_to_rest()
    assert not crossing.applies(plan.broker, publish)


@pytest.mark.parametrize(
    ("published", "breaks"), [("k exchange=e", True), ("k exchange=f", False), ("r", False), ("q", True)]
)
def test_a_publish_may_cross_the_deletion_by_an_exchange(published: str, breaks: bool) -> None:
    plan = Plan(dialect_named("rabbitmq-4.0"), HOOKS)
    for line in (
        "a.1 queue.declare q durable x-queue-type=quorum", "a.1 queue.declare r durable x-queue-type=quorum",
        "a.1 exchange.declare e fanout", "a.1 exchange.declare f fanout", "a.1 queue.bind q e", "a.1 queue.bind r e",
        "a.1 queue.bind r f", "b.1 channel.open",
    ):  # fmt: skip
        plan.carry_out(parse_command(line))
    plan.broker.come_to_rest()
    crossing = next(each for each in DEFECT_TRANSITIONS if each.name == "publish-crossing-deletion-breaks")
    publish = input_of(parse_command(f"b.1 basic.publish {published} body=m"))
    assert not crossing.applies(plan.broker, publish)
    process(plan.broker, input_of(parse_command("a.1 queue.delete q")))
    assert crossing.applies(plan.broker, publish) is breaks
    assert crossing.applies(copy.deepcopy(plan.broker), publish) is breaks


@pytest.mark.parametrize("crossing", [False, True])
def test_a_publish_that_crosses_the_cancel_crashes_the_queue_with_a_backlog(crossing: bool) -> None:
    """As one that comes after it does."""
    plan = Plan(dialect_named("rabbitmq-3"), HOOKS)
    for line in WAYS["cancel-leaves-backlog"][0]:
        plan.carry_out(parse_command(line))
        turns_come_to_rest(plan.broker)
    backlog = next(each for each in DEFECT_TRANSITIONS if each.name == "cancel-leaves-backlog")
    if crossing:
        process(plan.broker, input_of(parse_command("b.1 basic.publish q body=m3")))
    cancel = input_of(parse_command("a.1 basic.cancel t"))
    assert backlog.applies(plan.broker, cancel)
    backlog.process(plan.broker, cancel)
    assert plan.broker.bookkeeping.is_unpredictable is crossing


#: What the next queue of a name does to others, or much later: commands, the last ones as a broker takes them that
#: settles in that queue, and what is missing or too much in the end.
HARMED = {
    "another channel's delivery": (
        ("a.1 queue.declare q durable", "b.1 basic.publish q body=m1", "a.1 basic.get q", "b.1 queue.delete q",
         "b.1 queue.declare q durable", "b.1 basic.publish q body=m2", "b.1 basic.get q", "a.1 basic.consume q tag=t"),
        ("a.1 basic.ack 1", "b.1 basic.nack 1 requeue"),
    ),
    "a consumer's room": (
        ("a.1 queue.declare q durable", "b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2",
         "a.1 basic.get q no-ack", "a.1 basic.qos 1", "a.1 basic.consume q tag=t", "b.1 queue.delete q",
         "b.1 queue.declare q durable", "b.1 basic.publish q body=m3", "a.1 basic.consume q tag=t"),
        ("a.1 basic.ack 3 multiple", "b.1 basic.publish q body=m4"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
@pytest.mark.parametrize("way", list(HARMED))
def test_what_what_has_the_same_name_does_shows_later(way: str, dialect: str) -> None:
    """Nothing is wrong after the settlement; what it did shows when something is due that it should not touch."""
    settles = next(each for each in DEFECT_TRANSITIONS if each.name == "deleted-queue-settles-in-next-queue")
    answered, (settlement, last) = HARMED[way]
    plan = Plan(dialect_named(dialect), HOOKS)
    for line in answered:
        plan.carry_out(parse_command(line))
    acceptor = acceptor_for(dialect_named(dialect))
    acceptor.explanations[0].broker = copy.deepcopy(plan.broker)
    target = plan.broker
    method = input_of(parse_command(settlement))
    assert settles.applies(target, method)
    acceptor.sent(method)
    settles.process(target, method)
    assert next(permitted(target), None) is None
    acceptor.quiescent()
    assert acceptor.failures == []
    method = input_of(parse_command(last))
    acceptor.sent(method)
    process(target, method)
    assert next(permitted(target), None) is None, "nothing is delivered"
    acceptor.overdue()
    assert [failure.defect for failure in acceptor.failures] == ["deleted-queue-settles-in-next-queue"]


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
def test_what_other_queues_refuse_is_forgotten_with_the_refusal_of_a_quorum_queue(dialect: str) -> None:
    forgets = next(each for each in DEFECT_TRANSITIONS if each.name == "commit-forgets-refusals")
    plan = Plan(dialect_named(dialect), HOOKS)
    limited = "x-max-length=1 x-overflow=reject-publish"
    lines = (
        f"a.1 queue.declare k durable x-queue-type=quorum {limited}", f"a.1 queue.declare c {limited}",
        "a.1 exchange.declare all fanout", "a.1 queue.bind k all", "a.1 queue.bind c all", "a.1 tx.select",
        *(f"b.1 basic.publish {queue} body=m{n}" for n, queue in enumerate("kkkc")),
        "a.1 basic.publish x exchange=all body=m5",
    )  # fmt: skip
    for line in lines:
        plan.carry_out(parse_command(line))
    commit = input_of(parse_command("a.1 tx.commit"))
    lawful, defective = copy.deepcopy(plan.broker), copy.deepcopy(plan.broker)
    process(lawful, commit)
    assert [event.name for event in permitted(lawful)] == ["channel.close"]
    forgets.process(defective, commit)
    assert [event.name for event in permitted(defective)] == ["tx.commit-ok"]


def test_what_is_refused_by_a_new_queue_of_the_name_is_forgotten_as_well() -> None:
    forgets = next(each for each in DEFECT_TRANSITIONS if each.name == "commit-forgets-refusals")
    plan = Plan(dialect_named("rabbitmq-4.3"), HOOKS)
    quorum = "durable x-queue-type=quorum"
    lines = (
        f"b.1 queue.declare q {quorum}", "a.1 tx.select", "a.1 basic.publish q body=m1", "b.1 queue.delete q",
        f"b.1 queue.declare q {quorum} x-max-length=0 x-overflow=reject-publish", "b.1 basic.publish q body=m2",
    )  # fmt: skip
    for line in lines:
        plan.carry_out(parse_command(line))
    assert forgets.applies(plan.broker, input_of(parse_command("a.1 tx.commit")))


def test_where_a_limiter_has_shown_the_next_limit_is_counted_by_it() -> None:
    """Another channel, another way of counting, and the next queue of a name (QOS-010, QOS-013, ACK-024)."""
    lifts = next(each for each in DEFECT_TRANSITIONS if each.name == "consumer-limit-lifts-channel-limit")
    plan = Plan(dialect_named("rabbitmq-4.0"), HOOKS)
    lines = (
        "a.1 queue.declare q", "a.1 basic.qos 1 global", "a.1 basic.consume q tag=t", "a.1 basic.qos 0",
        "b.1 basic.publish q body=m1",
    )  # fmt: skip
    for line in lines:
        plan.carry_out(parse_command(line))
    publish = input_of(parse_command("b.1 basic.publish q body=m2"))
    assert lifts.applies(plan.broker, publish)
    lifts.process(plan.broker, publish)
    process(plan.broker, input_of(parse_command("b.1 basic.qos 2 global")))
    limited = limiter_of(plan.broker, plan.broker.channels["b", 1])
    assert (limited.limit, limited.is_followed) == (2, True)


def test_what_what_has_the_same_name_was_told_makes_no_room_by_the_limiter_until_it_is_settled() -> None:
    settles = next(each for each in DEFECT_TRANSITIONS if each.name == "deleted-queue-settles-in-next-queue")
    plan = Plan(dialect_named("rabbitmq-3"), HOOKS)
    lines = (
        "a.1 queue.declare q durable", "b.1 basic.publish q body=m1", "a.1 basic.get q", "b.1 queue.delete q",
        "b.1 queue.declare q durable", "b.1 basic.publish q body=m2", "b.1 basic.publish q body=m3",
        "a.1 basic.qos 2 global", "a.1 basic.consume q tag=t",
    )  # fmt: skip
    for line in lines:
        plan.carry_out(parse_command(line))
    target = plan.broker
    settles.process(target, input_of(parse_command("a.1 basic.ack 1")))
    limiter = limiter_of(target, target.channels["a", 1])
    assert limiter.is_followed and limiter.volume == 2, "the get counts for good"
    assert next(permitted(target), None) is None
    process(target, input_of(parse_command("a.1 basic.ack 2")))
    assert limiter.volume == 1
    assert [event.content.body for event in permitted(target) if event.content] == [b"m3"]


def test_who_is_served_by_a_former_priority_breaks_as_well() -> None:
    breaks = next(each for each in DEFECT_TRANSITIONS if each.name == "reused-tag-breaks-at-delivery")
    plan = Plan(dialect_named("rabbitmq-3"), HOOKS)
    lines = (
        "a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.consume q tag=s x-priority=10",
        "b.1 basic.publish q body=m1", "b.1 basic.consume q tag=t x-priority=5", "a.1 basic.cancel s",
        "a.1 basic.consume q tag=s x-priority=1",
    )  # fmt: skip
    for line in lines:
        plan.carry_out(parse_command(line))
    assert breaks.applies(plan.broker, input_of(parse_command("b.1 basic.publish q body=m2")))


def test_a_commit_settles_at_what_has_the_same_name_what_was_reserved() -> None:
    settles = next(each for each in DEFECT_TRANSITIONS if each.name == "deleted-queue-settles-in-next-queue")
    plan = Plan(dialect_named("rabbitmq-4.3"), HOOKS)
    lines = (
        "a.1 queue.declare q durable", "b.1 basic.publish q body=m1", "a.1 basic.get q", "a.1 tx.select",
        "b.1 queue.delete q", "b.1 queue.declare q durable", "b.1 basic.publish q body=m2", "a.1 basic.get q",
    )  # fmt: skip
    for line in lines:
        plan.carry_out(parse_command(line))
    target = plan.broker
    acknowledged = input_of(parse_command("a.1 basic.ack 1"))
    assert not settles.applies(target, acknowledged), "nothing is settled yet"
    process(target, acknowledged)
    commit = input_of(parse_command("a.1 tx.commit"))
    assert settles.applies(target, commit)
    settles.process(target, commit)
    [(tag, entry)] = target.channels[("a", 1)].unacknowledged.items()
    assert (tag, entry.queue.deleted) == (2, True), "no queue waits for it any more"


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
@pytest.mark.parametrize(
    ("old", "new", "twice"),
    [("get q", "consume q tag=t", True), ("consume q tag=t", "consume q tag=u", True),
     ("consume q tag=t", "consume q tag=t", False), ("get q", "get q", False)],
)  # fmt: skip
def test_a_classic_queue_with_consumers_takes_back_twice_by_different_consumers(
    old: str, new: str, twice: bool, dialect: str
) -> None:
    """The first time it delivers the message again before it hears of it once more, if it knows the channel still."""
    settles = next(each for each in DEFECT_TRANSITIONS if each.name == "deleted-queue-settles-in-next-queue")
    plan = Plan(dialect_named(dialect), HOOKS)
    for line in (
        "a.1 queue.declare q durable", "a.1 basic.publish q body=m1", f"a.1 basic.{old}", "a.1 queue.delete q",
        "a.1 queue.declare q durable", "a.1 basic.publish q body=m2", f"a.1 basic.{new}",
        "b.1 basic.consume q tag=t",
    ):  # fmt: skip
        plan.carry_out(parse_command(line))
    method = input_of(parse_command("a.1 basic.nack 2 multiple requeue"))
    assert settles.applies(plan.broker, method) is twice


@pytest.mark.parametrize(("dialect", "failures"), [("rabbitmq-3", 1), ("rabbitmq-4.0", 1), ("rabbitmq-4.3", 0)])
def test_what_a_quorum_same_name_gives_back_has_failed_as_the_method_says(dialect: str, failures: int) -> None:
    """From 4.3 on basic.nack counts no failed delivery (QUORUM-002)."""
    settles = next(each for each in DEFECT_TRANSITIONS if each.name == "deleted-queue-settles-in-next-queue")
    plan = Plan(dialect_named(dialect), HOOKS)
    for line in (
        "a.1 queue.declare q durable", "a.1 basic.publish q body=m1", "a.1 basic.consume q tag=t", "a.1 queue.delete q",
        "a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.consume q tag=t", "b.1 basic.publish q body=m2",
    ):  # fmt: skip
        plan.carry_out(parse_command(line))
    method = input_of(parse_command("a.1 basic.nack 1 requeue"))
    assert settles.applies(plan.broker, method)
    settles.process(plan.broker, method)
    assert [message.delivery_count for message in plan.broker.queues["q"].messages] == [failures]


@pytest.mark.parametrize("way", list(HARMED))
def test_what_what_has_the_same_name_does_not_do_is_no_failure(way: str) -> None:
    answered, settlements = HARMED[way]
    plan = Plan(dialect_named("rabbitmq-4.3"), HOOKS)
    for line in answered:
        plan.carry_out(parse_command(line))
    acceptor = acceptor_for(dialect_named("rabbitmq-4.3"))
    acceptor.explanations[0].broker = copy.deepcopy(plan.broker)
    for line in settlements:
        method = input_of(parse_command(line))
        acceptor.sent(method)
        process(plan.broker, method)
        while (answer := next(permitted(plan.broker), None)) is not None:
            assert observe(plan.broker, answer) == ()
            acceptor.received(answer)
        acceptor.quiescent()
    assert acceptor.failures == []
    assert "deleted-queue-settles-in-next-queue" in acceptor.refuted
    assert len(acceptor.explanations) == 1, "what was contradicted is followed no longer"
