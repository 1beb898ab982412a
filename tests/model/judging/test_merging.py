"""Which of the ways in which a broker may have come to what was seen are kept."""

from __future__ import annotations

import pytest

from amqpspec.model.broker.internal_events import DeliveryLimitExcess, InternalEvent, MessageLoss
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.merging import Seen, least_advanced, merged
from amqpspec.model.promises.dialects.rabbitmq_4_3 import RABBITMQ_4_3


def explanation(*pending: InternalEvent) -> Explanation:
    [only] = acceptor_for(RABBITMQ_4_3).explanations
    only.pending = list(pending)
    return only


def test_what_comes_about_independently_comes_in_any_order() -> None:
    one, other = DeliveryLimitExcess("q", 0), DeliveryLimitExcess("q", 1)
    assert len(merged([explanation(one, other), explanation(other, one)])) == 1
    ordered = [MessageLoss("q", position, number=1) for position in (0, 1)]
    assert len(merged([explanation(*ordered), explanation(*reversed(ordered))])) == 2, "these come one by one"


def test_of_those_that_lead_to_each_other_the_first_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has been done may be expected anew, so that nothing has changed."""
    monkeypatch.setattr("amqpspec.model.judging.explanation.can_come_about", lambda broker, event: True)
    again = DeliveryLimitExcess("q", 0)
    same, behind = explanation(again), explanation()
    same.broker.internal_events.append(again)
    assert least_advanced(list(map(Seen, [same, behind]))) == [same, behind]


def test_those_that_another_one_comes_to_are_among_its_points() -> None:
    one, other = DeliveryLimitExcess("q", 0), DeliveryLimitExcess("q", 1)
    first = explanation(one, other)
    behind = [explanation(one), explanation(other), explanation()]
    assert least_advanced(list(map(Seen, [first, *behind]))) == [first]


def test_what_makes_no_difference_any_more_is_not_expected() -> None:
    only = explanation()
    only.broker.internal_events.append(DeliveryLimitExcess("q", 0))
    only.expect_internal_events()
    assert (only.pending, only.broker.internal_events) == ([], [])
