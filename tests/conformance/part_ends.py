"""An embedded broker of which a part ends: it answers, and no queue can be declared any more."""

from __future__ import annotations

from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.connection.closing import fail
from amqpspec.targets.embedded.hooks import Fault, Proceed
from amqpspec.targets.embedded.served_broker import ServedBroker


def part_ends(behind: str) -> Fault:
    """`behind`: the method of a client that it does not survive."""

    def hook(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
        if method.name == behind:
            broker.memory["ended"] = True
        if method.name == "queue.declare" and "ended" in broker.memory:
            channel = broker.channel(method.connection, method.channel)
            fail(broker, channel, method, ProtocolError("CONN-010", 541, "noproc"))
        else:
            proceed(method)

    methods = frozenset({behind, "queue.declare"})
    return Fault("part-ends", "SERVER-001", "A part of it ends.", methods, input_hook=hook)
