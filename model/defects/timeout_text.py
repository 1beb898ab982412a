"""The close of a channel for a timeout that does not name the time: RabbitMQ's from 4.3 on (TIMEOUT-009)."""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.connections import Connection
from amqpspec.model.broker.hooks import Guest
from amqpspec.model.broker.owed import Expected
from amqpspec.model.defects.timed_deliveries import DIALECTS
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.protocol.patterns import matches
from amqpspec.model.rules.extensions.timeout_cancels_consumer import close_text

TEXT_WITHOUT_VALUE = "timeout-text-without-value"


class TimeoutText(Guest):
    """A text with the time shows that the defect is not there."""

    name = "timeout text"

    def debt_paid(self, broker: Broker, holder: Channel | Connection, expected: Expected, method: Method) -> None:
        if expected.counted and _names_a_value(broker, holder, expected):
            told = method.arguments.get("reply_text")
            if matches(expected.arguments["reply_text"], told) and told != _text_without_value(method):
                broker.bookkeeping.refuted.add(TEXT_WITHOUT_VALUE)


def _names_a_value(broker: Broker, holder: Channel | Connection, expected: Expected) -> bool:
    """Is it the close of a channel that names the time which was up?"""
    is_known = broker.dialect.consumer_timeouts is ConsumerTimeouts.OF_QUORUM_QUEUES
    return is_known and expected.method == "channel.close" and expected.due is not None


def _text_without_value(method: Method) -> str:
    return ProtocolError("TIMEOUT-009", 406, close_text(method.channel, -1)).text


def _names_no_value(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    owed = mismatch.about
    if mismatch.argument != "reply_text" or not isinstance(owed, Expected):
        return None
    if owed.method != "channel.close" or owed.due is None or "reply_text" not in owed.arguments:
        return None
    if broker.dialect.consumer_timeouts is not ConsumerTimeouts.OF_QUORUM_QUEUES:
        return None
    if method.arguments.get("reply_text") != _text_without_value(method):
        return None
    return (replace(mismatch, defect=TEXT_WITHOUT_VALUE),) if owed.counted else ()


TIMEOUT_TEXT_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name=TEXT_WITHOUT_VALUE,
        requirement="TIMEOUT-009",
        strength=Strength.CONVENTIONAL,
        statement="The text of the close names -1 ms, and not the time that was up.",
        source="rabbit_channel:handle_queue_actions released, handle_consumer_timed_out(-1, ...)",
        dialects=DIALECTS,
        names=_names_no_value,
    ),
)
