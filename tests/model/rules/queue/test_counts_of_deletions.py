"""What a deletion counts of a queue that is handing out (area QUEUE)."""

from __future__ import annotations

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
