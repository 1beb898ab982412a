"""What is left of a broker when it was stopped, or killed, and is started again.

As RabbitMQ 4.3.6 was seen to do it: durable exchanges and queues with the bindings between them, users, virtual hosts
and policies; of classic queues the persistent messages, of quorum queues and streams all that was confirmed. What a
client held comes back as redelivered, after a kill all of a classic queue does, as it kept no note of what was
delivered; a quorum queue counts it (x-delivery-count) and puts it in front, also after a kill. A stop ends the
connections first, so queues that are deleted with their last consumer are gone; a kill does not.

A kill of RabbitMQ may lose more, which is not done here: it notes the name of a new quorum queue or stream on disk when
half a second has passed (ra_directory.erl, auto_save). Killed before that, it came back with an empty quorum queue,
though the messages had been confirmed, and with a stream that refused consumers with 541. A classic queue, killed at
once, delivered a message again that had been acknowledged just before.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from amqpspec.model.broker.queues import Exchange, Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.targets.embedded.hosts_responder import HostsResponder
from amqpspec.targets.embedded.responder import Responder

_PERSISTENT = 2


def restart(hosts: HostsResponder, *, is_killed: bool) -> None:
    """Have it serve what survives. Alarms go on."""
    for host in hosts.all():
        _restart(hosts, host, is_killed=is_killed)


def _restart(hosts: HostsResponder, responder: Responder, *, is_killed: bool) -> None:
    old = responder.broker
    clinging = [queue for queue in old.queues.values() if is_killed and queue.auto_delete]
    for queue in clinging:
        queue.auto_delete = False  # nobody is there any more who would delete it
    for name in list(old.connections):
        hosts.end(name)
    for queue in clinging:
        queue.auto_delete = True
    new = responder.fresh()
    new.users, new.vhosts, new.policies = old.users, old.vhosts, old.policies
    new.publications, new.alarm = old.publications, old.alarm
    new.serial, new.stamp = old.serial, old.stamp
    new.now, new.latest = old.now, old.latest
    new.queues = {queue.name: queue for queue in old.queues.values() if _survives(queue)}
    for queue in new.queues.values():
        _keep_persistent(queue, is_killed=is_killed)
        if queue in old.ageing:
            new.ageing[queue] = None
        if queue.name in old.expiring:
            new.expiring[queue.name] = None
            queue.idle_since = new.latest
    durable = {exchange.name: exchange for exchange in old.exchanges.values() if exchange.durable}
    for exchange in durable.values():
        new.exchanges[exchange.name] = _with_durable_bindings(exchange, new.queues, durable)
    responder.begin_with(new)


def _survives(queue: Queue) -> bool:
    return queue.durable and queue.owner is None and not queue.reply_address


def _keep_persistent(queue: Queue, *, is_killed: bool) -> None:
    if queue.type is QueueType.STREAM:
        return
    if queue.type is QueueType.CLASSIC:
        queue.messages = deque(each for each in queue.messages if _is_persistent(each))
        queue.returned = min(queue.returned, len(queue.messages))
        if is_killed:
            for message in queue.messages:
                message.redelivered = True
    queue.gone.clear()


def _is_persistent(message: Message) -> bool:
    return message.content.properties.get("delivery_mode") == _PERSISTENT


def _with_durable_bindings(exchange: Exchange, queues: dict[str, Queue], exchanges: dict[str, Exchange]) -> Exchange:
    kept = tuple(each for each in exchange.bindings if each.destination in (exchanges if each.to_exchange else queues))
    return replace(exchange, bindings=kept, unbound=())
