"""What a channel in transaction mode keeps until tx.commit carries it out or tx.rollback drops it (area TX).

Plain records, like those of `model.broker.channels`. RabbitMQ: the `tx` of a rabbit_channel, a queue of publishes and a
list of acknowledgements.

Requirements:

* TX-004: commit-ok waits for all confirms. tx.commit-ok is sent only when every published message has been confirmed by
  all queues; no basic.ack is sent to the client. [rabbit_channel.erl:maybe_complete_tx]
* TX-005: Acks in tx take effect at commit. ack/nack/reject only reserve the tag: no new delivery for a full prefetch
  window until the commit, nothing comes back and nothing is dead-lettered before. What follows each other with one
  outcome is carried out as one. basic.recover does not wait, and leaves what is reserved. [rabbit_channel.erl:basic.ack
  tx; AMQP 0-9-1 class tx]
* TX-006: A tag acked in an open tx cannot be acked again. Second ack of the same tag before commit is 406 unknown
  delivery tag. [rabbit_channel.erl:collect_acks; AMQP 0-9-1 class tx]
* TX-007: Rollback restores acks. After rollback the tags acked in the tx are unacked again (not redelivered) and may be
  acked afresh. [rabbit_channel.erl:tx.rollback; AMQP 0-9-1 class tx]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field

from amqpspec.model.broker.field_kinds import doubt, to_blame
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.broker.routing import Routes
from amqpspec.model.broker.ruling import Ruling


@dataclass(frozen=True, slots=True)
class Publication:
    """A message that was checked and routed, and is in no queue yet."""

    #: what it is like in each queue that it goes to
    pattern: Message
    routes: Routes
    mandatory: bool
    #: its basic.return may have the code 313 (NO_CONSUMERS)
    immediate: bool = False


@dataclass(slots=True, eq=False)
class Transaction:
    # ---- law
    publications: list[Publication] = field(default_factory=list)
    #: in the order of the client: what is to become of which tags, which are reserved by that (TX-006)
    rulings: list[tuple[Ruling, tuple[int, ...]]] = field(default_factory=list)
    _: KW_ONLY
    #: reserved tags that no longer count towards a prefetch limit; the text leaves that open
    #: (`model.rules.other_ways`)
    credited: frozenset[int] = frozenset()
    #: what was committed, and commit-ok waits until it has arrived (TX-004)
    arriving: tuple[tuple[Queue, Message], ...] = ()

    # ---- doubt
    #: the channel does not know yet that a queue is gone (`model.judging.alternatives`)
    overlooks_deletion: bool = doubt(False)
    #: what has no time at all has expired before the settlements are carried out (`model.judging.alternatives`)
    expires_between: bool = doubt(False)
    #: it was committed, some queue has refused, and others have not answered (`model.judging.alternatives`)
    is_failing: bool = doubt(False)

    # ---- blame
    #: tags that a rollback has given back to the client (TX-007)
    restored: frozenset[int] = to_blame(frozenset())

    @property
    def reserved(self) -> frozenset[int]:
        return frozenset(tag for _, tags in self.rulings for tag in tags)

    def holds(self, tag: int) -> str:
        """The requirement of a transaction by which the delivery stays with the client, if it does by one."""
        return "TX-005" if tag in self.reserved else "TX-007" if tag in self.restored else ""

    def batches(self) -> Iterator[tuple[Ruling, list[int]]]:
        """The rulings as they are carried out: equal ones one after the other are one, like one with `multiple`
        (rabbit_channel:ack_cons).
        """
        batch: list[int] = []
        for place, (ruling, tags) in enumerate(self.rulings):
            batch.extend(tags)
            if place + 1 == len(self.rulings) or self.rulings[place + 1][0] != ruling:
                yield ruling, sorted(batch)
                batch = []
