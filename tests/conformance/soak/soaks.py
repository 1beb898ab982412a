"""Soaks of the embedded broker, as short as they can be."""

from __future__ import annotations

from pathlib import Path

from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.soak.options import SoakOptions
from amqpspec.conformance.soak.result import SoakResult
from amqpspec.conformance.soak.schedule import Kind
from amqpspec.conformance.soak.soak import soak
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker

EMBEDDED = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")


def soak_of(
    broker: EmbeddedBroker, out: Path, seconds: float, *faults: Kind, seed: int = 1, patience: float = 3.0,
    rate: float = 200.0,
) -> SoakResult:  # fmt: skip
    """A soak of that broker, judged when it is done."""
    out.mkdir(exist_ok=True)
    description = TargetDescription("embedded", "amqpspec", "0", broker.dialect.name)
    target = TargetUnderTest(broker.address, description, faults=broker.faults())
    options = SoakOptions(
        seed, seconds, faults, out, patience=patience, rate=rate, judges_meanwhile=False
    )
    return soak(target, options)


def identifiers(result: SoakResult) -> set[str]:
    """The requirements that were broken."""
    judged = result.judgement
    return {what.requirement for what in judged.wrong} | {each.failure.requirement for each in judged.failures}
