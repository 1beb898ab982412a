"""What a broker owes a client: frames that are to come, and answers to basic.get.

Plain records without behaviour of their own; what must come, and in which order, is `model.outputs`' business.

Requirements:

* GET-001: get-ok / get-empty. Message-count in get-ok is the number of ready messages left; empty queue gives
  get-empty. [rabbit_channel.erl:basic.get; AMQP 0-9-1 basic.get]
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from amqpspec.model.broker.effects import Effect
from amqpspec.model.broker.field_kinds import doubt, law, to_blame
from amqpspec.model.broker.measurement import Due
from amqpspec.model.broker.queues import Queue
from amqpspec.model.protocol.methods import Content, Table


@dataclass(slots=True)
class Expected:
    """A frame that a channel owes, in the order of its lane.

    Arguments may be patterns. `requirements`: first the one that is broken if the frame does not come, then
    further ones that it shows. `blame`: argument names that have a requirement of their own.
    `lane`: replies of one lane keep their order; "channel", or the name of a queue that answers for the channel.
    Never changed once the step is over that makes it.
    """

    # ---- law
    method: str
    arguments: Table
    #: first the one that is broken if it does not come, then further ones that it shows: to blame
    requirements: tuple[str, ...] = to_blame()
    _: KW_ONLY
    content: Content | None = None
    lane: str = "channel"
    #: called with the broker and the observed arguments when the frame came
    effect: Effect | None = law(None, view="effect")
    #: sequence number of the publish that it answers (basic.return in confirm mode), else 0
    publish: int = 0
    #: seconds that it may take beyond the usual deadline
    patience: float = 0.0
    #: seconds after the client's last sign of life before which it may not come
    not_before: float = 0.0
    #: the time that is up, if it is sent because of one
    due: Due | None = None
    #: a request of the client's may cross it: the requirement which that comes under; "": it may not
    crossing: str = ""

    # ---- blame
    blame: dict[str, str] = to_blame(factory=dict)
    #: counts as exercise of its requirements (barrier traffic does not)
    counted: bool = to_blame(True)


@dataclass(slots=True, eq=False)
class PendingGet:
    """A basic.get that was processed: get-ok with a ready message, or get-empty (GET-001)."""

    # ---- law
    queue: Queue
    no_ack: bool
    #: only messages published before the request was processed
    position_limit: int = law(view="position_limit")
    _: KW_ONLY

    # ---- doubt
    #: how many messages came to the queue since, which it may have been too early for
    missed: int = doubt(0)

    # ---- blame
    #: as in `Expected`
    counted: bool = to_blame(True)
