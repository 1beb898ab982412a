"""What has timed out and what has not, settled together; closes, counts and active consumers then (area TIMEOUT)."""

from __future__ import annotations

import pytest

from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import Table
from tests.model.timed_client import QUORUM, Timed

SECOND = "x-consumer-timeout=1000"
SINGLE = f"{QUORUM} x-single-active-consumer=true"


def held_by_another(other: str) -> Timed:
    """c has timed out; one of lower priority on its channel is active, and holds the message."""
    timed = Timed(SINGLE).hold(SECOND).cancelled(2.1).count(2.2, 1)
    return timed.consume(2.3, f"{SECOND} x-priority=-1", tag=other).redeliver(2.32, 2, tag=other).rest()


@pytest.mark.known_defects
def test_the_queue_hears_of_it_consumer_by_consumer() -> None:
    def recovering(other: str) -> Timed:
        return held_by_another(other).send(2.4, "a.1 basic.recover requeue").see(2.41, "basic.recover-ok")

    for other in ("b", "d"):
        assert recovering(other).deliver(2.42, 3, tag=other, acquired=2).rest().blamed == "", "c is gone"
    back = recovering("d").deliver(2.42, 3, tag="c", acquired=2).rest()
    assert back.defect == "late-requeue-resumes-consumer", "it is back before d gives up"


@pytest.mark.known_defects
def test_settled_together_as_well() -> None:
    def settling(other: str) -> Timed:
        return held_by_another(other).send(2.4, "a.1 basic.nack 2 multiple requeue")

    for other in ("b", "d"):
        assert settling(other).deliver(2.42, 3, tag=other, acquired=2).rest().blamed == ""
    back = settling("d").deliver(2.42, 3, tag="c", acquired=2).rest()
    assert back.defect == "late-requeue-resumes-consumer"


@pytest.mark.known_defects
def test_a_channel_is_closed_for_a_cancelled_consumer() -> None:
    timed = Timed().hold(SECOND).publish(1.1, "m2").deliver(1.12, 2, "m2").rest()
    timed.ask(1.5, "a.1 basic.cancel c", "basic.cancel-ok", consumer_tag="c").wait(2.3)
    text = timed.closing(-1)
    timed.see(2.31, "channel.close", **text)
    assert timed.defect == "timeout-after-cancel-closes-channel" and timed.acceptor.finished


def test_what_times_out_on_a_channel_that_waits_for_the_answer_to_its_close_has_not_failed() -> None:
    """Its queue hears of the end of the channel when the client has answered, which may be later than its time."""

    def taken_over(until: str, counted: Table) -> list[str]:
        timed = Timed().hold(until).publish(1.1, "m2").deliver(1.12, 2, "m2").rest()
        timed.ask(1.5, "a.1 basic.cancel c", "basic.cancel-ok", consumer_tag="c")
        timed.send(2.0, "a.1 basic.nack 9 requeue")
        text = "PRECONDITION_FAILED - unknown delivery tag 9"
        timed.see(2.01, "channel.close", reply_code=406, reply_text=text, class_id=60, method_id=120)
        timed.send(2.05, "a.1 channel.close-ok").rest().consume(2.1, tag="d", on="b")
        for number, body in ((1, "m1"), (2, "m2")):
            timed.deliver_with(2.12, number, {"headers": counted}, body, tag="d", on="b")
        return [failure.requirement for failure in timed.rest().acceptor.failures]

    failed: Table = {"x-delivery-count": Int64(1), "x-acquired-count": Int64(1)}
    timed_out: Table = {"x-acquired-count": Int64(1)}
    assert taken_over(SECOND, failed) == taken_over(SECOND, timed_out) == []
    assert taken_over("x-consumer-timeout=30000", failed) == []
    assert taken_over("x-consumer-timeout=30000", timed_out) == ["QUORUM-002"]


@pytest.mark.known_defects
def test_a_quorum_queue_that_is_slow_to_tell_its_numbers_has_none() -> None:
    def told(after: float, messages: int) -> Timed:
        timed = Timed().publish(1.0).count(1.2, 1).send(1.4, "b.1 queue.declare q passive")
        about: Table = {"queue": "q", "message_count": messages, "consumer_count": 0}
        return timed.see(1.4 + after, "queue.declare-ok", on="b", **about)

    slow = told(0.26, 0)
    assert [failure.defect for failure in slow.acceptor.failures] == ["late-counts-are-zero"]
    assert slow.count(1.8, 1).rest().acceptor.failures == slow.acceptor.failures[:1], "the message is there"
    assert told(0.26, 1).blamed == ""
    assert told(0.2, 0).defect == "", "it was in time"
    assert told(0.2, 0).blamed != ""


