"""The consumers of a soak: each settles in its own style, and some leave with much under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amqpspec.conformance.soak.client import Client, Mill
from amqpspec.conformance.soak.message import Identity, identity_of_delivery
from amqpspec.conformance.soak.outstanding import Outstanding
from amqpspec.conformance.soak.plan import ConsumerPlan, Style
from amqpspec.model.protocol.methods import TraceEvent

_TAG = "t"
#: Seconds without a delivery after which what is held is settled, whatever there was to wait for.
_IDLE = 0.2
#: Seconds until one that found a queue empty asks again.
_ASK_AGAIN = 0.05


class Consumer(Client):
    """`may_leave`: it closes and crashes with deliveries out, by itself."""

    def __init__(self, plan: ConsumerPlan, mill: Mill, outstanding: Outstanding, may_leave: bool) -> None:
        super().__init__(plan.name, mill)
        self.plan = plan
        self._outstanding, self._may_leave = outstanding, may_leave
        self.channel = 0
        #: delivery tags that are not settled, in order
        self.held: dict[int, Identity | None] = {}
        self.last_delivery = 0.0
        self._goal = 1
        self._has_asked = False
        self._next_ask = 0.0
        #: of the stream, what was read last; -1: nothing
        self._offset = -1
        self._settle: Callable[[int], None] = {
            Style.SINGLE: self._single,
            Style.MULTIPLE: self._multiple,
            Style.MIXED: self._mixed,
            Style.HOARDING: self._hoard,
            Style.GETTING: self._mixed,
            Style.READING: self._multiple,
        }[plan.style]

    # ------------------------------------------------------------------------------------------ its channel

    def opened(self) -> None:
        self.open_channel()

    def open_channel(self) -> None:
        plan = self.plan
        self.held.clear()
        self.channel = self.next_channel()
        self._has_asked = False
        self._choose_goal()
        self.send(self.channel, "channel.open")
        if plan.style is not Style.GETTING:
            self.send(self.channel, "basic.qos", more=True, prefetch_size=0, prefetch_count=plan.prefetch)
            self.consume()
        self.waits_since = self.mill.now()

    def consume(self) -> None:
        arguments: dict[str, object] = {}
        if self.plan.style is Style.READING:
            arguments = {"x-stream-offset": self._offset + 1 if self._offset >= 0 else "first"}
        self.send(self.channel, "basic.consume", queue=self.plan.queue, consumer_tag=_TAG, arguments=arguments)

    def on_channel(self, event: TraceEvent) -> None:
        name = event.name
        if event.channel != self.channel:
            if name == "channel.close":
                self.send(event.channel, "channel.close-ok")
            return
        if name == "basic.deliver":
            self.delivered(event)
        elif name in ("basic.get-ok", "basic.get-empty"):
            self._has_asked = False
            self.waits_since = None
            if name == "basic.get-ok":
                self.delivered(event)
            else:
                self.found_empty()
        elif name == "basic.consume-ok" or (name == "channel.open-ok" and self.plan.style is Style.GETTING):
            self.waits_since = None
        elif name == "basic.cancel":
            self.open_again()
        elif name == "channel.close":
            self.send(event.channel, "channel.close-ok")
            self.open_channel()

    def found_empty(self) -> None:
        """There was nothing to get."""
        self._next_ask = self.mill.now() + _ASK_AGAIN

    def open_again(self) -> None:
        """Close the channel, and go on with another one."""
        self.send(self.channel, "channel.close", reply_code=200, reply_text="", class_id=0, method_id=0)
        self.open_channel()

    # ------------------------------------------------------------------------------------------ deliveries

    def delivered(self, event: TraceEvent) -> None:
        self._outstanding.delivered += 1
        self.last_delivery = self.mill.now()
        tag = event.arguments["delivery_tag"]
        self.held[tag] = identity_of_delivery(event)
        if self.plan.style is Style.READING:
            properties = event.content.properties if event.content is not None else {}
            self._offset = (properties.get("headers") or {}).get("x-stream-offset", self._offset)
        self._settle(tag)

    def act(self, now: float) -> None:
        if self.held and now - self.last_delivery > _IDLE:
            self.settle_all()
        may_ask = self.plan.style is Style.GETTING and not self._has_asked and self.waits_since is None
        if may_ask and now >= self._next_ask:
            self.ask()

    def ask(self) -> None:
        self._has_asked = True
        self.waits_since = self.mill.now()
        self.send(self.channel, "basic.get", queue=self.plan.queue)

    def settle_all(self) -> None:
        """What it waits for does not come."""
        if self.plan.style is Style.HOARDING:
            self._acknowledge_hoard()
        else:
            self._up_to(next(reversed(self.held)), "basic.ack")

    # ------------------------------------------------------------------------------------------ styles

    def _single(self, tag: int) -> None:
        self._one(tag, "basic.ack")

    def _multiple(self, tag: int) -> None:
        if len(self.held) >= max(self.plan.prefetch // 2, 1):
            self._up_to(tag, "basic.ack")

    def _mixed(self, tag: int) -> None:
        draw = self.mill.chosen.random()
        if draw < 0.84:
            self._one(tag, "basic.ack")
        elif draw < 0.88:
            self._one(tag, "basic.reject", requeue=True)
        elif draw < 0.92:
            self._one(tag, "basic.nack", requeue=True)
        elif draw < 0.93:
            self._one(tag, "basic.reject", requeue=False)
        elif draw < 0.94:
            self._one(tag, "basic.nack", requeue=False)
        elif draw < 0.95:
            self._up_to(tag, "basic.nack", requeue=self.mill.chosen.random() < 0.5)
        elif draw < 0.98:
            self._up_to(tag, "basic.ack")
        elif draw < 0.981 and self._may_leave:
            self.open_again()

    def _hoard(self, tag: int) -> None:
        if len(self.held) >= self._goal:
            self._acknowledge_hoard()

    def _acknowledge_hoard(self) -> None:
        """Hundreds of acknowledgements, one by one; then, perhaps, nothing else is waited for."""
        for tag in list(self.held):
            self._one(tag, "basic.ack", more=True)
        self._choose_goal()
        draw = self.mill.chosen.random()
        if not self._may_leave or draw < 0.4:
            return
        if draw < 0.7:
            self.open_again()
        else:
            self.close()

    def _choose_goal(self) -> None:
        self._goal = self.mill.chosen.randrange(1, max(self.plan.prefetch, 2))

    def _one(self, tag: int, name: str, more: bool = False, requeue: bool | None = None) -> None:
        identity = self.held.pop(tag)
        if not requeue:
            self._outstanding.settle(self.plan.queue, identity)
        given: dict[str, Any] = {"delivery_tag": tag} if requeue is None else {"delivery_tag": tag, "requeue": requeue}
        self.send(self.channel, name, more=more, **given)

    def _up_to(self, tag: int, name: str, requeue: bool | None = None) -> None:
        for each in [each for each in self.held if each <= tag]:
            identity = self.held.pop(each)
            if not requeue:
                self._outstanding.settle(self.plan.queue, identity)
        given: dict[str, Any] = {"delivery_tag": tag, "multiple": True}
        self.send(self.channel, name, **given if requeue is None else {**given, "requeue": requeue})

    # ------------------------------------------------------------------------------------------ its end

    def lost(self) -> None:
        self.held.clear()
        self._has_asked = False

    def mishap(self, choice: int) -> None:
        """Crash, or leave with deliveries out."""
        if self.state is not self.state.OPEN:
            return
        what = choice % 4
        if what < 2:
            self.abort()
        elif what == 2:
            self.open_again()
        else:
            self.close()
