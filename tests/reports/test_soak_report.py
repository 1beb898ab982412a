"""The report of a soak: what the terminal shows, and the page."""

from __future__ import annotations

from collections import Counter

from amqpspec.conformance.soak.findings import Finding, What
from amqpspec.conformance.soak.judging import SoakJudgement
from amqpspec.conformance.soak.result import SoakResult
from amqpspec.conformance.soak.schedule import Kind
from amqpspec.conformance.soak.tally import Tally
from amqpspec.conformance.soak.windows import Window
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.reports.soak_plot import soak_plot
from amqpspec.reports.soak_report import headline, soak_html, terminal_lines


def result(
    *findings: Finding, seconds: int = 10, target: str = "rabbitmq-4.3", early: str = "", lost: str = ""
) -> SoakResult:
    tally = Tally()
    for second in range(seconds):
        for _ in range(second % 5 + 1):
            tally.second(second + 0.5, "sent")
            tally.second(second + 0.5, "delivered")
    tally.of_type("classic").sent = tally.of_type("classic").confirmed = 30
    tally.of_fault("kill").times = 1
    judgement = SoakJudgement(
        findings=list(findings),
        wrong=Counter(each.what for each in findings if not each.allowed),
        wrong_seconds=Counter(int(each.time) for each in findings if not each.allowed),
        allowed=Counter((each.what, each.allowed) for each in findings if each.allowed),
        tally=tally,
        windows=[Window(Kind.KILL, 2.0, 17, end=4.0), Window(Kind.PAUSE, 4.1, 30, end=5.0)],
        queue_types={"q": "quorum"},
        seconds=float(seconds),
        frames=100,
        connections=4,
    )
    description = TargetDescription("docker:image", "RabbitMQ", "4.3.6", target)
    return SoakResult(
        description, 7, float(seconds), ("kill",), (), judgement, ended_early=early, lost=lost, trace="t.jsonl.gz"
    )


def finding(what: What = What.LOST, allowed: str = "") -> Finding:
    return Finding(what, "q", "p1-17", 5.25, {"published": 10, "confirmed": 12}, "kill at 2.0 s (line 17)", allowed)


def test_nothing_wrong_is_one_line_of_praise() -> None:
    *_, (last, style) = terminal_lines(result())
    assert last == "✓ Nothing lost, nothing doubled, nothing out of order: 30 confirmed, all accounted for"
    assert "green" in style


def test_what_is_lost_names_message_queue_fault_and_lines() -> None:
    lines = [line for line, _ in terminal_lines(result(finding()))]
    told = next(line for line in lines if "p1-17" in line)
    assert "in q at 5.2 s; lines of the trace: published 10, confirmed 12; after kill at 2.0 s (line 17)" in told
    assert lines[-1].startswith("✗ 1 wrong: 1 confirmed, never settled")


def test_what_is_allowed_is_counted_and_fails_nothing() -> None:
    found = result(finding(What.SETTLED, allowed="settled near a fault"))
    assert headline(found).startswith("Nothing lost")
    assert "1 delivered again after it was settled: settled near a fault" in soak_html(found)


def test_what_is_not_decided_says_why() -> None:
    assert headline(result(early="interrupted")).endswith("not all is decided: interrupted")
    assert headline(result(lost="the broker did not come back")).endswith("the broker did not come back")


def test_what_is_known_of_the_broker_is_linked_and_passes_the_gate_of_what_is_known() -> None:
    known = result(finding(What.SETTLED)).with_known()
    assert known.judgement.findings[0].known.startswith("ACK-001 Settlements behind 32 commands")
    assert (known.wrong, known.not_known) == (1, 0)
    assert "known: ACK-001" in soak_html(known)
    other = result(finding(What.SETTLED), target="amqp-0-9-1").with_known()
    assert (other.wrong, other.not_known) == (1, 1)
    lost = result(finding(What.LOST)).with_known()
    assert (lost.wrong, lost.not_known) == (1, 1)


def test_the_page_has_picture_tables_and_lines_of_the_trace() -> None:
    page = soak_html(result(finding()))
    assert '<polyline class="curve published"' in page and '<rect class="band kill"' in page
    assert "t.jsonl.gz:10  published" in page
    assert "<script" not in page and "http" not in page.replace("http-equiv", "")


def test_names_of_faults_do_not_cover_each_other() -> None:
    plot = soak_plot(result(seconds=600))
    assert plot is not None
    assert [band.is_named for band in plot.bands] == [True, False]
    assert all(band.width >= 2 for band in plot.bands)


def test_a_long_soak_has_a_bounded_number_of_points() -> None:
    plot = soak_plot(result(seconds=7200))
    assert plot is not None
    assert all(curve.points.count(",") <= 300 for curve in plot.curves)
    assert plot.unit == "a second, over 24 s"


def test_every_point_is_within_the_picture() -> None:
    plot = soak_plot(result(finding()))
    assert plot is not None
    for curve in plot.curves:
        for point in curve.points.split():
            x, y = map(float, point.split(","))
            assert plot.left <= x <= plot.right and plot.top <= y <= plot.bottom
    assert [mark.text for mark in plot.crosses] == ["1 wrong"]


def test_nothing_that_happened_has_no_picture() -> None:
    empty = result()
    empty.judgement.tally.seconds.clear()
    assert soak_plot(empty) is None
    assert "What happened when" not in soak_html(empty)
