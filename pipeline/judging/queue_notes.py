"""What all connections of a run say of each queue: the facts of queues, added up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from amqpspec.pipeline.judging.message_facts import REASONS, What
from amqpspec.pipeline.judging.topology import NOT_TOLD


class Added(NamedTuple):
    """Facts of one kind, added up: so many `times`, between `first` and `last`."""

    message: int
    queue: str
    form: int
    what: int
    times: int
    first: float
    last: float


#: The order in which the second stage takes them: what was published has no queue, and comes first.
ORDER = ("message", "queue", "what", "form")


@dataclass(slots=True)
class QueueNotes:
    """What all connections say of a queue."""

    #: ready messages when it was first met, and when that was; -1: nobody asked
    began_with: int = -1
    met: float = inf
    is_stream: bool = False
    has_dead_letters: bool = False
    broke_off: bool = False
    #: a connection of a consumer was lost
    is_cut: bool = False
    loses: str = ""
    #: when a request found it empty for the last time
    empty: float = -inf
    #: when it was first purged or deleted
    purged: float = inf
    #: when a channel that took messages from it first ended
    ended: float = inf
    #: why it is not known what was routed there, and whether it is an exchange
    untold: str = ""
    #: a delivery that may have been of it is not in the recording
    is_unrecorded: bool = False
    is_exchange: bool = False

    def take(self, fact: Added) -> None:
        what = What(fact.what)
        if what is What.MET and fact.first < self.met:
            self.met, self.began_with = fact.first, fact.form
        elif what is What.EMPTY:
            self.empty = max(self.empty, fact.last)
        elif what is What.PURGED:
            self.purged = min(self.purged, fact.first)
        elif what is What.ENDED:
            self.ended = min(self.ended, fact.first)
        elif what is What.LOSES:
            self.loses = self.loses or f"it has {REASONS[fact.form]}"
        elif what in (What.UNTOLD, What.EXCHANGE_UNTOLD):
            self.untold, self.is_exchange = NOT_TOLD[fact.form], what is What.EXCHANGE_UNTOLD
        elif what is What.UNRECORDED:
            self.is_unrecorded = True
        elif what is What.IS_STREAM:
            self.is_stream = True
        elif what is What.HAS_DEAD_LETTERS:
            self.has_dead_letters = True
        elif what is What.BROKE_OFF:
            self.broke_off = True
            self.is_cut = self.is_cut or bool(fact.form)

    @property
    def unknown(self) -> str | None:
        """Why nothing is known of it."""
        return None if self.began_with == 0 else "it was not empty at the beginning, or nobody asked"

    @property
    def unflagged(self) -> str | None:
        """Why deliveries without the flag cannot be counted."""
        if self.is_stream or self.has_dead_letters:
            return "a stream, or dead letters come back to it"
        return "the connection of a consumer was lost" if self.is_cut else None

    @property
    def uncounted(self) -> str | None:
        """Why deliveries cannot be counted."""
        if self.is_unrecorded:
            return "a delivery that a client has settled is not in the recording"
        return self.unflagged or ("the broker ended a channel or a consumer" if self.broke_off else None)


def notes_of(added: Iterable[Added]) -> dict[str, QueueNotes]:
    """From the facts of queues."""
    found: dict[str, QueueNotes] = {}
    for fact in added:
        found.setdefault(fact.queue, QueueNotes()).take(fact)
    return found
