"""The answer to basic.get comes ahead of deliveries that were on their way to the channel before."""

from __future__ import annotations

import pytest

from tests.model.judging.test_acceptor import Conversation, consuming

NAME = "get-overtakes-deliveries"


def crossed(prefetch: int, *bodies: str, kind: str = "classic") -> Conversation:
    """a.1, which consumes, gets while b.1's publishes are under way."""
    talk = consuming(prefetch, kind)
    talk.send(*(f"b.1 basic.publish q body={body} &" for body in bodies))
    return talk.send("a.1 basic.get q")


@pytest.mark.known_defects
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_the_older_message_is_on_its_way_to_a_consumer_of_the_channel(kind: str) -> None:
    talk = crossed(1, "m1", "m2", kind=kind).got("a.1", 1, "m2", left=0)
    assert (talk.failure.requirement, talk.failure.defect) == ("PUBLISH-015", NAME)


@pytest.mark.known_defects
def test_the_consumer_must_have_room_and_be_on_that_channel() -> None:
    talk = consuming(1).send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1").confirm("b.1", 1).rest()
    talk.send("b.1 basic.publish q body=m2 &", "b.1 basic.publish q body=m3 &", "a.1 basic.get q")
    assert talk.got("a.1", 2, "m3", left=0).failure.defect == ""
    talk = consuming(1).send("b.1 basic.publish q body=m1 &", "b.1 basic.publish q body=m2 &", "c.1 basic.get q")
    assert talk.got("c.1", 1, "m2", left=0).acceptor.failures == []


def test_nothing_is_wrong_about_the_order_of_the_queue() -> None:
    talk = crossed(1, "m1", "m2").got("a.1", 1, "m1", left=1).deliver("a.1", 2, "m2").confirm("b.1", 2, multiple=True)
    assert not talk.rest().acceptor.failures


def test_deliveries_do_not_overtake() -> None:
    talk = consuming(2).send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2").deliver("a.1", 1, "m2")
    assert (talk.failure.requirement, talk.failure.defect) == ("PUBLISH-015", "")
