"""Failures that come from one cause are shown under the gravest of them, once; the data has each of them."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from rich.console import Console

from amqpspec.conformance.verdicts.habits import habits
from amqpspec.conformance.verdicts.judgement import Cause, FoundFailure, RequirementVerdict, RunResult
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.reports.extent import extent_lines
from amqpspec.reports.html import render_html
from amqpspec.reports.json_report import render_json
from amqpspec.reports.junit import render_junit
from amqpspec.reports.one_cause import in_words, shown_together
from amqpspec.reports.terminal import print_report
from tests.reports.made_up import result

MEMBERS = ("BIND-001", "GET-002", "QUEUE-007", "TX-001")
WORDS = "the broker ends the TCP connection where it has to send channel.close"


def _found(requirement: str, detail: str = "socket.closed in place of channel.close") -> FoundFailure:
    return FoundFailure(Failure(requirement, Shape.UNEXPECTED, detail, "a.1 basic.get q", "a.0 < end", (), ()), "s")


def _run(*failures: FoundFailure) -> RunResult:
    """One that found these and no others."""
    blamed = {each.failure.requirement for each in failures}
    said = tuple(RequirementVerdict(id, Verdict.FAIL if id in blamed else Verdict.PASS, 1) for id in requirements())
    made_up = replace(result(failures=False, undecided=False), requirements=said)
    return replace(made_up, failures=failures, causes=habits(failures))


RUN = _run(*map(_found, MEMBERS), _found("GET-002", "basic.get-ok"))


def _printed(run: RunResult) -> str:
    console = Console(file=io.StringIO(), record=True, width=100)
    print_report(console, run)
    return " ".join(console.export_text().split())


def test_the_terminal_lists_the_gravest_with_the_requirements_of_the_others() -> None:
    said = _printed(RUN)
    assert said.count(WORDS) == 1
    assert f"{WORDS}, in 3 other failures as well: GET-002, QUEUE-007, TX-001" in said
    heads = re.findall(r"✗ ([A-Z]+-\d+)", said)
    assert sorted(heads) == ["BIND-001", "GET-002"], "GET-002 has a failure of its own beside"


def test_it_does_so_in_the_list_of_short_lines_as_well() -> None:
    graver = [_found(id, "basic.deliver") for id in ("ACK-001", "ACK-002", "ACK-003")]
    said = _printed(_run(*graver, *map(_found, MEMBERS)))
    assert said.count(f"one cause: {WORDS}") == 1
    assert "✗ BIND-001" in said and "✗ QUEUE-007" not in said


def test_the_page_has_each_failure_once_and_each_link_leads_somewhere() -> None:
    page = render_html(RUN)
    for found in RUN.failures:
        assert page.count(f'<p class="identity">{found.failure.identity}</p>') == 1
    assert page.count(WORDS) == 1
    anchors = re.findall(r'id="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(anchors)
    under = page[page.index("The other failures of this cause") :]
    assert 'id="failure-QUEUE-007"' in under[: under.index("</details>")]


def test_gate_and_data_have_them_as_they_are() -> None:
    apart = replace(RUN, causes=())
    assert RUN.exit_code == apart.exit_code == 1
    both = [ET.fromstring(render_junit(each).encode()) for each in (RUN, apart)]
    assert len({each.get("failures") for each in both}) == 1, "the words of messages are all that differs"
    assert len(list(ET.fromstring(render_junit(RUN).encode()).iter("failure"))) == len(RUN.failures)
    told, bare = json.loads(render_json(RUN)), json.loads(render_json(apart))
    (cause,) = told.pop("causes")
    assert bare.pop("causes") == [] and told == bare
    assert (cause["what"], cause["answer"], len(cause["under"])) == ("channel.close", "socket.closed", 3)


def test_what_is_accepted_stays_where_accepted_failures_are() -> None:
    first, *others = map(_found, MEMBERS)
    (together,) = shown_together(_run(replace(first, known="D-1"), *others))
    assert [each.failure.requirement for each in (together.first, *together.others)] == list(MEMBERS[1:])
    known = [replace(each, known="D-1") for each in (first, *others)]
    assert list(shown_together(_run(*known[:3], others[-1]))) == []


def test_it_is_no_reason_why_sequences_were_not_judged() -> None:
    assert extent_lines(RUN) == []


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (Cause("A|b|c", "x of a.b", "channel.close 406", 1), "the broker answers x of a.b by channel.close 406"),
        (Cause("A|b|c", "tx.select", "", 1), "the broker never answers tx.select"),
        (Cause("A|b|c", "channel.close", "socket.closed", 0), WORDS),
    ],
)  # fmt: skip
def test_a_cause_in_words(cause: Cause, words: str) -> None:
    assert in_words(cause) == words


def test_junit_names_the_cause_once_and_the_first_failure_under_it() -> None:
    messages = [each.get("message") or "" for each in ET.fromstring(render_junit(RUN).encode()).iter("failure")]
    assert sum(each.startswith(f"one cause: {WORDS}, in 3 other failures as well") for each in messages) == 1
    assert sum(each.startswith(f"under BIND-001, of one cause ({WORDS}); ") for each in messages) == 3
    assert len(messages) == 5
