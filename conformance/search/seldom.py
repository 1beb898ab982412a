"""The action that brings about what chance leaves out: of the commands that a channel can send now, the one whose
situation (`conformance.coverage`) the round has met least.

What a round has met depends on nothing outside it, so that equal seeds make equal commands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from hypothesis import strategies as st

from amqpspec.conformance.coverage.cells import Cell, cells_of
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.search.actions import Draw, Key, flags, picks, queues, seldom
from amqpspec.conformance.search.traffic import TrafficActions
from amqpspec.model.broker.channels import Channel
from amqpspec.model.protocol.methods import Table

_firsts = st.integers(0, 40)
_REQUEUE: Table = {"requeue": True}


class SeldomActions(TrafficActions):
    #: how often the sequences of the round have met each situation
    met: ClassVar[Counter[Cell]]

    def note_met(self, command: Command) -> None:
        """Before it is carried out."""
        self.met.update(cells_of(self.plan.broker, self.plan.event(command)))

    def meet_seldom(self, draw: Draw) -> None:
        channel = self.channel_with(draw, lambda state: bool(state.unacknowledged or state.consumers))
        state = self.state(channel)
        if state is None or not self.plan.usable(*channel):
            self.publish_confirmed(draw)
            return
        commands = list(self._possible(draw, channel, state))
        first = draw(_firsts) % len(commands)
        best = max(commands[first:] + commands[:first], key=self._gain)
        self.issue(channel, best.method, dict(best.arguments), best.content)

    def _gain(self, command: Command) -> float:
        return sum(1 / (1 + self.met[cell]) for cell in cells_of(self.plan.broker, self.plan.event(command)))

    def _possible(self, draw: Draw, channel: Key, state: Channel) -> Iterator[Command]:
        """What is no error, mostly."""
        queue: str = draw(queues)
        pick: int = draw(picks)
        for method, arguments in self._settling(state, pick):
            yield Command(*channel, method, arguments)
        yield Command(*channel, "basic.recover", _REQUEUE)
        for is_global in ({}, {"global_": True}):
            for count in (0, 1 + pick % 3):
                yield Command(*channel, "basic.qos", {"prefetch_count": count, **is_global})
        named: Table = {"queue": queue}
        yield Command(*channel, "basic.get", named)
        yield Command(*channel, "basic.get", {**named, "no_ack": True})
        for method, arguments in self._consuming(state, queue):
            yield Command(*channel, method, arguments)
        properties: tuple[Table, ...] = ({}, {"priority": pick + 1}, {"expiration": "60000"})
        for each in properties:
            yield Command(*channel, "basic.publish", {"routing_key": queue}, self.new_content(each))
        mandatory: Table = {"routing_key": queue, "mandatory": True}
        yield Command(*channel, "basic.publish", mandatory, self.new_content())
        yield Command(*channel, "queue.declare", {**named, "passive": True})
        if state.transaction is not None:
            yield Command(*channel, "tx.commit" if draw(flags) else "tx.rollback", {})
        if draw(seldom):
            yield from self._hazardous(draw, channel, state, queue)

    def _settling(self, state: Channel, pick: int) -> Iterator[tuple[str, Table]]:
        tags = list(state.unacknowledged)
        if not tags:
            return
        one, everything = {"delivery_tag": tags[pick % len(tags)]}, {"delivery_tag": 0, "multiple": True}
        yield "basic.reject", one
        yield "basic.reject", {**one, **_REQUEUE}
        for which in (one, {**one, "multiple": True}, everything):
            yield "basic.ack", which
            if self.dialect.has("basic.nack"):
                yield "basic.nack", which
                yield "basic.nack", {**which, **_REQUEUE}

    def _consuming(self, state: Channel, queue: str) -> Iterator[tuple[str, Table]]:
        self.tags += 1
        named: Table = {"queue": queue, "consumer_tag": f"t{self.tags}"}
        yield "basic.consume", named
        yield "basic.consume", {**named, "no_ack": True}
        if self.dialect.has("consumer_priorities"):
            yield "basic.consume", {**named, "arguments": {"x-priority": 1}}
        for tag in self.known_tags(state)[:1]:
            yield "basic.cancel", {"consumer_tag": tag}

    def _hazardous(self, draw: Draw, channel: Key, state: Channel, queue: str) -> Iterator[Command]:
        """What may end the channel, or takes the queue away."""
        named: Table = {"queue": queue}
        yield Command(*channel, "basic.consume", {**named, "consumer_tag": f"t{self.tags}", "exclusive": True})
        yield Command(*channel, "queue.delete", {**named, "if_unused": True})
        yield Command(*channel, "queue.delete", {**named, "if_empty": True})
        yield Command(*channel, "queue.purge", named)
        yield Command(*channel, "channel.close", {"reply_code": 200, "reply_text": "done"})
        if state.transaction is None and not state.confirming:
            yield Command(*channel, "tx.select", {})
        if not self.dialect.extensions or draw(seldom):
            yield Command(*channel, "basic.recover", {})
