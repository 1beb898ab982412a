"""A failure blames what the dialect has; where nothing is about it there, it is reported as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amqpspec.conformance.scenarios.scenario_files import selected
from amqpspec.conformance.verdicts.blame import IN_THE_TEXT, NOT_FOLLOWED, OF_FRAMES, blamed, why_not_followed
from amqpspec.conformance.verdicts.minor import is_harmless
from amqpspec.model.promises.capabilities import capability_of
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape

TEXT = "amqp-0-9-1"


def failure(requirement: str) -> Failure:
    return Failure(requirement, Shape.UNEXPECTED, "basic.deliver", "a.1 basic.reject 1", "", (), ())


def test_what_the_text_has_is_blamed() -> None:
    assert blamed(failure("ACK-013"), DIALECTS[TEXT]) == failure("ACK-013")


def test_what_the_text_says_elsewhere_is_blamed_there() -> None:
    assert blamed(failure("DLX-005"), DIALECTS[TEXT]) == failure("ACK-013")
    others = [requirements()[other] for other in IN_THE_TEXT.values()]
    assert all(TEXT in each.dialects or each.features or capability_of(each.id) for each in others)
    assert not any(TEXT in requirements()[id].dialects for id in IN_THE_TEXT)


def test_what_the_text_lacks_is_reported_as_it_is_by_what_it_does() -> None:
    lacking = failure("CONFIRM-003")
    assert blamed(lacking, DIALECTS[TEXT]) == lacking
    assert not is_harmless(lacking, "MyBroker", TEXT)


def test_what_nobody_has_a_rule_for_is_neither_lost_nor_minor() -> None:
    """Whichever requirement of RabbitMQ it breaks, a failure of a broker of the text stays one that fails a run."""
    followed = set(requirements()) - NOT_FOLLOWED.keys()
    for id in followed:
        for shape, detail in ((Shape.MISSING, "basic.deliver"), (Shape.UNEXPECTED, "socket.garbage"),
                              (Shape.MISSING, "channel.close"), (Shape.UNEXPECTED, "connection.close")):  # fmt: skip
            told = blamed(Failure(id, shape, detail, "", "", (), ()), DIALECTS[TEXT])
            assert told is not None, id
            assert told.requirement == "PUBLISH-007" or not is_harmless(told, "MyBroker", TEXT), told


def test_what_the_text_leaves_open_and_nobody_can_follow_is_no_error() -> None:
    for requirement, words in NOT_FOLLOWED.items():
        assert blamed(failure(requirement), DIALECTS[TEXT]) is None
        assert why_not_followed(failure(requirement)).startswith(words)


@pytest.mark.parametrize(
    ("requirement", "shape", "detail", "other"),
    [
        # seen of GarageMQ, which hangs and ends
        ("QUEUE-018", Shape.MISSING, "queue.declare-ok", "QUEUE-001"),
        ("CONN-017", Shape.UNEXPECTED, "socket.closed", "CONN-020"),
        ("PERMISSION-001", Shape.UNEXPECTED, "channel.close in place of queue.bind-ok", "BIND-001"),
        # seen of LavinMQ
        ("CONN-017", Shape.MISSING, "socket.closed", "CONN-028"),
        ("CANCEL-010", Shape.UNEXPECTED, "basic.cancel", "CANCEL-001"),
        # seen of OtterMQ
        ("CONN-010", Shape.MISSING, "connection.tune", "CONN-001"),
        # an error ends more than it may, or less
        ("QUEUE-013", Shape.UNEXPECTED, "connection.close in place of channel.close", "CHAN-007"),
        ("REPLY-005", Shape.UNEXPECTED, "channel.close in place of connection.close", "CHAN-007"),
        ("TTL-001", Shape.UNEXPECTED, "socket.closed in place of channel.close", "CHAN-007"),
        # what was to be refused is RabbitMQ's business, and so is what it hands over
        ("QUEUE-013", Shape.UNEXPECTED, "queue.declare-ok in place of channel.close", None),
        ("QUEUE-013", Shape.MISSING, "channel.close", None),
        ("TTL-001", Shape.UNEXPECTED, "basic.deliver", None),
    ],
)
def test_where_a_reply_is_due_its_own_rule_is_to_blame(
    requirement: str, shape: Shape, detail: str, other: str | None
) -> None:
    told = blamed(Failure(requirement, shape, detail, "", "", (), ()), DIALECTS[TEXT])
    assert told is not None and told.requirement == (other or requirement)


def test_a_delivery_without_a_number_is_no_other_order() -> None:
    of_tag = replace(failure("CONSUME-014"), shape=Shape.WRONG_ARGUMENT, detail="basic.deliver delivery-tag")
    other = replace(of_tag, observed="a.1 < basic.deliver consumer-tag=t delivery-tag=3 routing-key=q body=m1")
    zero = replace(of_tag, observed="a.1 < basic.deliver consumer-tag=t routing-key=q body=m1")
    assert (blamed(other, DIALECTS[TEXT]), blamed(zero, DIALECTS[TEXT])) == (None, zero)


def test_the_rules_of_frames_are_in_the_text() -> None:
    assert all(TEXT in requirements()[id].dialects for id in OF_FRAMES.values())


def test_rabbitmq_is_blamed_as_before() -> None:
    assert all(blamed(failure(id), DIALECTS["rabbitmq-3"]) for id in requirements())


def test_scenarios_of_the_text_are_about_what_it_has_and_know_no_types() -> None:
    chosen = selected((), TEXT)
    assert len(chosen) > 80
    assert all(TEXT in requirements()[each.requirement].dialects for each in chosen if each.requirement)
    assert not any("x-queue-type" in str(command) for each in chosen for command in each.commands)
    of_rabbitmq = [str(command) for each in selected((), "rabbitmq-4.3") for command in each.commands]
    assert any("x-queue-type=quorum" in command for command in of_rabbitmq)
