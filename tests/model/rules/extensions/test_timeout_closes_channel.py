"""Deliveries that are not settled in time close their channel: up to 4.2 (area TIMEOUT)."""

from __future__ import annotations

import pytest

from tests.model.timed_client import QUORUM, Timed

#: Milliseconds; a delivery of `Timed.hold` is made between 1.0 and 1.02. It may be looked at 0.2 s after its time.
FIRST = ("broker operator.configure consumer-timeout=1000 channel-tick-interval=200",)
OFTEN = ("broker operator.configure channel-tick-interval=200",)
NEW, OLD = "rabbitmq-4.0", "rabbitmq-3"


def holding(queue: str = "durable", *first: str, dialect: str = NEW, options: str = "") -> Timed:
    return Timed(queue, *(first or FIRST), dialect=dialect).hold(options)


@pytest.mark.parametrize("dialect", [NEW, OLD])
@pytest.mark.parametrize("queue", ["durable", QUORUM])
def test_the_channel_closes_when_the_time_is_up_and_at_most_a_tick_later(queue: str, dialect: str) -> None:
    for time in (2.05, 3.0):
        assert holding(queue, dialect=dialect).closed(time, 1000).blamed == ""
    assert holding(queue, dialect=dialect).closed(1.9, 1000).blamed == "TIMEOUT-001"
    assert holding(queue, dialect=dialect).in_vain(3.1).blamed == ""
    assert holding(queue, dialect=dialect).in_vain(3.3).blamed == "TIMEOUT-001"
    assert holding(queue, dialect=dialect).wait(3.3).closed(3.4, 1000).blamed == "TIMEOUT-001"


def test_where_ticks_are_rare_it_is_them_that_it_waits_for() -> None:
    seldom = "broker operator.configure consumer-timeout=1000 channel-tick-interval=5000"
    assert holding("durable", seldom).in_vain(7.9).blamed == ""
    assert holding("durable", seldom).in_vain(8.1).blamed == "TIMEOUT-002"


def test_it_does_so_whatever_the_client_understands() -> None:
    assert Timed("durable", *FIRST, dialect=NEW, capabilities={}).hold().closed(2.1, 1000).blamed == ""
    assert holding().cancelled(2.1).blamed == "TIMEOUT-001"


def test_the_text_names_the_time() -> None:
    assert holding().closed(2.1, 500).blamed == "TIMEOUT-001"


def test_a_channel_keeps_the_settings_that_it_was_opened_with() -> None:
    later = holding().send(1.5, "broker operator.configure consumer-timeout=60000").rest()
    assert later.closed(2.1, 1000).blamed == ""


def test_only_the_oldest_delivery_counts() -> None:
    def with_younger() -> Timed:
        return holding().publish(1.8, "m2").deliver(1.82, 2, "m2").rest()

    assert with_younger().closed(2.1, 1000).blamed == ""
    assert with_younger().in_vain(3.3).blamed == "TIMEOUT-003"
    assert with_younger().send(1.9, "a.1 basic.ack 1").rest().closed(2.9, 1000).blamed == ""
    assert with_younger().send(1.9, "a.1 basic.ack 1").rest().closed(2.1, 1000).blamed == "TIMEOUT-003"


def test_what_it_held_goes_back() -> None:
    assert holding().closed(2.1, 1000).count(2.2, 1).blamed == ""
    lost = holding().closed(2.1, 1000).count(2.2, 0)
    lost.acceptor.overdue()
    assert lost.blamed == "TIMEOUT-004"


@pytest.mark.parametrize(
    ("dialect", "queue", "options", "requirement"),
    [
        (OLD, "durable x-consumer-timeout=1000", "", "TIMEOUT-005"),
        (OLD, "durable", "x-consumer-timeout=1000", "TIMEOUT-006"),
        (NEW, "durable", "x-consumer-timeout=1000", "TIMEOUT-006"),
    ],
)
def test_arguments_that_say_nothing(dialect: str, queue: str, options: str, requirement: str) -> None:
    lasting = holding(queue, *OFTEN, dialect=dialect, options=options).in_vain(5.0)
    assert (lasting.blamed, lasting.acceptor.exercised[requirement]) == ("", 1)
    assert holding(queue, *OFTEN, dialect=dialect, options=options).closed(2.1, 1000).blamed == requirement


def test_the_time_of_a_queue() -> None:
    queue = "durable x-consumer-timeout=1000"
    assert holding(queue, *OFTEN).closed(2.1, 1000).acceptor.exercised["TIMEOUT-005"] == 1
    assert holding(queue, *OFTEN).in_vain(3.3).blamed == "TIMEOUT-005"
    policy = "broker operator.set-policy p1 queue=q consumer-timeout=1000"
    assert holding("durable x-consumer-timeout=60000", policy, *OFTEN).closed(2.1, 1000).blamed == ""
