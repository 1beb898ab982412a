"""A rule that is kept by doing nothing passes only where the feature was seen."""

from __future__ import annotations

import pytest

from amqpspec.conformance.verdicts.grounds import GROUNDS
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.conformance.verdicts.run_tally import RunTally
from amqpspec.conformance.verdicts.tally import Tally
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.pipeline.table import compliance_table

NEVER_SENT = ("CONFIRM-018", 1)
SHOWN = ("CONFIRM-002", 3)


def _sequence(*exercised: tuple[str, int], fails: str = "", defect: str = "") -> SequenceJudgement:
    failures = (Failure(fails, Shape.MISSING, "basic.ack", "c", "nothing", (), (), defect),) if fails else ()
    verdict = Verdict.FAIL if fails else Verdict.PASS
    return SequenceJudgement("s", "t", "rabbitmq-4.3", None, verdict, failures, dict(exercised), None, 9)


@pytest.mark.parametrize(
    ("sequences", "verdict"),
    [
        ([_sequence(NEVER_SENT)], Verdict.NOT_EXERCISED),
        ([_sequence(NEVER_SENT, SHOWN)], Verdict.PASS),
        ([_sequence(NEVER_SENT), _sequence(SHOWN)], Verdict.PASS),
        # what was kept here and broken there shows nothing
        ([_sequence(NEVER_SENT, SHOWN), _sequence(fails="CONFIRM-002")], Verdict.NOT_EXERCISED),
        ([_sequence(NEVER_SENT, SHOWN), _sequence(fails="CONFIRM-018")], Verdict.FAIL),
    ],
)
def test_it_passes_only_where_the_feature_was_seen(sequences: list[SequenceJudgement], verdict: Verdict) -> None:
    tally, sums = RunTally(), Tally()
    for each in sequences:
        tally.add(each)
        sums.add(each)
    assert tally.verdict("CONFIRM-018") is verdict
    said = tally.requirements([requirements()["CONFIRM-018"]], "rabbitmq-4.3")[0]
    assert (said.reason is not None and "CONFIRM-002" in said.reason) is (verdict is Verdict.NOT_EXERCISED)
    rows = {row.verdict for row in compliance_table(sums).rows if row.requirement == "CONFIRM-018"}
    assert str(verdict) in rows
    assert verdict is not Verdict.NOT_EXERCISED or str(Verdict.PASS) not in rows


def test_every_rule_that_is_named_is_in_the_registry() -> None:
    assert {*GROUNDS, *(each for shown in GROUNDS.values() for each in shown)} <= set(requirements())


def test_no_ground_needs_a_ground() -> None:
    assert not set(GROUNDS) & {each for rule, shown in GROUNDS.items() if rule != "QUORUM-004" for each in shown}
