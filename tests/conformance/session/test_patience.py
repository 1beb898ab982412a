from __future__ import annotations

import pytest

from amqpspec.conformance.session.patience import (
    ENOUGH_ANSWERS,
    FADING,
    FLOOR,
    IN_VAIN,
    LONGEST_LOGIN,
    LOW_FLOOR,
    MANY_IN_VAIN,
    MULTIPLE,
    NEVER,
    NUMBERS,
    Patience,
)


@pytest.fixture
def patience() -> Patience:
    return Patience(5.0)


def in_vain(patience: Patience, times: int) -> None:
    for _ in range(times):
        patience.waited_in_vain()


def test_there_is_all_of_it_until_several_deadlines_have_passed_in_vain(patience: Patience) -> None:
    patience.waited(0.01)
    for _ in range(IN_VAIN):
        assert patience.deadline == 5.0
        patience.waited_in_vain()
    assert patience.deadline == FLOOR


def test_it_is_a_multiple_of_the_slowest_answer(patience: Patience) -> None:
    in_vain(patience, IN_VAIN)
    for seconds in (0.01, 0.2, 0.05):
        patience.waited(seconds)
    assert patience.deadline == pytest.approx(MULTIPLE * 0.2 * FADING)


def test_one_slow_answer_among_hundreds_is_forgotten(patience: Patience) -> None:
    """An hour of a busy machine is not: there each tenth answer is slow."""
    in_vain(patience, IN_VAIN)
    for _ in range(40):
        patience.waited(0.4)
        for _ in range(9):
            patience.waited(0.001)
    assert patience.deadline > 0.9 * MULTIPLE * 0.4
    for _ in range(300):
        patience.waited(0.001)
    assert patience.deadline == FLOOR


def test_a_broker_that_owes_again_and_again_is_waited_for_shortly_but_for_a_busy_machine(patience: Patience) -> None:
    in_vain(patience, MANY_IN_VAIN)
    assert patience.deadline == FLOOR, "nothing is known of the machine yet"
    for _ in range(ENOUGH_ANSWERS):
        patience.waited(0.001)
    assert patience.deadline == LOW_FLOOR
    patience.waited(0.2)
    assert patience.deadline == MULTIPLE * 0.2


def test_a_broker_that_answers_nothing_any_more_is_soon_waited_for_shortly(patience: Patience) -> None:
    patience.waited(0.5)
    in_vain(patience, IN_VAIN)
    assert patience.deadline < 2.5
    in_vain(patience, 3)
    assert patience.deadline == FLOOR
    assert patience.generous(3.0, 10.0) == 3.0


def test_it_is_never_more_than_was_said(patience: Patience) -> None:
    patience.waited(3.0)
    in_vain(patience, IN_VAIN)
    assert patience.deadline == 5.0


def test_a_target_with_a_short_deadline_keeps_it() -> None:
    patience = Patience(0.3)
    in_vain(patience, IN_VAIN)
    assert patience.deadline == 0.3


def test_what_one_of_several_processes_learns_all_know() -> None:
    memory = [0.0] * NUMBERS
    one, other = Patience(5.0), Patience(5.0)
    in_vain(one, 1)
    for each in (one, other):
        each.share(memory, 2)
    in_vain(other, IN_VAIN - 1)
    assert one.deadline == FLOOR, "what it had seen before counts as well"
    one.waited(0.4)
    for _ in range(100):
        other.waited(0.001)
    assert one.deadline == pytest.approx(MULTIPLE * 0.4 * FADING**50), "a hundred answers of two are fifty of each"


def test_what_is_known_of_deletions_is_known_to_all() -> None:
    memory = [0.0] * NUMBERS
    one, other = Patience(5.0), Patience(5.0)
    one.deleted("queue", True)
    for each in (one, other):
        each.share(memory, 2)
    for _ in range(NEVER):
        assert one.deletes("exchange")
        other.deleted("exchange", False)
        other.deleted("queue", False)
    assert not one.deletes("exchange")
    assert other.deletes("queue"), "it has been answered once"


def test_a_target_that_is_started_again_is_taken_to_be_as_fast_as_it_was(patience: Patience) -> None:
    in_vain(patience, MANY_IN_VAIN)
    for _ in range(ENOUGH_ANSWERS):
        patience.waited(0.001)
    for _ in range(NEVER):
        patience.deleted("exchange", False)
    assert patience.deadline == LOW_FLOOR
    again = patience.renewed()
    assert again.deadline == FLOOR
    assert not again.deletes("exchange")
    again.waited(0.2)
    assert again.deadline == MULTIPLE * 0.2
    assert Patience(5.0).renewed().deadline == 5.0


def test_logins_are_slow_however_fast_other_answers_are(patience: Patience) -> None:
    assert patience.login_deadline == 5.0
    patience.waited_for_login(0.4)
    for _ in range(ENOUGH_ANSWERS):
        patience.waited(0.001)
    in_vain(patience, MANY_IN_VAIN)
    assert patience.deadline == LOW_FLOOR
    assert patience.login_deadline == MULTIPLE * 0.4
    assert patience.generous(1.0, 2.0) == MULTIPLE * 0.4, "a fresh connection is logged in as well"


def test_a_login_that_took_long_at_first_is_known_from_the_beginning() -> None:
    assert Patience(5.0, login=1.0).login_deadline == MULTIPLE
    assert Patience(5.0, login=1.0).renewed().login_deadline == MULTIPLE
    assert Patience(5.0, login=60.0).login_deadline == LONGEST_LOGIN * 5.0
