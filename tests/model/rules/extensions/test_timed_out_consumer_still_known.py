"""Brokers that announce that they take a client's answer to their basic.cancel, as RabbitMQ does from 4.3.7 on (area
TIMEOUT): what they do in the short time in which they wait for it is their choice, and known defects of earlier
versions are none of theirs.
"""

from __future__ import annotations

import pytest

from amqpspec.model.defects.known_defects import is_as_known
from amqpspec.model.promises.capabilities import ACCEPT_CANCEL_OK
from amqpspec.model.promises.versions import Version
from amqpspec.model.protocol.methods import Method
from tests.model.timed_client import Timed

SECOND = "x-consumer-timeout=1000"
#: Long after a broker has forgotten the consumer.
LATER = 40.0
MENDED, BEFORE = Version(4, 3, 7), Version(4, 3, 6)


def waiting(options: str = SECOND) -> Timed:
    """The consumer c held m1, its time is up, and the broker waits for the client's answer."""
    return Timed(server_capabilities=(ACCEPT_CANCEL_OK,)).hold(options).cancelled(2.1)


def at_once(options: str = SECOND) -> Timed:
    """The same of a broker that does not."""
    return Timed().hold(options).cancelled(2.1)


def refused_tag(timed: Timed, time: float) -> Timed:
    text = "NOT_ALLOWED - attempt to reuse consumer tag 'c'"
    arguments = {"reply_code": 530, "reply_text": text, "class_id": 60, "method_id": 20}
    timed.send(time, "a.1 basic.consume q tag=c")
    timed.acceptor.received(Method("a", 0, "connection.close", arguments, sent=False, time=time + 0.02))
    return timed


def known(timed: Timed, version: Version) -> bool:
    """Is everything known of that version that the broker did?"""
    assert timed.acceptor.failures
    return all(is_as_known(failure, "rabbitmq-4.3", version) for failure in timed.acceptor.failures)


class TestWhileTheBrokerWaits:
    def test_the_consumer_may_be_counted_or_not(self) -> None:
        assert waiting().count(2.3, 1, 1).blamed == ""
        assert waiting().count(2.3, 1, 0).blamed == ""
        assert waiting().count(2.3, 1, 2).blamed == "TIMEOUT-014"

    def test_its_tag_may_be_in_use_or_not(self) -> None:
        assert waiting().consume(2.3).redeliver(2.32, 2).rest().blamed == ""
        assert refused_tag(waiting(), 2.3).blamed == ""

    @pytest.mark.parametrize("settlement", ["ack 1", "reject 1", "nack 1 requeue", "recover-async requeue"])
    def test_it_may_be_served_again_when_all_is_settled_or_not(self, settlement: str) -> None:
        served = waiting().send(2.5, f"a.1 basic.{settlement}").redeliver(2.52, 2).rest()
        assert served.blamed == ""
        assert waiting().send(2.5, f"a.1 basic.{settlement}").in_vain(3.0).count(3.1, 1, 1).blamed == ""

    def test_it_is_not_served_before(self) -> None:
        assert waiting().redeliver(2.2, 2).blamed == "TIMEOUT-014"

    def test_who_is_served_again_may_be_forgotten_at_any_moment(self) -> None:
        def again() -> Timed:
            return waiting().send(2.5, "a.1 basic.ack 1").redeliver(2.52, 2).rest().send(2.6, "a.1 basic.ack 2").rest()

        assert again().publish(2.8, "m2").deliver(2.82, 3, "m2").rest().blamed == ""
        assert again().publish(2.8, "m2").in_vain(3.2).count(3.3, 1, 0).blamed == ""

    def test_it_has_ended_when_the_client_has_answered(self) -> None:
        def answered() -> Timed:
            return waiting().send(2.3, "a.1 basic.cancel-ok c").rest()

        assert answered().count(2.4, 1, 0).blamed == ""
        assert answered().send(2.5, "a.1 basic.ack 1").in_vain(3.0).count(3.1, 1, 0).blamed == ""
        assert answered().consume(2.5).redeliver(2.52, 2).rest().blamed == ""
        assert answered().send(2.5, "a.1 basic.ack 1").redeliver(2.52, 2).blamed != ""
        assert refused_tag(answered(), 2.5).blamed != ""

    def test_it_has_ended_some_time_later_without_an_answer(self) -> None:
        assert waiting().wait(LATER).count(LATER, 1, 0).blamed == ""
        assert waiting().wait(LATER).consume(LATER).redeliver(LATER + 0.02, 2).rest().blamed == ""
        counted = waiting().wait(LATER).count(LATER, 1, 1)
        assert counted.blamed == "TIMEOUT-014" and not known(counted, MENDED)
        refused = refused_tag(waiting().wait(LATER), LATER)
        assert refused.blamed == "TIMEOUT-030" and not known(refused, MENDED)
        served = waiting().wait(LATER).send(LATER, "a.1 basic.ack 1").redeliver(LATER + 0.02, 2)
        assert served.blamed == "TIMEOUT-016" and not known(served, MENDED)


