"""What brokers of many families do against the text: ways to go on after a failure, which excuse nobody.

Else the first such failure would end the judging, and hide what is worse: Qpid Broker-J takes the acknowledgement of an
unknown tag in silence, and settles with `multiple` all that is outstanding.
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Queue
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.protocol.methods import Method
from amqpspec.model.protocol.patterns import between
from amqpspec.model.rules.inputs import process


def _settles_nothing(broker: Broker, method: Method) -> bool:
    """Is the tag that it settles not outstanding, which is an error?"""
    channel = broker.open_channel(method)
    if channel is None or channel.transaction is not None:
        return False
    tag = method.arguments.get("delivery_tag", 0)
    return tag not in channel.outstanding_tags and not (tag == 0 and method.arguments.get("multiple"))


def _purge_all(broker: Broker, method: Method) -> None:
    """What is held is as if its queue were gone: it may be settled, and nothing comes back."""
    queue = broker.queues[method.arguments["queue"]]
    channel = broker.channels[(method.connection, method.channel)]
    entries = ((each, tag, entry) for each in broker.channels.values() for tag, entry in each.unacknowledged.items())
    held = [(holder, tag) for holder, tag, entry in entries if entry.queue is queue]
    low, high = broker.ready_range(queue)
    process(broker, method)
    if channel.state is not ChannelState.OPEN:
        return
    gone = Queue(queue.name, queue.type, deleted=True)
    for holder, tag in held:
        holder.unacknowledged[tag] = replace(holder.unacknowledged[tag], queue=gone)
    queue.held_when_purged -= len(held)
    if channel.owed and isinstance(owed := channel.owed[-1], Expected) and owed.method == "queue.purge-ok":
        owed.arguments["message_count"] = between(low + len(held), high + len(held))


HABITS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="unknown-tag-is-ignored",
        requirement="ACK-006",
        statement="What settles a delivery that is not outstanding is ignored, and is no error.",
        source="seen of Qpid Broker-J 9.2.1 and GarageMQ",
        dialects=(),
        methods=("basic.ack", "basic.nack", "basic.reject"),
        applies=_settles_nothing,
        process=lambda broker, method: None,
    ),
    DefectTransition(
        name="purge-takes-what-is-held",
        requirement="QUEUE-024",
        statement="A purge deletes what is delivered and not acknowledged as well, and counts it.",
        source="seen of Qpid Broker-J 9.2.1 (AbstractQueue.clearQueue)",
        dialects=(),
        methods=("queue.purge",),
        applies=lambda broker, it: broker.open_channel(it) is not None and it.arguments.get("queue") in broker.queues,
        process=_purge_all,
    ),
)
