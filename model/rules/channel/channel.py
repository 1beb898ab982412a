"""Chapter channel: open, close, flow (0-9-1 section 1.5; area CHAN).

What the end of a channel does: `model.rules.connection.ending`; where its messages go: `model.rules.basic.requeue`.

Requirements:

* CHAN-002: Second channel.open. channel.open on an already open channel is hard error 504.
  [rabbit_channel.erl:handle_method channel.open; AMQP 0-9-1 class channel]
* CHAN-003: channel.close by client. channel.close is answered by channel.close-ok; the id can be reused after close-ok.
  [rabbit_channel.erl:handle_method channel.close / ready_for_close; AMQP 0-9-1 class channel]
* CHAN-004: Pipelined close+open is racy. Sending channel.close and channel.open back to back on the same id either
  works (CloseOk, OpenOk) or yields 504 second channel.open. [rabbit_channel.erl comment at channel.close;
  rabbit_reader.erl channel_closing]
* CHAN-005: After a soft error the channel ignores everything but close/close-ok. After sending channel.close the server
  drops all methods on that channel until channel.close-ok; a crossing client channel.close is answered with close-ok.
  [rabbit_channel.erl:handle_exception; rabbit_reader.erl:handle_frame closing; AMQP 0-9-1 class channel]
* CHAN-009: channel.flow active=true. channel.flow(true) is answered by flow-ok(true) and has no other effect.
  [rabbit_channel.erl:handle_method channel.flow; AMQP 0-9-1 class channel]
* CHAN-010: channel.flow active=false. channel.flow(false) is hard error 540. In amqp-0-9-1: flow-ok, and no contents
  are sent until active=true; basic.get may find nothing until then. [rabbit_channel.erl:handle_method channel.flow]
* CHAN-011: Method only valid server-to-client. A client sending a *-ok or other unhandled method gets hard 503. In
  amqp-0-9-1: an error of the connection, its code is not named. [rabbit_channel.erl:handle_method catch-all]
* CHAN-016: The end of a channel requeues and cancels. When a channel ends, by an error or by the client's
  channel.close, its consumers disappear and its unacked messages are requeued (redelivered=true). When the server
  closes it: on a classic queue that the channel consumes from before the channel.close is sent, otherwise (quorum
  queues, gets) only once the client answered with close-ok. A hard error ends all channels and deletes the exclusive
  queues before the connection.close is sent; what waits for the end of a channel may still return just after it.
  [rabbit_channel.erl:handle_exception notify_queues]
* CONN-013: channel-max limits the count, not the number. The server limits the NUMBER OF OPEN channels; a channel id
  above the negotiated channel-max is accepted while the count is below it. A channel that the server closed counts
  until the client's close-ok. Any frame on one channel more is refused with 530, whatever it is. In amqp-0-9-1: a
  number above channel-max is refused, or a channel more than so many. [rabbit_reader.erl:create_channel]
* GET-004: Unacked get is requeued at channel close. An unacked get returns to its queue (redelivered=true) when the
  channel's process ends, which is just after close-ok; before close-ok only on a classic queue that the channel also
  consumes from. After a server-sent channel.close this waits for the client's close-ok.
  [rabbit_channel.erl:notify_queues]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.delivery_timeouts import begin_channel
from amqpspec.model.broker.owed import Expected
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.connection.ending import end_channel


def open_channel(broker: Broker, channel: Channel, method: Method) -> None:
    """CHAN-003: a fresh channel, answered by open-ok. CHAN-002: a second open of the same channel is an error."""
    if channel.state is ChannelState.OPEN:
        raise ProtocolError("CHAN-002", 504, "second 'channel.open' seen")
    for owed in channel.owed:
        if isinstance(owed, Expected) and owed.method == "channel.close-ok":
            # CHAN-004: the reader had not forgotten the channel yet, so this reached the old one on its way out. If it
            # had, the open comes after close-ok, which the acceptor tries as well (rabbit_reader: channel_closing)
            channel.owed.remove(owed)
            broker.settle_debts(channel)
            raise ProtocolError("CHAN-004", 504, "second 'channel.open' seen")
    fresh = Channel(channel.connection, channel.number, ChannelState.OPEN)
    begin_channel(broker, fresh)
    broker.channels[channel.key] = fresh
    # numbers may be larger than channel-max, which limits how many are open
    # (model.rules.connection.frames.admit_channel)
    exceeds = 0 < broker.connections[channel.connection].channel_max < channel.number
    broker.owe(fresh, "channel.open-ok", {}, *(("CONN-013", "CHAN-003") if exceeds else ("CHAN-003",)))


def close(broker: Broker, channel: Channel, method: Method) -> None:
    """CHAN-003: answered by close-ok; what the channel held goes back (GET-004, CHAN-016)."""
    if channel.state is ChannelState.CLOSING:
        # the closes crossed: the client's is answered, the broker still waits for its own close-ok (CHAN-005)
        broker.owe(channel, "channel.close-ok", {}, "CHAN-005")
        return
    end_channel(broker, channel)
    channel.state = ChannelState.CLOSED
    broker.owe(channel, "channel.close-ok", {}, "CHAN-003")


def close_ok(broker: Broker, channel: Channel, method: Method) -> None:
    """The client has read the broker's close: the number is free again. CHAN-011: there was none."""
    if channel.state is not ChannelState.CLOSING:
        raise ProtocolError("CHAN-011", 503, "unimplemented method")
    channel.state = ChannelState.CLOSED


def flow(broker: Broker, channel: Channel, method: Method) -> None:
    """CHAN-009, CHAN-010: the client stops deliveries on its channel or lets them come again; answered by flow-ok."""
    active = bool(method.arguments.get("active"))
    if broker.dialect.text.flow_can_be_stopped:
        broker.paused = broker.paused - {channel.key} if active else broker.paused | {channel.key}
        for consumer in channel.consumers.values():
            broker.refresh(consumer.queue)
        broker.owe(channel, "channel.flow-ok", {"active": active}, "CHAN-009" if active else "CHAN-010")
        return
    if not active:
        raise ProtocolError("CHAN-010", 540, "active=false")
    broker.owe(channel, "channel.flow-ok", {"active": True}, "CHAN-009")
