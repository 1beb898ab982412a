"""Who reads about many failures sees first those that hurt an application most, and reads what each does to it."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

from rich.console import Console

from amqpspec.model.promises.severity import Severity, severity_of
from amqpspec.model.promises.verdict import Shape
from amqpspec.reports.html import render_html
from amqpspec.reports.json_report import render_json
from amqpspec.reports.junit import render_junit
from amqpspec.reports.markdown import render_markdown
from amqpspec.reports.overview import headline, notes, severity_line
from amqpspec.reports.summary import render_summary
from amqpspec.reports.terminal import print_report
from tests.reports.made_up import ACK
from tests.reports.test_as_known import terminal
from tests.reports.test_strength import of

WORDS = replace(ACK, requirement="CHAN-008", shape=Shape.WRONG_ARGUMENT, detail="channel.close reply-text")
TWICE = replace(ACK, requirement="ACK-001", shape=Shape.UNEXPECTED)
LOST = replace(ACK, requirement="PUBLISH-002")
#: of the same requirement as `LOST`, and worse than `WORDS` only
CLOSED = replace(LOST, shape=Shape.UNEXPECTED, detail="connection.close", observed="a < connection.close")
#: of several requirements each, in the order of the registry and of the run
SHOWN = of(TWICE, WORDS, CLOSED, LOST)
IN_ORDER = ["PUBLISH-002", "ACK-001", "CHAN-008"]


def test_the_terminal_has_the_gravest_first() -> None:
    shown = terminal(SHOWN)
    assert [shown.index(f"✗ {each}") for each in IN_ORDER] == sorted(shown.index(f"✗ {each}") for each in IN_ORDER)
    assert all(str(each) in shown for each in (Severity.LOST, Severity.REPEATED, Severity.CLOSED, Severity.WRONG_WORDS))
    assert severity_line(SHOWN) in shown.splitlines()


def test_markdown_and_html_have_it_first_and_all_that_its_requirement_failed_in_with_it() -> None:
    written = re.findall(r"^## (\S+-\d{3}) ", render_markdown(SHOWN), re.MULTILINE)
    assert list(dict.fromkeys(written)) == IN_ORDER
    html = render_html(SHOWN)
    assert re.findall(r'<article id="failure-(\S+?)"', html) == IN_ORDER
    told = re.findall(r'<p class="notes"><span>(.*?)</span>', html)
    assert told == [Severity.LOST, Severity.CLOSED, Severity.REPEATED, Severity.WRONG_WORDS]


def test_junit_has_it_at_the_head_and_in_the_message() -> None:
    suite = ET.fromstring(render_junit(SHOWN).encode())[0]
    names = [case.attrib["name"].split()[0] for case in suite.iter("testcase")]
    assert names[: len(IN_ORDER)] == IN_ORDER
    messages = [each.attrib["message"].split(":")[0] for each in suite.iter("failure")]
    assert messages == [Severity.LOST, Severity.CLOSED, Severity.REPEATED, Severity.WRONG_WORDS]


def test_json_says_it() -> None:
    report = json.loads(render_json(SHOWN))
    assert [each["severity"] for each in report["failures"]] == [
        "messages lost", "duplicated or out of order", "connection or channel lost", "wrong words",
    ]  # fmt: skip


def test_a_sentence_has_the_numbers() -> None:
    assert severity_line(SHOWN) == (
        "What the failures do to an application: messages lost 1, duplicated or out of order 1,"
        " connection or channel lost 1, wrong words 1"
    )
    assert severity_line(of()) is None


def test_a_line_of_a_narrow_terminal_has_requirement_and_severity() -> None:
    failures = [replace(LOST, requirement=f"QOS-00{number}", observed="x" * 300) for number in range(1, 7)]
    shown = of(*failures)
    console = Console(width=80, force_terminal=False)
    with console.capture() as capture:
        print_report(console, shown)
    lines = [
        line for line in capture.get().splitlines() if line.startswith("✗ QOS-00") and "stuck  new, promised" in line
    ]
    assert len(lines) == 3
    assert all(len(line) == 80 and line.endswith("…") for line in lines)


def test_what_did_not_show_alone_may_be_what_other_clients_did() -> None:
    flaky, alone = (replace(SHOWN.failures[0], rate=rate) for rate in ((1, 3), (0, 3)))
    assert "flaky: 1 of 3 repetitions" in notes(flaky, SHOWN.target.dialect)
    said = "flaky: 0 of 3 repetitions: it did not show again, so what other clients did may be the cause"
    assert said in notes(alone, SHOWN.target.dialect)


def test_what_was_not_seen_again_is_no_new_failure_and_stands_behind_those_that_were() -> None:
    """In each report alike. The gravest was not seen again here."""
    shown = of(LOST, TWICE)
    grave, other = (replace(each, rate=rate) for each, rate in zip(shown.failures, ((0, 3), (2, 3)), strict=True))
    shown = replace(shown, failures=(grave, other))
    assert severity_of(grave.failure) is Severity.LOST
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        print_report(console, shown)
    for text, named in (
        (capture.get(), r"^✗ (\S+-\d{3}) "),
        (render_html(shown), r'<article id="failure-(\S+?)"'),
        (render_summary(shown), r"^### (\S+) "),
    ):
        assert re.findall(named, text, re.MULTILINE) == ["ACK-001", "PUBLISH-002"]
        assert "not seen again" in text
    assert '<h3 class="severity">Not seen again' in render_html(shown)
    assert "not seen again" in notes(grave, shown.target.dialect) and "new" not in notes(grave, shown.target.dialect)
    assert "new" in notes(other, shown.target.dialect)
    assert headline(shown) == "Deviates from the promise: 1 new failure, and 1 failure not seen again"
    report = json.loads(render_json(shown))
    assert {each["requirement"]: each["seen_again"] for each in report["failures"]} == {
        "PUBLISH-002": False,
        "ACK-001": True,
    }
