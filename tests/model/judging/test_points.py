"""Points at which a broker may be while something may come about by itself."""

from __future__ import annotations

import pytest

from amqpspec.model.protocol.methods import Content
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


@pytest.mark.parametrize(("counted", "is_right"), [(1, True), (2, True), (0, False)])
def test_what_has_expired_is_gone_when_another_message_comes_back_in_front_of_it(counted: int, is_right: bool) -> None:
    timed = Timed("durable")
    numbers = {"queue": "q", "consumer_count": 0}
    timed.publish(0.5).rest()
    got = {"delivery_tag": 1, "redelivered": False, "exchange": "", "routing_key": "q", "message_count": 0}
    timed.send(0.6, "b.1 basic.get q").see(0.61, "basic.get-ok", Content({}, b"m1"), on="b", **got).rest()
    timed.send(0.7, "a.1 basic.publish q body=m9 expiration=0")
    timed.ask(0.8, "a.1 queue.declare q passive", "queue.declare-ok", message_count=0, **numbers)
    timed.send(0.9, "b.1 channel.close").see(0.91, "channel.close-ok", on="b")
    timed.send(0.92, "a.1 queue.declare q passive")
    timed.see(0.93, "queue.declare-ok", message_count=counted, **numbers)
    timed.acceptor.overdue()
    assert (timed.rest().blamed == "") == is_right
