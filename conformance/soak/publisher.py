"""A publisher of a soak: confirms, several in flight, and what it does when its connection is lost: it goes on."""

from __future__ import annotations

from amqpspec.conformance.soak.client import Client, Mill
from amqpspec.conformance.soak.message import Identity, content
from amqpspec.conformance.soak.outstanding import Outstanding
from amqpspec.conformance.soak.plan import PublisherPlan
from amqpspec.model.protocol.methods import TraceEvent

#: Publishes that are sent at one time.
_BURST = 20


class Publisher(Client):
    """`most`: messages that may be outstanding in one of its queues before it waits. `rate`: messages a second that it
    sends at most; 0: as many as it can.
    """

    def __init__(self, plan: PublisherPlan, mill: Mill, outstanding: Outstanding, most: int, rate: float) -> None:
        super().__init__(plan.name, mill)
        self.plan = plan
        self._outstanding, self._most, self._rate = outstanding, most, rate
        self._next_burst = 0.0
        self._number = 0
        self._channel = 0
        self._is_ready = self._is_blocked = False
        self._is_finishing = False
        #: delivery tags of publishes that wait for their confirm, in order, with when they were sent
        self._unconfirmed: dict[int, tuple[Identity, float]] = {}
        self._tag = 0
        #: returned, and not confirmed yet
        self._returned: set[Identity] = set()

    def opened(self) -> None:
        self._is_blocked = False
        self._open_channel()

    def _open_channel(self) -> None:
        self._give_up()
        self._channel = self.next_channel()
        self._tag = 0
        self.send(self._channel, "channel.open", more=True)
        self.send(self._channel, "confirm.select")
        self.waits_since = self.mill.now()

    def received(self, event: TraceEvent) -> None:
        if event.name in ("connection.blocked", "connection.unblocked"):
            self._is_blocked = event.name == "connection.blocked"
            return
        super().received(event)

    def on_channel(self, event: TraceEvent) -> None:
        name = event.name
        if event.channel != self._channel:
            if name == "channel.close":
                self.send(event.channel, "channel.close-ok")
        elif name in ("basic.ack", "basic.nack"):
            self._confirmed(event)
        elif name == "basic.return":
            number = str((event.content.properties if event.content else {}).get("message_id", "")).rpartition("-")[2]
            if number.isdecimal():
                self._returned.add(Identity(self.name, int(number)))
        elif name == "confirm.select-ok":
            self._is_ready = True
            self.waits_since = None
        elif name == "channel.close":
            self.send(event.channel, "channel.close-ok")
            self._is_ready = False
            self._open_channel()

    def _confirmed(self, event: TraceEvent) -> None:
        tag = event.arguments.get("delivery_tag", 0)
        if event.arguments.get("multiple"):
            tags = []
            for each in self._unconfirmed:
                if each > tag:
                    break
                tags.append(each)
        else:
            tags = [tag] if tag in self._unconfirmed else []
        for each in tags:
            identity, _ = self._unconfirmed.pop(each)
            if event.name == "basic.nack" or identity in self._returned:
                self._returned.discard(identity)
                self._outstanding.refuse(self.plan.queues, identity)
            else:
                self._outstanding.confirm()

    def act(self, now: float) -> None:
        if self._unconfirmed:
            _, sent = next(iter(self._unconfirmed.values()))
            if now - sent > self.mill.patience:
                self.abort()  # the ledger says what that means
                return
        if self._is_finishing:
            if not self._unconfirmed:
                self.is_done = True
                self.close()
            return
        if not self._is_ready or self._is_blocked or now < self._next_burst:
            return
        room = min(self.plan.window - len(self._unconfirmed), _BURST)
        room = min([room, *(self._most - self._outstanding.of(queue) for queue in self.plan.queues)])
        if room > 0 and self._rate:
            self._next_burst = now + room / self._rate
        for left in range(room - 1, -1, -1):
            self._publish(now, more=left > 0)

    def _publish(self, now: float, more: bool) -> None:
        plan = self.plan
        identity = Identity(self.name, self._number)
        self._number += 1
        self._tag += 1
        self._unconfirmed[self._tag] = identity, now
        self._outstanding.publish(plan.queues, identity)
        self.send(
            self._channel,
            "basic.publish",
            content(identity, plan.exchange, plan.key, plan.delivery_mode),
            more,
            exchange=plan.exchange,
            routing_key=plan.key,
            mandatory=True,
        )

    def lost(self) -> None:
        self._is_ready = False
        self._give_up()

    def _give_up(self) -> None:
        for identity, _ in self._unconfirmed.values():
            self._outstanding.lose_sight(self.plan.queues, identity)
        self._unconfirmed.clear()
        self._returned.clear()

    def mishap(self, choice: int) -> None:
        """Crash, or close channel or connection, with confirms outstanding."""
        if self.state is not self.state.OPEN or not self._is_ready:
            return
        what = choice % 3
        if what == 0:
            self.abort()
        elif what == 1:
            self._is_ready = False
            self.send(self._channel, "channel.close", more=True, reply_code=200, reply_text="", class_id=0, method_id=0)
            self._open_channel()
        else:
            self._is_ready = False
            self.close()

    def stop_within_content(self) -> None:
        """Send the beginning of a content, and nothing more as long as this connection lives: nobody publishes that."""
        if self.state is not self.state.OPEN or not self._is_ready:
            return
        self._is_ready = False
        self.waits_since = self.mill.now()
        plan, half = self.plan, content(Identity(f"half-of-{self.name}", 0), "", "", self.plan.delivery_mode)
        self.send(self._channel, "basic.publish", more=True, exchange=plan.exchange, routing_key=plan.key)
        self.send(self._channel, "frame.header", more=True, body_size=2 * len(half.body))
        self.send(self._channel, "frame.body", half)

    def finish(self) -> None:
        """Wait for the confirms, then leave."""
        self._is_finishing = True
        if self.state is self.state.OFFLINE:
            self.is_done = True