class TestTheSetting:
    """consumer_timeout_response: the channel is closed whatever the client understands."""

    def held(self) -> Timed:
        return Timed(server_capabilities=(ACCEPT_CANCEL_OK,)).hold(SECOND)

    def test_the_channel_may_be_closed(self) -> None:
        assert self.held().closed(2.1, 1000).count(2.3, 1, 0).blamed == ""
        assert self.held().closed(1.5, 1000).blamed != ""

    def test_of_a_broker_that_has_no_such_setting_it_is_not(self) -> None:
        assert Timed().hold(SECOND).closed(2.1, 1000).blamed == "TIMEOUT-008"


def test_an_answer_to_nothing_ends_a_consumer_or_is_ignored() -> None:
    def answered() -> Timed:
        return Timed().consume(0.3).rest().send(0.5, "a.1 basic.cancel-ok c").rest()

    assert answered().count(0.6, 0, 1).blamed == ""
    assert answered().count(0.6, 0, 0).blamed == ""


@pytest.mark.known_defects
class TestWhatEarlierVersionsDo:
    """Without the announcement nothing is left of the consumer: else it is known of 4.3.0 to 4.3.6, and no later."""

    @pytest.mark.parametrize(
        ("name", "did"),
        [
            ("timed-out-consumer-counted", lambda: at_once().count(2.3, 1, 1)),
            ("timed-out-tag-stays-in-use", lambda: refused_tag(at_once(), 2.3)),
            ("late-ack-resumes-consumer", lambda: at_once().send(2.5, "a.1 basic.ack 1").redeliver(2.52, 2)),
            ("late-reject-resumes-consumer", lambda: at_once().send(2.5, "a.1 basic.reject 1").redeliver(2.52, 2)),
            (
                "timeout-told-again",
                lambda: Timed().hold(SECOND).publish(1.7, "m2").deliver(1.72, 2, "m2").cancelled(2.1).cancelled(2.8),
            ),
        ],
    )
    def test_what_was_mended(self, name: str, did: object) -> None:
        assert callable(did)
        timed = did()
        assert [failure.defect for failure in timed.acceptor.failures] == [name]
        assert known(timed, BEFORE) and known(timed, Version(4, 3, 0))
        assert not known(timed, MENDED) and not known(timed, Version(4, 4, 0))

    def test_what_was_not_mended_is_looked_for_in_later_versions(self) -> None:
        def forgotten() -> Timed:
            timed = Timed(server_capabilities=(ACCEPT_CANCEL_OK,)).hold(SECOND)
            return timed.publish(1.7, "m2").deliver(1.72, 2, "m2").cancelled(2.1).send(2.3, "a.1 basic.cancel-ok c")

        assert forgotten().rest().wait(4.0).count(4.1, 2, 0).blamed == ""
        cancelled = Timed().hold(SECOND).ask(1.5, "a.1 basic.cancel c", "basic.cancel-ok", consumer_tag="c")
        closed = cancelled.closed(2.1, -1)
        assert closed.defect == "timeout-after-cancel-closes-channel"
        assert known(closed, BEFORE) and known(closed, Version(4, 4, 0))
