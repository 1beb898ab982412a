"""Every report shows both verdicts: against the promise, and against the broker as it is known."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from rich.console import Console

from amqpspec.conformance.verdicts.gate import Gate, through
from amqpspec.conformance.verdicts.judgement import RequirementVerdict, RunResult
from amqpspec.conformance.verdicts.known_behaviour import Standing
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS, known_defects
from amqpspec.model.promises.verdict import Verdict
from amqpspec.reports.as_known import defect_entries, headline_as_known, not_seen
from amqpspec.reports.html import render_html
from amqpspec.reports.json_report import render_json
from amqpspec.reports.junit import render_junit
from amqpspec.reports.markdown import render_markdown
from amqpspec.reports.overview import entries, headline, notes
from amqpspec.reports.terminal import print_report, print_verdict
from tests.reports.made_up import DEFECTIVE, result

DEFECT = KNOWN_DEFECTS["exclusive-consumer-ignored"]
NOT_SEEN = KNOWN_DEFECTS["cancel-before-consume-ok-beside-breaks"]
BROKERS = DEFECT.brokers


def defective_only() -> RunResult:
    """A run whose only failure is a known defect."""
    whole = result(undecided=False)
    failures = tuple(found for found in whole.failures if found.failure is DEFECTIVE)
    blamed = [outcome for outcome in whole.requirements if outcome.verdict is Verdict.FAIL]
    kept = [outcome for outcome in whole.requirements if outcome not in blamed or outcome.id == DEFECTIVE.requirement]
    decided = tuple(outcome for outcome in kept if outcome.verdict is not Verdict.INCONCLUSIVE)
    return replace(whole, failures=failures, requirements=decided)


def terminal(shown: RunResult) -> str:
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        print_report(console, shown)
    return capture.get()


def plain(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


@pytest.mark.parametrize("render", [terminal, render_markdown, render_html, render_json, render_junit])
def test_a_defect_is_told_with_its_name_promise_source_and_versions(render: object) -> None:
    assert callable(render)
    told = render(result()).replace("\\", "")
    for text in (DEFECT.name, DEFECT.requirement, NOT_SEEN.name):
        assert text in told
    if render is not terminal:
        # a terminal has no room for all of them: `amqpspec requirements --show ID`
        for text in (DEFECT.source.split(" (")[0], *BROKERS):
            assert text in told


class TestHeadlines:
    def test_the_promise_is_what_counts(self) -> None:
        assert headline(defective_only()) == "Deviates from the promise: 1 known defect"
        assert defective_only().exit_code == 1
        said = "Deviates from the promise: 2 new failures, 1 known defect, and 1 accepted deviation"
        assert headline(result()) == said

    def test_as_known_says_what_is_new(self) -> None:
        assert headline_as_known(result()) == (
            "Does not behave as RabbitMQ 4.3 is known to: 2 new failures (ACK-002, QOS-003);"
            " 1 known defect not seen: fixed?"
        )

    def test_as_known_says_of_how_much_it_is_said(self) -> None:
        narrow = tuple(
            RequirementVerdict(f"ACK-{number:03}", verdict, 0)
            for number, verdict in enumerate([*Verdict, Verdict.PASS, Verdict.NOT_EXERCISED])
        )
        one = replace(defective_only(), defects=(), requirements=narrow, sequences=1)
        assert headline_as_known(one) == (
            "Behaves as RabbitMQ 4.3 is known to, in 1 sequence that exercises 3 of 6 requirements: no new failure"
        )
        said = headline_as_known(replace(one, sequences=1812))
        assert said is not None and "in 1,812 sequences that exercise 3 of 6 requirements: " in said
        assert headline_as_known(replace(one, sequences=0)) is None

    def test_what_is_accepted_and_not_known_is_told_apart(self) -> None:
        failures = tuple(replace(each, known="D-1") for each in result().failures)
        said = headline_as_known(replace(result(), failures=failures, defects=()))
        assert said is not None and said.startswith("Behaves as RabbitMQ 4.3 is known to, in 1,812 ")
        assert "requirements, but for " in said
        assert said.endswith(" accepted deviations: no new failure")

    def test_nothing_is_known_of_the_bare_text(self) -> None:
        bare = replace(result(), target=replace(result().target, dialect="amqp-0-9-1"), defects=())
        assert headline_as_known(bare) is None
        said = "Deviates from the promise: 3 new failures"
        assert headline(bare).startswith(said), "a known defect of others explains nothing there"
        assert "known defect of others: exclusive-consumer-ignored" in notes(bare.failures[2], "amqp-0-9-1")
        assert "As the bare" not in render_html(bare) + render_markdown(bare) + terminal(bare)


class TestNewerVersions:
    """A version that is newer than what was verified: every report says so, and nothing is said to be fixed."""

    NEWER = replace(result(), target=replace(result().target, version="4.4.1"))

    @pytest.mark.parametrize("render", [terminal, render_markdown, render_html, render_json, render_junit])
    def test_every_report_says_it(self, render: object) -> None:
        assert callable(render)
        said = "is newer than what was verified"
        assert said in render(self.NEWER) and "RabbitMQ 4.4.1" in render(self.NEWER)
        assert said not in render(result())
        assert "fixed?" not in render(self.NEWER)

    def test_the_verdict_alone_says_it(self) -> None:
        console = Console(width=200, force_terminal=False)
        with console.capture() as capture:
            print_verdict(console, self.NEWER)
        newer, verdict = capture.get().splitlines()
        assert newer.startswith("RabbitMQ 4.4.1 is newer than what was verified") and verdict.startswith("✗ Deviates")

    def test_nothing_is_required(self) -> None:
        assert not_seen(self.NEWER) == ()
        said = "Does not behave as RabbitMQ 4.3 is known to: 2 new failures (ACK-002, QOS-003)"
        assert headline_as_known(self.NEWER) == said


class TestDefects:
    def test_those_that_an_upgrade_may_have_fixed_come_first(self) -> None:
        listed = defect_entries(result())
        assert {each.defect for each in listed} == set(known_defects("rabbitmq-4.3"))
        assert [each.defect for each in not_seen(result())] == [NOT_SEEN]
        assert listed[0].in_this_run == "not seen, though 7 sequences would have shown it: fixed?"
        assert listed[1].defect is DEFECT
        seen = "seen in 2 sequences; not in 1 other that could have shown it"
        assert listed[1].in_this_run == seen + "; may have spoiled 5 sequences"
        assert listed[-1].in_this_run == "not put to the test"

    def test_another_product_has_not_fixed_what_it_never_did(self) -> None:
        other = replace(result(), target=replace(result().target, product="Hare"))
        assert not_seen(other) == ()
        assert defect_entries(other)[0].in_this_run == "not seen, though 7 sequences would have shown it"
        assert "fixed?" not in terminal(other) + render_html(other) + render_markdown(other) + render_junit(other)

    def test_of_a_requirement_they_stand_beside_it_whether_seen_or_not(self) -> None:
        by_id = {entry.id: entry for entry in entries(result())}
        assert by_id["CONSUME-008"].defects == (DEFECT,)
        assert by_id["CONSUME-008"].seen_defects == {DEFECT.name}
        assert (by_id["CONSUME-008"].verdict, by_id["CONSUME-008"].as_known) == (Verdict.FAIL, Verdict.PASS)
        assert NOT_SEEN in by_id["CONSUME-005"].defects
        assert by_id["CONSUME-005"].seen_defects == frozenset()


class TestJson:
    report = json.loads(render_json(result()))

    def test_both_verdicts(self) -> None:
        both = {each["id"]: (each["verdict"], each["as_known"]) for each in self.report["requirements"]}
        assert both["CONSUME-008"] == ("fail", "pass")
        assert both["ACK-002"] == ("fail", "fail")
        assert sum(verdict != as_known for verdict, as_known in both.values()) == 1

    def test_both_summaries(self) -> None:
        for key, verdict in (("summary", "verdict"), ("summary_as_known", "as_known")):
            counted = [each[verdict] for each in self.report["requirements"]]
            assert self.report[key] == {verdict: counted.count(verdict) for verdict in self.report[key]}
        assert self.report["summary"]["fail"] == self.report["summary_as_known"]["fail"] + 1
        assert self.report["exit_code"] == 1

    def test_the_defects(self) -> None:
        first, second, *others = self.report["known_defects"]
        assert (first["name"], first["standing"], first["sequences"], first["not_seen_in"]) == (
            "cancel-before-consume-ok-beside-breaks", "not seen", 0, 7
        )  # fmt: skip
        assert (second["name"], second["standing"], second["sequences"]) == ("exclusive-consumer-ignored", "seen", 2)
        assert second["brokers"] == list(BROKERS)
        assert {each["standing"] for each in others} == {str(Standing.NOT_TESTED)}


def test_junit_fails_by_the_promise_and_tells_the_other() -> None:
    suite = ET.fromstring(render_junit(result()).encode())[0]
    properties = {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")}
    assert (properties["failing against the promise"], properties["failing as known"]) == ("4", "3")
    assert properties["known defects not seen"] == NOT_SEEN.name
    (case,) = [each for each in suite.iter("testcase") if each.attrib["name"].startswith("CONSUME-008 ")]
    (failure,) = case
    assert failure.tag == "failure"
    assert "known defect exclusive-consumer-ignored" in failure.attrib["message"]
    assert failure.text is not None and "as known in RabbitMQ 4.3:" in failure.text
    assert DEFECT.statement in failure.text


class TestHtml:
    def test_a_cell_shows_both(self) -> None:
        (cell,) = re.findall(
            r'<a class="cell ([^"]*)" href="#failure-CONSUME-008" title="([^"]*)"', render_html(result())
        )
        assert cell[0] == "fail as-known"
        assert "fail against the promise, pass as RabbitMQ 4.3 is known" in cell[1]
        assert render_html(result()).count("cell fail as-known") == 2, "the cell and the legend"

    def test_the_page_of_a_failure_says_what_is_known(self) -> None:
        (article,) = re.findall(r'<article id="failure-CONSUME-008".*?</article>', render_html(result()), re.DOTALL)
        assert DEFECT.statement in plain(article) and "✓ as known" in plain(article)
        assert "; ".join(BROKERS) in plain(article)
        (other,) = re.findall(r'<article id="failure-ACK-002".*?</article>', render_html(result()), re.DOTALL)
        assert "This is no known defect of RabbitMQ 4.3." in plain(other)

    def test_the_sums_are_both_there(self) -> None:
        page = plain(render_html(result()))
        assert "4 fail 1 accepted 3 as RabbitMQ 4.3 is known" in page
        assert "Does not behave as RabbitMQ 4.3 is known to: 2 new failures (ACK-002, QOS-003)" in page

    def test_without_defects_there_is_no_second_verdict(self) -> None:
        conforming = replace(result(failures=False, undecided=False), defects=())
        page = render_html(conforming)
        assert "cell fail as-known" not in page and 'id="known defects"' not in page


def test_the_terminal_shows_both_sums_and_the_promise_last() -> None:
    lines = terminal(result()).splitlines()
    names = ("the promise", "as known")
    of_name = {name: next(line for line in lines if line.startswith(f"{name}  ")) for name in names}
    sums = {name: line.removeprefix(name).split()[0] for name, line in of_name.items()}
    assert sums == {"the promise": "4", "as known": "3"}
    assert lines[-2] == f"✗ {headline_as_known(result())}"
    assert lines[-1].startswith("✗ Deviates from the promise: 2 new failures, 1 known defect")
    assert "Known defects that would have shown, and did not: cancel-before-consume-ok-beside-breaks" in lines


def test_markdown_has_a_table_of_defects() -> None:
    text = render_markdown(result())
    assert "## Known defects of RabbitMQ 4.3" in text
    assert f"| {NOT_SEEN.name} | CONSUME-005 | " in text
    (promise, as_known) = [line for line in text.splitlines() if line.startswith("| **all, ")]
    assert promise.split("|")[2].strip() == "4" and as_known.split("|")[2].strip() == "3"


class TestGates:
    """Under the gate of who knows the broker, what only known defects break must not look like what turns it red."""

    @staticmethod
    def cells(shown: RunResult) -> list[tuple[str, str]]:
        """Class and sign in the matrix of the requirement that a known defect breaks."""
        found = re.findall(rf'<a class="([^"]*)" href="#failure-{DEFECT.requirement}"[^>]*>(.)</a>', render_html(shown))
        return [(" ".join(sorted(classes.split())), sign) for classes, sign in found]

    @pytest.mark.parametrize(
        ("gate", "cell", "sign", "code"),
        [(Gate.PROMISE, "as-known cell fail", "✗", 1), (Gate.KNOWN, "accepted cell", "≈", 0)],
    )
    def test_the_sign_goes_by_the_gate(self, gate: Gate, cell: str, sign: str, code: int) -> None:
        shown = through(defective_only(), gate)
        assert shown.exit_code == code
        assert self.cells(shown) == [(cell, sign)]
        (line,) = [each for each in terminal(shown).splitlines() if f" {DEFECT.requirement} " in each]
        assert line.startswith(f"{sign} {DEFECT.requirement}")
        page = render_html(shown)
        badge = f'<span class="badge {"fail" if code else "accepted"}">{sign} {"fail" if code else "accepted"}</span>'
        assert badge in page
        assert ("✗ fail</span>" in page) is bool(code)
        assert f'<li class="{"fail" if code else "accepted"}"><b>1</b> fail' in page
        assert ("1 accepted" in page) is not bool(code)

    @pytest.mark.parametrize(("gate", "is_red"), [(Gate.PROMISE, True), (Gate.KNOWN, False)])
    def test_a_terminal_is_red_for_what_fails_the_run_alone(self, gate: Gate, is_red: bool) -> None:
        console = Console(width=200, force_terminal=True, color_system="standard")
        with console.capture() as capture:
            print_report(console, through(defective_only(), gate))
        assert ("\x1b[1;31m" in capture.get()) is is_red

    def test_a_failure_beside_a_known_defect_is_red_under_both(self) -> None:
        whole = defective_only()
        new = replace(DEFECTIVE, defect="", detail="another")
        both = replace(whole, failures=(*whole.failures, replace(whole.failures[0], failure=new)))
        for gate in Gate:
            assert [sign for _, sign in self.cells(through(both, gate))] == ["✗"]
