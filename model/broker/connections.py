"""Connections: where in its life each is, and what the two sides have agreed on.

Plain mutable records without behaviour of their own; `model.broker.broker` changes them, the rules say how.

Requirements:

* CANCEL-010: Without the capability. Nothing is sent when the queue is deleted; the consumer is silently gone; a later
  cancel of its tag gets cancel-ok. [RabbitMQ guide: consumer cancel notification]
* CAP-003: connection.blocked with capability. When a memory/disk alarm is set, a connection that publishes gets
  connection.blocked(reason) if it announced connection.blocked, and connection.unblocked when the alarm is over; a
  connection that only consumes gets none until it publishes. From the content header of that publish on nothing is read
  until then. [rabbit_reader.erl:publish_received, maybe_send_blocked_or_unblocked]
* CAP-004: connection.blocked without capability. Without the capability nothing is sent; the socket is simply not read,
  so even unrelated methods on that connection wait until the alarm clears. [rabbit_reader.erl:control_throttle]
* CAP-005: consumer_cancel_notify must be inside capabilities table as boolean true. Server-sent basic.cancel is enabled
  only by client-properties.capabilities.consumer_cancel_notify = true (field type t). Anything else means disabled.
  [rabbit_channel.erl:server_consumer_cancel_supported; RabbitMQ guide: consumer cancel notification]
* QOS-016: The text's meaning of global. In the text qos(n,global=false) limits the sum of unacked over all consumers of
  the channel, those that were there before included, and qos(n,global=true) the sum over all consumers of the
  connection; independently of each other. [AMQP 0-9-1 basic.qos; RabbitMQ guide: consumer prefetch (the table of
  meanings)]
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from enum import Enum

from amqpspec.model.broker.field_kinds import apart, doubt, to_blame
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.protocol.methods import Table, TraceEvent


class ConnectionState(Enum):
    """Where in its life a connection is; from STARTING to OPEN, and CLOSING, RabbitMQ's names are the values."""

    #: TCP is connected, and the protocol header has not come
    AWAITING_HEADER = "awaiting a protocol header"
    #: connection.start is sent or owed, and start-ok has not come; and so on
    STARTING = "starting"
    #: start-ok has come, of a mechanism that the model does not know: what is said until connection.tune is unknown
    SECURING = "securing"
    TUNING = "tuning"
    OPENING = "opening"
    OPEN = "running"
    #: a close was sent by either side; of the client nothing counts but its own close and close-ok
    CLOSING = "closing"
    #: refused without a word: of the client nothing counts any more
    ENDING = "ending"
    CLOSED = "closed"
    #: it speaks another protocol that the broker knows as well: nothing is known of what is right there
    FOREIGN = "foreign"

    @property
    def in_handshake(self) -> bool:
        return self in _HANDSHAKE


_HANDSHAKE = frozenset(
    {
        ConnectionState.AWAITING_HEADER,
        ConnectionState.STARTING,
        ConnectionState.TUNING,
        ConnectionState.OPENING,
    }
)


@dataclass(slots=True, eq=False)
class Connection:
    # ---- law
    name: str
    state: ConnectionState = ConnectionState.AWAITING_HEADER
    #: those of the client
    capabilities: Table = apart("every explanation has them of the same frame", factory=dict)
    _: KW_ONLY
    server_properties: Table = apart("every explanation has them of the same frame", factory=dict)
    #: "": one that the broker had already, and whose name is nobody's business
    user: str = ""
    vhost: str = "/"
    #: what connection.start and connection.tune offered, as far as they were seen
    mechanisms: tuple[str, ...] = ()
    offered: Table = field(default_factory=dict)
    #: what the client's tune-ok said
    channel_max: int = 0
    frame_max: int = 0
    heartbeat: int = 0
    #: when TCP was connected, and when the client was last heard (of `TraceEvent.time`)
    began: float = 0.0
    heard: float = apart("the order in which the inputs of its channels are processed makes no difference", 0.0)
    owed: list[Expected | PendingGet] = field(default_factory=list)
    #: the broker may end the TCP connection from now on
    may_end: bool = False
    #: … and may say connection.close before it does, with words of its own choice
    may_announce_end: bool = False
    #: limit that the consumers of all channels share (QOS-016); 0: none
    prefetch: int = 0
    #: the broker does not read it because of an alarm (CAP-004); what it was sent meanwhile; the client knows (CAP-003)
    blocked: bool = False
    held: list[TraceEvent] = field(default_factory=list)
    told_of_block: bool = False
    #: the client sent a frame of another size than it says: where the next one begins is not known
    out_of_step: bool = False

    # ---- doubt
    #: its beginning is not in the trace, and credentials were not recorded (traces of the first version)
    is_assumed: bool = doubt(False)

    # ---- blame
    #: the client wants to be told of cancelled consumers, and says so in a way that does not count (CAP-005)
    wish_in_vain: bool = to_blame(False)

    @property
    def is_told_of_cancels(self) -> bool:
        """Both sides say that the broker tells of consumers that it cancels (CANCEL-010, CAP-005)."""
        advertised = self.server_properties.get("capabilities", {"consumer_cancel_notify": True})
        if not isinstance(advertised, dict) or advertised.get("consumer_cancel_notify") is not True:
            return False
        return self.capabilities.get("consumer_cancel_notify") is True
