"""The judge never raises, whatever comes. `python -m tests.fuzz` is the same with more mutants."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from amqpspec.conformance.traces.trace_row import row_line, row_problem
from tests.fuzz.fuzzing import Found, fuzzed
from tests.fuzz.mutants import Mutants
from tests.planted import WHAT, break_judge

pytestmark = pytest.mark.quick

SEED = 40
#: Several tests, so that they are spread over processes.
SHARES, OF_ONE = 8, 250


@cache
def mutants() -> Mutants:
    return Mutants()


@pytest.mark.parametrize("share", range(SHARES))
def test_each_mutant_ends_in_a_verdict(share: int) -> None:
    found = fuzzed(mutants(), SEED, range(share * OF_ONE, (share + 1) * OF_ONE))
    named = [f"{error}: mutant {mutant.number} of seed {SEED}" for error, (mutant, _) in found.raised.items()]
    assert not named, "\n".join(named)
    assert found.verdicts.total() == 3 * OF_ONE and min(found.verdicts["pass"], found.verdicts["fail"]) > OF_ONE / 5


def test_a_mutant_is_made_by_its_number_and_is_a_recording() -> None:
    made = mutants().made(SEED, 7)
    assert made == mutants().made(SEED, 7) != mutants().made(SEED, 8)
    for number in range(200):
        for row in mutants().made(SEED, number).rows:
            assert row_problem(dict(row)) is None and row_line(row)


def test_all_kinds_of_mutations_are_done() -> None:
    done = Counter(word for number in range(600) for word in mutants().made(SEED, number).done)
    assert len(done) == 14 and min(done.values()) > 5


def test_what_is_raised_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    break_judge(monkeypatch, "basic.get")
    found: Found = fuzzed(mutants(), SEED, range(20))
    assert any(WHAT in error for error in found.raised)
