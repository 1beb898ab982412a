"""The theme protocol: the life of connections and channels, and frames that have no place where they come.

Nearly every second action here ends a channel or a connection; the clients go on with new ones, and what they held must
be with the others then.
"""

from __future__ import annotations

from hypothesis import strategies as st

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.search.actions import Actions, Draw, Key, flags, picks, queues, seldom
from amqpspec.model.protocol.methods import Content, Table

#: How often each action is tried, in parts of the whole.
PROTOCOL = {
    "publish_confirmed": 8, "consume": 4, "get": 6, "ack": 4, "nack": 2, "publish_in_pieces": 6, "odd_frame": 6,
    "out_of_place": 6, "open_as_wished": 3, "close_channel": 3, "close_connection": 3, "cross_closes": 3,
    "use_another_channel": 4, "flow": 2, "declare_own_queue": 3, "look": 3,
}  # fmt: skip

_CLOSE: Table = {"reply_code": 200, "reply_text": "done"}
_bodies = st.sampled_from((b"", b"x", b"two words", b"." * 5000))
_odd_frames = st.sampled_from(
    (
        ("frame.header", {"class_id": 60, "body_size": 1}), ("frame.body", {}),
        ("frame.method", {"class_id": 99, "method_id": 10}), ("frame.method", {"class_id": 60, "method_id": 200}),
        ("frame.method", {"class_id": 60, "method_id": 10, "payload": "0001"}),
        ("frame.method", {"class_id": 50, "method_id": 10, "payload": "000005"}),
        ("frame.other", {"type": 9, "payload": "00"}), ("frame.other", {"type": 1, "payload": "00140028", "end": 205}),
        ("frame.other", {"type": 1, "size": 200_000}), ("frame.other", {"type": 8, "payload": "00"}),
    )
)  # fmt: skip
_interruptions = st.sampled_from(
    (
        ("basic.qos", {"prefetch_count": 1}), ("channel.close", _CLOSE), ("frame.body", {}),
        ("frame.header", {"class_id": 50, "body_size": 1}), ("frame.other", {"type": 2}),
    )
)  # fmt: skip


