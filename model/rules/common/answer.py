"""Answers to methods that may ask for none (CHAN-018).

Requirements:

* CHAN-018: no-wait suppresses only the ok. With nowait=true the -ok is omitted; errors still close the channel.
  [rabbit_channel.erl:return_ok; AMQP 0-9-1 class channel]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.effects import Effect
from amqpspec.model.protocol.methods import Method, Table


def answer(
    broker: Broker,
    channel: Channel,
    event: Method,
    method: str,
    arguments: Table,
    *requirements: str,
    blame: dict[str, str] | None = None,
    lane: str = "channel",
    effect: Effect | None = None,
) -> None:
    """Owe the reply, as `Broker.owe` does; with nowait owe nothing."""
    if not event.arguments.get("nowait"):
        broker.owe(
            channel, method, arguments, *requirements, blame=blame, lane=lane, effect=effect
        )
        return
    broker.comes_under(channel, "CHAN-018")
