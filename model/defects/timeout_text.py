"""The close of a channel for a timeout that does not name the time: RabbitMQ's from 4.3 on (TIMEOUT-009)."""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.owed import Expected
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.extensions.timeout_cancels_consumer import close_text


def _text(channel: int) -> str:
    return ProtocolError("TIMEOUT-009", 406, close_text(channel, -1)).text


def _names_no_value(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    owed = mismatch.about
    if mismatch.argument != "reply_text" or not isinstance(owed, Expected) or owed.due is None:
        return None
    if method.name != "channel.close" or method.arguments.get("reply_text") != _text(method.channel):
        return None
    return (replace(mismatch, defect="timeout-text-without-value"),) if owed.counted else ()


TIMEOUT_TEXT_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name="timeout-text-without-value",
        requirement="TIMEOUT-009",
        strength=Strength.CONVENTIONAL,
        statement="The text of the close names -1 ms, and not the time that was up.",
        source="rabbit_channel:handle_queue_actions released, handle_consumer_timed_out(-1, ...)",
        dialects=("rabbitmq-4.3",),
        names=_names_no_value,
    ),
)
