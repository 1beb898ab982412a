"""What is noted beside the state for the judge: what counts, and what to blame. States are equal whatever it is.

The law decides nothing by it. Only the wording of a failure, the counts of what was shown and what the judge does with
an explanation go by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from amqpspec.model.broker.deadlines import Deadline
from amqpspec.model.broker.facts import Routed, told
from amqpspec.model.broker.measurement import Measurement
from amqpspec.model.protocol.methods import ChannelKey


@dataclass(slots=True, eq=False)
class Bookkeeping:
    # ---- what counts
    #: False while barrier traffic is processed: it is judged, but shows nothing
    counting: bool = True
    #: how often each requirement made a difference
    exercised: Counter[str] = field(default_factory=Counter)
    #: known defects that would have shown, and did not (model.judging.refuted)
    refuted: set[str] = field(default_factory=set)
    #: how late the broker was with what it did by itself
    measurements: list[Measurement] = field(default_factory=list)

    # ---- what to blame
    #: the requirement by which the input is processed at all: blamed before those that say what it brings about
    credit: str = ""
    #: the requirement that the input processed last came under: blamed for what nothing explains
    reason: str = ""
    #: what would time out but for a requirement that it does not (model.broker.delivery_timeouts)
    exempt: list[tuple[ChannelKey, str, Deadline]] = field(default_factory=list)
    #: queues and exchanges that went by themselves, with the requirement that says so: blamed if they are still there
    ended_queues: dict[str, str] = field(default_factory=dict)
    ended_exchanges: dict[str, str] = field(default_factory=dict)
    #: what was published of late: blamed if it turns up where it should not
    published: tuple[Routed, ...] = ()

    # ---- what becomes of the explanation
    #: what could not be judged by it, as sentences (model.broker.openness)
    undecided: dict[str, None] = field(default_factory=dict)

    def note_published(self, requirement: str, *bodies: bytes) -> None:
        """Messages with these bodies were published, and routed by that requirement."""
        self.published = told(self.published, *[Routed(body, requirement) for body in bodies])

    @contextmanager
    def counting_anyway(self) -> Iterator[None]:
        """What happens within is the broker's own doing: it counts in a barrier as well."""
        before, self.counting = self.counting, True
        yield
        self.counting = before
