"""What a broker still owes, and the requirement that each debt comes under.

Requirements:

* CHAN-018: no-wait suppresses only the ok. With nowait=true the -ok is omitted; errors still close the channel.
  [rabbit_channel.erl:return_ok; AMQP 0-9-1 class channel]
* CONFIRM-003: Every publish confirmed exactly once. Each sequence number is covered by exactly one ack or nack EVENT
  for the first time; never both ack and nack. A multiple=true frame may cover tags already confirmed individually, so
  the checker must treat it as "all still outstanding <= tag". [RabbitMQ guide: consumer acknowledgements and publisher
  confirms; rabbit_channel.erl:coalesce_and_send]
* CONN-020: Client-initiated close. connection.close is answered by connection.close-ok and the socket closes; all
  exclusive queues of the connection are already deleted when close-ok arrives. [rabbit_reader.erl:handle_method0
  connection.close; AMQP 0-9-1 class connection]
* GET-001: get-ok / get-empty. Message-count in get-ok is the number of ready messages left; empty queue gives
  get-empty. [rabbit_channel.erl:basic.get; AMQP 0-9-1 basic.get]
* QUEUE-001: declare-ok content. queue.declare-ok carries the (CR/LF-stripped) queue name, number of READY messages and
  number of consumers. [rabbit_channel.erl:return_queue_declare_ok; AMQP 0-9-1 class queue]
* SAC-001: Only one consumer active. With x-single-active-consumer=true one consumer at a time gets deliveries: the
  first registered one, until another follows it. [rabbit test suite single_active_consumer_SUITE]
* TIMEOUT-022: Other consumers of the channel unaffected. Two consumers on one channel with different timeouts: only the
  expired one is cancelled. [RabbitMQ guide: consumer timeouts]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dispatch import service_is_unknown
from amqpspec.model.broker.limits_shown import suspected
from amqpspec.model.broker.nodes import is_mute
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.broker.stream_log import missing_requirement
from amqpspec.model.broker.time_to_live import missed
from amqpspec.model.outputs.confirms import shown_by_confirm
from amqpspec.model.outputs.permitted import deliveries, permitted
from amqpspec.model.outputs.turns import held_up_by
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import TraceEvent


@dataclass(frozen=True, slots=True)
class Debt:
    requirement: str
    detail: str
    event: TraceEvent | None
    #: without a frame: what no count has told, and of which queue
    count: str = "messages ready"
    queue: str = ""

    shape = Shape.MISSING


def debts(broker: Broker) -> Iterator[Debt]:
    """Frames that must still come, in an order in which they may."""
    for event in permitted(broker):
        if is_mute(broker.failed, event.connection):
            continue
        yield Debt(_requirement(broker, event), event.name, event)
    for queue in broker.deliverable:
        # what all who could be handed it have passed over nobody else has either
        if not any(deliveries(broker, queue)):
            for event in deliveries(broker, queue, in_order=False):
                yield Debt(_requirement(broker, event), event.name, event)


def unproven(broker: Broker) -> Iterator[Debt]:
    """Messages that should be ready, and consumers that should be gone, and that no count has shown to be so."""
    for queue in broker.queues.values():
        if service_is_unknown(broker, queue):
            continue  # what it does with what it has nobody can tell
        are_there = queue.still_counted and queue.ready_while_gone_counted >= len(queue.messages)
        if queue.unproven and not are_there:
            numbers = f"{len(queue.unproven)} of {len(queue.messages)}"
            expected = missed(queue, broker.latest) if any(each.deadline for each in queue.unproven) else None
            yield Debt(expected or queue.reason, f"{numbers} ready messages of {queue.name}", None, queue=queue.name)
        is_counted = queue.still_counted and not broker.counted_while_lost(queue)
        if is_counted and queue.type is not QueueType.STREAM:  # which is asked by nobody: it counts none
            said = f"{queue.still_counted} consumers of {queue.name} are still counted"
            yield Debt("QUEUE-001", said, None, "consumers gone", queue.name)


def _requirement(broker: Broker, event: TraceEvent) -> str:
    if event.channel == 0:
        owed = broker.connections[event.connection].owed[0]
        return owed.requirements[0] if isinstance(owed, Expected) else "CONN-020"
    channel = broker.channels[(event.connection, event.channel)]
    if event.name == "basic.deliver":
        consumer = channel.consumers[event.arguments["consumer_tag"]]
        if consumer.queue.type is QueueType.STREAM:
            return missing_requirement(consumer)
        limited = suspected(broker, consumer)
        return limited or _delivery_requirement(broker, consumer.queue, consumer)
    if event.name in ("basic.ack", "basic.nack"):
        copies = channel.unconfirmed[event.arguments["delivery_tag"]]
        return next(shown_by_confirm(copies), "CONFIRM-003")
    for owed in channel.owed:
        if isinstance(owed, PendingGet):
            if event.name in ("basic.get-ok", "basic.get-empty"):
                return "GET-001"
        elif owed.method == event.name:
            return owed.requirements[0]
    return "CHAN-018"


def _delivery_requirement(broker: Broker, queue: Queue, consumer: Consumer) -> str:
    """The later of what made the message ready and what made room for it."""
    if not queue.messages:
        return consumer.reason
    message = next((each for each in queue.messages if not each.may_be_absent), queue.messages[0])
    if message.survived_by:
        return message.survived_by
    if message.deadline is not None and not message.redelivered:
        return message.ttl_from  # it was not yet time for it to go
    if queue.single_active_consumer and queue.active.became_by != "SAC-001":
        return queue.active.became_by  # it became the active consumer, and was not served since
    if message.stamp > consumer.stamp and not message.redelivered:
        others = broker.channels[consumer.channel].consumers.values()
        if any(other.timed_out for other in others):
            return "TIMEOUT-022"
        if held_up := held_up_by(broker, queue, consumer):
            return held_up
    return message.reason if message.stamp >= consumer.stamp else consumer.reason


def debt_text(debt: Debt) -> str:
    return str(debt.event) if debt.event is not None else debt.detail
