"""Sequences through a client library on the embedded broker, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.command_sequence import CommandSequence, Place
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.verdicts.judge import judge_all
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.drivers.aio_pika_client import AioPikaCarrier
from amqpspec.targets.drivers.aio_pika_robust import AioPikaRobustCarrier
from amqpspec.targets.drivers.library import Library
from amqpspec.targets.drivers.pika_blocking import PikaCarrier
from amqpspec.targets.drivers.pika_select import PikaSelectCarrier
from amqpspec.targets.drivers.robust_carrier import RobustCarrier

PIKA, ROBUST = Library("pika", "1"), Library("aio-pika-robust", "1")
CARRIERS = (PikaCarrier, PikaSelectCarrier, AioPikaCarrier, AioPikaRobustCarrier)
CONSUMING = ("a.1 queue.declare q", "a.1 basic.consume q tag=t", "b.1 basic.publish q body=m1", "a.1 basic.ack 1")
RETURNING = ("a.1 confirm.select", "a.1 basic.publish nowhere body=m1 mandatory")

REFUSED = (
    "a.1 confirm.select", "a.1 queue.declare q x-max-length=1 x-overflow=reject-publish", "a.1 basic.publish q body=m1",
    "a.1 basic.publish q body=m2",
)  # fmt: skip


def library_of(carrier: Any) -> Library:
    return ROBUST if issubclass(carrier, RobustCarrier) else PIKA


def target_of(broker: EmbeddedBroker, driver: Any = PikaCarrier) -> TargetUnderTest:
    description = TargetDescription("ours", "amqpspec", "1", "rabbitmq-4.3")
    library = library_of(driver)
    driver = partial(driver, shows_in=0.3)
    return TargetUnderTest(broker.address, description, 2.0, broker.operator(), driver=driver, library=library)


def judged(
    broker: EmbeddedBroker, folder: Path, commands: Iterable[str], driver: Any = PikaCarrier
) -> SequenceJudgement:
    """What is said of the commands, live and of the trace."""
    sequence = CommandSequence("one", tuple(map(parse_command, commands)))
    with TraceWriter(folder / "trace.jsonl") as trace:
        live = Place(target_of(broker, driver), trace).carry_out(sequence).judgement
    [again] = judge_all(read_trace(folder / "trace.jsonl"))
    assert (again.verdict, again.failures) == (live.verdict, live.failures)
    return live
