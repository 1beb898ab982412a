"""What a channel sends after the channel.close of its own, until the client has answered (CHAN-005).

rabbit_channel goes on when an error has closed it for the client. Neither what its queues hand it nor its tick, or
what times out, asks whether it is closing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.connections import Connection
from amqpspec.model.broker.hooks import Guest, once_awake
from amqpspec.model.broker.owed import Expected
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.late_deliveries import check_lost_delivery, ends_unseen, lost_message
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import Method

NAME = "channel closing"

BEHIND_CHANNEL_CLOSE = "delivers-behind-channel-close"
CLOSED_AGAIN = "timed-out-channel-closed-again"


@dataclass(slots=True)
class ClosingMemory:
    #: channels that an error has closed, as the client has been told; was it that something was not settled in time?
    closed: dict[Channel, bool] = field(default_factory=dict)


class ChannelClosing(Guest):
    """Keeps in mind which channels were closed for what."""

    name = NAME

    def new_memory(self) -> ClosingMemory:
        return ClosingMemory()

    def debt_paid(self, broker: Broker, holder: Channel | Connection, expected: Expected, method: Method) -> None:
        if expected.method == "channel.close" and isinstance(holder, Channel):
            note_closed(broker, holder, for_timeout=expected.due is not None)

    @once_awake
    def came_to_rest(self, broker: Broker) -> None:
        memory: ClosingMemory = broker.remembered(NAME)
        if memory.closed:
            memory.closed = {each: why for each, why in memory.closed.items() if broker.channels.get(each.key) is each}

    def fingerprint(self, broker: Broker) -> object:
        return None  # what it knows names failures only


def _memory(broker: Broker) -> ClosingMemory:
    memory: ClosingMemory = broker.remembered(NAME)
    return memory


def note_closed(broker: Broker, channel: Channel, *, for_timeout: bool) -> None:
    closed = _memory(broker).closed
    closed[channel] = closed.get(channel, False) or for_timeout


def _is_closed(broker: Broker, channel: Channel) -> bool:
    return NAME in broker.memories and channel in _memory(broker).closed


def _closes_again(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    channel = broker.channels.get((method.connection, method.channel))
    if method.name != "channel.close" or mismatch.requirement == "CAP-001" or channel is None:
        return None
    is_owed = any(isinstance(owed, Expected) and owed.method == "channel.close" for owed in channel.owed)
    if is_owed or not _memory(broker).closed.get(channel):
        return None
    return (Mismatch("CHAN-005", Shape.UNEXPECTED, "channel.close again", False, defect=CLOSED_AGAIN),)


def _delivers_behind(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    """What was under way at the error."""
    channel = broker.channels.get((method.connection, method.channel))
    if method.name != "basic.deliver" or channel is None or not _is_closed(broker, channel):
        return None
    if channel.state is ChannelState.OPEN or ends_unseen(broker, channel):
        return None
    lost = lost_message(channel, method)
    if lost is None:
        return None
    behind = Mismatch(
        "CHAN-005", Shape.UNEXPECTED, "basic.deliver behind channel.close", False, defect=BEHIND_CHANNEL_CLOSE
    )
    return (behind, *check_lost_delivery(broker, channel, lost, method))


CLOSING_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name=CLOSED_AGAIN,
        requirement="CHAN-005",
        strength=Strength.PROMISED,
        statement="A channel that is closed because a delivery was not settled in time is closed again until the client"
        " has answered: with every tick, and from 4.3 on whenever something further of it times out.",
        source="rabbit_channel:handle_info tick, and handle_queue_actions released, which do not ask whether the"
        " channel is closing",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        goes_on=_closes_again,
    ),
    OutputDefect(
        name=BEHIND_CHANNEL_CLOSE,
        requirement="CHAN-005",
        strength=Strength.PROMISED,
        statement="What was under way to a consumer when an error closed its channel comes behind channel.close.",
        source="rabbit_channel:handle_cast queue_event, which does not ask whether the channel is closing",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        goes_on=_delivers_behind,
    ),
)
