"""Compatible variants: the suite finds nothing wrong with them; planted faults of features it finds, on any product."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.command_line.entry import main
from amqpspec.conformance.verdicts.blame import said_by
from amqpspec.model.promises.registry import requirements
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker, embedded
from amqpspec.targets.faults.all_faults import FAULTS
from amqpspec.targets.faults.compatible import COMPATIBLE, COMPATIBLE_VARIANTS, DIALECT, OPEN_IN_THE_TEXT, OWN_WAYS
from tests.end_to_end.runs import run_suite

#: Requirements that show the feature, where the one that a variant is named after is RabbitMQ's alone.
AROUND = {
    "QUEUE-013": ("OVERFLOW-001", "PRIORITY-003"), "TTL-003": ("TTL-001",), "DLX-010": ("DLX-001",),
    "CONFIRM-006": ("CONFIRM-013",),
}  # fmt: skip
NOBODYS = {"product": "Nobody's", "version": "1"}

#: Those that another requirement than their own catches, as the scenarios of that are RabbitMQ's.
CAUGHT_BY = {
    "any-login-accepted": "CONN-006",
    "multiple-acks-too-many": "ACK-003",
    "deletion-forgets-unacked": "ACK-024",
    "capability-not-kept": "BIND-004",
    "long-body-cut": "CHAN-012",
    "commit-confirms": "TX-001",
    "single-ack-multiple": "CONFIRM-002",
    "returned-unasked": "PUBLISH-007",
}
#: Whose requirement is RabbitMQ's alone: nobody else is asked for it, and nothing else shows them.
RABBITMQS_ALONE = [
    name for name, fault in FAULTS.items() if said_by(fault.requirement, DIALECT) is None and name not in CAUGHT_BY
]
#: All others, but for ways of RabbitMQ's and what the text leaves open: these are caught on any product.
CAUGHT = [name for name in FAULTS if name not in {*RABBITMQS_ALONE, *OWN_WAYS, *OPEN_IN_THE_TEXT}]
#: How many are caught, are a way of RabbitMQ's, are left open by the text, and are of a rule of RabbitMQ's alone.
NUMBERS = (195, 19, 1, 130)


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
@pytest.mark.parametrize("name", CAUGHT)
def test_a_planted_fault_is_caught_on_any_product(name: str, tmp_path: Path) -> None:
    only = (CAUGHT_BY.get(name, FAULTS[name].requirement),)
    result = run_suite(
        "embedded", tmp_path, only=only, judged_by=DIALECT.name, dialect=DIALECT,
        fault=FAULTS[name], deadline=0.5, shrinking_time=0.0, fast_forward=True,
    )  # fmt: skip
    assert result.failures


@pytest.mark.parametrize(
    "name", ["limit-drops-newest", "dead-letter-lost", "bcc-shown", "nobody-follows-cancelled", *CAUGHT_BY]
)
def test_some_of_them(name: str, tmp_path: Path) -> None:
    test_a_planted_fault_is_caught_on_any_product(name, tmp_path)


def test_which_are_caught_and_why_others_are_not() -> None:
    """All planted faults, served by a product that nobody knows: docs/other-brokers.md has these numbers."""
    numbers = tuple(map(len, (CAUGHT, OWN_WAYS, OPEN_IN_THE_TEXT, RABBITMQS_ALONE)))
    assert numbers == NUMBERS and sum(numbers) == len(FAULTS)
    page = Path("docs/other-brokers.md").read_text(encoding="utf-8")
    caught, own, left_open, alone = numbers
    assert f"| caught | {caught} |" in page and f"| a way of RabbitMQ's inside a feature | {own} |" in page
    assert f"| left open by the text | {left_open} |" in page and f"| of a rule of RabbitMQ's alone | {alone} |" in page


@pytest.mark.full
@pytest.mark.parametrize("name", [*OWN_WAYS, *OPEN_IN_THE_TEXT])
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
