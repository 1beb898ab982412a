"""Finding what a method names, and the errors when it is not there or not to be had.

Requirements:

* CHAN-017: Empty queue name means last declared. In bind, unbind, consume, get, purge, delete an empty queue name means
  the queue last declared on this channel; none declared gives 404. queue.declare passive with empty name is NOT
  expanded. In amqp-0-9-1: as stated; 404 or 502. [rabbit_channel.erl:expand_shortcuts; AMQP 0-9-1 class channel]
* CLUSTER-011: A classic queue whose node is down. While the node of a durable classic queue is down, who declares it,
  gets or consumes from it is told 404. [rabbit_amqqueue:with, absent stopped; rabbit_misc:absent]
* EXCHANGE-001: Default exchange is untouchable. declare (also passive), delete, bind and unbind on the default exchange
  "" are a soft 403. In amqp-0-9-1: as stated for declare and delete, which are refused with any code; queue.bind and
  queue.unbind accept it. [rabbit_channel.erl:check_not_default_exchange]
* QUEUE-019: Exclusive queue access from another connection. declare, passive declare, consume, get, purge, delete and
  bind from another connection are 405; unbind of an existing binding as well, of a non-existing binding NOT
  (unbind-ok). In amqp-0-9-1: 405 from another connection; unbind is not mentioned.
  [rabbit_amqqueue:check_exclusive_access; AMQP 0-9-1 class queue]
* QUEUE-028: CR/LF stripped from names. \\r and \\n are removed from queue/exchange names in declare, delete and bind.
  [rabbit_channel.erl:strip_cr_lf]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.nodes_shown import NOT_FOUND
from amqpspec.model.broker.queues import Exchange, Queue
from amqpspec.model.protocol.errors import ProtocolError


def without_line_breaks(name: str) -> str:
    """QUEUE-028: carriage returns and line feeds are not part of a name (rabbit_channel:strip_cr_lf)."""
    return name.replace("\r", "").replace("\n", "") if "\r" in name or "\n" in name else name


def vhost_of(broker: Broker, channel: Channel) -> str:
    return broker.connections[channel.connection].vhost


def queue_text(broker: Broker, channel: Channel, name: str) -> str:
    """As reply texts name a queue (rabbit_misc:rs)."""
    return f"queue '{name}' in vhost '{vhost_of(broker, channel)}'"


def exchange_text(broker: Broker, channel: Channel, name: str) -> str:
    return f"exchange '{name}' in vhost '{vhost_of(broker, channel)}'"


def shortcut(broker: Broker, channel: Channel, name: str) -> str:
    """CHAN-017: no name means the queue that was last declared on the channel."""
    if name:
        return name
    if channel.last_queue is None:
        raise ProtocolError("CHAN-017", 404, "no previously declared queue")
    broker.fired("CHAN-017")
    return channel.last_queue


def find_queue(broker: Broker, channel: Channel, name: str, requirement: str) -> Queue:
    """The queue, which must exist (`requirement`) and not be another connection's own (QUEUE-019)."""
    queue = broker.queues.get(name)
    if queue is None or queue.reply_address:
        # where it went by itself, that is what is shown
        requirement = broker.bookkeeping.ended_queues.get(name, requirement)
        raise ProtocolError(requirement, 404, f"no {queue_text(broker, channel, name)}")
    check_owner(broker, channel, queue)
    check_up(queue)
    return queue


def check_up(queue: Queue) -> None:
    """CLUSTER-011: the node that has it must not be down. Which words say so depends on how it went."""
    if queue.is_down:
        raise ProtocolError(NOT_FOUND, 404, "home node is down or inaccessible", any_text=True)


def check_owner(broker: Broker, channel: Channel, queue: Queue, requirement: str = "QUEUE-019") -> None:
    if queue.owner is not None and queue.owner != channel.connection:
        raise locked(broker, channel, queue, requirement)


def locked(broker: Broker, channel: Channel, queue: Queue, requirement: str) -> ProtocolError:
    return ProtocolError(
        requirement,
        405,
        f"cannot obtain exclusive access to locked {queue_text(broker, channel, queue.name)}. It could be originally"
        " declared on another connection or the exclusive property value does not match that of the original"
        " declaration.",
    )


def find_exchange(broker: Broker, channel: Channel, name: str, requirement: str) -> Exchange:
    exchange = broker.exchanges.get(name)
    if exchange is None:
        raise ProtocolError(requirement, 404, f"no {exchange_text(broker, channel, name)}")
    return exchange


def check_not_default(name: str) -> None:
    """EXCHANGE-001: the default exchange is neither changed nor bound (rabbit_channel:check_not_default_exchange)."""
    if not name:
        raise ProtocolError("EXCHANGE-001", 403, "operation not permitted on the default exchange")
