"""Scenarios of a requirement, what is related to it, and the search."""

from __future__ import annotations

from amqpspec.model.promises.registry import requirements
from amqpspec.reports.requirement_relations import MOST_RELATED, related, scenarios_of, search


def test_it_is_found_by_words_of_its_title_first() -> None:
    assert search("prefetch basic.get")[0].id == "GET-003"
    assert search("ACK-003")[0].id == "ACK-003"
    assert search("Multiple TAG 0")[0].id == "ACK-003"


def test_every_word_counts_and_nothing_is_found_for_none() -> None:
    assert search("") == search("zzz") == []
    both = {each.id for each in search("reject-publish quorum")}
    assert "CONFIRM-014" in both
    assert both < {each.id for each in search("reject-publish")}


def test_words_that_stand_nowhere_together_find_those_that_have_the_most() -> None:
    assert [each.id for each in search("prefetch basic.get zzz")] == [each.id for each in search("prefetch basic.get")]


def test_related_ones_are_there_are_few_and_not_itself() -> None:
    for id in requirements():
        others = related(id)
        assert id not in others and set(others) <= requirements().keys()
        assert len(set(others)) == len(others) <= MOST_RELATED
    assert related("ACK-013")[0] == "QUORUM-002"
    assert "ACK-013" in related("QUORUM-002")


def test_each_scenario_is_listed_once() -> None:
    assert [each.name for each in scenarios_of()["ACK-003"]] == ["ACK-003"]
