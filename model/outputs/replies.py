"""Replies and other frames that a channel owes, and the blame for a frame that nothing explains."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker, is_told_again
from amqpspec.model.broker.consumer_timeouts import spared_on
from amqpspec.model.broker.effects import DeletionAnswered
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.broker.reply_addresses import agree
from amqpspec.model.broker.routing import BY_TYPE
from amqpspec.model.broker.state import Channel, Connection, Expected, PendingGet
from amqpspec.model.outputs.messages import ONE_COPY, routed_by
from amqpspec.model.outputs.mismatch import NONE, Mismatch, Mismatches, unexpected
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.field_types import retyped
from amqpspec.model.protocol.methods import Content, Frame
from amqpspec.model.protocol.patterns import Pattern, matches
from amqpspec.model.rules.extensions.consumer_timeout import contested

#: Arguments that can be wrong without leaving the state in doubt.
HARMLESS = frozenset(
    {"reply_text", "reply_code", "class_id", "method_id", "message_count", "consumer_count", "nowait", "octets",
     "server_properties", "mechanisms", "locales", "channel_max", "frame_max", "heartbeat"}
)  # fmt: skip

#: What a frame breaks that nothing asked for.
UNSOLICITED = {
    "basic.cancel": "CANCEL-002",
    "basic.return": "PUBLISH-008",
    "basic.ack": "CONFIRM-003",
    "basic.nack": "CONFIRM-003",
    "basic.get-ok": "GET-001",
    "basic.get-empty": "GET-001",
    "basic.deliver": "CANCEL-001",
    "socket.closed": "CONN-020",
}


def observe_reply(broker: Broker, channel: Channel, frame: Frame) -> Mismatches:
    """The first owed frame of its lane that this is; of several lanes, the one whose frame it fits."""
    lanes: set[str] = set()
    found: Expected | None = None
    for owed in channel.owed:
        lane = "channel" if isinstance(owed, PendingGet) else owed.lane
        if lane in lanes:
            continue
        lanes.add(lane)
        if isinstance(owed, Expected) and owed.method == frame.method:
            if fits(owed, frame):
                found = owed
                break
            if frame.method != "basic.cancel":
                found = found or owed
    if found is None and is_told_again(channel, frame):
        return NONE
    if found is None:
        return nothing_explains(broker, channel, frame, None)
    if any(not isinstance(other, PendingGet) and other.lane != found.lane for other in channel.owed):
        broker.fired("CHAN-019")
    return take_expected(broker, channel, found, frame)


def fits(expected: Expected, frame: Frame) -> bool:
    """Do the arguments agree that cannot be wrong without leaving the state in doubt?"""
    return all(
        matches(value, frame.arguments.get(name)) for name, value in expected.arguments.items() if name not in HARMLESS
    )


def take_expected(broker: Broker, holder: Channel | Connection, expected: Expected, frame: Frame) -> Mismatches:
    wrong: Mismatches = NONE
    for name, value in expected.arguments.items():
        observed = frame.arguments.get(name)
        if value.matches(observed) if isinstance(value, Pattern) else value == observed:
            continue
        if not value and not observed and not isinstance(value, Pattern):
            continue  # a field at its zero value may be left out of the frame's arguments
        requirement = expected.blame.get(name, expected.requirements[0])
        detail = f"{frame.method} {name.replace('_', '-')}"
        allowed = f"{name.replace('_', '-')}={value}"
        fatal = name not in HARMLESS
        wrong += (Mismatch(requirement, Shape.WRONG_ARGUMENT, detail, fatal, allowed, name, value, expected),)
    if expected.due is not None and frame.time > broker.waited > expected.due.latest:
        wrong += (Mismatch(expected.requirements[0], Shape.UNEXPECTED, f"{frame.method} too late", False),)
    if expected.content is not None and not _same_content(broker, expected.content, frame.content):
        wrong += (Mismatch(expected.requirements[0], Shape.WRONG_ARGUMENT, f"{frame.method} content", False),)
    if wrong and any(mismatch.fatal for mismatch in wrong):
        return wrong
    holder.owed.remove(expected)
    if expected.due is not None and not broker.is_punctual:
        broker.measurements.append(expected.due.measured(frame))
    for told in broker.hooks.debt_paid:
        told(broker, holder, expected, frame)
    if expected.effect is not None:
        expected.effect(broker, frame.arguments)
    if expected.counted:
        for requirement in expected.requirements:
            broker.exercised[requirement] += 1
    if isinstance(holder, Channel):
        broker.settle_debts(holder)
    elif not holder.owed:
        broker.debtors.pop((holder.name, 0), None)
    return wrong


def _same_content(broker: Broker, expected: Content, observed: Content | None) -> bool:
    if observed is None or observed.body != expected.body:
        return False
    if retyped(expected.properties.get("headers"), observed.properties.get("headers")):
        return False
    return agree(broker, expected.properties, observed.properties)


def _routed_all_the_same(broker: Broker, frame: Frame) -> str:
    """Blame for the return of a message that has reached a queue, or that was not mandatory.

    Where routing takes more than to compare a name, that went wrong; else the broker knows what it did.
    """
    reason = routed_by(broker, frame.content.body) if frame.content is not None else None
    return reason if reason in (*ONE_COPY, BY_TYPE["topic"], BY_TYPE["headers"]) else UNSOLICITED["basic.return"]


def _told_in_vain(broker: Broker, channel: Channel, frame: Frame) -> str:
    """Blame for a basic.cancel of a consumer that did not end, that the client ended, or of which it is not told."""
    connection = broker.connections[channel.connection]
    for owed in channel.owed:
        if isinstance(owed, Expected) and owed.method == "channel.close" and owed.due is not None:
            return owed.requirements[0]
    consumer = channel.consumers.get(frame.arguments.get("consumer_tag", ""))
    if consumer is not None and (of_time := _of_time(broker, channel, consumer)):
        return of_time
    if not connection.is_told_of_cancels:
        return "CAP-005" if connection.wish_in_vain else "CANCEL-010"
    tag = frame.arguments.get("consumer_tag", "")
    for owed in channel.owed:
        effect = owed.effect if isinstance(owed, Expected) else None
        if isinstance(effect, DeletionAnswered) and tag in effect.tags:
            return ""  # it only comes too early
    ended = channel.ended_consumers.get(tag)
    if ended == "CANCEL-001":
        return "CANCEL-002"
    # others go on, and nobody is told two times
    return "CANCEL-007" if tag in channel.consumers or ended is not None else ""


def _of_time(broker: Broker, channel: Channel, consumer: Consumer) -> str:
    """Blame for a basic.cancel of a consumer whose time is not up, or who was told of it; "": time is no matter."""
    if any(isinstance(owed, Expected) and owed.due is not None for owed in channel.owed):
        return "TIMEOUT-022"  # that of another one is
    if not consumer.timeout_from:
        return spared_on(broker, channel) or ""  # it is not its time that counts
    if consumer.timed_out:
        return "TIMEOUT-008"
    held = [entry.deadline for entry in channel.unacknowledged.values() if entry.consumer is consumer]
    wrong = contested(broker, consumer) if held else []
    if any(held) or "TIMEOUT-028" in wrong:
        return next(iter(wrong), "TIMEOUT-008")
    if any(other.timed_out for other in channel.consumers.values()):
        return "TIMEOUT-022"
    return spared_on(broker, channel) or ""


def _closed_for_time(broker: Broker, channel: Channel, frame: Frame) -> str:
    """Blame for a channel.close that says that a delivery was not settled in time; "": it says something else."""
    if frame.method != "channel.close" or "delivery acknowledgement" not in str(frame.arguments.get("reply_text")):
        return ""
    if spared := spared_on(broker, channel):
        return spared
    if broker.dialect.consumer_timeouts is not ConsumerTimeouts.OF_QUORUM_QUEUES:
        return "TIMEOUT-003" if channel.settled else "TIMEOUT-001"
    if broker.connections[channel.connection].is_told_of_cancels:
        return "TIMEOUT-008" if channel.consumers else "TIMEOUT-011"
    return "TIMEOUT-009"


def nothing_explains(
    broker: Broker, channel: Channel, frame: Frame, requirement: str | None, asked: bool = False
) -> Mismatches:
    """Blame for a frame that may not come now: an error that is owed and did not come, else the frame's own rule."""
    for owed in broker.connections[channel.connection].owed:
        if isinstance(owed, Expected) and owed.method == "connection.close":
            return unexpected(owed.requirements[0], f"{frame.method} in place of {owed.method}")
    if closed := _closed_for_time(broker, channel, frame):
        return unexpected(closed, frame.method)
    if frame.method == "basic.cancel" and (told := _told_in_vain(broker, channel, frame)):
        return unexpected(told, frame.method)
    if not asked:
        for owed in channel.owed:
            if isinstance(owed, Expected) and owed.method in ("channel.close", "basic.return"):
                return unexpected(owed.requirements[0], f"{frame.method} in place of {owed.method}")
        if frame.method == "basic.return" and channel.transaction is not None and channel.transaction.publications:
            return unexpected("TX-003", "basic.return before tx.commit")
        if frame.method == "basic.return":
            return unexpected(_routed_all_the_same(broker, frame), frame.method)
        first = channel.owed[0] if channel.owed else None
        # what a barrier waits for is not to blame
        if requirement is None and isinstance(first, Expected) and first.counted:
            owed = first
            if frame.method == "basic.cancel" and owed.method == "queue.delete-ok":
                return unexpected("CANCEL-011", "basic.cancel before queue.delete-ok")
            return unexpected(owed.requirements[0], f"{frame.method} in place of {owed.method}")
    if requirement is None:
        requirement = UNSOLICITED.get(frame.method) or channel.reason or "CHAN-007"
    return unexpected(requirement, frame.method)
