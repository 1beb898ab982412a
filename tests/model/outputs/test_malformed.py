"""Octets that no client can read are told by what is wrong with them, and nothing else."""

from __future__ import annotations

import pytest

from amqpspec.model.outputs.malformed import malformed
from amqpspec.model.protocol.methods import Method, event_of
from tests.model.judging.test_acceptor import Conversation, consuming

CANCEL = "SERVER-002|unexpected frame|basic.cancel: N octets follow the last argument"
GARBAGE = {"octets": "01000100000004003c00", "reason": "basic.cancel consumer_tag: is cut short"}


@pytest.mark.parametrize(
    ("reason", "detail"),
    [
        ("basic.cancel: 1 octets follow the last argument", "basic.cancel: N octets follow the last argument"),
        ("a frame of 5008 octets exceeds the limit of 4096", "a frame of N octets exceeds the limit of N"),
        ("a frame ends with 0x0a instead of 0xce", "a frame ends with N instead of N"),
        ("neither a frame nor a protocol header", "neither a frame nor a protocol header"),
    ],
)
def test_frames_that_are_wrong_in_one_way_are_one_cause(reason: str, detail: str) -> None:
    wrong = malformed(event_of("a", 0, "socket.garbage", {"octets": "", "reason": reason}, sent=False))
    assert wrong is not None and wrong.fatal
    assert (wrong.requirement, wrong.detail) == ("SERVER-002", detail)


def test_what_can_be_read_is_not_malformed() -> None:
    method = Method("a", 1, "basic.cancel", {"consumer_tag": "t"}, sent=False)
    assert malformed(method) is None


def test_behind_a_method_that_goes_on_judging_goes_on_with_the_method() -> None:
    talk = consuming(prefetch=0).send("b.1 queue.declare other", "b.1 queue.delete q")
    talk.see("a.1", "basic.cancel", consumer_tag="t", nowait=True, octets_behind="00")
    assert talk.failure.identity == CANCEL
    assert talk.failure.allowed == ("a.1 < basic.cancel consumer-tag=t nowait=true",)
    talk.see("b.1", "queue.declare-ok", queue="other", message_count=0, consumer_count=0)
    talk.see("b.1", "queue.delete-ok", message_count=0, octets_behind="00").rest()
    assert [each.detail.partition(":")[0] for each in talk.acceptor.failures] == ["basic.cancel", "queue.delete-ok"]
    assert not talk.acceptor.finished
    assert talk.acceptor.exercised["CANCEL-007"] == 1


def test_it_is_told_once_and_hides_nothing_else() -> None:
    talk = Conversation()
    for number in range(3):
        talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok", octets_behind="00" * (number + 1)).rest()
    assert len(talk.acceptor.failures) == 1
    talk.see("a.1", "basic.qos-ok", octets_behind="00")
    assert [each.requirement for each in talk.acceptor.failures] == ["SERVER-002", "QOS-001"]


def test_a_flag_written_as_two_octets_is_one_failure() -> None:
    talk = consuming(prefetch=0).send("b.1 queue.delete q")
    talk.see("a.1", "basic.cancel", consumer_tag="t", nowait=False, octets_behind="01")
    assert talk.failure.identity == CANCEL
    talk.see("b.1", "queue.delete-ok", message_count=0).rest()
    assert len(talk.acceptor.failures) == 1 and not talk.acceptor.finished


@pytest.mark.parametrize("line", ["a.1 basic.qos 1", "a.1 channel.close", "a connection.close", "b.1 queue.delete q"])
def test_what_cannot_be_read_has_nothing_to_do_with_what_was_asked(line: str) -> None:
    talk = consuming(prefetch=0).send(line).see("a", "socket.garbage", **GARBAGE)
    assert talk.failure.identity == "SERVER-002|unexpected frame|basic.cancel consumer_tag: is cut short"
    assert talk.acceptor.finished
