"""What is tried and told, and not judged: consumer timeouts, and queues of the type quorum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amqpspec.conformance.profile.measuring import measure
from amqpspec.conformance.profile.profile import Profile, SeenExtension, Working
from amqpspec.conformance.profile.shows import shows_of_told
from amqpspec.conformance.scenarios.applicability import not_applicable
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with
from amqpspec.model.promises.features import TOLD, told_of
from amqpspec.model.promises.registry import requirements
from amqpspec.model.protocol.methods import Method
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.clock import FastForwardClock
from amqpspec.targets.embedded.hooks import Fault, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker
from amqpspec.targets.faults.compatible import COMPATIBLE_VARIANTS

TIMEOUTS, QUORUM = TOLD
TEXT = text_with(EXTENSIONS)


def told(dialect: Dialect, fault: Fault | None = None) -> dict[str, SeenExtension]:
    clock = FastForwardClock()
    with EmbeddedBroker(dialect, fault=fault, clock=clock) as broker:
        description = TargetDescription("embedded", "amqpspec", "0", "amqp-0-9-1")
        target = TargetUnderTest(broker.address, description, deadline=1.0, capabilities=frozenset(), clock=clock)
        seen = measure(target, choices=(), extensions=TOLD, ways=False).extensions
    return {each.capability: each for each in seen}


def test_each_has_commands_and_an_area() -> None:
    assert shows_of_told().keys() == TOLD.keys()
    areas = {id.rpartition("-")[0] for id in requirements()}
    assert all(area in areas for _, area in TOLD.values())
    assert (told_of("TIMEOUT-008"), told_of("QUORUM-001"), told_of("ACK-001")) == (TIMEOUTS, QUORUM, "")


@pytest.mark.parametrize("name", ["rabbitmq-4.3", "rabbitmq-4.0"])
def test_who_has_them_is_seen_to(name: str) -> None:
    """4.3 cancels the consumer, and 4.0 closes the channel."""
    assert [each.working for each in told(dialect_named(name)).values()] == [Working.WORKS, Working.WORKS]


def test_what_is_refused_or_has_no_effect_is_seen() -> None:
    seen = told(TEXT, COMPATIBLE_VARIANTS["no-quorum-queues"])
    assert (seen[TIMEOUTS].working, seen[QUORUM].working) == (Working.IGNORED, Working.REFUSED)
    assert seen[TIMEOUTS].in_short == "x-consumer-timeout: tried, no effect"


def test_a_type_that_is_taken_and_means_nothing_is_seen() -> None:
    def take(broker: ServedBroker, event: Method, proceed: Proceed) -> None:
        table = event.arguments.get("arguments") or {}
        proceed(altered(event, arguments={name: value for name, value in table.items() if name[:3] == "x-m"}))

    ignoring = Fault("x", "QUEUE-013", "No word means anything.", frozenset({"queue.declare"}), input_hook=take)
    assert [each.working for each in told(TEXT, ignoring).values()] == [Working.IGNORED, Working.IGNORED]


def test_a_run_says_why_its_requirements_are_not_applicable() -> None:
    seen = (SeenExtension(TIMEOUTS, False, Working.IGNORED), SeenExtension(QUORUM, False, Working.WORKS))
    profile = Profile((), seen)
    assert profile.held_to == ()
    with EmbeddedBroker(TEXT) as broker:
        target = TargetUnderTest(broker.address, TargetDescription("e", "Nobody's", "1", "amqp-0-9-1"))
        reasons = not_applicable(replace(target, not_working=profile.not_working))
    assert reasons["TIMEOUT-008"] == "x-consumer-timeout: tried, no effect"
    assert reasons["QUORUM-003"] == "x-queue-type=quorum: tried, works; how a broker does it is RabbitMQ's way"
