"""Points at which a broker may be while something may come about by itself."""

from __future__ import annotations

import pytest

from tests.model.timed_client import QUORUM, Timed


@pytest.mark.parametrize("arrives", [False, True])
def test_what_expires_is_dead_lettered_before_the_queue_for_it_is_made_or_behind(arrives: bool) -> None:
    timed = Timed(f'{QUORUM} x-dead-letter-exchange="" x-dead-letter-routing-key=s x-message-ttl=0')
    numbers = {"queue": "s", "message_count": 0, "consumer_count": 0}
    timed.publish(0.5).rest()
    timed.send(0.6, f"a.1 queue.declare s {QUORUM} x-max-length-bytes=10").see(0.61, "queue.declare-ok", **numbers)
    timed.send(0.7, "a.1 queue.declare s passive")
    timed.see(0.71, "queue.declare-ok", **{**numbers, "message_count": int(arrives)})
    timed.acceptor.overdue()
    assert timed.rest().blamed == ""
