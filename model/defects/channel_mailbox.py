"""The mailbox of a channel's process: what is in it is read later than the answer that the process waits for.

rabbit_channel:handle_method basic.get calls the queue, and waits for the answer alone. What the queue has sent it
before stays in its mailbox meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.hooks import Guest, once_awake
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.delivered_message import find
from amqpspec.model.outputs.deliveries import first_get
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import Method

NAME = "channel mailbox"

GET_OVERTAKES = "get-overtakes-deliveries"


@dataclass(slots=True)
class MailboxMemory:
    #: the next message that is looked for may have overtaken others on its channel
    overtakes: bool = False


class ChannelMailbox(Guest):
    """Lets an answer overtake deliveries where nothing else explains it."""

    name = NAME

    def new_memory(self) -> MailboxMemory:
        return MailboxMemory()

    @once_awake
    def are_in_order(self, broker: Broker, channel: Channel) -> bool | None:
        memory: MailboxMemory = broker.remembered(NAME)
        overtakes, memory.overtakes = memory.overtakes, False
        return False if overtakes else None

    def fingerprint(self, broker: Broker) -> object:
        return None  # nothing but while a frame is looked at


def _memory(broker: Broker) -> MailboxMemory:
    memory: MailboxMemory = broker.remembered(NAME)
    return memory


def _overtakes(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    channel = broker.channels.get((method.connection, method.channel))
    pending = first_get(channel) if method.name == "basic.get-ok" and channel is not None else None
    if channel is None or pending is None:
        return None
    found = find(broker, channel, pending.queue, method)
    if not isinstance(found, str):
        return None
    memory = _memory(broker)
    memory.overtakes = True
    memory.overtakes = isinstance(find(broker, channel, pending.queue, method), int)
    if not memory.overtakes:
        return None
    return (Mismatch(found, Shape.UNEXPECTED, "basic.get-ok ahead of a delivery", False, defect=GET_OVERTAKES),)


MAILBOX_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name=GET_OVERTAKES,
        requirement="PUBLISH-015",
        strength=Strength.ARGUABLE,
        statement="The answer to basic.get comes ahead of older messages that the queue had sent to consumers on the"
        " same channel before.",
        source="rabbit_channel:handle_method basic.get calls the queue, and waits for the answer alone: what the queue"
        " has sent it stays in its mailbox meanwhile",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        goes_on=_overtakes,
        is_observed_again=True,
    ),
)
