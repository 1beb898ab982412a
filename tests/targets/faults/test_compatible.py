"""Compatible variants: the suite finds nothing wrong with them; planted faults of features it finds, on any product."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.command_line.entry import main
from amqpspec.model.promises.registry import requirements
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker, embedded
from amqpspec.targets.faults.all_faults import FAULTS
from amqpspec.targets.faults.compatible import COMPATIBLE, COMPATIBLE_VARIANTS, DIALECT, OWN_WAYS
from tests.end_to_end.runs import run_suite

#: Requirements that show the feature, where the one that a variant is named after is RabbitMQ's alone.
AROUND = {
    "QUEUE-013": ("OVERFLOW-001", "PRIORITY-003"), "TTL-003": ("TTL-001",), "DLX-010": ("DLX-001",),
    "CONFIRM-006": ("CONFIRM-013",),
}  # fmt: skip
NOBODYS = {"product": "Nobody's", "version": "1"}

#: Of requirements that come with a feature, and no way of RabbitMQ's alone.
OF_FEATURES = [
    name
    for name, fault in FAULTS.items()
    if requirements()[fault.requirement].features and name not in OWN_WAYS
]


@pytest.mark.quick
@pytest.mark.parametrize("name", [each for each in COMPATIBLE_VARIANTS if each != COMPATIBLE])
def test_a_variant_passes_the_scenarios_of_its_feature(name: str, tmp_path: Path) -> None:
    variant = COMPATIBLE_VARIANTS[name]
    only = AROUND.get(variant.requirement, (variant.requirement,))
    result = run_suite(f"embedded:{name}", tmp_path, only=only, deadline=0.5, fast_forward=True)
    assert [found.failure for found in result.failures] == []
    assert (result.exit_code, result.is_empty) == (0, False)


@pytest.mark.full
def test_all_of_them_in_one_broker_pass_the_default_run_of_a_product_that_nobody_knows(tmp_path: Path) -> None:
    with EmbeddedBroker(fault=COMPATIBLE_VARIANTS[COMPATIBLE], properties=NOBODYS) as broker:
        address = broker.address
        target = f"amqp://{address.user}:{address.password}@{address.host}:{address.port}/"
        assert main(["run", target, "--seed", "5", "--sequences", "100", "--out", str(tmp_path)]) == 0


@pytest.mark.full
@pytest.mark.parametrize("name", OF_FEATURES)
def test_a_planted_fault_of_a_feature_is_caught_on_any_product(name: str, tmp_path: Path) -> None:
    result = run_suite(
        "embedded", tmp_path, only=(FAULTS[name].requirement,), judged_by=DIALECT.name, dialect=DIALECT,
        fault=FAULTS[name], deadline=0.5, shrinking_time=0.0, fast_forward=True,
    )  # fmt: skip
    assert result.failures


@pytest.mark.parametrize("name", ["limit-drops-newest", "dead-letter-lost", "bcc-shown", "nobody-follows-cancelled"])
def test_some_of_them(name: str, tmp_path: Path) -> None:
    test_a_planted_fault_of_a_feature_is_caught_on_any_product(name, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("name", OWN_WAYS)
def test_what_is_another_way_than_rabbitmqs_is_no_fault(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    result = run_suite(
        "embedded", tmp_path, only=(fault.requirement,), judged_by=DIALECT.name, dialect=DIALECT, fault=fault,
        deadline=0.5, shrinking_time=0.0, fast_forward=True,
    )  # fmt: skip
    assert [found.failure for found in result.failures] == []


def test_each_says_what_it_is() -> None:
    assert len(COMPATIBLE_VARIANTS) > 12
    assert all(each.defect and each.dialect == DIALECT.name for each in COMPATIBLE_VARIANTS.values())
    assert all(FAULTS[name].requirement and why for name, why in OWN_WAYS.items())
    # with a requirement that is RabbitMQ's alone a fault needs no entry
    assert all(requirements()[FAULTS[name].requirement].features for name in OWN_WAYS)


def test_a_variant_is_a_target() -> None:
    assert embedded("embedded:no-death-headers").dialect.name == DIALECT.name
