"""A scenario that was ended by a failure of another requirement is no ground for a pass of its own."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from amqpspec.conformance.verdicts.judgement import RequirementVerdict, SequenceJudgement
from amqpspec.conformance.verdicts.run_tally import RunTally
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.reports.html import render_html
from amqpspec.reports.json_report import render_json
from amqpspec.reports.overview import CUT_SIGN, entries
from tests.reports.made_up import result

CUT = "DLX-001|missing frame|messages ready"


def _scenario(
    name: str, exercised: int, fails: str | None = "DLX-001", ended_by: str | None = CUT
) -> SequenceJudgement:
    failures = (Failure(fails, Shape.MISSING, "messages ready", "c", "nothing", (), ()),) if fails else ()
    verdict = Verdict.FAIL if fails else Verdict.PASS
    return SequenceJudgement(
        name, "t", "rabbitmq-4.3", "TTL-001", verdict, failures, {"TTL-001": exercised}, None, 9, ended_by=ended_by
    )


@pytest.mark.parametrize(
    ("sequences", "verdict", "is_cut"),
    [
        # ended by another failure: what it was still to show was not seen
        ([_scenario("scenario TTL-001 classic", 2)], Verdict.NOT_EXERCISED, True),
        # another scenario, or a search, decides it
        ([_scenario("scenario TTL-001 a", 2), _scenario("scenario TTL-001 b", 1, None, None)], Verdict.PASS, True),
        ([_scenario("scenario TTL-001 classic", 2, ended_by=None)], Verdict.PASS, False),
        ([_scenario("scenario TTL-001 classic", 2, fails="TTL-001")], Verdict.FAIL, False),
        ([_scenario("scenario A", 0, None, None), _scenario("scenario B", 2)], Verdict.NOT_EXERCISED, True),
    ],
)
def test_a_scenario_that_was_cut_short_decides_nothing_by_itself(
    sequences: list[SequenceJudgement], verdict: Verdict, is_cut: bool
) -> None:
    tally = RunTally()
    for each in sequences:
        tally.add(each)
    (said,) = tally.requirements([requirements()["TTL-001"]], "rabbitmq-4.3")[:1]
    assert (said.verdict, said.cut_short_by) == (verdict, CUT if is_cut else None)
    assert verdict is not Verdict.NOT_EXERCISED or (said.reason is not None and CUT in said.reason)


def test_a_known_defect_cuts_nothing_short() -> None:
    """Scenarios are made beside what is known."""
    known = Failure("QUEUE-026", Shape.WRONG_ARGUMENT, "x", "", "o", (), (), defect="quorum-consumer-count")
    one = replace(_scenario("scenario TTL-001 classic", 2), failures=(known,), ended_by=known.identity)
    tally = RunTally()
    tally.add(one)
    assert tally.verdict("TTL-001") is Verdict.PASS


def test_a_pass_beside_a_scenario_that_was_cut_short_is_marked() -> None:
    said = RequirementVerdict("TTL-001", Verdict.PASS, 1, cut_short_by=CUT)
    run = replace(result(failures=False, undecided=False), requirements=(said,))
    (entry,) = entries(run)
    assert (entry.sign, entry.outcome_words) == (CUT_SIGN, "pass, scenario cut short")
    page = render_html(run)
    assert f"cut short by {CUT}" in page and 'class="cell cut-short"' in page
    assert json.loads(render_json(run))["requirements"][0]["cut_short_by"] == CUT
