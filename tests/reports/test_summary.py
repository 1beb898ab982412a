"""The summary of a job, and the badge: of bounded size, and without markup of a broker."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult
from amqpspec.model.promises.registry import requirements
from amqpspec.reports.badge import render_badge
from amqpspec.reports.summary import MAX_LINES, MAX_WHOLE, render_summary
from tests.reports.made_up import ACK, ACK_COMMANDS, HOSTILE, ODD, result


def test_new_failures_are_whole_and_all_others_in_lines() -> None:
    text = render_summary(result())
    assert text.startswith("## ❌ RabbitMQ 4.3.6: Deviates")
    for line in (*ACK_COMMANDS, *ACK.allowed, "### ACK-002", "Known defects (", "CANCEL-001: D-0012"):
        assert line in text
    assert "### CANCEL-001" not in text and "### CONSUME-008" not in text
    assert render_summary(result(failures=False, undecided=False)).count("###") == 0


def test_what_a_broker_sent_is_no_markup() -> None:
    text = render_summary(result())
    assert HOSTILE not in text and "\x1b" not in text and "\u202e" not in text
    lines = text.splitlines()
    assert lines.count("````") == 2 * sum("```" in each for each in (ODD.observed, HOSTILE))


def test_it_is_far_smaller_than_what_a_job_summary_may_be() -> None:
    ids = list(requirements())
    failures = tuple(
        FoundFailure(
            replace(ACK, requirement=ids[number % len(ids)], detail=f"{number}", observed="x" * 100_000),
            "search 1",
            ("a.1 basic.get q " + "y" * 10_000,) * 500,
        )
        for number in range(2000)
    )
    text = render_summary(replace(result(), failures=failures, problems=("z" * 10_000,) * 1000))
    assert len(text.encode()) < 500_000
    assert text.count("### ") == MAX_WHOLE and "more:" in text and MAX_LINES


@pytest.mark.parametrize(
    "made, said, colour",
    [
        (result(), "fail", "#c62f2f"),
        (result(failures=False, undecided=False), "inconclusive", "#8a6100"),
        (replace(result(), lost="gone"), "incomplete", "#8a6100"),
        (replace(result(failures=False, undecided=False), requirements=()), "0 pass", "#2a8a4a"),
    ],
)
def test_the_badge_is_an_svg(made: RunResult, said: str, colour: str) -> None:
    text = render_badge(made)
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert said in root.attrib["aria-label"] and colour in text and len(text) < 1500


def test_a_name_of_a_broker_is_escaped_in_the_badge() -> None:
    hostile = replace(result().target, product=HOSTILE)
    ElementTree.fromstring(render_badge(replace(result(), target=hostile)))
