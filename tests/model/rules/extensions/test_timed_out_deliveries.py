"""What becomes of a delivery that times out, of its consumer and of its client: from 4.3 on (area TIMEOUT)."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.versions import RABBITMQ
from amqpspec.model.protocol.methods import Content, Method, Table
from tests.model.judging.test_acceptor import ANOTHER
from tests.model.timed_client import QUORUM, Timed

#: In milliseconds; a delivery of `Timed.hold` is made between 1.0 and 1.02.
SECOND = "x-consumer-timeout=1000"
#: What brings a consumer back that is gone, by the requirement that it breaks.
RESUMED = {
    "TIMEOUT-016": "late-ack-resumes-consumer",
    "TIMEOUT-017": "late-reject-resumes-consumer",
    "TIMEOUT-018": "late-requeue-resumes-consumer",
}


def timed_out(queue: str = QUORUM) -> Timed:
    """The consumer c held m1, and its time is up."""
    return Timed(queue).hold(SECOND).cancelled(2.1)


def refused_tag(timed: Timed) -> Timed:
    """The client uses the tag c again, which is in use."""
    text = "NOT_ALLOWED - attempt to reuse consumer tag 'c'"
    arguments = {"reply_code": 530, "reply_text": text, "class_id": 60, "method_id": 20}
    timed.send(2.3, "a.1 basic.consume q tag=c")
    timed.acceptor.received(Method("a", 0, "connection.close", arguments, sent=False, time=2.32))
    return timed


# -------------------------------------------------------------------------------------------- the message


def test_the_message_is_ready_again() -> None:
    assert timed_out().count(2.2, 1).blamed == ""
    assert Timed().hold(SECOND).count(1.9, 0, 1).blamed == ""
    assert Timed().hold(SECOND).wait(3.2).cancelled(3.05).count(3.3, 1).blamed == ""


def test_another_consumer_gets_it_marked_as_redelivered() -> None:
    def handed_on(acquired: int = 1) -> Timed:
        timed = Timed().hold(SECOND).consume(1.2, tag="d", on="b").rest().told(2.1)
        return timed.deliver(2.11, 1, tag="d", on="b", acquired=acquired)

    assert handed_on().blamed == ""
    assert handed_on().acceptor.exercised["TIMEOUT-013"] == 1
    assert handed_on(acquired=0).rest().blamed == "TIMEOUT-012"
    kept = Timed().hold(SECOND).consume(1.2, tag="d", on="b").rest().cancelled(2.1)
    assert kept.blamed == "TIMEOUT-012"


def test_it_does_not_count_as_failed() -> None:
    limited = timed_out(f"{QUORUM} x-delivery-limit=0").count(2.2, 1)
    assert limited.blamed == ""
    dropped = Timed(f"{QUORUM} x-delivery-limit=0").hold(SECOND).cancelled(2.1).count(2.2, 0)
    dropped.acceptor.overdue()
    assert dropped.blamed == "TIMEOUT-013"


@pytest.mark.known_defects
def test_a_younger_delivery_stays_until_its_own_time() -> None:
    def with_younger() -> Timed:
        younger = Timed().hold(SECOND).publish(1.7, "m2").deliver(1.72, 2, "m2")
        return younger.cancelled(2.1)

    assert with_younger().count(2.3, 1).blamed == ""
    assert with_younger().count(2.3, 2).blamed == "TIMEOUT-020"
    assert with_younger().wait(4.0).count(4.1, 2).blamed == ""
    forgotten = with_younger().wait(4.0).count(4.1, 1)
    forgotten.acceptor.overdue()
    assert (forgotten.blamed, forgotten.defect) == ("TIMEOUT-021", "next-deadline-forgotten")


# ------------------------------------------------------------------------------------------- what the client is told


def test_it_is_told_once() -> None:
    assert timed_out().cancelled(2.2).blamed == "TIMEOUT-008"


@pytest.mark.known_defects
def test_nothing_more_is_said_of_a_consumer_that_is_gone() -> None:
    def with_younger() -> Timed:
        return Timed().hold(SECOND).publish(1.7, "m2").deliver(1.72, 2, "m2").cancelled(2.1)

    assert with_younger().wait(4.0).count(4.1, 2).blamed == ""
    again = with_younger().cancelled(2.8).count(4.1, 2)
    assert [(each.requirement, each.defect) for each in again.acceptor.failures] == [
        ("TIMEOUT-008", "timeout-told-again")
    ]
    deleted = timed_out().send(2.3, "b.1 queue.delete q").see(2.31, "queue.delete-ok", on="b", message_count=1)
    assert deleted.rest().blamed == ""
    told = timed_out().send(2.3, "b.1 queue.delete q").see(2.31, "queue.delete-ok", on="b", message_count=1)
    told.cancelled(2.4)
    assert (told.blamed, told.defect) == ("TIMEOUT-008", "timeout-told-again")


def test_other_consumers_go_on() -> None:
    def two() -> Timed:
        return Timed().hold(SECOND).consume(1.2, tag="d", on="a").rest()

    def handed_on() -> Timed:
        return two().told(2.1).redeliver(2.11, 2, tag="d")

    assert handed_on().blamed == ""
    assert handed_on().cancelled(2.2, "d").blamed == "TIMEOUT-022"
    assert two().wait(2.1).cancelled(2.2, "d").blamed == "TIMEOUT-022"
    assert handed_on().publish(2.2, "m2").deliver(2.22, 3, "m2", "d").blamed == ""
    assert handed_on().publish(2.2, "m2").in_vain(3.0).blamed == "TIMEOUT-022"


@pytest.mark.known_defects
def test_who_does_not_understand_basic_cancel_has_his_channel_closed() -> None:
    def incapable(product: str = RABBITMQ) -> Timed:
        return Timed(capabilities={}, product=product).hold(SECOND)

    assert incapable().closed(2.1, 1000).blamed == ""
    assert incapable().closed(1.5, 1000).blamed == "TIMEOUT-009"
    assert incapable().in_vain(3.2).blamed == "TIMEOUT-009"
    assert incapable(ANOTHER).cancelled(2.1).blamed == "TIMEOUT-009"
    without_value = incapable().closed(2.1, -1)
    assert (without_value.blamed, without_value.defect) == ("TIMEOUT-009", "timeout-text-without-value")


def test_who_understands_it_does_not() -> None:
    assert Timed().hold(SECOND).closed(2.1, 1000).blamed == "TIMEOUT-008"


def test_what_basic_get_has_taken_closes_the_channel() -> None:
    def got() -> Timed:
        timed = Timed(f"{QUORUM} {SECOND}").publish(0.8).count(0.9, 1)
        about: Table = {"delivery_tag": 1, "redelivered": False, "message_count": 0, "exchange": "", "routing_key": "q"}
        return timed.send(1.0, "a.1 basic.get q").see(1.02, "basic.get-ok", Content({}, b"m1"), **about).rest()

    assert got().closed(2.1, 1000).blamed == ""
    assert got().closed(1.5, 1000).blamed != ""
    assert got().in_vain(3.2).blamed == "TIMEOUT-010"


@pytest.mark.known_defects
def test_who_has_cancelled_his_consumer_is_told_nothing() -> None:
    def cancelling() -> Timed:
        return Timed().hold(SECOND).ask(1.5, "a.1 basic.cancel c", "basic.cancel-ok", consumer_tag="c")

    assert cancelling().in_vain(3.2).count(3.3, 1).blamed == ""
    closed = cancelling().closed(2.1, -1)
    assert (closed.blamed, closed.defect) == ("TIMEOUT-011", "timeout-after-cancel-closes-channel")


# -------------------------------------------------------------------------------------------------- the consumer


def test_it_is_handed_nothing() -> None:
    assert timed_out().redeliver(2.2, 2).blamed == "TIMEOUT-014"
    assert timed_out().publish(2.2, "m2").count(2.3, 2).blamed == ""
    assert timed_out().publish(2.2, "m2").count(2.3, 2).acceptor.exercised["TIMEOUT-014"] > 0


@pytest.mark.known_defects
def test_it_is_not_counted_and_excludes_nobody() -> None:
    counted = timed_out().count(2.2, 1, 1)
    assert (counted.blamed, counted.defect) == ("TIMEOUT-014", "timed-out-consumer-counted")
    exclusive = Timed().hold(f"{SECOND} exclusive").cancelled(2.1).consume(2.3, "exclusive", tag="d", on="b")
    assert exclusive.redeliver(2.32, 1, tag="d", on="b").rest().blamed == ""


def test_to_cancel_it_frees_its_tag() -> None:
    def cancelling() -> Timed:
        return timed_out().ask(2.2, "a.1 basic.cancel c", "basic.cancel-ok", consumer_tag="c")

    assert cancelling().acceptor.exercised["TIMEOUT-015"] == 1
    assert cancelling().consume(2.3).redeliver(2.32, 2).blamed == ""
    assert refused_tag(cancelling()).blamed == "TIMEOUT-015"


@pytest.mark.known_defects
def test_its_tag_may_be_used_again_at_once() -> None:
    assert timed_out().consume(2.3).redeliver(2.32, 2).blamed == ""
    again = refused_tag(timed_out())
    assert (again.blamed, again.defect) == ("TIMEOUT-030", "timed-out-tag-stays-in-use")


def test_another_one_follows_a_single_active_consumer() -> None:
    queue = f"{QUORUM} x-single-active-consumer=true"

    def waiting() -> Timed:
        return Timed(queue).hold(SECOND).consume(1.2, tag="d", on="b").rest()

    def told() -> Timed:
        return waiting().told(2.1)

    assert told().redeliver(2.11, 1, tag="d", on="b").blamed == ""
    assert told().in_vain(3.0).blamed == "TIMEOUT-029"


# -------------------------------------------------------------------------------------------------- settling late


@pytest.mark.parametrize(
    ("settlement", "requirement"),
    [
        ("a.1 basic.ack 1", "TIMEOUT-016"),
        ("a.1 basic.ack multiple", "TIMEOUT-016"),
        ("a.1 basic.nack 1", "TIMEOUT-017"),
        ("a.1 basic.reject 1", "TIMEOUT-017"),
        ("a.1 basic.nack 1 requeue", "TIMEOUT-018"),
        ("a.1 basic.recover-async requeue", "TIMEOUT-018"),
    ],
)
@pytest.mark.known_defects
def test_no_consumer_comes_back_when_all_is_settled(settlement: str, requirement: str) -> None:
    gone = timed_out().send(2.5, settlement).in_vain(3.0).count(3.1, 1)
    assert (gone.blamed, gone.acceptor.exercised[requirement]) == ("", 1)
    served = timed_out().send(2.5, settlement).redeliver(2.52, 2)
    assert (served.blamed, served.defect) == (requirement, RESUMED[requirement])


def test_settled_on_condition_it_is_settled_with_the_commit() -> None:
    timed = Timed().ask(0.2, "a.1 tx.select", "tx.select-ok").publish(0.3)
    timed.ask(0.4, "a.1 tx.commit", "tx.commit-ok").count(0.9, 1).consume(1.0, SECOND).deliver(1.02).rest()
    timed.cancelled(2.1).send(2.3, "a.1 basic.ack 1").rest().ask(2.4, "a.1 tx.commit", "tx.commit-ok")
    assert timed.in_vain(2.9).count(3.0, 1).blamed == ""


@pytest.mark.known_defects
def test_whoever_serves_it_again_does_so_when_all_is_settled_and_not_before() -> None:
    def two_timed_out() -> Timed:
        timed = Timed().publish(0.3).publish(0.4, "m2").count(0.5, 2).consume(1.0, SECOND)
        return timed.deliver(1.02, 1).deliver(1.03, 2, "m2").cancelled(2.1).wait(3.2).count(3.3, 2)

    assert two_timed_out().send(3.5, "a.1 basic.ack 1").rest().blamed == ""
    early = two_timed_out().send(3.5, "a.1 basic.ack 1").redeliver(3.52, 3)
    assert (early.blamed, early.defect) == ("TIMEOUT-014", "")
    both = two_timed_out().send(3.5, "a.1 basic.ack 1").rest().send(3.6, "a.1 basic.ack 2")
    assert both.redeliver(3.62, 3).redeliver(3.63, 4, "m2").defect == "late-ack-resumes-consumer"
    assert len(both.acceptor.failures) == 1
    assert two_timed_out().send(3.5, "a.1 basic.ack 2 multiple").rest().blamed == ""


def test_to_settle_late_is_no_error_and_settles_nothing() -> None:
    def handed_on() -> Timed:
        timed = Timed(product=ANOTHER).hold(SECOND).consume(1.2, tag="d", on="b").rest().told(2.1)
        return timed.redeliver(2.11, 1, tag="d", on="b").send(2.5, "a.1 basic.ack 1")

    assert handed_on().rest().count(2.6, 0, 1).blamed == ""
    text = "PRECONDITION_FAILED - unknown delivery tag 1"
    refused: Table = {"reply_code": 406, "reply_text": text, "class_id": 60, "method_id": 80}
    assert handed_on().see(2.52, "channel.close", **refused).blamed == "TIMEOUT-019"
    settled = handed_on().rest().send(2.6, "b.1 basic.nack 1 requeue").in_vain(3.0)
    assert settled.blamed == "TIMEOUT-019"


def test_every_deadline_of_a_queue_is_kept() -> None:
    def with_another() -> Timed:
        timed = Timed().send(0.3, "b.1 basic.qos 1").see(0.31, "basic.qos-ok", on="b").rest().hold(SECOND)
        timed.send(1.1, "b.1 basic.consume q tag=d x-consumer-timeout=1500")
        timed.see(1.11, "basic.consume-ok", on="b", consumer_tag="d").rest()
        return timed.told(2.1).redeliver(2.11, 1, tag="d", on="b")

    assert with_another().told(3.65, "d", "b").rest().blamed == ""
    assert with_another().in_vain(5.0).blamed == "TIMEOUT-021"
