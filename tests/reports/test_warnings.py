"""What the text only recommends is a warning in every report, with its sentence, and fails no run."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from amqpspec.conformance.verdicts.gate import Gate, is_warning, through
from amqpspec.conformance.verdicts.judgement import RunResult, SequenceJudgement, is_harmless_only
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.reports.html import render_html
from amqpspec.reports.junit import render_junit
from amqpspec.reports.markdown import render_markdown
from amqpspec.reports.overview import headline
from tests.reports.made_up import ACK
from tests.reports.test_as_known import terminal
from tests.reports.test_strength import of

RETURN = Failure("PUBLISH-007", Shape.MISSING, "basic.return", "a.1 basic.publish x mandatory", "nothing", (), ())
SENTENCE = 'basic.publish: "The server SHOULD implement the mandatory flag."'


def judged(*failures: Failure, dialect: str = "amqp-0-9-1", gate: Gate = Gate.PROMISE) -> RunResult:
    run = of(*failures)
    return through(replace(run, defects=(), target=replace(run.target, product="MyBroker", dialect=dialect)), gate)


@pytest.mark.parametrize("gate", Gate)
def test_it_fails_no_run_and_is_counted_apart(gate: Gate) -> None:
    run = judged(RETURN, gate=gate)
    assert is_warning(run.failures[0])
    assert (run.exit_code, headline(run)) == (0, "Conforms, but for 1 warning")
    grave = judged(RETURN, ACK, gate=gate)
    assert (grave.exit_code, headline(grave)) == (1, "Deviates from the promise: 1 new failure, and 1 warning")


def test_of_rabbitmq_more_than_the_text_is_demanded() -> None:
    assert judged(RETURN, dialect="rabbitmq-4.3").exit_code == 1


def test_a_terminal_has_another_sign_for_it() -> None:
    (line,) = [each for each in terminal(judged(RETURN)).splitlines() if "PUBLISH-007" in each]
    assert line.startswith("! PUBLISH-007") and "warning" in line


def test_reports_have_the_sentence() -> None:
    run = judged(RETURN)
    page = render_html(run)
    assert "! warning</span>" in page and "✗ fail</span>" not in page
    assert "The server SHOULD implement the mandatory flag." in page
    assert f"warning: {SENTENCE}" in render_markdown(run)


def test_in_junit_it_is_no_failure_and_says_that_it_is_a_warning() -> None:
    tree = ET.fromstring(render_junit(judged(RETURN)))
    assert tree.findall(".//failure") == []
    (case,) = [each for each in tree.iter("testcase") if each.attrib["name"].startswith("PUBLISH-007 ")]
    (skipped,) = case.findall("skipped")
    assert skipped.attrib["message"] == f"warning: {SENTENCE}"


def test_a_sequence_with_a_warning_only_fails_nothing() -> None:
    one = SequenceJudgement("s", "t", "amqp-0-9-1", None, Verdict.FAIL, (RETURN,), {}, None, 1, product="MyBroker")
    assert is_harmless_only(one)
