"""The search alone against a broker with a planted defect: which themes it has, and how long it may take.

Scenarios know what to look for; the search has to come across it. What fails first depends on the sequence, as one
defect may break several promises: so the requirement has to be among those that fail first in some sequence.
"""

from __future__ import annotations

from pathlib import Path

from amqpspec.conformance.verdicts.judgement import RunResult
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.targets.faults.all_faults import FAULTS
from tests.end_to_end.runs import run_suite

#: Areas of the consumer side, and of what becomes of the deliveries that consumers hold.
CONSUMERS = ("CANCEL", "QOS", "SAC", "PRIORITY", "QUORUM", "STREAM", "CONSUME", "ACK", "RECOVER", "GET")
#: Areas of the publisher side, and of what becomes of messages that their queue does not keep.
PUBLISHERS = ("PUBLISH", "CONFIRM", "TX", "OVERFLOW", "TTL", "DLX")
#: The themes of the search that are about the areas.
THEMES = {
    **dict.fromkeys(CONSUMERS, ("consumers", "traffic")),
    **dict.fromkeys(PUBLISHERS, ("publishing",)),
    "PUBLISH": ("topology", "publishing"),
}

SEED = 1
#: Most sequences of a search.
SEQUENCES = 600


def area(name: str) -> str:
    return FAULTS[name].requirement.split("-")[0]


def search_for(name: str, directory: Path) -> RunResult:
    """A search of at most `SEQUENCES` that ends when the fault's requirement is blamed. The trace is in `directory`."""
    fault = FAULTS[name]
    return run_suite(
        f"embedded:{name}", directory, search_only=True, sequences=SEQUENCES, seed=SEED,
        dialect=dialect_named(fault.dialect), enough=lambda failure: failure.requirement == fault.requirement,
        deadline=0.2, shrinking_time=0.0, themes=THEMES[area(name)], fast_forward=True,
    )  # fmt: skip
