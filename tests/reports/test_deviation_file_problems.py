"""A deviation file that is out of date fails the run, and every report says so."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

from amqpspec.conformance.verdicts.judgement import RunResult
from amqpspec.model.promises.verdict import Verdict
from amqpspec.reports.badge import render_badge
from amqpspec.reports.html import render_html
from amqpspec.reports.json_report import render_json
from amqpspec.reports.junit import render_junit
from amqpspec.reports.markdown import render_markdown
from amqpspec.reports.overview import headline
from tests.reports.made_up import result
from tests.reports.test_as_known import terminal

PROBLEM = "ACK-003|missing frame|basic.deliver: it expired on 2026-01-01"


def out_of_date() -> RunResult:
    """A run that found nothing, with such a file."""
    whole = result(failures=False, undecided=False)
    decided = tuple(
        each for each in whole.requirements if each.verdict not in (Verdict.FAIL, Verdict.INCONCLUSIVE)
    )
    return replace(whole, requirements=decided, problems=(PROBLEM,))


def test_every_report_says_so() -> None:
    broken = out_of_date()
    assert (broken.exit_code, replace(broken, problems=()).exit_code) == (1, 0)
    assert headline(broken) == "The deviation file is out of date: 1 problem"
    for text in (terminal(broken), render_markdown(broken), render_html(broken)):
        assert "The deviation file is out of date" in text and "it expired on 2026-01-01" in text
    assert json.loads(render_json(broken))["problems"] == [PROBLEM]
    assert "deviation file out of date" in render_badge(broken)


def test_a_build_fails_by_it() -> None:
    cases = ET.fromstring(render_junit(out_of_date())).iter("testcase")
    failed = [(each.attrib["name"], each[0].attrib["message"]) for each in cases if each.find("failure") is not None]
    assert failed == [("the deviation file is up to date", PROBLEM)]
