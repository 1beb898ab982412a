"""Stored runs side by side: what is new, fixed, still; one page of bounded size."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from amqpspec.conformance.verdicts.judgement import FoundFailure
from amqpspec.conformance.verdicts.library import TITLES
from amqpspec.conformance.verdicts.rung import Kind, Rung
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.reports.comparison import Change, compare
from amqpspec.reports.json_report import render_json, report_object
from amqpspec.reports.side_by_side import render_side_by_side
from amqpspec.reports.stored_run import StoredRun, StoredRunError, StoredVerdict, read_run, run_of
from tests.reports.made_up import ACK, DEFECTIVE, HOSTILE, result


def written(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {**json.loads(render_json(result())), **changes}
    return made


def run(*identities: str, decided: tuple[str, ...] = (), **changes: Any) -> StoredRun:
    """A run whose failures have these identities; each was shown by a scenario of its requirement."""
    failures = [
        {
            "requirement": identity.partition("|")[0],
            "identity": identity,
            "commands": ["a.1 basic.get q"],
            "allowed": [],
            "observed": "nothing",
            "sequence": f"scenario {identity.partition('|')[0]}",
            **changes,
        }
        for identity in identities
    ]
    return run_of(written(failures=failures, known_defects=[], decided=list(decided)), Path("there"))


def changes_of(one: StoredRun, other: StoredRun) -> dict[str, Change | None]:
    return {group.identity: group.change(0, 1) for group in compare([one, other]).groups}


def test_columns_say_through_which_library_and_rules_of_libraries_what_they_are() -> None:
    through = replace(
        run("LIBRARY-ANSWER|missing frame|the end of queue.declare"),
        label="embedded through pika 1.4.4",
        requirements={"LIBRARY-ANSWER": StoredVerdict(Verdict.FAIL, Verdict.FAIL, 1, "")},
    )
    assert (through.where, through.library) == ("embedded", "pika 1.4.4")
    page = render_side_by_side(compare([run(), through]), "amqpspec 0")
    assert ">embedded</small>" in page and "embedded through pika" not in page
    assert "<span>pika 1.4.4</span></th>" in page and TITLES["LIBRARY-ANSWER"] in page


def test_rules_of_libraries_are_those_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "drivers.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(LIBRARY-[A-Z]+)` \|", page, re.MULTILINE)) == set(TITLES)


def test_of_two_products_nothing_is_said_to_be_fixed() -> None:
    decided = ("scenario ACK-001", "scenario ACK-003")
    one, other = run("ACK-001|a", decided=decided), run("ACK-003|c", decided=decided)
    page = render_side_by_side(compare([one, other]), "amqpspec 0")
    assert "− fixed" in page and "+ new" in page
    page = render_side_by_side(compare([one, replace(other, product="MyBroker")]), "amqpspec 0")
    assert "− only “from”" in page and "+ only “to”" in page
    assert "− fixed" not in page and "+ new" not in page and "<i>Fixed</i>" not in page


def test_a_warning_is_folded_away_and_no_failure() -> None:
    warned, failing = run("CONN-025|w", known="only recommended"), run("ACK-001|a")
    page = render_side_by_side(compare([warned, failing]), "amqpspec 0")
    folded = page[page.index("Warnings: what the text only recommends (1)") :]
    assert "CONN-025|w" in folded and '<i class="cell warning" title="RabbitMQ 4.3.6">!</i>' in folded
    assert "CONN-025|w" not in page[: page.index("Warnings: ")] and "ACK-001|a" in page[: page.index("Warnings: ")]


def test_new_fixed_still_and_not_tried() -> None:
    all_three = ("scenario ACK-001", "scenario ACK-002", "scenario ACK-003")
    one = run("ACK-001|a", "ACK-002|b", "QOS-001|d", decided=all_three)
    other = run("ACK-002|b", "ACK-003|c", decided=all_three)
    assert changes_of(one, other) == {
        "ACK-001|a": Change.FIXED, "ACK-002|b": Change.STILL, "ACK-003|c": Change.NEW, "QOS-001|d": Change.UNTRIED
    }  # fmt: skip
    counts = compare([one, other]).in_turn[0].counts
    assert counts == {Change.NEW: 1, Change.FIXED: 1, Change.STILL: 1, Change.UNTRIED: 1}


def test_what_does_not_show_each_time_is_never_called_fixed() -> None:
    steady = run("ACK-001|a", decided=("scenario ACK-001",), rate=[3, 3])
    flaky = run("ACK-001|a", decided=("scenario ACK-001",), rate=[1, 3])
    without = run(decided=("scenario ACK-001",))
    assert changes_of(steady, without) == {"ACK-001|a": Change.FIXED}
    assert changes_of(flaky, without) == {"ACK-001|a": Change.UNTRIED}


@pytest.mark.parametrize(
    "name, standing, missed_before, change",
    [
        ("stream-consumer-count", "not seen", 0, Change.FIXED),
        ("stream-consumer-count", "not put to the test", 0, Change.UNTRIED),
        ("stream-consumer-count", "not seen", 2, Change.UNTRIED),  # it did not show each time where it was seen
        ("exclusive-consumer-ignored", "not seen", 0, Change.UNTRIED),  # it shows by chance
    ],
)
def test_a_known_defect_is_fixed_where_it_would_have_shown(
    name: str, standing: str, missed_before: int, change: Change
) -> None:
    failure = [{**each, "known_defect": name} for each in written()["failures"] if each["known_defect"]]
    seen = [{"name": name, "standing": "seen", "not_seen_in": missed_before}]
    one = run_of(written(failures=failure, known_defects=seen), Path())
    other = run_of(written(failures=[], known_defects=[{"name": name, "standing": standing}]), Path())
    assert list(changes_of(one, other).values()) == [change]


def test_reports_of_earlier_versions_are_read() -> None:
    old = written()
    for key in ("decided", "known_defects", "lost", "sequences"):
        del old[key]
    for failure in old["failures"]:
        for key in ("identity", "as_known", "rate", "strength", "sequences"):
            del failure[key]
    read = run_of(old, Path())
    assert set(read.failures) >= {ACK.identity}
    # a requirement that was decided is what remains to go by
    assert read.has_tried(replace(read.failures[ACK.identity], identity="ACK-001|new", requirement="ACK-001"))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"target": 1}', "[" * 100_000, '{"target": {"product": "x"}}'], ids=repr
)
def test_what_is_no_report_is_told_in_a_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(StoredRunError) as caught:
        read_run(tmp_path)
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.classes: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.classes += (dict(attrs).get("class") or "").split()
        assert not {"src", "onclick"} & dict(attrs).keys()

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_has_all_targets_and_requirements_and_no_markup_of_a_broker() -> None:
    runs = [run_of(written(), Path()), run_of(report_object(result(failures=False)), Path())]
    text = render_side_by_side(compare(runs), "amqpspec 0")
    page = Page(text)
    assert all(id in page.text for id in requirements())
    assert page.tags.count("script") == 1 and "http:" not in text and "https:" not in text
    assert {"pass", "fail", "inconclusive", "not-exercised", "not-applicable", "accepted"} <= set(page.classes)
    assert "</script><b>&amp;]]>" in page.text and text.count("</script>") == 1
    assert "\x1b" not in text and "\u202e" not in text and HOSTILE not in text


def test_one_run_alone_is_compared_with_nothing() -> None:
    text = render_side_by_side(compare([run_of(written(), Path())]), "amqpspec 0")
    assert "From one to another" not in text and 'id="pair"' not in text


def test_it_links_to_the_reports_of_the_runs(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "report.html").touch()
    runs = [run_of(written(), tmp_path / "a b"), run_of(written(), tmp_path / "gone")]
    assert render_side_by_side(compare(runs), "", tmp_path).count('<a href="a b/report.html">') == 1
    assert "<a href" not in render_side_by_side(compare(runs), "")


def test_the_worst_and_the_most_frequent_are_listed_first() -> None:
    text = replace(ACK, shape=Shape.WRONG_ARGUMENT, detail="channel.close reply-text")
    found = [FoundFailure(each, "scenario ACK-002") for each in (text, DEFECTIVE, ACK)]
    both = run_of(report_object(replace(result(), failures=tuple(found))), Path())
    one = run_of(report_object(replace(result(), failures=tuple(found[:2]))), Path())
    assert [group.identity for group in compare([both, one]).groups] == [
        ACK.identity, DEFECTIVE.identity, text.identity
    ]  # fmt: skip


def test_ten_targets_with_500_failures_take_seconds_and_less_than_5_mb(tmp_path: Path) -> None:
    ids = list(requirements())
    assert len(ids) > 300
    commands = tuple(f"a.1 basic.publish queue-{number} body=m{number} mandatory" for number in range(40))
    sent = tuple(Rung(Kind.SENT, "a.1", f"basic.publish routing-key=q body=m{number}") for number in range(12))
    ladder = (*sent, Rung(Kind.WRONG, "a.1", "basic.deliver consumer-tag=t delivery-tag=3 body=m3"))
    for target in range(10):
        made = result(undecided=False)
        failures = tuple(
            FoundFailure(
                Failure(
                    ids[number % len(ids)], Shape.UNEXPECTED, f"basic.deliver {number}", commands[-1],
                    f"a.1 < basic.deliver consumer-tag=t delivery-tag={target} body=m{number}", commands[:4], (),
                ),
                f"search {number}", commands, "import pika\n" * 100, 3, ladder=ladder,
            )
            for number in range(500)
        )  # fmt: skip
        directory = tmp_path / str(target)
        directory.mkdir()
        named = replace(made.target, version=f"4.{target}.0")
        (directory / "report.json").write_text(render_json(replace(made, target=named, failures=failures)))
    began = time.process_time()
    page = render_side_by_side(compare([read_run(tmp_path / str(target)) for target in range(10)]), "amqpspec 0")
    assert time.process_time() - began < 10
    assert page.count('<details class="group"') == page.count('class="ladder"') == 500
    assert len(page.encode()) < 5_000_000
