"""A known defect is refuted where all that followed it is contradicted, and it cannot come about any more."""

from __future__ import annotations

import pytest

from amqpspec.model.broker.broker import Broker
from amqpspec.model.defects.known_defects import TRANSITIONS
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.refuted import note_refuted
from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from amqpspec.model.protocol.methods import Method

DEFECT = TRANSITIONS[0]
INPUT = Method("a", 1, "basic.ack", {}, sent=True)


def explanation(*, follows: bool, pending: bool) -> Explanation:
    """`pending`: the input that comes under the defect has not been processed by it."""
    found = Explanation(Broker(DEFAULT_DIALECT), [INPUT] if pending else [])
    if follows:
        found.defect, found.defective_input = DEFECT, INPUT
    return found


@pytest.mark.parametrize(
    ("survivors", "is_refuted"),
    [
        ([(False, False)], True),
        # the request need not have been processed: the broker may come to it yet
        ([(False, True)], False),
        ([(False, False), (False, True)], False),
        # the contradicted one had only not processed it, and another one has
        ([(False, False), (True, False)], False),
        ([(False, False), (True, True)], False),
    ],
)
@pytest.mark.parametrize("was_pending", [False, True])
def test_where_it_counts(survivors: list[tuple[bool, bool]], is_refuted: bool, was_pending: bool) -> None:
    contradicted = explanation(follows=True, pending=was_pending)
    found = [explanation(follows=follows, pending=pending) for follows, pending in survivors]
    note_refuted([contradicted], found)
    for each in found:
        assert (DEFECT.name in each.broker.bookkeeping.refuted) is is_refuted
