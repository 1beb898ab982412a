"""Identities tell apart what a person would call two defects."""

from __future__ import annotations

import pytest

from tests.model.judging.test_acceptor import Conversation


def identities(talk: Conversation) -> list[str]:
    talk.acceptor.overdue()
    return [failure.identity for failure in talk.acceptor.failures]


@pytest.mark.parametrize("method", ["ack", "nack", "reject"])
def test_an_unknown_tag_that_is_accepted_is_told_apart_by_the_method(method: str) -> None:
    talk = Conversation().send(f"a.1 basic.{method} 5")
    assert identities(talk) == [f"ACK-006|missing frame|channel.close for basic.{method}"]


def test_an_unknown_tag_with_multiple_is_another_one() -> None:
    talk = Conversation().send("a.1 basic.nack 5 multiple")
    assert identities(talk) == ["ACK-008|missing frame|channel.close for basic.nack"]


def test_a_confirm_that_is_missing_behind_a_select_without_answer_is_told_apart() -> None:
    talk = Conversation().send("a.1 confirm.select nowait", "a.1 basic.publish nowhere body=m1")
    assert identities(talk) == ["CONFIRM-008|missing frame|basic.ack after confirm.select with nowait"]


def test_once_something_was_confirmed_the_select_was_heeded() -> None:
    talk = Conversation().send("a.1 confirm.select nowait", "a.1 basic.publish nowhere body=m1")
    talk.confirm("a.1", 1).send("a.1 basic.publish nowhere body=m2")
    assert identities(talk) == ["CONFIRM-008|missing frame|basic.ack"]