class ProtocolActions(Actions):
    """What a client does who knows the frames but not the rules."""

    # ----------------------------------------------------------------------------------------- contents

    def publish_in_pieces(self, draw: Draw) -> None:
        """A content that comes frame by frame, as it should; sometimes something comes between."""
        channel = self.channel(draw)
        self.bodies += 1
        body = f"m{self.bodies} ".encode() + draw(_bodies)
        cut = draw(picks)
        self.issue(channel, "basic.publish", {"routing_key": draw(queues)}, in_flight=True)
        if draw(seldom):
            self._interrupt(draw, channel)
            return
        header: Table = {"class_id": 60, "body_size": len(body)}
        self.issue(channel, "frame.header", header, in_flight=True, as_it_stands=True)
        if draw(seldom):
            self._interrupt(draw, channel)
            return
        pieces = [body[:cut], body[cut:]] if 0 < cut < len(body) else [body]
        for index, piece in enumerate(pieces):
            last = index == len(pieces) - 1
            self.issue(channel, "frame.body", {}, Content({}, piece), in_flight=not last, as_it_stands=True)

    def _interrupt(self, draw: Draw, channel: Key) -> None:
        method, arguments = draw(_interruptions)
        content = self.new_content() if method == "frame.body" else None
        self.issue(channel, method, dict(arguments), content, as_it_stands=True)

    def odd_frame(self, draw: Draw) -> None:
        method, arguments = draw(_odd_frames)
        content = self.new_content() if method == "frame.body" else None
        self.issue(self._channel_of_second(draw), method, dict(arguments), content)

    # ------------------------------------------------------------------------------ out of place or state

    def out_of_place(self, draw: Draw) -> None:
        connection, number = self._channel_of_second(draw)
        pick = draw(picks)
        if pick == 0:
            never_opened = (connection, self.limits.channel_within(77))
            self.issue(never_opened, "basic.qos", {"prefetch_count": 1}, as_it_stands=True)
        elif pick == 1:
            self.issue((connection, number), "channel.open", {}, as_it_stands=True)
            self.issue((connection, number), "channel.open", {}, as_it_stands=True)
        elif pick == 2:
            self.issue((connection, 0), "basic.qos", {"prefetch_count": 1})
        elif pick == 3:
            self.issue((connection, 0), "connection.open", {"virtual_host": "/"}, as_it_stands=True)
        elif pick == 4:
            self.issue((connection, number), "queue.declare-ok", {})
        elif pick == 5:
            self.issue((connection, number), "channel.close-ok", {})
        elif pick == 6:
            self.issue((connection, 0), "channel.open", {})
        else:
            self.issue((connection, number), "connection.close", dict(_CLOSE))

    def flow(self, draw: Draw) -> None:
        self.issue(self._channel_of_second(draw), "channel.flow", {} if draw(seldom) else {"active": True})

    # ------------------------------------------------------------------------------ connections and channels

    def open_as_wished(self, draw: Draw) -> None:
        """A new connection of the second client, with limits of its own."""
        connection = self.connection_of(1)
        if self.plan.channel(connection, 1) is not None:
            self.issue((connection, 0), "connection.close", dict(_CLOSE))
            connection = self.connection_of(1)
        wishes: Table = {}
        if draw(flags):
            wishes["frame_max"] = self.limits.frame_within(draw(st.sampled_from((8192, 16384, 131072))))
        if draw(flags):
            wishes["channel_max"] = self.limits.channel_within(draw(st.sampled_from((2047, 64))))
        if draw(seldom):
            wishes["virtual_host"] = "nowhere"
        if draw(flags):
            wishes["capabilities"] = {"consumer_cancel_notify": draw(flags)}
        if self.plan.connected(connection):
            self.carry_out(Command(connection, 0, "connection.open", wishes))

    def use_another_channel(self, draw: Draw) -> None:
        """A channel of another number: open it, use it, close it, open it again."""
        number = self.limits.channel_within(draw(st.sampled_from((3, 64, 2047))))
        channel = (self.connection_of(draw(st.sampled_from((0, 1)))), number)
        self.issue(channel, "basic.get", {"queue": draw(queues)})
        if draw(flags):
            self.issue(channel, "channel.close", dict(_CLOSE))
        if draw(flags):
            self.issue(channel, "channel.open", {}, as_it_stands=True)

    def cross_closes(self, draw: Draw) -> None:
        """The client closes the channel that the broker is closing for an error."""
        channel = self.channel(draw)
        method, arguments = draw(
            st.sampled_from(
                (
                    ("queue.declare", {"queue": "missing", "passive": True}),
                    ("basic.ack", {"delivery_tag": 99}),
                    ("basic.get", {"queue": "missing"}),
                )
            )
        )
        self.issue(channel, method, dict(arguments), in_flight=True)
        if draw(flags):
            self.issue(channel, "basic.qos", {"prefetch_count": 1}, in_flight=True, as_it_stands=True)
        self.issue(channel, "channel.close", dict(_CLOSE), as_it_stands=True)

    def declare_own_queue(self, draw: Draw) -> None:
        """A queue that goes with its connection; and what the others get to hear of it."""
        channel = self.channel(draw)
        self.issue(channel, "queue.declare", {"queue": "q5", "exclusive": True})
        if draw(flags):
            self.issue(self.channel(draw), "queue.declare", {"queue": "q5", "passive": True})

    # ---------------------------------------------------------------------------------------------- parts

    def _channel_of_second(self, draw: Draw) -> Key:
        """Mostly the second client's: with the first one's connection, little of what it did would be left."""
        if draw(seldom):
            return self.channel(draw)
        return self.connection_of(1), 1
