"""Publishes of several channels that cross: one explanation, and the same verdicts as where each order is followed."""

from __future__ import annotations

from itertools import permutations

import pytest

from amqpspec.model.promises.verdict import Verdict
from tests.model.judging.test_acceptor import Conversation, consuming

pytestmark = pytest.mark.quick

#: What b.1 and c.1 publish in turns.
OF_B, OF_C = ("m0", "m2"), ("m1", "m3")


def in_flight(prefetch: int = 0, kind: str = "classic", count: int = 4, more: str = "") -> Conversation:
    talk = consuming(prefetch, kind).send("c.1 confirm.select").see("c.1", "confirm.select-ok").rest()
    lanes = ("b.1", "c.1")
    talk.send(*(f"{lanes[number % 2]} basic.publish q body=m{number}{more} &" for number in range(count)))
    return talk


def in_every_order(talk: Conversation) -> Conversation:
    """The same, judged without what this is about."""
    other = talk.fork()
    if other.acceptor._crossing.before is not None:
        other.acceptor._judge_again()
    other.acceptor._crossing.is_again = True
    return other


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_confirmed_workload_on_two_channels_has_one_explanation(kind: str, prefetch: int) -> None:
    talk = in_flight(prefetch, kind, count=32)
    for number in range(32):
        lane = "bc"[number % 2]
        talk.deliver("a.1", number + 1, f"m{number}").send(f"a.1 basic.ack {number + 1} &")
        talk.confirm(f"{lane}.1", number // 2 + 1)
        assert talk.explanations == 1
    talk.rest()
    assert talk.acceptor.verdict is Verdict.PASS and not talk.acceptor.owes()


@pytest.mark.parametrize(
    ("kind", "confirmed"), [("classic", "before"), ("classic", "behind"), ("quorum", "one before")]
)
def test_the_verdict_is_that_of_every_order(kind: str, confirmed: str) -> None:
    start = in_flight(kind=kind)
    if confirmed == "before":
        start.confirm("b.1", 2, multiple=True).confirm("c.1", 2, multiple=True)
    if confirmed == "one before":
        start.confirm("c.1", 1)
    verdicts = set()
    for order in permutations(range(4)):
        outcomes = []
        for talk in (start.fork(), in_every_order(start)):
            for tag, number in enumerate(order, start=1):
                talk.deliver("a.1", tag, f"m{number}")
            if confirmed != "before":
                talk.confirm("b.1", 2, multiple=True)
                talk.confirm("c.1", 2, multiple=confirmed == "behind")
            talk.rest()
            outcomes.append((talk.acceptor.verdict, [each.identity for each in talk.acceptor.failures]))
        assert outcomes[0] == outcomes[1]
        is_right = order.index(0) < order.index(2) and order.index(1) < order.index(3)
        assert outcomes[0][0] is (Verdict.PASS if is_right else Verdict.FAIL)
        verdicts.add(outcomes[0][0])
    assert verdicts == {Verdict.PASS, Verdict.FAIL}


@pytest.mark.parametrize(
    "line",
    ["d.1 queue.purge q", "d.1 basic.get q", "d.1 queue.delete q", "a.1 basic.nack 1", "a.1 basic.recover requeue",
     "a.1 basic.cancel t", "d.1 queue.declare q passive", "b.1 channel.close"],
)  # fmt: skip
def test_what_can_come_between_has_every_order_followed(line: str) -> None:
    unlike, again = (in_flight().deliver("a.1", 1, "m1") for _ in range(2))
    assert unlike.explanations == 1 and not unlike.pending
    again = in_every_order(again)
    for each in (unlike, again):
        each.send("d.1 basic.qos 1 &" if line[0] == "d" else "b.1 basic.qos 1 &", line)
    assert unlike.explanations == again.explanations > 1
    for one, other in zip(unlike.acceptor.explanations, again.acceptor.explanations, strict=True):
        assert [str(each) for each in one.pending] == [str(each) for each in other.pending]


@pytest.mark.parametrize("what", [" mandatory", " priority=3", " expiration=1000"])
def test_what_is_treated_otherwise_does_not_take_part(what: str) -> None:
    assert in_flight(more=what).acceptor.explanations[0].pending


def test_an_acknowledgement_stays_under_way_until_its_room_is_needed() -> None:
    talk = in_flight(prefetch=2).deliver("a.1", 1, "m1").deliver("a.1", 2, "m0")
    talk.send("a.1 basic.ack 1 &").confirm("b.1", 1)
    assert talk.pending == 1
    talk.deliver("a.1", 3, "m2")
    assert talk.pending == 0 and not talk.acceptor.failures
    talk.deliver("a.1", 4, "m3")
    assert talk.acceptor.verdict is Verdict.FAIL


def test_a_confirm_that_is_missing_is_owed() -> None:
    talk = in_flight(count=2).deliver("a.1", 1, "m0").deliver("a.1", 2, "m1").confirm("b.1", 1)
    assert talk.acceptor.owes()
    talk.acceptor.overdue()
    assert [each.requirement for each in talk.acceptor.failures] == ["CONFIRM-003"]
