"""The law offers its guests no place where none of them is."""

from __future__ import annotations

from amqpspec.model.broker.hooks import Guest, Hooks
from amqpspec.model.defects.transitions import HOOKS


def test_there_is_a_guest_at_each_place() -> None:
    places = set(vars(Hooks((Guest(),)))) - {"guests"}
    assert len(places) > 40
    assert {place for place in places if not getattr(HOOKS, place)} == set()
