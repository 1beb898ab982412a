"""The list of known defects: complete, and the one by which a failure counts as known."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

import amqpspec.model
from amqpspec.model.defects.habits import HABITS
from amqpspec.model.defects.known_defects import (
    KNOWN_DEFECTS,
    OUTPUT_DEFECTS,
    TRANSITIONS,
    WINDOWS,
    acceptor_for,
    defects_from,
    followed,
    is_as_known,
    known_defects,
    strength_of,
)
from amqpspec.model.judging.known_defect import KnownDefect, OutputDefect
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.promises.versions import VERIFIED, Version, dialect_name_of, newest_verified, versions

FINDINGS = Path(__file__).parents[3] / "docs" / "findings.md"


def failure(defect: str, requirement: str = "REPLY-006") -> Failure:
    return Failure(requirement, Shape.WRONG_ARGUMENT, "basic.deliver delivery-tag", "c", "o", ("a",), (), defect)


def test_each_has_a_name_of_its_own_and_says_all() -> None:
    assert len(KNOWN_DEFECTS) == len(TRANSITIONS) + len(OUTPUT_DEFECTS) + len({window.name for window in WINDOWS})
    for name, defect in KNOWN_DEFECTS.items():
        assert defect.name == name
        assert defect.requirement in requirements()
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name)
        assert defect.statement.endswith(".") and defect.source
        assert defect.dialects and "amqp-0-9-1" not in defect.dialects, "the text itself has no defects"
        assert defect.brokers == tuple(map(str, defect.versions or [VERIFIED[each] for each in defect.dialects]))
        for known in defect.versions:
            assert dialect_name_of(known.first) in defect.dialects


def test_those_of_frames_have_something_to_go_by() -> None:
    usual = {field.name: field.default for field in fields(OutputDefect)}
    for defect in OUTPUT_DEFECTS:
        assert (defect.explains, defect.goes_on) != (usual["explains"], usual["goes_on"])


def test_the_law_names_no_known_defect() -> None:
    """Whoever takes the folder away has a whole model left."""
    directory = Path(next(iter(amqpspec.model.__path__)))
    law = [path for path in sorted(directory.rglob("*.py")) if "defects" not in path.relative_to(directory).parts]
    texts = {path: path.read_text(encoding="utf-8") for path in law}
    assert [(path.name, name) for path, text in texts.items() for name in KNOWN_DEFECTS if f'"{name}"' in text] == []
    assert [path.name for path, text in texts.items() if "import" in text and "amqpspec.model.defects" in text] == []


@pytest.mark.parametrize("defect", KNOWN_DEFECTS.values(), ids=list(KNOWN_DEFECTS))
def test_each_has_its_place_among_the_findings(defect: KnownDefect) -> None:
    """docs/findings.md has a section for the requirement, which names the known defect."""
    rabbitmq = re.split(r"^# (?=[A-Z])", FINDINGS.read_text(encoding="utf-8"), flags=re.MULTILINE)[2]
    assert rabbitmq.startswith("RabbitMQ\n")
    sections = [part for part in re.split(r"^## ", rabbitmq, flags=re.MULTILINE) if f"`{defect.name}`" in part]
    assert sections, f"docs/findings.md does not tell of {defect.name}"
    assert any(part.startswith(defect.requirement) for part in sections)


@pytest.mark.parametrize("defect", KNOWN_DEFECTS.values(), ids=list(KNOWN_DEFECTS))
def test_the_findings_say_how_strong_its_promise_is(defect: KnownDefect) -> None:
    """Wherever a section calls a known defect by its name."""
    named = re.findall(rf"[Kk]nown\s+defects?\s+`{defect.name}`\s*(\([a-z]+\))?", FINDINGS.read_text(encoding="utf-8"))
    assert named and set(named) == {f"({defect.strength})"}


def test_a_failure_is_as_strong_as_its_defect_or_else_as_its_requirement() -> None:
    assert strength_of(failure("get-overtakes-deliveries", "PUBLISH-015")) is Strength.ARGUABLE
    assert strength_of(failure("", "PUBLISH-015")) is Strength.PROMISED
    assert strength_of(failure("", "QUEUE-013")) is Strength.PROMISED
    assert strength_of(failure("age-without-number-breaks", "QUEUE-013")) is Strength.CONVENTIONAL
    assert strength_of(failure("", "CHAN-008")) is Strength.CONVENTIONAL
    assert strength_of(failure("", "TIMEOUT-016")) is Strength.PROMISED
    assert strength_of(failure("nobody-knows-it", "NONE-001")) is Strength.PROMISED


def test_the_findings_name_no_defect_that_is_none() -> None:
    named = re.findall(r"[Kk]nown\s+defects?\s+`([a-z0-9-]+)`", FINDINGS.read_text(encoding="utf-8"))
    assert named and set(named) <= set(KNOWN_DEFECTS)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_has_its_own(dialect: str) -> None:
    own = known_defects(dialect)
    assert {each.name for each in own} == {n for n, each in KNOWN_DEFECTS.items() if dialect in each.dialects}
    assert [each.requirement for each in own] == sorted(each.requirement for each in own)
    assert own or dialect == "amqp-0-9-1", "the text itself has no defects"


def test_what_rabbitmq_does_after_it_broke_is_followed_of_rabbitmq_alone() -> None:
    known = acceptor_for(dialect_named("rabbitmq-4.3"))._defects
    assert known is followed("rabbitmq-4.3") and known.transitions and known.windows
    other = acceptor_for(dialect_named("rabbitmq-4.3"), product="GarageMQ")._defects
    assert (other.transitions, other.windows, other.of_outputs) == ((), (), OUTPUT_DEFECTS)
    of_the_text = acceptor_for(dialect_named("amqp-0-9-1"), product="Qpid Broker-J")._defects
    assert (of_the_text.transitions, of_the_text.windows) == (HABITS, ())


def test_a_failure_is_as_known_only_where_its_defect_is_known_of_the_dialect() -> None:
    counted = failure("direct-replies-not-counted")
    verdicts = {dialect: is_as_known(counted, dialect) for dialect in DIALECTS}
    assert verdicts == {"amqp-0-9-1": False, "rabbitmq-3": True, "rabbitmq-4.0": True, "rabbitmq-4.3": False}
    assert not is_as_known(failure(""), "rabbitmq-3")
    assert not is_as_known(failure("nobody-knows-it"), "rabbitmq-3")


class TestVersions:
    """Which versions of its dialects have a known defect."""

    def test_one_whose_end_is_known_is_none_of_a_later_version(self) -> None:
        ended = replace(KNOWN_DEFECTS["exclusive-consumer-ignored"], versions=(versions("4.3.0", "4.3.6"),))
        assert ended.brokers == ("RabbitMQ 4.3.0 to 4.3.6",)
        for patch, is_known in ((0, True), (6, True), (7, False)):
            assert ended.is_known_of("rabbitmq-4.3", Version(4, 3, patch)) is is_known
        assert ended.is_known_of("rabbitmq-4.3"), "the version is not known"
        assert not ended.is_known_of("amqp-0-9-1", Version(4, 3, 2))

    def test_one_that_begins_within_a_dialect_is_none_of_an_earlier_version(self) -> None:
        begun = replace(KNOWN_DEFECTS["exclusive-consumer-ignored"], versions=(versions("4.3.5", None),))
        assert not begun.is_known_of("rabbitmq-4.3", Version(4, 3, 4))
        assert begun.is_known_of("rabbitmq-4.3", Version(5, 0, 0))

    def test_one_without_an_end_is_looked_for_in_versions_that_nobody_has_verified(self) -> None:
        newer = newest_verified()._replace(patch=newest_verified().patch + 3)
        defect = KNOWN_DEFECTS["exclusive-consumer-ignored"]
        assert not defect.versions
        for version in (newer, Version(4, 3, 2)):
            assert version not in VERIFIED["rabbitmq-4.3"]
            assert defect in known_defects("rabbitmq-4.3", version)
            assert is_as_known(failure(defect.name), "rabbitmq-4.3", version)


def test_a_requirement_may_have_several() -> None:
    names = {each.name for each in defects_from("CONSUME-005")}
    assert names >= {"cancel-before-consume-ok-breaks", "consume-ok-dropped"}
    assert defects_from("ACK-002") == ()
