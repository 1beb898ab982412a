"""The page of a store: what of its tables is shown, and where."""

from __future__ import annotations

from typing import Any

from amqpspec.model.promises.verdict import Verdict
from amqpspec.reports.store_page import LEFT, WIDTH, StoreTables, curves, latencies, render_store, trends


def said(requirement: str, verdict: str, day: str = "2026-11-01", version: str = "4.3.6") -> dict[str, Any]:
    return {
        "requirement": requirement, "verdict": verdict, "day": day, "target": "docker:rabbitmq", "product": "RabbitMQ",
        "version": version, "dialect": "rabbitmq-4.3",
    }  # fmt: skip


def timed(day: str, p50: float, most: float) -> dict[str, Any]:
    return said("", "", day) | {
        "what": "confirm", "times": 7, "p50": p50, "p90": p50, "p99": most, "p999": most, "most": most
    }  # fmt: skip


FAILURE = {
    "identity": "ACK-001|missing frame|basic.deliver", "target": "docker:rabbitmq", "versions": ["4.3.6"],
    "first_seen": "2026-11-01", "last_seen": "2026-11-02", "sequences": 3, "as_known": False, "defect": "",
    "observed": "<script>",
}  # fmt: skip


def test_a_page() -> None:
    rows = [
        said("ACK-001", "fail"), said("ACK-001", "pass", "2026-11-02"), said("ACK-002", "fail", "2026-11-02"),
        said("ACK-002", "pass", version="4.0.5"), said("QOS-001", "pass"),
    ]  # fmt: skip
    page = render_store("nightly", StoreTables(rows, [FAILURE], [timed("2026-11-01", 0.001, 0.1)]), "amqpspec")
    assert "2 brokers, 2 days" in page
    matrix = page.partition('id="side-by-side"')[2].partition("</section>")[0]
    assert "ACK-002" in matrix, "the newest version fails it"
    assert "ACK-001" not in matrix, "it was kept on the last day"
    assert "&lt;script&gt;" in page


def test_nothing_judged() -> None:
    assert "Nothing was timed" in render_store("empty", StoreTables([], [], []), "amqpspec")


def test_trends_count_requirements_by_day() -> None:
    found = trends([said("ACK-001", "fail"), said("ACK-002", "pass"), said("ACK-003", "pass")])
    assert [(bar.verdict, bar.count) for bar in found[0].bars] == [(Verdict.FAIL, 1), (Verdict.PASS, 2)]
    assert found[0].bars[1].width == 2 * found[0].bars[0].width


def test_places_on_the_scale_of_latencies() -> None:
    (found,) = latencies([timed("2026-11-02", 0.01, 1.0), timed("2026-11-01", 0.0, 0.1)])
    early, late = found.spans
    assert early.places[0] == LEFT
    assert early.most < late.most < WIDTH
    assert late.most_text == "1 s"


def became(state: str, identity: str, known: bool = False) -> dict[str, Any]:
    return {
        "state": state, "identity": identity, "requirement": identity.partition("|")[0], "target": "shop",
        "version": "4.3.6", "night": "2026-11-02", "last_night": "2026-11-01", "first_seen": "2026-11-01",
        "as_known": known, "defect": "", "same_commands": True, "sequences": 2, "sequences_before": 1,
        "day": "2026-11-02", "run": "r", "sequence": "s 1", "command": "a.1 basic.get q", "observed": "nothing",
    }  # fmt: skip


def test_what_regressed_comes_first_with_its_sequence_and_the_command_that_shows_it_again() -> None:
    sequence = {
        "name": "s 1", "run": "r", "commands": ["a.1 basic.get q"], "more": 3, "shrunk": "",
        "again": "amqpspec replay again.amqp TARGET", "trace": "S/traces/run=a%3Ab/1.parquet",
    }  # fmt: skip
    regressed = [became("fixed", "ACK-003|b"), became("new", "ACK-002|a"), became("new", "QOS-001|known", True)]
    tables = StoreTables([], [], [], regressed, sequences={("shop", "ACK-002|a"): sequence})
    page = render_store("nightly", tables, "amqpspec")
    section = page.partition('id="regressed"')[2].partition("</section>")[0]
    assert section.index("ACK-002|a") < section.index("ACK-003|b") < section.index("QOS-001|known")
    assert '<b class="state new">1</b> new <span class="known">(and 1 as known)</span>' in section
    assert "amqpspec replay again.amqp TARGET" in section and "a.1 basic.get q" in section
    assert 'href="S/traces/run%3Da%253Ab/1.parquet"' in section, "a percent sign in a name stands for itself"


def test_latencies_of_several_days_are_a_curve() -> None:
    found = curves([timed("2026-11-02", 0.01, 1.0), timed("2026-11-01", 0.001, 0.1)])
    ((curve,),) = found.values()
    assert curve.days == ("2026-11-01", "2026-11-02") and len(curve.middle.split()) == 2
    assert curves([timed("2026-11-01", 0.001, 0.1)]) == {}
