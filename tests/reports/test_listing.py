"""One order of failures in all reports; what is against the text as RabbitMQ is has its own heading."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from amqpspec.conformance.verdicts.gate import Gate, through
from amqpspec.conformance.verdicts.judgement import FoundFailure, RequirementVerdict, RunResult, TargetDescription
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.severity import Severity, severity_of
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.reports.html import render_html
from amqpspec.reports.json_report import render_json
from amqpspec.reports.junit import render_junit
from amqpspec.reports.listing import AS_RABBITMQ_HEADING
from amqpspec.reports.markdown import render_markdown
from amqpspec.reports.overview import severity_line
from amqpspec.reports.summary import render_summary
from amqpspec.reports.terminal import print_report
from tests.reports.made_up import result

LIKE = Failure(
    "EXCHANGE-003", Shape.UNEXPECTED, "exchange.delete-ok in place of channel.close", "a.1 exchange.delete nosuch",
    "a.1 < exchange.delete-ok", (), (), like="rabbitmq-4.3",
)  # fmt: skip
SENTENCE = "404 if there is no such exchange"


def _failure(requirement: str, shape: Shape, detail: str, observed: str = "seen") -> FoundFailure:
    command = "a.1 basic.get q"
    return FoundFailure(Failure(requirement, shape, detail, command, observed, (), ()), "s", (command,))


LOST = _failure("GET-001", Shape.MISSING, "messages ready")
#: a channel that the broker has closed does as it is told
CLOSED = _failure("CHAN-005", Shape.UNEXPECTED, "a reply in place of channel.close-ok")
ERRED = _failure(
    "QUEUE-001", Shape.UNEXPECTED, "connection.close in place of queue.declare-ok",
    "a.0 < connection.close reply-code=541 reply-text=INTERNAL_ERROR",
)  # fmt: skip
CORNER = _failure("PUBLISH-005", Shape.MISSING, "basic.deliver")
CODE = _failure("CHAN-012", Shape.WRONG_ARGUMENT, "connection.close reply-code")
UNSEEN = replace(_failure("PUBLISH-002", Shape.MISSING, "basic.deliver"), rate=(0, 3))
ORDER = ("GET-001", "CHAN-005", "QUEUE-001", "PUBLISH-005", "CHAN-012", "PUBLISH-002", "EXCHANGE-003")


def _run(*failures: FoundFailure) -> RunResult:
    blamed = {each.failure.requirement for each in failures}
    said = tuple(RequirementVerdict(id, Verdict.FAIL if id in blamed else Verdict.PASS, 1) for id in requirements())
    target = TargetDescription("t", "MyBroker", "1", "amqp-0-9-1")
    made_up = replace(result(failures=False, undecided=False), target=target, requirements=said)
    return through(replace(made_up, failures=failures, defects=(), left_behind=()), Gate.PROMISE)


RUN = _run(FoundFailure(LIKE, "s"), UNSEEN, CODE, CORNER, ERRED, LOST, CLOSED)


def _printed(run: RunResult) -> str:
    console = Console(file=io.StringIO(), record=True, width=160)
    print_report(console, run)
    return console.export_text()


def _of_junit(run: RunResult) -> str:
    return "\n".join(case.get("name", "") for case in ET.fromstring(render_junit(run)).iter("testcase"))


def _of_json(run: RunResult) -> str:
    return "\n".join(each["requirement"] for each in json.loads(render_json(run))["failures"])


def _of_page(run: RunResult) -> str:
    return "\n".join(part.partition('"')[0] for part in render_html(run).split('<article id="failure-')[1:])


def _of_markdown(run: RunResult) -> str:
    return render_markdown(run).partition("| **all")[2]


@pytest.mark.parametrize("listing", [_printed, _of_json, _of_junit, _of_page, _of_markdown, render_summary])
def test_all_reports_list_failures_in_one_order(listing: Callable[[RunResult], str]) -> None:
    text = listing(RUN)
    places = [text.index(id) for id in ORDER]
    assert places == sorted(places), text


@pytest.mark.parametrize("listing", [_printed, render_html, render_markdown])
def test_what_is_as_rabbitmq_does_stands_apart_with_the_sentence_of_the_text(
    listing: Callable[[RunResult], str],
) -> None:
    text = listing(RUN)
    _, found, behind = text.rpartition(AS_RABBITMQ_HEADING)
    assert found and "EXCHANGE-003" in behind and SENTENCE in behind
    assert "Deleting amq.*" not in text, "the title is RabbitMQ's"


def test_it_fails_no_run_and_is_counted() -> None:
    run = _run(FoundFailure(LIKE, "s"))
    assert run.exit_code == 0
    assert "1 against the text as RabbitMQ does" in _printed(run)
    assert json.loads(render_json(run))["failures"][0]["as_rabbitmq"] == "rabbitmq-4.3"
    assert _run(replace(LOST)).exit_code == 1


def test_the_brokers_own_word_that_it_erred_is_graver_than_corners_of_routing() -> None:
    assert [severity_of(each.failure) for each in (LOST, CLOSED, ERRED, CORNER)] == [
        Severity.LOST, Severity.LOST, Severity.ERRED, Severity.MISDIRECTED,
    ]  # fmt: skip


def test_the_sums_agree_with_the_headings() -> None:
    assert severity_line(RUN) == (
        "What the failures do to an application: messages lost 2, the broker erred 1,"
        " given to the wrong one 1, wrong code 1, not seen again 1"
    )
    assert "5 new failures, 1 failure not seen again" in _printed(RUN)


def test_what_was_not_seen_again_is_not_called_new() -> None:
    for text in (_printed(RUN), render_html(RUN), render_markdown(RUN), render_summary(RUN), render_junit(RUN)):
        assert "not seen again" in text
    assert "PUBLISH-002" in _printed(RUN).partition("not seen again")[0].splitlines()[-1]
