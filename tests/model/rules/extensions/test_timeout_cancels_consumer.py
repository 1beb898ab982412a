"""How long a delivery may wait for its settlement, and since when it does (area TIMEOUT)."""

from __future__ import annotations

import pytest

from tests.model.timed_client import QUORUM, Timed

#: In milliseconds; a delivery of `Timed.hold` is made between 1.0 and 1.02.
SECOND = "x-consumer-timeout=1000"
POLICY = "broker operator.set-policy p1 queue=q consumer-timeout=1000"


def test_the_client_is_told_about_when_the_time_is_up() -> None:
    for time in (2.0, 2.5, 3.0):
        assert Timed().hold(SECOND).cancelled(time).blamed == ""
        assert Timed().hold(SECOND).wait(time).cancelled(time + 0.01).blamed == ""
    assert Timed().hold(SECOND).cancelled(2.0).acceptor.exercised["TIMEOUT-008"] == 1


def test_neither_earlier_nor_much_later_nor_never() -> None:
    assert Timed().hold(SECOND).cancelled(1.9).blamed == "TIMEOUT-008"
    assert Timed().hold(SECOND).wait(3.2).cancelled(3.3).blamed == "TIMEOUT-008"
    assert Timed().hold(SECOND).in_vain(3.2).blamed == "TIMEOUT-008"
    assert Timed().hold(SECOND).in_vain(2.9).blamed == ""


def test_it_is_late_only_if_the_client_was_there_to_see_it() -> None:
    assert Timed().hold(SECOND).cancelled(9.0).blamed == ""
    assert Timed().hold(SECOND).wait(2.9).cancelled(9.0).blamed == ""


def test_what_is_settled_in_time_does_not_time_out() -> None:
    def settled() -> Timed:
        return Timed().hold(SECOND).send(1.5, "a.1 basic.ack 1").rest()

    assert settled().in_vain(9.0).count(9.1, 0, 1).blamed == ""
    assert settled().cancelled(2.1).blamed != ""


def test_the_clock_begins_with_the_delivery() -> None:
    waiting = Timed().publish(0.2).count(0.3, 1).wait(5.0).consume(5.1, SECOND).deliver(5.12)
    assert waiting.cancelled(6.15).blamed == ""
    early = Timed().publish(0.2).count(0.3, 1).wait(5.0).consume(5.1, SECOND).deliver(5.12)
    assert early.cancelled(5.3).blamed == "TIMEOUT-008"


def test_and_anew_with_each() -> None:
    def delivered_again() -> Timed:
        timed = Timed().hold(SECOND).send(1.8, "a.1 basic.nack 1 requeue")
        return timed.redeliver(1.82, 2)

    assert delivered_again().cancelled(2.85).blamed == ""
    assert delivered_again().cancelled(2.1).blamed == "TIMEOUT-008"


def test_the_clock_of_a_delivery_that_was_seen_late_began_at_some_time_before() -> None:
    slow = Timed().publish(0.2).count(0.3, 1).consume(1.0, SECOND).deliver(1.8)
    assert slow.cancelled(2.1).blamed == ""


# ------------------------------------------------------------------------------------------------ who says how long


@pytest.mark.parametrize(
    ("queue", "options", "first", "requirement"),
    [
        (f"{QUORUM} x-consumer-timeout=60000", SECOND, (), "TIMEOUT-024"),
        (QUORUM, SECOND, (POLICY.replace("1000", "60000"),), "TIMEOUT-024"),
        (f"{QUORUM} x-consumer-timeout=60000", "", (POLICY,), "TIMEOUT-025"),
        (f"{QUORUM} {SECOND}", "", (POLICY.replace("1000", "60000"),), "TIMEOUT-025"),
        (QUORUM, "", ("broker operator.configure consumer-timeout=1000",), "TIMEOUT-026"),
    ],
)
def test_the_time_is_that_of_consumer_or_queue_or_server(
    queue: str, options: str, first: tuple[str, ...], requirement: str
) -> None:
    told = Timed(queue, *first).hold(options).cancelled(2.1)
    assert (told.blamed, told.acceptor.exercised[requirement]) == ("", 1)
    assert Timed(queue, *first).hold(options).cancelled(1.5).blamed == requirement
    assert Timed(queue, *first).hold(options).in_vain(3.2).blamed == requirement


def test_of_policies_the_one_with_the_highest_priority_counts() -> None:
    other = "broker operator.set-policy p2 queue=q consumer-timeout=60000 priority=1"
    assert Timed(QUORUM, POLICY, other).hold().in_vain(5.0).blamed == ""
    assert Timed(QUORUM, POLICY, other, "broker operator.clear-policy p2").hold().in_vain(5.0).blamed == "TIMEOUT-025"
    elsewhere = "broker operator.set-policy p2 queue=p consumer-timeout=60000 priority=1"
    assert Timed(QUORUM, POLICY, elsewhere).hold().cancelled(2.1).blamed == ""


def test_a_policy_is_one_of_its_virtual_host() -> None:
    elsewhere = "broker operator.set-policy p1 virtual-host=v queue=q consumer-timeout=60000 priority=1"
    assert Timed(QUORUM, POLICY, elsewhere).hold().cancelled(2.1).blamed == ""
    cleared = "broker operator.clear-policy p1 virtual-host=v"
    assert Timed(QUORUM, POLICY, cleared).hold().cancelled(2.1).blamed == ""


def test_what_is_set_later_is_none_of_the_consumers_business() -> None:
    def with_policy_later() -> Timed:
        return Timed().consume(0.3).rest().send(0.4, POLICY).publish(1.0).deliver(1.02)

    assert with_policy_later().in_vain(5.0).blamed == ""
    assert with_policy_later().cancelled(2.1).blamed == "TIMEOUT-028"


def test_no_time_at_all() -> None:
    assert Timed().hold("x-consumer-timeout=0").cancelled(1.05).blamed == ""
    assert Timed().hold("x-consumer-timeout=0").in_vain(2.5).blamed == "TIMEOUT-027"


# ----------------------------------------------------------------------------------------------- what has no time


@pytest.mark.parametrize(
    ("queue", "options", "requirement"),
    [("durable", "", "TIMEOUT-007"), (f"{QUORUM} {SECOND}", "no-ack", "TIMEOUT-023")],
)
def test_what_never_times_out(queue: str, options: str, requirement: str) -> None:
    lasting = Timed(queue, POLICY).hold(options).in_vain(5.0)
    assert (lasting.blamed, lasting.acceptor.exercised[requirement]) == ("", 1)
    assert Timed(queue, POLICY).hold(options).cancelled(2.1).blamed == requirement


def test_half_an_hour_is_longer_than_anybody_waits() -> None:
    assert Timed().hold().in_vain(700.0).acceptor.exercised["TIMEOUT-008"] == 0
