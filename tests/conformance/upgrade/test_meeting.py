"""Which changes what was recorded meets: by commands on the embedded broker, and on real ones."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.traces.trace import TraceRow, read_trace
from amqpspec.conformance.upgrade.application import Application, Effect, Reader
from amqpspec.conformance.upgrade.changes import changes_between
from amqpspec.conformance.upgrade.comparison import upgrade
from amqpspec.conformance.upgrade.meeting import Met, met_by
from amqpspec.conformance.upgrade.meeting_rules import rules_of
from amqpspec.model.promises.dialects import DIALECTS

CORPUS = Path(__file__).parents[2] / "corpus"
THREE, FOUR, NEWEST = "rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"
QUORUM = "a.1 queue.declare q durable x-queue-type=quorum"


def read(rows: list[TraceRow], one: str, other: str) -> Met:
    application = Reader(rules_of(changes_between(DIALECTS[one], DIALECTS[other]))).rows(rows)
    return met_by(application, DIALECTS[one], DIALECTS[other])


def recorded(directory: Path, lines: str, dialect: str) -> list[TraceRow]:
    """What the embedded broker of that dialect does with these commands."""
    file = directory / "commands.amqp"
    file.write_text(lines.replace("; ", "\n") + "\n")
    assert main(["replay", str(file), "embedded", "--dialect", dialect, "--out", str(directory / "out")]) in (0, 1)
    return list(read_trace(directory / "out"))


def effects(found: Met) -> dict[str, Effect]:
    return {each.change.name: each.effect for each in found.met}


@pytest.mark.parametrize(
    ("lines", "one", "other", "expected"),
    [
        ("a.1 queue.declare q", FOUR, NEWEST, {"transient-queues": Effect.GONE}),
        ("a.1 queue.declare q exclusive", FOUR, NEWEST, {}),
        ("a.1 queue.declare q durable; a.1 queue.declare q passive", FOUR, NEWEST, {}),
        ("a.1 basic.qos 3 global", FOUR, NEWEST, {"channel-prefetch": Effect.GONE}),
        ("a.1 basic.qos 3 global", NEWEST, FOUR, {"channel-prefetch": Effect.OTHERWISE}),
        ("a.1 basic.qos 3; a.1 basic.qos 0 global", FOUR, NEWEST, {}),
        ("a.1 queue.declare q durable x-queue-version=1", FOUR, NEWEST, {"queue-versions": Effect.GONE}),
        ("a.1 queue.declare q durable x-queue-version=2", FOUR, NEWEST, {}),
        ("a.1 queue.declare q durable x-queue-mode=lazy", FOUR, NEWEST, {"queue-modes": Effect.PERHAPS}),
        (
            "a.1 queue.declare q durable x-queue-master-locator=min-masters",
            FOUR, NEWEST, {"master-locators": Effect.GONE},
        ),
        (f"{QUORUM} x-consumer-timeout=60000", FOUR, NEWEST, {
            "quorum-arguments": Effect.OTHERWISE, "consumer-timeouts": Effect.OTHERWISE,
        }),
        ("a.1 queue.declare q durable x-consumer-timeout=60000", FOUR, NEWEST, {"quorum-arguments": Effect.GONE}),
        (
            "a.1 queue.declare q durable; a.1 basic.consume q consumer-tag=t x-consumer-timeout=60000",
            FOUR, NEWEST, {"consumer-timeout-checked": Effect.GONE},
        ),
        (f"{QUORUM}; a.1 basic.publish q body=m priority=3", FOUR, NEWEST, {"quorum-priorities": Effect.OTHERWISE}),
        ("a.1 queue.declare q durable; a.1 basic.publish q body=m priority=3", FOUR, NEWEST, {}),
        (
            f"{QUORUM}; a.1 queue.bind q amq.fanout; a.1 basic.publish k exchange=amq.fanout body=m priority=3",
            FOUR, NEWEST, {"quorum-priorities": Effect.OTHERWISE},
        ),
        (f"{QUORUM}; a.1 basic.publish q body=m; a.1 basic.get q; a.1 basic.nack 1 requeue", FOUR, NEWEST, {
            "quorum-nack-has-not-failed": Effect.OTHERWISE,
        }),
        (f"{QUORUM}; a.1 basic.publish q body=m; a.1 basic.get q; a.1 basic.reject 1 requeue", FOUR, NEWEST, {}),
        (
            f"{QUORUM}; a.1 basic.publish q body=m; a.1 basic.get q; a.1 basic.reject 1 requeue; a.1 basic.get q",
            FOUR, NEWEST, {"quorum-acquired-count": Effect.OTHERWISE},
        ),
        (
            f"{QUORUM} x-delivery-limit=-1; a.1 basic.publish q body=m; a.1 basic.get q; a.1 basic.reject 1 requeue",
            FOUR, NEWEST, {"quorum-requeue": Effect.OTHERWISE},
        ),
        ("a.1 exchange.declare e topic; a.1 queue.declare q durable; a.1 queue.bind q e routing-key=#.a.#.b.#",
         FOUR, NEWEST, {"topic-wildcard-limit": Effect.GONE}),
        (f"{QUORUM}; a.1 basic.publish q body=m; a.1 basic.get q; a.1 basic.reject 1 requeue", THREE, FOUR, {
            "quorum-delivery-limit": Effect.PERHAPS, "quorum-count-on-first-get": Effect.OTHERWISE,
        }),
        (f"{QUORUM} x-delivery-limit=5; a.1 basic.publish q body=m; a.1 basic.get q; a.1 basic.reject 1 requeue",
         THREE, FOUR, {"quorum-count-on-first-get": Effect.OTHERWISE}),
        ('a.1 basic.publish q body=m headers={"x-death": []}', THREE, FOUR, {"deaths-in-headers": Effect.OTHERWISE}),
        ("a.1 queue.declare q durable x-max-priority=0", THREE, FOUR, {"least-max-priority": Effect.OTHERWISE}),
        ("a.1 queue.declare q durable; a.1 basic.publish q body=m; a.1 basic.get q; a.1 basic.ack 1", THREE, FOUR, {}),
    ],
)  # fmt: skip
def test_what_commands_meet(
    lines: str, one: str, other: str, expected: dict[str, Effect], tmp_path: Path
) -> None:
    assert effects(read(recorded(tmp_path, lines, one), one, other)) == expected


def test_of_a_queue_that_nobody_declared_it_cannot_be_known(tmp_path: Path) -> None:
    rows = recorded(tmp_path, f"{QUORUM}; a.1 basic.publish q body=m priority=3", FOUR)
    undeclared = [row for row in rows if not row.get("method", "").startswith("queue.declare")]
    found = read(undeclared, FOUR, NEWEST)
    assert "quorum-priorities" not in effects(found)
    (reason,) = next(each for each in found.unknown if each.change.name == "quorum-priorities").reasons
    assert reason.why.startswith("whether the queue is quorum") and len(reason.queues) == 1


def test_what_one_connection_declares_another_uses(tmp_path: Path) -> None:
    """Their sequences may come in any order, and from several files."""
    rows = recorded(tmp_path, f"{QUORUM}; b.1 basic.publish q body=m priority=3", FOUR)
    rules = rules_of(changes_between(DIALECTS[FOUR], DIALECTS[NEWEST]))
    whole = Application()
    for connection in ("b", "a"):
        part = [row for row in rows if row["kind"] != "frame" or row["connection"] == connection]
        whole.merge(Reader(rules).rows(part))
    found = met_by(whole, DIALECTS[FOUR], DIALECTS[NEWEST])
    assert effects(found) == {"quorum-priorities": Effect.OTHERWISE}


def test_a_frame_is_shown_without_its_body(tmp_path: Path) -> None:
    rows = recorded(tmp_path, f"{QUORUM}; a.1 basic.publish q body=secret priority=3", FOUR)
    (met,) = read(rows, FOUR, NEWEST).met
    sights = [sight.text for reason in met.reasons for sight in reason.seen.sights]
    assert len(sights) == 1 and "priority=3" in sights[0] and "secret" not in sights[0]


def missed(before: Path, after: Path) -> tuple[set[str], list[tuple[str, str]]]:
    """The changes by which the second trace is explained, and those of a sequence that the recording of the first one
    does not meet.
    """
    found = upgrade(before, after)
    rows: defaultdict[str, list[TraceRow]] = defaultdict(list)
    for row in read_trace(before):
        rows[row["sequence"]].append(row)
    shown = {(sequence, each.change.name) for each in found.noticed if each.change for sequence in each.sequences}
    dialects = found.one.dialect, found.other.dialect
    met = {sequence: effects(read(rows[sequence], *dialects)) for sequence, _ in shown}
    return {name for _, name in shown}, [each for each in sorted(shown) if each[1] not in met[each[0]]]


@pytest.mark.parametrize(("one", "other"), [("4.0", "4.3"), ("3.10", "4.0"), ("3.10", "4.3")])
def test_the_recording_of_a_version_foretells_what_the_next_does_otherwise(one: str, other: str) -> None:
    """Of what the corpus has of real brokers."""
    pytest.importorskip("pyarrow")
    shown, lacking = missed(*(CORPUS / f"rabbitmq-{version}-scenarios.parquet" for version in (one, other)))
    assert shown and lacking == []


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (FOUR, NEWEST, {"quorum-acquired-count", "quorum-nack-has-not-failed", "quorum-priorities"}),
        (THREE, FOUR, {"quorum-priorities", "deaths-in-headers"}),
    ],
)  # fmt: skip
def test_it_does_so_of_each_scenario_of_quorum_queues(one: str, other: str, expected: set[str], tmp_path: Path) -> None:
    for dialect in (one, other):
        small = ["--only", "QUORUM", "--sequences", "0", "--seed", "1", "--quiet"]
        words = ["run", "embedded", "--dialect", dialect, *small]
        assert main([*words, "--out", str(tmp_path / dialect)]) == 0
    shown, lacking = missed(tmp_path / one, tmp_path / other)
    assert shown >= expected and lacking == []
