"""How RabbitMQ is set is measured like the choices of the text."""

from __future__ import annotations

import pytest

from amqpspec.conformance.profile.settings import as_seen, measure_settings, worth_measuring
from amqpspec.conformance.profile.shows import shows_of_settings
from amqpspec.conformance.scenarios.scenario_files import selected
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.settings import SETTINGS
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker

#: Only a restart shows it.
UNSEEN = {"khepri-db"}


def test_each_setting_has_commands_that_show_it() -> None:
    assert set(shows_of_settings()) == set(SETTINGS) - UNSEEN


@pytest.mark.parametrize("base", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
@pytest.mark.parametrize("value", ["permitted", "denied"])
def test_each_value_is_seen(base: str, value: str) -> None:
    names = [name for name in SETTINGS if name not in UNSEEN]
    served = dialect_named(f"{base};{';'.join(f'{name}={value}' for name in names)}")
    with EmbeddedBroker(dialect=served) as broker:
        target = TargetUnderTest(broker.address, TargetDescription("embedded", "RabbitMQ", "0", base))
        seen, errors = measure_settings(target, dialect_named(base))
    assert not errors
    assert {each.choice.name: each.value and each.value.name for each in seen} == dict.fromkeys(names, value)
    told = as_seen(dialect_named(base), seen)
    # the argument of old ones is free in 4.3, and changes nothing else
    assert told.name == served.name or base == "rabbitmq-4.3"
    assert told.channel_prefetch == served.channel_prefetch


def test_a_run_looks_at_what_would_change_its_verdicts() -> None:
    assert worth_measuring(dialect_named("rabbitmq-4.3")) == ["global-qos", "transient-nonexcl-queues"]
    assert "queue-master-locator" in worth_measuring(dialect_named("rabbitmq-4.0"))


def test_scenarios_are_those_of_what_is_set() -> None:
    shared = {each.requirement for each in selected(["QOS"], "rabbitmq-4.3;global-qos=permitted")}
    usual = {each.requirement for each in selected(["QOS"], "rabbitmq-4.3")}
    assert "QOS-008" in shared - usual and "QOS-009" in usual - shared


def test_where_transient_queues_are_denied_all_are_durable() -> None:
    scenarios = selected((), "rabbitmq-4.3;transient-nonexcl-queues=denied")
    declared = [
        command.arguments
        for scenario in scenarios
        if scenario.requirement != "QUEUE-018"
        for command in scenario.commands
        if command.method == "queue.declare"
    ]
    assert declared and all(each.get("durable") or each.get("exclusive") for each in declared)
    (about,) = (each for each in scenarios if each.requirement == "QUEUE-018")
    assert not any(command.arguments.get("durable") for command in about.commands[:2])
