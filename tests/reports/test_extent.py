"""The first lines of a report say how much of the run says anything."""

from __future__ import annotations

from dataclasses import replace

from amqpspec.conformance.verdicts.judgement import Cause, Extent
from amqpspec.reports.extent import extent_lines
from tests.reports.made_up import result


def test_where_all_was_judged_to_its_end_nothing_is_said() -> None:
    assert extent_lines(replace(result(), search_extent=Extent(3, 3))) == []


def test_what_ended_sequences_is_said_with_the_most_first() -> None:
    ended = (("A|b|c", 5), ("D|e|f", 2), ("G|h|i", 1), ("J|k|l", 1))
    (line,) = extent_lines(replace(result(), search_extent=Extent(10, 1, ended)))
    assert line == (
        "1 of 10 sequences of the search were judged to their end; what ended the others: A / b / c (5), D / e / f (2),"
        " G / h / i (1), something else (1)"
    )


def test_how_many_ended_by_something_new_is_said() -> None:
    (line,) = extent_lines(replace(result(), search_extent=Extent(10, 8, (("A|b|c", 2),), by_something_new=1)))
    assert line.endswith("A / b / c (2); 1 ended by a failure that was not reported before")


def test_what_was_not_begun_is_said() -> None:
    (line,) = extent_lines(replace(result(), search_extent=Extent(60, 60, not_begun=40)))
    assert line == "40 more sequences of the search were not begun: the time was up"


def test_what_the_search_leaves_alone_is_said() -> None:
    (line,) = extent_lines(replace(result(), left_alone=(("TX-005", "TX-005|x|y"), ("ACK-013", "ACK-013|x|y"))))
    assert line == "The search left alone what comes under ACK-013, TX-005: the broker breaks that again and again"


def test_a_long_list_is_folded() -> None:
    rules = tuple((f"TX-{number:03}", "TX-005|x|y") for number in range(1, 31))
    (line,) = extent_lines(replace(result(), left_alone=rules))
    named = "TX-001, TX-002, TX-003, TX-004, TX-005, TX-006 and 24 more"
    assert line == f"The search left alone what comes under {named}: the broker breaks that again and again"


def test_a_cause_is_said_with_what_it_blocks() -> None:
    cause = Cause("QUEUE-001|x|y", "x-queue-type of queue.declare", "connection.close 542", 7, ("QUEUE-013|x|y",))
    (line,) = extent_lines(replace(result(), causes=(cause,)))
    assert line == (
        "x-queue-type of queue.declare is refused (connection.close 542), QUEUE-001 / x / y: 7 sequences blocked by"
        " that; 1 other failure of the same cause"
    )


def test_a_method_that_is_never_answered_is_said_so() -> None:
    (line,) = extent_lines(replace(result(), causes=(Cause("TX-001|x|y", "tx.select", "", 20),)))
    assert line == "tx.select is never answered, TX-001 / x / y: 20 sequences blocked by that"
