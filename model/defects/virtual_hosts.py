"""The end of a virtual host and of its streams.

rabbit_stream_coordinator:delete_stream returns before the stream's last member is deleted, which is what consumers are
told of (inform_listeners_eol). rabbit_vhost:delete does not wait for that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.hooks import Guest, once_awake
from amqpspec.model.broker.queues import Queue
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import ChannelKey, Method

NAME = "virtual hosts"

END_OF_STREAM_UNTOLD = "vhost-closes-before-stream-ends"


@dataclass(slots=True)
class VirtualHostMemory:
    #: consumers of streams that went with their virtual host
    of_streams: set[tuple[ChannelKey, str]] = field(default_factory=set)


class VirtualHosts(Guest):
    """Keeps in mind whose streams went with their virtual host."""

    name = NAME

    def new_memory(self) -> VirtualHostMemory:
        return VirtualHostMemory()

    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        if queue.type is QueueType.STREAM and broker.vhosts.get(queue.vhost) is False:
            broker.remembered(NAME).of_streams.update((consumer.channel, consumer.tag) for consumer in queue.consumers)

    @once_awake
    def came_to_rest(self, broker: Broker) -> None:
        broker.remembered(NAME).of_streams.clear()

    def fingerprint(self, broker: Broker) -> object:
        return None  # it names failures only


def _memory(broker: Broker) -> VirtualHostMemory:
    memory: VirtualHostMemory = broker.remembered(NAME)
    return memory


def is_not_told(broker: Broker, method: Method) -> bool:
    """Is the notice that does not come that of a stream's consumer, whose connection is closed with its host?"""
    connection = broker.connections.get(method.connection)
    if method.name != "basic.cancel" or connection is None or connection.state is ConnectionState.OPEN:
        return False
    consumer = ((method.connection, method.channel), method.arguments.get("consumer_tag", ""))
    return NAME in broker.memories and consumer in _memory(broker).of_streams


VIRTUAL_HOST_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name=END_OF_STREAM_UNTOLD,
        requirement="CANCEL-015",
        strength=Strength.PROMISED,
        statement="A virtual host that is deleted may close its connections before consumers of its streams are told.",
        source="rabbit_stream_coordinator:delete_stream returns before the stream's last member is deleted, which is"
        " what consumers are told of (inform_listeners_eol); rabbit_vhost:delete does not wait for that",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
    ),
)
