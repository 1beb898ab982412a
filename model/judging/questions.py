"""What whoever carries out commands may ask the judge: what is owed, what is open, what a barrier has to ask about.

A session and its barriers know nothing of explanations and of the state of the model: they see `Questions` only, which
`model.judging.acceptor_questions` answers. What is said of channels and queues is so by the usual explanation, the
first that is lawful, unless another one is named.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.protocol.methods import ChannelKey, Table, TraceEvent


@dataclass(frozen=True, slots=True)
class KnownConnection:
    """What is known of a connection."""

    name: str
    state: ConnectionState
    #: what the broker offered in connection.tune
    offered: Table
    #: everything was said on it: its TCP connection is for the client to end
    is_over: bool
    #: it is open, and the broker reads what comes on it for what it is: it does not read a blocked connection, and
    #: takes what follows a lie about a frame's size for something else
    answers: bool
    #: not where the client asked for fewer than the broker offers: the sequence is about their number then
    has_channels_to_spare: bool
    #: the highest number that a channel may have, by what the client said in connection.tune-ok; 0: any
    channel_max: int = 0


class Questions(Protocol):
    """None of them changes anything. Channels and queues are named: the objects differ with each explanation."""

    # ---- the sequence

    @property
    def finished(self) -> bool:
        """Nothing more can be judged."""
        ...

    def owes(self) -> bool:
        """Is some frame owed, however the inputs that are under way are processed?"""
        ...

    def owes_others(self, mute: Collection[str]) -> bool:
        """The same of some frame that comes on another connection than these, which cannot answer."""
        ...

    @property
    def patience(self) -> float:
        """Seconds beyond the usual deadline that something may take of what is owed."""
        ...

    # ---- connections and channels

    def connection(self, name: str) -> KnownConnection | None:
        """None: there never was one of this name."""
        ...

    def connections(self) -> list[KnownConnection]:
        """All that there ever were, in the order in which they were opened."""
        ...

    def was_opened(self, channel: ChannelKey) -> bool:
        """Was the channel used in this sequence, whatever has become of it?"""
        ...

    def is_open(self, channel: ChannelKey) -> bool:
        """Is the channel open, in the middle of nothing, and does its connection answer?"""
        ...

    def may_be_open(self, channel: ChannelKey) -> bool:
        """Is it so by some explanation, as nothing has told yet which one is right?"""
        ...

    def flush(self, channel: ChannelKey, exchange: str) -> TraceEvent:
        """A request that the open channel answers itself, after all that it did before, and that changes nothing.

        `exchange`: one of the suite's own, which does where the broker lacks the exchanges that it is to have.
        """
        ...

    def unprocessed(self) -> list[ChannelKey]:
        """Channels on which something was sent that may not have been processed, or that may have ended them."""
        ...

    def served_elsewhere(self) -> list[ChannelKey]:
        """Channels that are handed something by another explanation only: it has come when they have answered."""
        ...

    # ---- queues

    def touched(self) -> list[tuple[ChannelKey, str]]:
        """The queues that were touched since the last barrier, and the channels that did."""
        ...

    def consuming(self, queue: str) -> list[ChannelKey]:
        """The channels that consume from the queue."""
        ...

    def may_get(self, channel: ChannelKey, queue: str) -> bool:
        """May the open channel ask for a message of the queue, without taking one and without an error?"""
        ...

    def who_may_ask(self, queue: str, by_any: bool = False) -> list[str]:
        """Connections that answer and on which the queue can be asked for its numbers; none where it is not there.

        `by_any`: where it is there by any explanation.
        """
        ...

    def declared_as(self, queue: str) -> Table:
        """The flags that the queue was declared with, as arguments of queue.declare. A passive one says nothing by
        them, but some brokers compare them all the same.
        """
        ...

    def is_to_be_counted(self, queue: str) -> bool:
        """Are there numbers of the queue that are worth asking for?"""
        ...

    def is_as_counted(self, queue: str) -> bool:
        """Are the queue's numbers, which have been asked for, those of the model, as far as they ever will be?"""
        ...

    def at_rest(self) -> list[str]:
        """The queues that can be asked for when a barrier is complete; none where it is open what is in them."""
        ...

    def unproven(self) -> list[str]:
        """Queues of which more must be known, as by no explanation everything has come that should."""
        ...

    def unproven_elsewhere(self) -> list[str]:
        """Queues that something is on its way to by another explanation only."""
        ...

    def perhaps_expired(self) -> list[str]:
        """Queues of which it is not known now how many of their messages have expired."""
        ...

    def is_doubtful(self) -> bool:
        """Do queues lose messages by themselves, or get them back: as time passes, or by deliveries nobody saw?"""
        ...

    def left_behind(self) -> str | None:
        """A queue that may still be there though the connection that it is exclusive to is lost (CONN-021)."""
        ...

    def is_deleting_itself(self, queue: str) -> bool:
        """Did the queue go with its last consumer, and perhaps its bindings not yet (QUEUE-021)?"""
        ...
