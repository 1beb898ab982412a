"""What the text only recommends is a warning in every report, with its sentence, and fails no run."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import date

import pytest

from amqpspec.conformance.verdicts.deviations import Deviation, with_deviations
from amqpspec.conformance.verdicts.deviations_to_write import deviations_of
from amqpspec.conformance.verdicts.gate import Gate, is_warning, through
from amqpspec.conformance.verdicts.judgement import (
    RunResult,
    Said,
    SequenceJudgement,
    is_harmless_only,
    requirement_verdicts,
)
from amqpspec.conformance.verdicts.run_tally import RunTally
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.reports.badge import render_badge
from amqpspec.reports.html import render_html
from amqpspec.reports.json_report import render_json
from amqpspec.reports.junit import render_junit
from amqpspec.reports.markdown import render_markdown
from amqpspec.reports.overview import headline
from amqpspec.reports.summary import render_summary
from tests.reports.made_up import ACK
from tests.reports.test_as_known import terminal
from tests.reports.test_strength import of

RETURN = Failure("PUBLISH-007", Shape.MISSING, "basic.return", "a.1 basic.publish x mandatory", "nothing", (), ())
SENTENCE = 'basic.publish: "The server SHOULD implement the mandatory flag."'


def judged(*failures: Failure, dialect: str = "amqp-0-9-1", gate: Gate = Gate.PROMISE) -> RunResult:
    """What a sequence with these failures leaves of a run."""
    run = of(*failures)
    one = SequenceJudgement("s", "t", dialect, None, Verdict.FAIL, failures, {}, None, 1, product="MyBroker")
    said = requirement_verdicts(one)
    outcomes = tuple(
        replace(each, verdict=said[each.id].verdict) if each.id in said else each for each in run.requirements
    )
    target = replace(run.target, product="MyBroker", dialect=dialect)
    return through(replace(run, defects=(), requirements=outcomes, target=target), gate)


@pytest.mark.parametrize("gate", Gate)
def test_it_fails_no_run_and_is_counted_apart(gate: Gate) -> None:
    run = judged(RETURN, gate=gate)
    assert is_warning(run.failures[0])
    assert (run.exit_code, headline(run)) == (0, "Conforms, but for 1 warning")
    grave = judged(RETURN, ACK, gate=gate)
    assert (grave.exit_code, headline(grave)) == (1, "Deviates from the promise: 1 new failure, and 1 warning")


def test_of_rabbitmq_more_than_the_text_is_demanded() -> None:
    assert judged(RETURN, dialect="rabbitmq-4.3").exit_code == 1


def test_it_counts_as_a_pass_everywhere() -> None:
    run = judged(RETURN)
    clean = replace(run, failures=())
    assert run.summary[Verdict.FAIL] == 0
    written = json.loads(render_json(run))
    assert written["summary"] == written["summary_as_known"] == clean.summary
    (outcome,) = [each for each in written["requirements"] if each["id"] == "PUBLISH-007"]
    assert (outcome["verdict"], outcome["as_known"]) == ("pass", "pass")
    assert [each["known"] for each in written["failures"]] == ["only recommended"]
    assert render_badge(run) == render_badge(clean) and "accepted" not in render_badge(run)
    sums = [line for line in terminal(run).splitlines() if line.startswith("requirements ")]
    assert sums == [line for line in terminal(clean).splitlines() if line.startswith("requirements ")]
    assert f"| {clean.summary[Verdict.PASS]} |" in render_summary(run)
    assert judged(RETURN, replace(RETURN, shape=Shape.UNEXPECTED)).summary[Verdict.FAIL] == 1


def test_of_all_sequences_one_that_breaks_the_promise_counts() -> None:
    one = SequenceJudgement("s", "t", "amqp-0-9-1", None, Verdict.FAIL, (RETURN,), {}, None, 1)
    grave = replace(one, sequence="u", failures=(replace(RETURN, shape=Shape.UNEXPECTED),))
    tally = RunTally()
    tally.add(one)
    assert tally.verdict("PUBLISH-007") is Verdict.PASS
    tally.add(grave)
    assert tally.verdict("PUBLISH-007") is Verdict.FAIL
    of_the_scenario = replace(one, requirement="PUBLISH-007")
    assert requirement_verdicts(of_the_scenario) == {"PUBLISH-007": Said(Verdict.PASS, Verdict.PASS, 1)}
    of_rabbitmq = replace(one, dialect="rabbitmq-4.3")
    assert requirement_verdicts(of_rabbitmq)["PUBLISH-007"].verdict is Verdict.FAIL


def test_a_deviation_file_neither_lists_it_nor_takes_it_for_more() -> None:
    run = judged(RETURN, ACK)
    bare = replace(run, failures=tuple(replace(found, known=None) for found in run.failures))
    assert [each.identity for each in deviations_of(bare, date(2027, 1, 1))] == [ACK.identity]
    listed = Deviation(RETURN.identity, "we know")
    assert with_deviations(run, [listed]).failures == run.failures


def test_a_terminal_has_another_sign_for_it() -> None:
    (line,) = [each for each in terminal(judged(RETURN)).splitlines() if "PUBLISH-007" in each]
    assert line.startswith("! PUBLISH-007") and "warning" in line


def test_reports_have_the_sentence() -> None:
    run = judged(RETURN)
    page = render_html(run)
    assert "! pass, warning</span>" in page and "✗ fail</span>" not in page
    assert '<a class="cell warning" href="#failure-PUBLISH-007"' in page
    assert "The server SHOULD implement the mandatory flag." in page
    assert f"warning: {SENTENCE}" in render_markdown(run)


def test_in_junit_it_is_a_pass_that_says_the_sentence() -> None:
    tree = ET.fromstring(render_junit(judged(RETURN)))
    assert tree.findall(".//failure") == []
    (case,) = [each for each in tree.iter("testcase") if each.attrib["name"].startswith("PUBLISH-007 ")]
    assert [each.tag for each in case] == ["system-out"]
    assert (case[0].text or "").startswith(f"warning: {SENTENCE}\n")


def test_a_sequence_with_a_warning_only_fails_nothing() -> None:
    one = SequenceJudgement("s", "t", "amqp-0-9-1", None, Verdict.FAIL, (RETURN,), {}, None, 1, product="MyBroker")
    assert is_harmless_only(one)
