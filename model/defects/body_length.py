"""A body that is longer than its content header says (v4.0.5 rabbit_command_assembler:process).

What is missing of a body is counted down, and the content is complete at 0; beyond that it never is. The channel takes
bodies for ever and keeps them, and publishes nothing. Mended in 4.2.6.
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import TraceEvent


def _is_too_long(broker: Broker, frame: TraceEvent) -> bool:
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.assembly is None or channel.assembly.missing is None:
        return False
    return _length(frame) > channel.assembly.missing


def _go_on_taking(broker: Broker, frame: TraceEvent) -> None:
    channel = broker.channels[(frame.connection, frame.channel)]
    if channel.assembly is not None:
        missing = (channel.assembly.missing or 0) - _length(frame)
        channel.assembly = replace(channel.assembly, missing=missing, pieces=())
    broker.stamp += 1
    broker.fired("CHAN-015")


def _length(frame: TraceEvent) -> int:
    content = getattr(frame, "content", None)
    return 0 if content is None else len(content.body)


BODY_LENGTH_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="longer-body-unnoticed",
        requirement="CHAN-015",
        strength=Strength.PROMISED,
        statement="A body that is longer than its content header says is not refused: the channel takes bodies for"
        " ever, and publishes nothing.",
        source="v4.2.5 rabbit_command_assembler:process; 0-9-1 section 4.2.6 wants a connection exception",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        methods=("frame.body",),
        applies=_is_too_long,
        process=_go_on_taking,
        shows_within=ANY_NUMBER,
        is_steady=True,
        versions=(versions("3.10.0", "4.2.5"),),
    ),
)
