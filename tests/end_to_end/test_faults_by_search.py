"""The defects of the consumers' and of the publishers' side are found by the search alone, which blames what is broken.

Those of `LONG` take it more sequences than the others; `python -m benchmarks detection` runs them all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize("name", [name for name in FAULTS if area(name) in THEMES and name not in LONG])
def test_the_search_alone_finds_and_blames(name: str, tmp_path: Path) -> None:
    assert FAULTS[name].requirement in failed_requirements(search_for(name, tmp_path))


def test_exceptions_are_faults() -> None:
    assert set(FAULTS) >= LONG