@pytest.mark.known_defects
def test_a_quorum_queue_that_is_slow_to_tell_its_numbers_has_none_when_it_is_deleted() -> None:
    def told(after: float, messages: int) -> Timed:
        timed = Timed().publish(1.0).count(1.2, 1).send(1.4, "b.1 queue.delete q")
        return timed.see(1.4 + after, "queue.delete-ok", on="b", message_count=messages)

    assert [failure.defect for failure in told(0.5, 0).acceptor.failures] == ["late-counts-are-zero"]
    assert told(0.5, 1).blamed == ""
    assert (told(0.2, 0).blamed, told(0.2, 0).defect) == ("QUEUE-024", "")


def test_a_queue_that_never_tells_its_numbers_in_time_is_undecided() -> None:
    """The message should be there, and what says that there is none says nothing."""
    slow = Timed().publish(1.0).send(1.4, "b.1 queue.declare q passive")
    about: Table = {"queue": "q", "message_count": 0, "consumer_count": 0}
    slow.see(1.8, "queue.declare-ok", on="b", **about)
    slow.acceptor.overdue()
    assert slow.acceptor.reason == "the broker does not tell in time how many messages and consumers q has"


@pytest.mark.known_defects
def test_behind_the_close_of_its_channel_another_consumer_on_it_is_handed_what_times_out() -> None:
    """Until the client has answered."""
    timed = Timed(capabilities={}).hold(SECOND).consume(1.3, "x-consumer-timeout=500", tag="d").rest()
    timed.publish(1.4, "m2").deliver(1.42, 2, "m2", tag="d").rest().wait(1.95)
    timed.see(1.96, "channel.close", **timed.closing(-1))
    timed.deliver(2.1, 3, tag="d", acquired=1)
    assert [failure.defect for failure in timed.acceptor.failures] == [
        "timeout-text-without-value", "delivers-behind-channel-close",
    ]  # fmt: skip


@pytest.mark.known_defects
def test_one_that_gives_back_late_may_be_served_where_another_took_what_it_had() -> None:
    def given_back(other: str) -> Timed:
        timed = Timed().hold(SECOND)
        if other:
            timed.consume(1.2, tag=other, on="b").rest()
        timed.told(2.1)
        if other:
            timed.redeliver(2.11, 1, tag=other, on="b").rest()
        else:
            timed.rest()
        timed.send(2.3, "a.1 basic.reject 1 requeue").rest()
        return timed.send(2.4, "b.1 basic.cancel d").see(2.41, "basic.cancel-ok", on="b", consumer_tag="d").rest()

    served = given_back("d").publish(2.5, "m2").deliver(2.52, 2, "m2").rest()
    assert served.defect == "late-requeue-resumes-consumer"
    assert given_back("d").publish(2.5, "m2").in_vain(7.0).count(7.1, 1, 0).blamed == ""


@pytest.mark.known_defects
def test_behind_the_close_for_an_error_it_is_handed_what_times_out_with_others() -> None:
    timed = Timed().hold(SECOND).consume(1.5, "x-priority=5", tag="d", on="b").rest()
    text = "NOT_FOUND - no queue 'nosuch' in vhost '/'"
    close: Table = {"reply_code": 404, "reply_text": text, "class_id": 60, "method_id": 70}
    timed.send(1.95, "b.1 basic.get nosuch").see(1.96, "channel.close", on="b", **close)
    timed.redeliver(2.1, 1, tag="d", on="b")
    assert timed.defect == "delivers-behind-channel-close"


@pytest.mark.known_defects
def test_a_late_number_hits_what_is_not_settled_though_another_hits_what_is() -> None:
    """Both deliveries of the first c have timed out; of those to the second one the client settles one."""
    timed = Timed().hold(SECOND).publish(1.02, "m2").deliver(1.03, 2, "m2").rest().told(2.1).wait(2.2)
    timed.rest().count(2.3, 2).ask(2.4, "a.1 basic.cancel c", "basic.cancel-ok", consumer_tag="c")
    timed.consume(2.5).redeliver(2.52, 3).redeliver(2.53, 4, "m2").rest()
    timed.send(2.6, "a.1 basic.ack 3 multiple").rest()
    timed.send(2.7, "a.1 channel.close").see(2.71, "channel.close-ok").rest()
    timed.send(2.8, "b.1 queue.declare q passive")
    timed.see(2.81, "queue.declare-ok", on="b", queue="q", message_count=0, consumer_count=0)
    timed.acceptor.overdue()
    assert timed.defect == "late-settlement-settles-for-next-consumer"
