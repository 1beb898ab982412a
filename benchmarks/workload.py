"""The fixed workload: what a busy application does, without errors, so that any broker can carry it out.

Two connections, two publishers in confirm mode, a consumer on a classic and one on a quorum queue, both with
prefetch, and one channel that gets from two more queues. Deliveries are acknowledged one by one, with `multiple`,
returned and discarded; consumers are cancelled and come back. One consumer to a queue and one queue to a channel:
so the delivery tags are the same on every broker.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.methods import Content, Table

#: Part of the names of cached recordings: to be raised when the commands become others.
VERSION = 1

PUBLISHERS = (("a", 1), ("b", 2))
#: channel of the consumer, and its queue
CONSUMERS = {("a", 2): "classic", ("a", 3): "quorum"}
GETTER = ("b", 1)
GOT_FROM = ("classic-get", "quorum-get")
PREFETCH = 10
#: No queue is let grow beyond this.
DEPTH = 20


class Workload:
    """Makes the commands one after the other; the plan says which deliveries there are to settle."""

    def __init__(self, dialect: Dialect, seed: int = 1) -> None:
        self._plan = Plan(dialect)
        self._random = random.Random(seed)
        self._bodies = 0
        self._tags = dict.fromkeys(CONSUMERS, 0)

    def commands(self) -> Iterator[Command]:
        """Commands without end."""
        for command in self._all():
            self._plan.carry_out(command)
            yield command

    def _all(self) -> Iterator[Command]:
        yield from self._beginning()
        while True:
            choice = self._random.random()
            if choice < 0.45:
                yield from self._publish()
            elif choice < 0.85:
                yield from self._settle(self._random.choice([*CONSUMERS, GETTER]))
            elif choice < 0.97:
                yield Command(*GETTER, "basic.get", {"queue": self._random.choice(GOT_FROM)})
            elif choice < 0.985:
                yield from self._come_back(self._random.choice([*CONSUMERS]))
            else:
                yield Command(*GETTER, "queue.declare", {"queue": self._random.choice(GOT_FROM), "passive": True})

    def _beginning(self) -> Iterator[Command]:
        for queue in (*CONSUMERS.values(), *GOT_FROM):
            table = {"x-queue-type": queue.partition("-")[0]}
            yield Command(*GETTER, "queue.declare", {"queue": queue, "durable": True, "arguments": table})
        for channel in PUBLISHERS:
            yield Command(*channel, "confirm.select")
        for channel in CONSUMERS:
            yield Command(*channel, "basic.qos", {"prefetch_count": PREFETCH})
            yield self._consume(channel)

    def _consume(self, channel: tuple[str, int]) -> Command:
        self._tags[channel] += 1
        arguments = {"queue": CONSUMERS[channel], "consumer_tag": f"t{self._tags[channel]}"}
        return Command(*channel, "basic.consume", arguments)

    def _publish(self) -> Iterator[Command]:
        name = self._random.choice((*CONSUMERS.values(), *GOT_FROM))
        queue = self._plan.queue(name)
        if queue is not None and len(queue.messages) < DEPTH:
            self._bodies += 1
            content = Content({"delivery_mode": 2}, f"message {self._bodies}".encode())
            yield Command(*self._random.choice(PUBLISHERS), "basic.publish", {"routing_key": name}, content)

    def _settle(self, channel: tuple[str, int]) -> Iterator[Command]:
        state = self._plan.channel(*channel)
        tags = list(state.unacknowledged) if state else []
        if not tags:
            return
        method, flags = self._random.choices(
            (
                ("basic.ack", {}),
                ("basic.ack", {"multiple": True}),
                ("basic.nack", {"requeue": True}),
                ("basic.nack", {"multiple": True}),
                ("basic.reject", {"requeue": True}),
                ("basic.reject", {}),
            ),
            (60, 15, 8, 4, 5, 8),
        )[0]
        arguments: Table = {"delivery_tag": self._random.choice(tags), **flags}
        yield Command(*channel, method, arguments)

    def _come_back(self, channel: tuple[str, int]) -> Iterator[Command]:
        """Cancel, settle what is left, consume again."""
        yield Command(*channel, "basic.cancel", {"consumer_tag": f"t{self._tags[channel]}"})
        yield Command(*channel, "basic.ack", {"delivery_tag": 0, "multiple": True})
        yield self._consume(channel)
