"""How strong a promise is that a failure breaks: every report says so, and what is only arguable fails no run."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from rich.console import Console

from amqpspec.conformance.verdicts.events import FailureShrunk
from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult, SequenceJudgement, is_harmless_only
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.pipeline.table import ComplianceTable, TableFailure, TableRow
from amqpspec.reports.as_known import headline_as_known
from amqpspec.reports.html import render_html
from amqpspec.reports.json_report import render_json
from amqpspec.reports.junit import render_junit
from amqpspec.reports.live_display import LiveDisplay
from amqpspec.reports.markdown import render_markdown
from amqpspec.reports.overview import headline, notes
from tests.reports.made_up import ACK, result
from tests.reports.test_as_known import terminal

#: Known defects that can be argued, the second of other versions only; and a failure that nobody knows, of what is a
#: convention.
ARGUABLE = replace(ACK, requirement="PUBLISH-015", defect="get-overtakes-deliveries")
OTHER = replace(ACK, requirement="DLX-005", defect="stream-takes-no-dead-letters")
CONVENTIONAL = replace(ACK, requirement="CHAN-008")


def of(*failures: Failure, known: str | None = None) -> RunResult:
    """A run that found these failures, and decided everything."""
    whole = result(failures=False, undecided=False)
    blamed = {failure.requirement for failure in failures}
    outcomes = tuple(
        replace(outcome, verdict=Verdict.FAIL if outcome.id in blamed else outcome.verdict)
        for outcome in whole.requirements
        if outcome.verdict is not Verdict.INCONCLUSIVE
    )
    found = tuple(FoundFailure(failure, "search 1", ("a.1 basic.get q",), known=known) for failure in failures)
    return replace(whole, failures=found, requirements=outcomes)


def test_what_is_only_arguable_fails_no_run_and_says_so_in_a_sentence_of_its_own() -> None:
    arguable = of(ARGUABLE, OTHER)
    assert arguable.exit_code == 0
    assert headline(arguable) == "Conforms, but for 2 arguable failures"
    one_known = replace(arguable, failures=(replace(arguable.failures[0], known="D-1"), arguable.failures[1]))
    assert headline(one_known) == (
        "Deviates from the promise only as accepted: 1 arguable failure, and 1 accepted known defect"
    )


@pytest.mark.parametrize("other", [ACK, CONVENTIONAL])
def test_what_is_promised_or_conventional_fails_it_and_is_counted_apart(other: Failure) -> None:
    both = of(ARGUABLE, other)
    assert both.exit_code == 1
    assert headline(both) == "Deviates from the promise: 1 new failure, and 1 arguable failure"
    assert of(ARGUABLE, other, known="D-1").exit_code == 0


def test_an_arguable_failure_does_not_hide_that_something_was_undecided_or_lost() -> None:
    undecided = replace(of(ARGUABLE), undecided=(("search 3", "too many explanations"),), sequences=1)
    assert undecided.exit_code == 4
    assert headline(undecided) == "Inconclusive: not everything could be decided, and 1 arguable failure"
    assert replace(of(ARGUABLE), lost="gone").exit_code == 3


@pytest.mark.parametrize(
    ("failure", "strength"), [(ARGUABLE, "arguable"), (CONVENTIONAL, "conventional"), (ACK, "promised")]
)
def test_every_report_says_of_the_failure_how_strong_it_is(failure: Failure, strength: str) -> None:
    shown = of(failure)
    (found,) = shown.failures
    said = notes(found, shown.target.dialect, shown.target.judged_version)
    assert said[2] == strength
    assert f", {strength}" in terminal(shown)
    assert f"_{', '.join(said)}_" in render_markdown(shown)
    assert json.loads(render_json(shown))["failures"][0]["strength"] == strength
    (told,) = re.findall(r'<p class="notes">(.*?)</p>', render_html(shown))
    assert re.findall(r"<span[^>]*>(.*?)</span>", told) == list(said)
    cases = ET.fromstring(render_junit(shown)).iter("testcase")
    ((outcome,),) = [case for case in cases if case.attrib["name"].startswith(f"{failure.requirement} ")]
    assert strength in outcome.attrib["message"]


class TestArguableAndNotKnown:
    """A known defect of others: the failure fails no run here either, and no report calls it new."""

    SHOWN = replace(of(OTHER), defects=())

    def test_it_is_not_new(self) -> None:
        (found,) = self.SHOWN.failures
        assert not self.SHOWN.is_as_known(found) and self.SHOWN.exit_code == 0
        said = notes(found, self.SHOWN.target.dialect, self.SHOWN.target.judged_version)
        assert "new" not in said and "arguable" in said
        said_as_known = headline_as_known(self.SHOWN)
        assert said_as_known is not None and said_as_known.startswith("Behaves as RabbitMQ 4.3 is known to")
        assert said_as_known.endswith(": no new failure; 1 arguable failure that is not known")
        page = render_html(self.SHOWN)
        assert "✗ new" not in page and "This is no known defect of RabbitMQ 4.3" in page
        assert "fails, and fails no run: accepted by the gate or the deviation file, minor, or only arguable" in page

    def test_one_that_fails_the_run_is(self) -> None:
        page = render_html(of(ACK))
        assert "✗ new" in page and '<span class="new">new</span>' in page


@pytest.mark.parametrize(("failure", "strength"), [(ARGUABLE, "arguable"), (CONVENTIONAL, "conventional")])
def test_the_live_display_says_it_of_each_failure(failure: Failure, strength: str) -> None:
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        LiveDisplay(console)(FailureShrunk(of(failure).failures[0]))
    assert capture.get().rstrip().endswith(strength)


def test_in_the_object_failures_and_known_defects_have_a_strength() -> None:
    told = json.loads(render_json(of(ARGUABLE, CONVENTIONAL)))
    assert sorted(each["strength"] for each in told["failures"]) == ["arguable", "conventional"]
    assert {each["strength"] for each in told["known_defects"]} == {"promised", "conventional", "arguable"}


def test_what_fails_a_build_is_what_fails_the_run() -> None:
    assert not ET.fromstring(render_junit(of(ARGUABLE))).findall(".//failure")
    assert len(ET.fromstring(render_junit(of(ARGUABLE, CONVENTIONAL))).findall(".//failure")) == 1


def test_traces_that_are_judged_again_are_treated_alike() -> None:
    def table(*failures: Failure) -> ComplianceTable:
        rows = tuple(TableRow(each.requirement, "t", "rabbitmq-4.3", "fail", "fail", 1, 1) for each in failures)
        found = tuple(TableFailure("t", "rabbitmq-4.3", each, 1, "s") for each in failures)
        return ComplianceTable(rows, found, 1, 1)

    assert table(ARGUABLE, OTHER).exit_code == 0
    assert table(ARGUABLE, CONVENTIONAL).exit_code == 1


def test_a_sequence_that_is_only_arguable() -> None:
    def judged(*failures: Failure) -> SequenceJudgement:
        verdict = Verdict.FAIL if failures else Verdict.PASS
        return SequenceJudgement("s", "t", "rabbitmq-4.3", None, verdict, failures, {}, None, 1)

    assert is_harmless_only(judged(ARGUABLE))
    assert not is_harmless_only(judged(ARGUABLE, ACK))
    assert not is_harmless_only(judged())
