"""No difference between versions is without a class and a source, and docs/versions.md says what the data says."""

from __future__ import annotations

import pytest

from amqpspec.model.defects.known_defects import defects_from
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.model.promises.differences import Difference, DifferenceClass
from amqpspec.model.promises.differences_of_choices import ARGUMENTS, CHOICES
from amqpspec.model.promises.differences_of_requirements import REQUIREMENTS
from amqpspec.model.promises.registry import requirements
from tests.model.promises.versions_page import (
    PAGE,
    classes_of,
    differing_arguments,
    differing_choices,
    page,
    to_be_classed,
)

ALL: dict[str, Difference] = {**CHOICES, **ARGUMENTS, **REQUIREMENTS}


def test_each_choice_in_which_dialects_differ_has_a_class() -> None:
    assert sorted(CHOICES) == sorted(differing_choices())
    assert sorted(ARGUMENTS) == sorted(differing_arguments())


@pytest.mark.parametrize("id", [each.id for each in to_be_classed()])
def test_each_requirement_that_differs_by_version_or_was_observed_has_a_class(id: str) -> None:
    assert classes_of(id)


def test_nothing_is_classed_that_is_no_difference() -> None:
    needed = {each.id for each in to_be_classed()}
    named = {id for difference in ALL.values() for id in difference.requirements}
    assert named <= set(requirements())
    # a choice may show in requirements whose note is the same for all versions, a class of its own may not
    assert set(REQUIREMENTS) - needed == set()


@pytest.mark.parametrize("name", ALL)
def test_each_class_has_a_source(name: str) -> None:
    difference = ALL[name]
    assert difference.source.strip()
    assert set(difference.either_in) <= set(DIALECTS)


@pytest.mark.parametrize("name", ALL)
def test_what_no_text_promises_is_allowed_both_ways(name: str) -> None:
    """By the judge in the dialects that are named, or by what else is said."""
    difference = ALL[name]
    if difference.kind is DifferenceClass.FREE:
        assert bool(difference.either_in) is not bool(difference.allowed_by)
    else:
        assert not difference.allowed_by


@pytest.mark.parametrize("id", REQUIREMENTS)
def test_what_is_a_defect_of_a_version_is_known_as_one(id: str) -> None:
    """What a broker that keeps the promise does is right, so the other is a known defect."""
    difference = REQUIREMENTS[id]
    if difference.kind is DifferenceClass.DEFECT:
        assert defects_from(difference.as_of or id)


def test_a_documented_promise_is_not_what_a_broken_version_does() -> None:
    """Where the notes say "broken", the class is that of a defect."""
    for each in to_be_classed():
        if any("broken" in note for note in each.dialects.values()):
            assert DifferenceClass.DEFECT in {difference.kind for _, difference in classes_of(each.id)}, each.id


def test_the_page_says_what_the_data_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.model.promises.versions_page"
