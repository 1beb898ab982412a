"""What an application would notice of another broker: by the traces of the same commands."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.traces.trace import TraceError, TraceWriter
from amqpspec.conformance.upgrade import comparison as upgrade_module
from amqpspec.conformance.upgrade.comparison import Difference, Kind, upgrade
from amqpspec.conformance.upgrade.entries import accepted, entries_of
from amqpspec.conformance.verdicts.gate import Gate
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.severity import ORDER, Severity
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.reports.upgrade_report import (
    anchor,
    headline,
    terminal_lines,
    upgrade_html,
    upgrade_json,
    upgrade_markdown,
)

SMALL = ("--only", "QUORUM-001", "--only", "ACK-003", "--sequences", "0", "--seed", "1", "--quiet", "--jobs", "1")


def recorded(directory: Path, *words: str) -> Path:
    assert main(["run", *words, *SMALL, "--out", str(directory)]) in (0, 1)
    return directory


def as_of_its_version(trace: Path) -> None:
    """The embedded broker stands for RabbitMQ 4.3."""
    text = trace.read_text()
    trace.write_text(re.sub('"product":"[^"]*","version":"[^"]*"', '"product":"RabbitMQ","version":"4.3.6"', text))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("runs")
    return {
        "4.0": recorded(place / "4.0", "--dialect", "rabbitmq-4.0"),
        "4.3": recorded(place / "4.3", "--dialect", "rabbitmq-4.3"),
        "faulty": recorded(place / "faulty", "embedded:multiple-zero-ignored", "--dialect", "rabbitmq-4.0"),
    }


def test_a_broker_does_not_differ_from_itself(runs: dict[str, Path]) -> None:
    found = upgrade(runs["4.3"], runs["4.3"])
    assert (found.noticed, found.gone, found.left_out, found.cut_short) == ((), (), 0, 0)
    assert found.compared > 3
    assert headline(found, ()).startswith("No difference from")


def test_what_a_version_changes_is_noticed_and_is_no_defect(runs: dict[str, Path]) -> None:
    found = upgrade(runs["4.0"], runs["4.3"])
    count = next(each for each in found.noticed if each.failure.identity.startswith("QUORUM-001|wrong argument"))
    assert count.kind is Kind.AS_DOCUMENTED
    assert "no x-acquired-count" in str(count.failure.allowed) and "x-acquired-count" in count.failure.observed
    assert count.commands[-1] == count.failure.command
    assert all(each.kind is Kind.AS_DOCUMENTED for each in found.noticed)


def test_theown_dialect_of_a_broker_is_that_of_its_version(runs: dict[str, Path], tmp_path: Path) -> None:
    """Live, the second target is judged by the first one's dialect, which its trace then names."""
    text = (runs["4.3"] / "trace.jsonl").read_text()
    (tmp_path / "trace.jsonl").write_text(text.replace('"dialect":"rabbitmq-4.3"', '"dialect":"rabbitmq-4.0"'))
    as_of_its_version(tmp_path / "trace.jsonl")
    found = upgrade(runs["4.0"], tmp_path)
    assert found.other.dialect == "rabbitmq-4.3"
    assert found.noticed and {each.kind for each in found.noticed} == {Kind.AS_DOCUMENTED}


@pytest.mark.parametrize(
    ("judged_by", "version", "own"),
    [
        ("rabbitmq-4.3;global-qos=permitted", "4.3.6", "rabbitmq-4.3;global-qos=permitted"),
        ("rabbitmq-4.3;global-qos=permitted", "4.0.5", "rabbitmq-4.0"),
        ("rabbitmq-4.0", "4.3.6", "rabbitmq-4.3"),
    ],
)
def test_theown_dialect_keeps_what_was_set(judged_by: str, version: str, own: str) -> None:
    assert upgrade_module.own_dialect(TargetDescription("one", "RabbitMQ", version, judged_by)) == own


def test_commands_are_of_a_sequence_in_which_the_difference_is_of_that_kind(
    monkeypatch: pytest.MonkeyPatch, runs: dict[str, Path]
) -> None:
    """Such as the shortest of those that show it, where a longer one breaks a promise."""
    kinds = iter([Kind.AS_DOCUMENTED, *[Kind.BROKEN] * 1000])
    monkeypatch.setattr(upgrade_module, "_kind", lambda *_: (next(kinds), ""))
    found = upgrade(runs["4.0"], runs["4.3"])
    same = [each for each in found.noticed if each.failure.identity == found.noticed[0].failure.identity]
    assert [each.kind for each in same] == [Kind.AS_DOCUMENTED, Kind.BROKEN]
    assert not set(same[0].sequences) & set(same[1].sequences)


