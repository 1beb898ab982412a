"""The defects of the consumers' and of the publishers' side are found by the search alone, which blames what is broken.

Those of `LONG` take it more sequences than the others; `python -m benchmarks detection` runs them all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amqpspec.conformance import workers
from amqpspec.conformance.search.machine import Made
from amqpspec.conformance.search.round import make_round
from amqpspec.model.promises.choices import Dialect
from amqpspec.targets.faults.all_faults import FAULTS
from tests.end_to_end.fault_searches import THEMES, area, search_for
from tests.end_to_end.runs import failed_requirements

#: Those of the publishers' side that more than twenty sequences were needed for: these would take the tests minutes.
LONG = frozenset({
    "body-cut-at-frame", "byte-limit-ignored", "byte-limit-one-too-low", "commit-settles-nothing",
    "commit-without-select", "dead-letters-reversed", "death-count-stays-one", "deletion-forgets-confirms",
    "dropped-by-limit-not-dead-lettered", "dropped-by-limit-said-to-be-rejected", "empty-body-filled",
    "expiration-kept", "failed-commit-hidden", "follower-expires-early", "further-keys-ignored",
    "given-back-lives-on", "header-dropped", "header-of-another-type", "headers-any-means-all",
    "message-id-lost", "quorum-refuses-at-its-limit", "refused-publish-not-dead-lettered",
    "routing-ignores-key", "several-queues-not-confirmed", "topic-hash-needs-a-word", "topic-star-is-hash",
    "tx-in-confirm-mode", "unacknowledged-expires",
})  # fmt: skip

_made: dict[tuple[Any, ...], list[Made]] = {}


def _make_round_once(dialect: Dialect, *arguments: Any, **others: Any) -> list[Made]:
    """Searches with one seed begin with the same sequences, whatever the broker does: those are half of their work."""
    asked = (dialect.name, *arguments, *sorted(others.items()))
    if asked not in _made:
        _made[asked] = make_round(dialect, *arguments, **others)
    return _made[asked]


@pytest.fixture(autouse=True)
def rounds_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "make_round", _make_round_once)


@pytest.mark.parametrize("name", [name for name in FAULTS if area(name) in THEMES and name not in LONG])
def test_the_search_alone_finds_and_blames(name: str, tmp_path: Path) -> None:
    assert FAULTS[name].requirement in failed_requirements(search_for(name, tmp_path))


def test_exceptions_are_faults() -> None:
    assert set(FAULTS) >= LONG
