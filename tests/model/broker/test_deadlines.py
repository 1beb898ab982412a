"""Deadlines are spans: between the earliest and the latest moment either is right."""

from __future__ import annotations

from amqpspec.model.broker.deadlines import LATE_SECONDS, NEVER, Deadline


def test_it_is_open_until_its_beginning_is_known() -> None:
    deadline = Deadline(2.0, since=10.0)
    assert 11.9 < deadline.earliest < 12.0
    assert deadline.latest == NEVER
    known = deadline.begun_by(10.5)
    assert (known.due, known.latest) == (12.5, 12.5 + LATE_SECONDS)
    assert known.begun_by(11.0) is known
