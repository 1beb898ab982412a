"""Which of the inputs that are under way may be processed next."""

from __future__ import annotations

from collections.abc import Iterator

from amqpspec.model.broker.internal_events import (
    Input,
    Teardown,
    lane_of,
)


def next_inputs(pending: list[Input]) -> Iterator[int]:
    """Places of the inputs that may be processed next: the first of each channel.

    What ends channels may come ahead of what they were sent: that is not processed any more then.
    """
    seen: set[tuple[object, int, bool]] = set()
    for index, event in enumerate(pending):
        is_end = isinstance(event, Teardown)
        name, number = lane_of(event)
        if number == 0 and any(other == name and (by_end or not is_end) for other, _, by_end in seen):
            continue  # the connection's own methods come after all that was sent on its channels before
        lane = (name, number, is_end)
        if lane in seen or (name, 0, False) in seen:
            continue
        seen.add(lane)
        yield index
