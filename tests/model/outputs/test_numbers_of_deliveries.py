"""The order in which deliveries of a channel are numbered is in no text; that a number means one delivery is."""

from __future__ import annotations

import pytest

from tests.model.judging.test_acceptor import Conversation


def got(tags: tuple[int, int], dialect: str = "amqp-0-9-1") -> Conversation:
    """Two messages of three are got, with these numbers."""
    talk = Conversation(dialect).send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    for body in ("m1", "m2", "m3"):
        talk.send(f"a.1 basic.publish q body={body}").rest()
    talk.send("a.1 basic.get q").got("a.1", tags[0], "m1", 2).rest()
    return talk.send("a.1 basic.get q").got("a.1", tags[1], "m2", 1).rest()


def blamed(talk: Conversation) -> list[str]:
    return [each.requirement for each in talk.acceptor.failures]


@pytest.mark.parametrize("tags", [(1, 2), (2, 1), (7, 3), (2**40, 2**39)])
def test_any_numbers_are_followed(tags: tuple[int, int]) -> None:
    talk = got(tags).send(f"a.1 basic.ack {max(tags)} multiple").rest()
    talk.send("a.1 channel.close").see("a.1", "channel.close-ok").rest()
    talk.send("b.1 queue.declare q passive")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=1, consumer_count=0).rest()
    assert blamed(talk) == []


@pytest.mark.parametrize(("tags", "dialect"), [((1, 1), "amqp-0-9-1"), ((2, 1), "rabbitmq-4.3")])
def test_but_not_one_for_two(tags: tuple[int, int], dialect: str) -> None:
    assert "CONSUME-014" in blamed(got(tags, dialect))
