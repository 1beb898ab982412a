"""Alternatives of what comes to a queue at one time, from channels that it does not wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Admission, Channel, ChannelState
from amqpspec.model.broker.length_limits import exceeded, handed_over, may_be_contrary, waiting_in
from amqpspec.model.broker.queues import Arrival, Message
from amqpspec.model.judging.alternative import Alternative
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Method
from amqpspec.model.rules.basic.publish import routes_of
from amqpspec.model.rules.inputs import process


def _is_published(broker: Broker, method: Method) -> Channel | None:
    channel = broker.open_channel(method)
    if channel is None or channel.transaction is not None:
        return None
    return channel if method.content is not None and method.arguments.get("exchange", "") in broker.exchanges else None


def _refused_otherwise(broker: Broker, method: Method) -> Iterator[Alternative]:
    """A queue with reject-publish refuses, or does not, by what has come to it, or from it, by then."""
    channel = _is_published(broker, method)
    queues = [] if channel is None else list(may_be_contrary(broker, channel))
    if not queues:
        return
    exchange = broker.exchanges[method.arguments.get("exchange", "")]
    routes = routes_of(broker, exchange, method.arguments.get("routing_key", ""), method.content or EMPTY_CONTENT)
    for queue in queues:
        if queue in routes.queues:
            yield Alternative(
                name=f"{queue.name} refuses otherwise",
                requirement="CONFIRM-014" if queue.type is QueueType.QUORUM else "CONFIRM-013",
                source="rabbit_fifo_client: queue_status; rabbit_amqqueue_process:will_overflow",
                kinds=("basic.publish",),
                applies=lambda broker, method: True,
                process=partial(_refuse_otherwise, name=queue.name),
            )


def _refuse_otherwise(broker: Broker, method: Method, name: str) -> None:
    broker.deciding_otherwise = broker.queues[name]
    process(broker, method)
    broker.deciding_otherwise = None


def _overtaken(broker: Broker, method: Method) -> list[Message]:
    """What the channel has published to the quorum queue that it purges, and may not have come to it."""
    channel = broker.open_channel(method)
    if channel is None:
        return []
    queue = broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")
    if queue is None or queue.type is not QueueType.QUORUM:
        return []
    return [each for each in queue.unproven if each.arrival is Arrival.PUBLISHED and each.via == channel.key]


def _purged_too_early(broker: Broker, method: Method) -> Iterator[Alternative]:
    """Publishes to a quorum queue give way to a purge, which its channel sends after them (rabbit_fifo_client)."""
    for number in range(1, len(_overtaken(broker, method)) + 1):
        yield Alternative(
            name=f"purge overtakes {number} publishes",
            requirement="QUEUE-024",
            source="rabbit_fifo_client:enqueue, priority low; rabbit_fifo_client:purge",
            kinds=("queue.purge",),
            applies=lambda broker, method: True,
            process=partial(_purge_too_early, number=number),
        )


def _got_too_early(broker: Broker, method: Method) -> Iterator[Alternative]:
    """GET-007: a get of a limited quorum queue before what was published comes to it: that is not too much then."""
    channel = broker.channels.get((method.connection, method.channel))
    queue = broker.queues.get(method.arguments.get("queue", ""))
    if queue is None or queue.type is not QueueType.QUORUM or channel is None or channel.state is not ChannelState.OPEN:
        return
    told = (each.admissions.get(queue) for each in broker.channels.values())
    if Admission.TOLD_TO_REFUSE not in told or all(each.arrival is not Arrival.PUBLISHED for each in queue.unproven):
        return
    if not exceeded(queue, *waiting_in(broker, queue, min(handed_over(broker, queue) + 1, len(queue.messages)))):
        yield Alternative(
            name="get overtakes publishes",
            requirement="GET-007",
            source="rabbit_fifo_client:enqueue, priority low; rabbit_fifo_client:dequeue; rabbit_fifo:evaluate_limit",
            kinds=("basic.get",),
            applies=lambda broker, method: True,
            process=partial(_get_too_early, queue_name=queue.name),
        )


def _get_too_early(broker: Broker, method: Method, queue_name: str) -> None:
    process(broker, method)
    queue = broker.queues[queue_name]
    for channel in broker.channels.values():
        if channel.admissions.get(queue) is Admission.TOLD_TO_REFUSE:
            channel.admissions[queue] = Admission.ADMITTED


def _purge_too_early(broker: Broker, method: Method, number: int) -> None:
    late = _overtaken(broker, method)[-number:]
    channel = broker.channels[(method.connection, method.channel)]
    queue = broker.queues[method.arguments.get("queue", "") or channel.last_queue or ""]
    for message in late:
        queue.messages.remove(message)
        del queue.unproven[message]
    process(broker, method)
    queue.messages.extend(late)
    queue.unproven.update(dict.fromkeys(late))
    broker.refresh(queue)


#: Those to the usual processing of an input, in a state, by the name of the method.
ALTERNATIVES_OF_QUEUES: Mapping[str, Callable[[Broker, Method], Iterator[Alternative]]] = {
    "basic.get": _got_too_early,
    "basic.publish": _refused_otherwise,
    "queue.purge": _purged_too_early,
}
