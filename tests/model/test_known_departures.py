"""The list of known departures: complete, and the one by which a failure counts as known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import amqpspec.model
from amqpspec.model.defects.departure import KnownDeparture
from amqpspec.model.defects.departures import DEPARTURES
from amqpspec.model.defects.known_departures import (
    ARGUMENT_DEPARTURES,
    KNOWN_DEPARTURES,
    departures_from,
    is_as_known,
    known_departures,
)
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape

FINDINGS = Path(__file__).parents[2] / "docs" / "findings.md"


def failure(departure: str, requirement: str = "REPLY-006") -> Failure:
    return Failure(requirement, Shape.WRONG_ARGUMENT, "basic.deliver delivery-tag", "c", "o", ("a",), (), departure)


def test_each_has_a_name_of_its_own_and_says_all() -> None:
    assert len(KNOWN_DEPARTURES) == len(DEPARTURES) + len(ARGUMENT_DEPARTURES)
    for name, departure in KNOWN_DEPARTURES.items():
        assert departure.name == name
        assert departure.requirement in requirements()
        assert departure.statement.endswith(".") and departure.source
        assert departure.brokers == tuple(DIALECTS[dialect].title for dialect in departure.dialects)


def test_departures_that_are_named_where_an_argument_is_compared_are_listed() -> None:
    """A constant with the comment "Known departure" names one: without an entry no report could say what it is."""
    directory = Path(next(iter(amqpspec.model.__path__)))
    texts = [path.read_text(encoding="utf-8") for path in sorted(directory.rglob("*.py"))]
    declared = [re.findall(r'^#: Known departure.*\n(?:#:.*\n)*\w+ = "(.+)"', text, re.MULTILINE) for text in texts]
    assert {name for names in declared for name in names} == {departure.name for departure in ARGUMENT_DEPARTURES}


@pytest.mark.parametrize("departure", KNOWN_DEPARTURES.values(), ids=list(KNOWN_DEPARTURES))
def test_each_has_its_place_among_the_findings(departure: KnownDeparture) -> None:
    """docs/findings.md has a section for the requirement, which names the departure."""
    rabbitmq = FINDINGS.read_text(encoding="utf-8").split("\n# RabbitMQ\n")[1].split("\n# ")[0]
    sections = [part for part in re.split(r"^## ", rabbitmq, flags=re.MULTILINE) if f"`{departure.name}`" in part]
    assert sections, f"docs/findings.md does not tell of {departure.name}"
    assert any(part.startswith(departure.requirement) for part in sections)


def test_the_findings_name_no_departure_that_is_none() -> None:
    named = re.findall(r"[Dd]epartures?\s+`([a-z0-9-]+)`", FINDINGS.read_text(encoding="utf-8"))
    assert set(named) <= set(KNOWN_DEPARTURES)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_has_its_own(dialect: str) -> None:
    own = known_departures(dialect)
    assert {each.name for each in own} == {n for n, each in KNOWN_DEPARTURES.items() if dialect in each.dialects}
    assert [each.requirement for each in own] == sorted(each.requirement for each in own)
    assert own or dialect == "amqp-0-9-1", "the text itself has no defects"


def test_a_failure_is_as_known_only_where_its_departure_is_known_of_the_dialect() -> None:
    counted = failure("direct-replies-not-counted")
    verdicts = {dialect: is_as_known(counted, dialect) for dialect in DIALECTS}
    assert verdicts == {"amqp-0-9-1": False, "rabbitmq-3": True, "rabbitmq-4.0": True, "rabbitmq-4.3": False}
    assert not is_as_known(failure(""), "rabbitmq-3")
    assert not is_as_known(failure("nobody-knows-it"), "rabbitmq-3")


def test_a_requirement_may_have_several() -> None:
    names = {each.name for each in departures_from("CONSUME-005")}
    assert names >= {"cancel-before-consume-ok-breaks", "consume-ok-dropped"}
    assert departures_from("ACK-001") == ()
