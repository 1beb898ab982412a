"""Up to 3.13 a consumer of a stream is handed whole chunks; whoever keeps to its limit is right."""

from __future__ import annotations

import pytest

from tests.model.rules.extensions.test_streams import Reading

pytestmark = pytest.mark.known_defects
CHUNKS = "stream-serves-chunks"


def test_chunks_are_handed_over_whole_up_to_3_13_only() -> None:
    assert (
        Reading("rabbitmq-4.0", 1, 3, at_once=True).consume().read(1, 0).read(2, 1).failure.requirement == "STREAM-006"
    )
    talk = Reading("rabbitmq-3", 1, 3, at_once=True).consume().read(1, 0).read(2, 1).read(3, 2)
    assert talk.is_known(CHUNKS)


def test_whether_a_chunk_goes_on_is_open_until_all_is_at_rest() -> None:
    """m1 may be of one chunk with m0, though both are confirmed: a cancel sent after them is not processed before."""
    talk = Reading("rabbitmq-3", 1).consume("next").rest()
    talk.send("b.1 basic.publish s body=m0 &", "b.1 basic.publish s body=m1 &", "a.1 basic.cancel t")
    talk.confirm("b.1", 2, multiple=True).read(1, 0)
    whole = talk.fork().read(2, 1).see("a.1", "basic.cancel-ok", consumer_tag="t")
    assert whole.is_known(CHUNKS)
    assert talk.see("a.1", "basic.cancel-ok", consumer_tag="t").passes()


def test_what_was_sent_before_the_first_of_a_chunk_was_seen_may_be_of_that_chunk() -> None:
    talk = Reading("rabbitmq-3", 1, published=1, at_once=True).consume("next").rest()
    talk.send("b.1 basic.publish s body=m1 &", "b.1 basic.publish s body=m2 &", "b.1 basic.publish s body=m3")
    assert talk.read(1, 1).read(2, 2).read(3, 3).is_known(CHUNKS)


def test_a_chunk_is_known_by_whichever_order_it_can_be_one() -> None:
    """m1 and m2 were published at one time by two channels: what came second shows only by one order that it is m1."""
    talk = Reading("rabbitmq-3", 1, at_once=True)
    talk.send("b.1 basic.publish s body=m0 &", "b.1 basic.publish s body=m1 &", "c.1 basic.publish s body=m2").rest()
    assert talk.consume().read(1, 0).read(2, 1).is_known(CHUNKS)


def test_a_commit_that_may_be_refused_is_no_reason_for_more_than_the_limit() -> None:
    """A queue that is gone may refuse what the transaction has for it; until its channel ends the limit holds there as
    well, so that a chunk beyond it does not tell that it has been refused.
    """
    talk = Reading("rabbitmq-3", 1).consume("next").rest()
    talk.send("b.1 queue.declare q").see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.rest().send("a.1 tx.select").see("a.1", "tx.select-ok").rest().send("a.1 basic.publish q body=n").rest()
    talk.send("b.1 queue.delete q").see("b.1", "queue.delete-ok", message_count=0).rest()
    talk.send("a.1 basic.publish s body=m0").send("a.1 basic.publish s body=m1").rest().send("a.1 tx.commit")
    assert talk.read(1, 0).read(2, 1).see("a.1", "tx.commit-ok").is_known(CHUNKS)
