"""The reports: complete, well-formed, self-contained, and safe against what a broker sends."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from amqpspec.conformance.verdicts.events import (
    FailureShrunk,
    RunFinished,
    RunStarted,
    SequenceFinished,
    SequenceStarted,
)
from amqpspec.conformance.verdicts.judgement import FoundFailure, SequenceJudgement
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.reports.html import render_html
from amqpspec.reports.json_report import render_json
from amqpspec.reports.junit import render_junit
from amqpspec.reports.live_display import LiveDisplay
from amqpspec.reports.markdown import render_markdown
from amqpspec.reports.overview import VERDICTS, headline
from amqpspec.reports.terminal import print_report
from amqpspec.reports.text import visible
from tests.reports.made_up import ACK, ACK_COMMANDS, DEFECTIVE, HOSTILE, KNOWN, ODD, TARGET, result

#: Characters that must not reach any reader as they are.
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\u202e]")


def test_invisible_characters_become_visible() -> None:
    assert visible("a\tb\nc") == "a\tb\nc"
    assert visible("\x1b[2J\x00\ud800\u202e\ufffe\U0001ffff\x85") == r"\x1b[2J\x00\ud800\u202e\ufffe\U0001ffff\x85"
    assert visible("Grüße 你好 🐇") == "Grüße 你好 🐇"


class TestJson:
    report = json.loads(render_json(result()))

    def test_it_has_what_scripts_rely_on(self) -> None:
        assert self.report["tool"] == {"name": "amqpspec", "version": "0.1.0"}
        target = self.report["target"]
        assert (target["product"], target["version"], target["dialect"]) == ("RabbitMQ", "4.3.6", "rabbitmq-4.3")
        assert self.report["seed"] == 20260917
        assert self.report["exit_code"] == 1
        verdicts = [entry["verdict"] for entry in self.report["requirements"]]
        assert {verdict: verdicts.count(verdict) for verdict in set(verdicts)} == self.report["summary"]
        assert [entry["id"] for entry in self.report["requirements"]] == list(requirements())
        assert all({"id", "verdict", "exercised"} <= entry.keys() for entry in self.report["requirements"])

    def test_failures_are_told_in_full(self) -> None:
        odd, ack, defective, known = self.report["failures"]
        assert (defective["known_defect"], defective["as_known"]) == ("exclusive-consumer-ignored", "pass")
        assert (ack["known_defect"], ack["as_known"]) == (None, "fail")
        assert ack["requirement"] == "ACK-002"
        assert ack["commands"] == list(ACK_COMMANDS)
        assert ack["allowed"] == list(ACK.allowed)
        assert ack["observed"] == "nothing"
        assert ack["reproducer"].startswith("amqpspec replay")
        assert known["known"] == "D-0012"
        assert odd["rate"] == [7, 20]
        assert odd["commands"] == [HOSTILE], "programs get what was sent, unchanged"


class TestJunit:
    suite = ET.fromstring(render_junit(result()).encode())[0]

    def case(self, id: str) -> ET.Element:
        (case,) = [case for case in self.suite.iter("testcase") if case.attrib["name"].split()[0] == id]
        return case

    def test_one_case_for_each_requirement_and_one_for_what_was_undecided(self) -> None:
        cases = list(self.suite.iter("testcase"))
        assert len(cases) == len(requirements()) + 2, "the end of the run, and what was undecided"
        named = {(entry.area, f"{entry.id} {entry.title}") for entry in requirements().values()}
        assert {(case.attrib["classname"], case.attrib["name"]) for case in cases[:-2]} == named

    def test_failures_errors_and_skips_are_what_they_are(self) -> None:
        (failure,) = self.case("ACK-002")
        assert failure.tag == "failure" and failure.attrib["type"] == "missing frame"
        assert failure.text is not None
        for line in (*ACK_COMMANDS, *ACK.allowed, *ACK.state, requirements()["ACK-002"].statement):
            assert line in failure.text
        (known,) = self.case("CANCEL-001")
        assert known.tag == "skipped" and known.attrib["message"] == "known deviation: D-0012"
        tags = {Verdict.PASS: [], Verdict.INCONCLUSIVE: ["error"]}
        for outcome in result().requirements:
            if outcome.verdict is not Verdict.FAIL:
                assert [child.tag for child in self.case(outcome.id)] == tags.get(outcome.verdict, ["skipped"])
        assert self.suite.attrib["failures"] == "3"
        assert self.suite.attrib["errors"] == "2"

    def test_reasons_and_hostile_text_survive_in_a_visible_form(self) -> None:
        (failure,) = self.case("QOS-003")
        assert failure.text is not None and visible(HOSTILE) in failure.text
        assert "flaky: 7 of 20" in failure.attrib["message"]
        reasons = [skip.attrib["message"] for skip in self.suite.iter("skipped")]
        assert "not applicable: needs an administrator: a <policy> & more" in reasons
        undecided = list(self.suite.iter("testcase"))[-1][0]
        assert undecided.text is not None and "search 90: too many explanations" in undecided.text


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        #: where rules are written, to be looked at by who is online
        self.sources: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if tag == "a" and name == "href" and (value or "").startswith("https://"):
                self.sources.append(value or "")
            elif name in ("src", "href", "action", "data", "poster", "srcset"):
                self.addresses.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


class TestHtml:
    source = render_html(result())
    page = Page(source)

    def test_it_needs_nothing_but_itself(self) -> None:
        assert all(address.startswith("#") for address in self.page.addresses)
        assert {address.split("/")[2] for address in self.page.sources} == {"www.rabbitmq.com", "github.com"}
        assert "@import" not in self.source and "url(" not in self.source
        assert not {"link", "iframe", "img", "object", "embed"} & set(self.page.tags)

    def test_every_link_leads_somewhere_and_ids_are_unique(self) -> None:
        assert len(set(self.page.ids)) == len(self.page.ids)
        assert {address[1:] for address in self.page.addresses} <= set(self.page.ids)
        assert set(requirements()) <= set(self.page.ids)

    def test_a_failure_is_told_in_full(self) -> None:
        entry = requirements()["ACK-002"]
        told = (entry.statement, entry.source, *ACK_COMMANDS, *ACK.allowed, *ACK.state, "amqpspec replay out/ACK-002-1")
        for text in told:
            assert text in self.page.text
        assert KNOWN.observed in self.page.text and "known: D-0012" in self.page.text

    def test_what_a_broker_sent_is_shown_and_does_nothing(self) -> None:
        assert visible(ODD.observed) in self.page.text
        assert not RAW.search(self.source)
        assert self.page.tags.count("script") == 1
        self.source.encode("utf-8")

    def test_a_run_without_failures_has_no_section_for_them(self) -> None:
        good = Page(render_html(result(failures=False, undecided=False)))
        assert "failures" not in good.ids and "undecided" not in good.ids


class TestMarkdown:
    text = render_markdown(result())

    def test_it_tells_failures_and_is_safe(self) -> None:
        for text in (*ACK_COMMANDS, *ACK.allowed, "D-0012", "flaky: 7 of 20"):
            assert text in self.text
        assert not RAW.search(self.text)

    def test_a_fence_in_a_body_does_not_end_the_block(self) -> None:
        fences = re.findall(r"^(`{3,})$", self.text, flags=re.MULTILINE)
        assert fences[0::2] == fences[1::2]
        assert "````" in fences


class TestTerminal:
    def shown(self, **options: bool) -> str:
        console = Console(width=160, force_terminal=False)
        with console.capture() as capture:
            print_report(console, result(**options))
        return capture.get()

    def test_the_sums_and_each_failure_are_there(self) -> None:
        shown = self.shown()
        (sums,) = [line.split() for line in shown.splitlines() if line.startswith("the promise ")]
        assert sums[2:] == [str(result().summary[verdict]) for verdict in VERDICTS]
        for found in result().failures:
            assert found.failure.requirement in shown
        for text in (requirements()["ACK-002"].statement, *ACK_COMMANDS, *ACK.allowed, "observed nothing"):
            assert text in shown
        assert shown.splitlines()[-1].startswith(
            "✗ Deviates from the promise: 2 new failures, 1 known defect, and 1 accepted deviation"
        )

    def test_a_broker_cannot_steer_the_terminal(self) -> None:
        shown = self.shown()
        assert not RAW.search(shown)
        assert "[red]" in shown, "not taken for markup"

    @pytest.mark.parametrize(
        ("failures", "undecided", "expected"), [(False, True, "? Inconclusive"), (True, False, "✗ Deviates")]
    )
    def test_the_last_line_is_the_result(self, failures: bool, undecided: bool, expected: str) -> None:
        assert self.shown(failures=failures, undecided=undecided).splitlines()[-1].startswith(expected)

    def test_long_lists_are_cut_in_the_middle(self) -> None:
        whole = result()
        found = replace(whole.failures[0], commands=tuple(f"a.1 command {n}" for n in range(40)))
        console = Console(width=160, force_terminal=False)
        with console.capture() as capture:
            print_report(console, replace(whole, failures=(found,)))
        assert "a.1 command 0" in capture.get() and "a.1 command 39" in capture.get()
        assert "… 28 more …" in capture.get() and "a.1 command 20\n" not in capture.get()


def judged(sequence: str, verdict: Verdict, *failures: Failure) -> SequenceJudgement:
    return SequenceJudgement(sequence, "t", "d", None, verdict, failures, {}, None, 1)


def test_the_live_display_shows_as_a_failure_only_what_fails_the_run() -> None:
    console = Console(width=120, force_terminal=True, force_interactive=True, color_system=None)
    fails = [ODD].__contains__
    with console.capture() as capture, LiveDisplay(console, fails=fails) as display:
        display(SequenceFinished(judged("search 1", Verdict.FAIL, ODD)))
        display(SequenceFinished(judged("search 2", Verdict.FAIL, DEFECTIVE)))
        display(SequenceFinished(judged("search 3", Verdict.FAIL, DEFECTIVE, ODD)))
        display(FailureShrunk(FoundFailure(ODD, "search 1")))
        display(FailureShrunk(FoundFailure(DEFECTIVE, "search 2")))
        display._live.refresh()
    shown = capture.get()
    assert "3 sequences  ✗ 2 fail  ≈ 1 accepted" in shown
    assert "✗ QOS-003" in shown and "≈ CONSUME-008" in shown and "✗ CONSUME-008" not in shown


@pytest.mark.parametrize("terminal", [True, False])
def test_the_live_display_counts_and_names_failures(terminal: bool) -> None:
    console = Console(width=120, force_terminal=terminal, force_interactive=terminal, color_system=None)
    with console.capture() as capture, LiveDisplay(console) as display:
        display(RunStarted(TARGET, 7, "burst", 3))
        display(SequenceStarted("search [bold]1"))
        display(SequenceFinished(judged("search 1", Verdict.PASS)))
        display(SequenceFinished(judged("search 2", Verdict.FAIL, ODD)))
        display(FailureShrunk(result().failures[3]))
        if terminal:
            display._live.refresh()
        display(RunFinished(result()))
    shown = capture.get()
    assert "RabbitMQ 4.3.6 at docker:rabbitmq-4.3, rabbitmq-4.3, burst, seed 7" in shown
    assert "QOS-003 Existing consumers unaffected" in shown
    assert ("2 of 3  ✗ 1 fail  ✓ 1 pass  0:00  2 frames  search [bold]1" in shown) is terminal
    assert "\x00" not in shown


def test_the_headline_never_claims_more_than_was_seen() -> None:
    undecided = result(failures=False, undecided=False)
    assert headline(undecided).startswith("Inconclusive"), "one requirement is"
    decided = tuple(each for each in undecided.requirements if each.verdict is not Verdict.INCONCLUSIVE)
    conforming = replace(undecided, requirements=decided)
    assert headline(conforming) == "Conforms, in all that was exercised"
    known = replace(conforming, failures=(result().failures[1],))
    assert headline(known) == "Deviates from the promise only as accepted: 1 accepted deviation"


def test_a_lost_target_is_an_error_of_the_build() -> None:
    suite = ET.fromstring(render_junit(replace(result(), lost="the target was lost <after> 3 sequences")).encode())[0]
    (error,) = next(case for case in suite.iter("testcase") if case.attrib["name"] == "the run came to its end")
    assert (error.tag, error.get("message"), error.get("type")) == (
        "error", "the target was lost <after> 3 sequences", "target lost",
    )  # fmt: skip


def test_few_undecided_sequences_are_counted_and_break_no_build() -> None:
    run = replace(
        result(failures=False), requirements=(), undecided=(("search 90", "too many explanations"),), sequences=100
    )
    suite = ET.fromstring(render_junit(run).encode())[0]
    assert list(suite.iter("error")) == []
    assert {each.get("name"): each.get("value") for each in suite.iter("property")}["undecided sequences"] == "1"


def test_what_fails_the_run_comes_before_the_matrix() -> None:
    source = render_html(result())
    assert source.index('id="failures"') < source.index('id="matrix"')
    source = render_html(result(failures=False, undecided=False))
    assert 'id="matrix"' in source and 'id="failures"' not in source


def test_how_it_behaves_as_it_is_known_is_said_first() -> None:
    first, second = re.findall(r'class="headline (\w+)"[^\n]*', render_html(result()))[:2]
    assert (first, second) == ("fail", "second")


def test_areas_of_which_nothing_is_applicable_are_one_line() -> None:
    whole = result()
    absent = [replace(each, verdict=Verdict.NOT_APPLICABLE) for each in whole.requirements if each.id.startswith("QOS")]
    assert absent
    others = [each for each in whole.requirements if not each.id.startswith("QOS")]
    source = render_html(replace(whole, requirements=tuple(sorted([*others, *absent], key=lambda each: each.id))))
    assert '<th scope="row">qos</th>' not in source
    assert re.search(r"Not applicable as a whole: <a href=\"#QOS-\d+\">qos</a>", source)
