"""Internal events: what a broker does by itself, at a moment of its choice. No client sends them, and nobody sees them.

A rule puts one on `Broker.internal_events`, or on `Broker.teardowns`. The acceptor keeps it beside the inputs that are
under way, and tries at every point whether it has come about already. What each of them does:
`model.rules.internal_events`.

Requirements:

* CONN-021: Abrupt socket close is asynchronous. After a TCP close without connection.close the server cleans up later:
  an exclusive queue may still exist (405 from others) for some milliseconds. [observed; rabbit_queue_collector]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from amqpspec.model.protocol.methods import ChannelKey, TraceEvent

#: Where an event has its place among others. Those of one lane come about in their order. What has the number 0 comes
#: after all that was before it on the lanes of the same name.
Lane = tuple[str | tuple[str, str], int]


class InternalEvent:
    """Something that a broker does by itself."""

    __slots__ = ()

    @property
    def lane(self) -> Lane:
        raise NotImplementedError


#: What makes a broker go on: what it receives, and what it does by itself.
Input: TypeAlias = TraceEvent | InternalEvent

#: A kind of inputs: the name of what a client sends, or a type of internal events.
Kind: TypeAlias = str | type[InternalEvent]


def kind_of(event: Input) -> Kind:
    return type(event) if isinstance(event, InternalEvent) else event.name


def lane_of(event: Input) -> Lane:
    """What a client sends has that of its channel."""
    return event.lane if isinstance(event, InternalEvent) else (event.connection, event.channel)


# -------------------------------------------------------------------------------- what may come about, and need not


class PossibleEvent(InternalEvent):
    """It may come about, or not any more. Unlike an input it may stay open when the broker is at rest."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class QueueExpiry(PossibleEvent):
    """A queue that nobody has used since its use of that number expires (`model.rules.extensions.queue_expiry`)."""

    queue: str
    use: int

    @property
    def lane(self) -> Lane:
        # of nobody's connection, so that no order towards other inputs is implied
        return ("queue", self.queue), 0


@dataclass(frozen=True, slots=True)
class MessageExpiry(PossibleEvent):
    """The time of a ready message is up (`model.rules.extensions.message_expiry`)."""

    queue: str
    position: int

    @property
    def lane(self) -> Lane:
        return ("messages", self.queue), self.position + 1


@dataclass(frozen=True, slots=True)
class DeliveryTimeout(PossibleEvent):
    """A delivery was not settled in time (`model.rules.extensions.timeout_schedule`)."""

    key: ChannelKey
    tag: int

    @property
    def lane(self) -> Lane:
        return ("deliveries", f"{self.key[0]}.{self.key[1]}"), self.tag


@dataclass(frozen=True, slots=True)
class ConsumerClearing(PossibleEvent):
    """A consumer is forgotten that was cancelled, and is served again
    (`model.rules.extensions.timed_out_consumer_still_known`).
    """

    key: ChannelKey
    tag: str

    @property
    def lane(self) -> Lane:
        return ("cleared", f"{self.key[0]}.{self.key[1]} {self.tag}"), 1


@dataclass(frozen=True, slots=True)
class ConnectionCleanup(PossibleEvent):
    """The broker deletes what belonged to a client that is gone (CONN-021)."""

    connection: str

    @property
    def lane(self) -> Lane:
        return self.connection, 0


@dataclass(frozen=True, slots=True)
class DeliveryLimitExcess(PossibleEvent):
    """A quorum queue drops a message because of deliveries that nobody saw (`model.rules.basic.unseen`)."""

    queue: str
    position: int

    @property
    def lane(self) -> Lane:
        return ("queue", self.queue), self.position + 1


@dataclass(frozen=True, slots=True)
class MessageLoss(PossibleEvent):
    """A queue has handed a message to somebody who did not live to see it, and need not acknowledge."""

    queue: str
    position: int
    #: those of one number come about in their order
    number: int

    @property
    def lane(self) -> Lane:
        return ("losses", self.queue), self.number


# ---------------------------------------------------------------------------------- what comes about some time later


@dataclass(frozen=True, slots=True)
class Teardown(InternalEvent):
    """Channels end without a word. It is certain to come about, and only the moment is the broker's choice."""

    connection: str

    @property
    def channel(self) -> int:
        """The one that ends; 0: all of the connection."""
        return 0

    @property
    def lane(self) -> Lane:
        return self.connection, self.channel


@dataclass(frozen=True, slots=True)
class ConnectionTeardown(Teardown):
    """The broker ends what is left of a connection that an error has broken."""


@dataclass(frozen=True, slots=True)
class NodeTeardown(Teardown):
    """The node of a cluster goes down that the connection is at."""


@dataclass(frozen=True, slots=True)
class ChannelCrash(Teardown):
    """A channel breaks its connection some time after what makes it do so."""

    number: int

    @property
    def channel(self) -> int:
        return self.number
