"""What a deletion counts of a queue that is handing out (area QUEUE)."""

from __future__ import annotations

import pytest

from tests.model.judging.test_acceptor import declared


def test_a_deletion_may_count_what_a_quorum_queue_hands_out_meanwhile() -> None:
    """Its numbers are asked for first. At rest there is nothing of that kind."""

    def deleted(kind: str, count: int, meanwhile: bool) -> bool:
        talk = declared(kind).send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2").rest()
        talk.send("b.1 basic.get q").got("b.1", 1, "m1", left=1)
        if not meanwhile:
            talk.rest()
        talk.send("a.1 queue.delete q").see("a.1", "queue.delete-ok", message_count=count).rest()
        return not talk.acceptor.failures

    assert deleted("quorum", 1, meanwhile=True) and deleted("quorum", 2, meanwhile=True)
    assert deleted("quorum", 1, meanwhile=False) and not deleted("quorum", 2, meanwhile=False)
    assert deleted("classic", 1, meanwhile=True) and not deleted("classic", 2, meanwhile=True)


def test_a_deletion_may_count_what_is_purged_meanwhile() -> None:
    """Seen on 3.10 and 4.0, nearly always, and on 4.3: of one message purge-ok and delete-ok both say 1."""

    def deleted(kind: str, count: int, meanwhile: bool) -> bool:
        talk = declared(kind).send("b.1 basic.publish q body=m1").rest()
        talk.send("b.1 queue.purge q").see("b.1", "queue.purge-ok", message_count=1)
        if not meanwhile:
            talk.rest()
        talk.send("a.1 queue.delete q").see("a.1", "queue.delete-ok", message_count=count).rest()
        return not talk.acceptor.failures

    assert deleted("quorum", 0, meanwhile=True) and deleted("quorum", 1, meanwhile=True)
    assert not deleted("quorum", 2, meanwhile=True) and not deleted("quorum", 1, meanwhile=False)
    assert not deleted("classic", 1, meanwhile=True)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_deletion_of_a_quorum_queue_need_not_count_what_comes_meanwhile(kind: str) -> None:
    """Its numbers are asked for first: what is published then may come all the same, and the one after it not."""

    def deleted(count: int) -> bool:
        talk = declared(kind).send("a.1 confirm.select").see("a.1", "confirm.select-ok")
        talk.send("b.1 basic.qos 1").see("b.1", "basic.qos-ok").rest()
        talk.send("a.1 basic.publish q body=m1 &").confirm("a.1", 1)
        talk.send("a.1 basic.publish q body=m2 &", "b.1 queue.delete q &", "a.1 basic.publish q body=m3 &")
        talk.confirm("a.1", 2).confirm("a.1", 3).send("a.1 basic.publish q body=m4 &")
        talk.see("b.1", "queue.delete-ok", message_count=count)
        talk.see("a.1", "basic.nack", delivery_tag=4, multiple=True, requeue=True).rest()
        return not talk.acceptor.failures

    counts = {"classic": range(3, 5), "quorum": range(1, 5)}[kind]
    assert [count for count in range(6) if deleted(count)] == list(counts), "m1 was there when the deletion was sent"
