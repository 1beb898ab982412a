"""The defects of the consumers' side are found by the search alone, which blames what is broken.

Scenarios know what to look for; the search has to come across it. What fails first depends on the sequence, as one
defect may break several promises: so the requirement has to be among those that fail first in some sequence.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from model.dialects import dialect_named
from targets.faults import FAULTS
from tests.end_to_end.runs import failed_requirements, run_suite

#: Areas of the consumer side, and of what becomes of the deliveries that consumers hold.
CONSUMERS = ("CANCEL", "QOS", "SAC", "PRIORITY", "QUORUM", "STREAM", "CONSUME", "ACK", "RECOVER", "GET")
#: Themes of the search that are about them.
THEMES = ("consumers", "traffic")

#: Faults of these areas that no search can show, and why.
NOT_BY_SEARCH: dict[str, str] = {}

SEED = 1
#: Most sequences of a search.
SEQUENCES = 600


def _area(name: str) -> str:
    return FAULTS[name].requirement.split("-")[0]


@pytest.mark.parametrize("name", [name for name in FAULTS if _area(name) in CONSUMERS and name not in NOT_BY_SEARCH])
def test_the_search_alone_finds_and_blames(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    wanted = fault.requirement
    result = run_suite(
        f"embedded:{name}", tmp_path, search_only=True, sequences=SEQUENCES, seed=SEED,
        dialect=dialect_named(fault.dialect), enough=lambda failure: failure.requirement == wanted,
        deadline=0.2, shrinking_time=0.0, themes=THEMES, hasty=True,
    )  # fmt: skip
    assert wanted in failed_requirements(result)


def test_exceptions_are_faults() -> None:
    assert set(NOT_BY_SEARCH) <= set(FAULTS)