def test_what_a_broker_breaks_is_told_apart_and_comes_first(runs: dict[str, Path]) -> None:
    found = upgrade(runs["4.0"], runs["faulty"])
    first = entries_of(found.noticed)[0]
    shown = first.shortest
    assert (shown.failure.requirement, shown.kind, first.severity) == ("ACK-003", Kind.BROKEN, Severity.STUCK)
    assert found.cut_short >= 1
    # the other way round it is what is not seen any more; nothing is new
    back = upgrade(runs["faulty"], runs["4.0"])
    assert not back.noticed and {each.failure.requirement for each in back.gone} >= {"ACK-003"}
    gravest_first = [ORDER.index(each.severity) for each in entries_of(found.noticed)]
    assert gravest_first == sorted(gravest_first)


def test_a_change_is_one_entry_however_many_requirements_notice_it(runs: dict[str, Path]) -> None:
    found = upgrade(runs["4.0"], runs["4.3"])
    entries = entries_of(found.noticed)
    assert len(entries) < len(found.noticed)
    names = [each.name for each in entries]
    assert "quorum-acquired-count" in names and len(set(names)) == len(names)
    entry = entries[names.index("quorum-acquired-count")]
    assert entry.change is not None and "https://www.rabbitmq.com/docs/quorum-queues" in entry.links[0]
    assert len(entry.differences) > 1
    assert len(entry.shortest.commands) == min(len(each.commands) for each in entry.differences)


def test_what_both_know_and_what_nobody_knows_of_a_pair_decide_whether_it_is_green(runs: dict[str, Path]) -> None:
    documented = entries_of(upgrade(runs["4.0"], runs["4.3"]).noticed)
    assert all(each.known for each in accepted(documented, Gate.KNOWN))
    assert not any(each.known for each in accepted(documented, Gate.PROMISE))
    by_file = accepted(documented, Gate.PROMISE, {"change|quorum-acquired-count": "no header is read"}.get)
    assert [each.name for each in by_file if each.known] == ["quorum-acquired-count"]
    assert by_file[-1].known == "no header is read", "what is accepted comes last"
    broken = entries_of(upgrade(runs["4.0"], runs["faulty"]).noticed)
    assert not any(each.known for each in accepted(broken, Gate.KNOWN))


def test_reports_have_each_entry(runs: dict[str, Path]) -> None:
    found = upgrade(runs["4.0"], runs["4.3"])
    entries = entries_of(found.noticed)
    page = upgrade_html(found, entries, "amqpspec 0")
    object_ = json.loads(upgrade_json(found, entries, "amqpspec 0", 1))
    for text in (upgrade_markdown(found, entries), page):
        for each in entries:
            assert each.title in text.replace("\\", "")
            assert f'id="{anchor(each)}"' in text and f"#{anchor(each)}" in text
            assert all(link.address in text for link in each.links)
        assert "x-acquired-count" in text
    assert [each["name"] for each in object_["differences"]] == [each.name for each in entries]
    shown = {each["change"]["change"] for each in object_["differences"] if each["change"]}
    assert object_["not_shown"] and not shown & {each["change"] for each in object_["not_shown"]}
    assert "<script" not in page


def test_one_frame_is_one_difference() -> None:
    frame = "a.0 < connection.close reply-code=541 reply-text=INTERNAL_ERROR"
    details = ("connection.close class-id", "connection.close reply-code", "connection.close reply-text")
    failures = [Failure("CHAN-007", Shape.WRONG_ARGUMENT, detail, "a.1 x", frame, (), ()) for detail in details]
    silent = [replace(each, shape=Shape.MISSING, detail="basic.deliver", observed="nothing") for each in failures[:1]]
    differences = [Difference(each, Kind.KNOWN, ("a.1 x",)) for each in (*failures, *silent)]
    shown = [each.shortest.failure for each in entries_of(differences)]
    assert shown == [silent[0], failures[0]]


def test_sequences_with_other_commands_are_left_out_and_counted(runs: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "trace.jsonl"
    lines = (runs["4.3"] / "trace.jsonl").read_text().splitlines()
    changed = [line.replace("basic.get q", "basic.get other") if '"kind":"command"' in line else line for line in lines]
    assert changed != lines
    other.write_text("\n".join(changed) + "\n")
    found = upgrade(runs["4.3"], other)
    assert found.left_out > 0 and found.compared > 0


def test_applications_that_were_recorded_are_not_the_same_for_their_names(tmp_path: Path) -> None:
    """Their traces have no commands."""
    for folder in ("one", "other"):
        with TraceWriter(tmp_path / folder / "trace.jsonl") as trace:
            trace.start("connection 1", target="b", product="", version="", dialect="rabbitmq-4.3", mode="burst")
    found = upgrade(tmp_path / "one", tmp_path / "other")
    assert (found.compared, found.left_out) == (0, 1)
    assert headline(found, ()).startswith("Nothing was compared from")
    assert list(terminal_lines(found, ()))[-1][0].startswith("? Nothing was compared")


def test_a_trace_without_sequences(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").touch()
    with pytest.raises(TraceError, match="has no sequence"):
        upgrade(tmp_path, tmp_path)
