"""How late the broker was: in every report, as a line, a table and a plot."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from rich.console import Console

from amqpspec.model.broker.measurement import Measurement
from amqpspec.reports.accuracy import Accuracy, accuracy_line, accuracy_rows, added_up, seconds_text
from amqpspec.reports.accuracy_plot import Dot, Plot, accuracy_plot
from amqpspec.reports.html import render_html
from amqpspec.reports.json_report import report_object
from amqpspec.reports.junit import render_junit
from amqpspec.reports.markdown import render_markdown
from amqpspec.reports.terminal import print_report
from tests.reports.made_up import MEASUREMENTS, result

LINE = (
    "44 timeouts measured: late by at most 12 ms in the median, 3 s at worst; 1 not when expected"
    " (with ticks of up to 1 s)"
)
NONE = replace(result(), measurements=())


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 ms"), (0.0042, "4 ms"), (-0.0042, "−4 ms"), (-0.0001, "0 ms"), (0.9999, "1 s"), (1.2345, "1.234 s")],
)
def test_times_have_as_many_figures_as_matter(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("late", "median"), [({2.0: 1}, 2.0), ({1.0: 1, 2.0: 1}, 1.5), ({1.0: 2, 5.0: 1}, 1.0), ({1.0: 1, 5.0: 3}, 5.0)]
)
def test_the_median_counts_each(late: dict[float, int], median: float) -> None:
    assert added_up(late, 0) == Accuracy(sum(late.values()), median, max(late), 0)


def test_each_kind_has_its_row() -> None:
    rows = [(row.requirement, row.method, row.tick, row.accuracy.number) for row in accuracy_rows(result())]
    assert rows == [
        ("TIMEOUT-002", "channel.close", 1.0, 1),
        ("TIMEOUT-031", "basic.cancel", 0.0, 42),
        ("TIMEOUT-031", "channel.close", 0.0, 1),
    ]


def test_all_reports_say_it_in_a_line() -> None:
    assert accuracy_line(result()) == LINE
    console = Console(width=160, force_terminal=False)
    with console.capture() as capture:
        print_report(console, result())
    for report in (capture.get(), render_markdown(result()), render_html(result()), render_junit(result())):
        assert LINE in report


def test_where_no_time_was_up_nothing_is_said_of_it() -> None:
    assert accuracy_line(NONE) is None and accuracy_plot(NONE) is None
    assert 'id="accuracy"' not in render_html(NONE)
    assert "measured:" not in render_markdown(NONE)


def test_scripts_get_all_of_them() -> None:
    written = json.loads(json.dumps(report_object(result())))["measurements"]
    assert len(written) == len(MEASUREMENTS)
    assert written[1] == {
        "sequence": "scenario TIMEOUT-009", "requirement": "TIMEOUT-031", "method": "channel.close", "nominal": 2.0,
        "late": [-0.03, 0.02], "expected": [-0.025, 1.0], "tick": 0.0, "is_expected": True,
    }  # fmt: skip
    assert [each["is_expected"] for each in written].count(False) == 1


class TestPlot:
    plot: Plot = accuracy_plot(result()) or pytest.fail("there is something to draw")

    def dot(self, sequence: str) -> Dot:
        (dot,) = [dot for dot in self.plot.dots if dot.text.startswith(f"scenario {sequence}:")]
        return dot

    def test_everything_is_inside_the_axes(self) -> None:
        for dot in self.plot.dots:
            assert self.plot.left < dot.x < self.plot.right
            assert self.plot.top < dot.top <= dot.bottom < self.plot.bottom
        marks = [*self.plot.rows, *self.plot.ends]
        assert all(self.plot.top <= mark.place <= self.plot.bottom for mark in marks)
        assert all(self.plot.left < mark.place < self.plot.right for mark in self.plot.columns)

    def test_longer_is_to_the_right_and_later_is_higher(self) -> None:
        short, long = self.dot("TIMEOUT-008"), self.dot("TIMEOUT-009")
        assert short.x < long.x and long.top < short.top
        assert [row.text for row in self.plot.rows] == ["−10 ms", "0 ms", "10 ms", "100 ms", "1 s"]
        assert [column.text for column in self.plot.columns] == ["0", "0.5", "1", "1.5", "2"]

    def test_what_is_not_when_expected_stands_out(self) -> None:
        (odd,) = [dot for dot in self.plot.dots if not dot.is_expected]
        assert "basic.cancel after 1.5 s, late by 2.95 s to 3 s" in odd.text
        assert odd.top < min(float(y) for y in re.findall(r",([\d.]+)", self.plot.window))

    def test_ticks_have_ends_of_their_own(self) -> None:
        (end,) = self.plot.ends
        assert end.text == "with a tick of 1 s"
        assert end.place < self.dot("TIMEOUT-002").top

    def test_dots_do_not_hide_each_other_and_none_is_lost_silently(self) -> None:
        places = [(dot.x, dot.top) for dot in self.plot.dots]
        assert len(set(places)) == len(places)
        assert self.plot.hidden > 0
        assert len(self.plot.dots) + self.plot.hidden == len(MEASUREMENTS)
        assert f"{self.plot.hidden} measurements more" in render_html(result())


def test_the_picture_is_well_formed_and_needs_no_script() -> None:
    source = render_html(result())
    (picture,) = re.findall(r'<svg class="plot" viewBox.*?</svg>', source, flags=re.DOTALL)
    root = ET.fromstring(picture)
    assert root.attrib["aria-label"] == LINE
    assert len(list(root.iter("title"))) == len(TestPlot.plot.dots)
    texts = [text.text for text in root.iter("text")]
    assert "time that was up, in seconds" in texts and "how late the broker acted" in texts
    assert len(list(root.iter("polygon"))) == 1


def test_a_single_time_of_nothing_is_drawn_as_well() -> None:
    measurement = Measurement("TIMEOUT-031", "basic.cancel", 1.0, 0.0, 0.0, 0.0)
    plot = accuracy_plot(replace(result(), measurements=(("search 1", measurement),)))
    assert plot is not None and len(plot.dots) == 1
