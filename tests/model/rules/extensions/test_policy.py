"""Policies: what holds with them, when they change while the queue lives, and what nobody can tell."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.policies import put_in_force
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from tests.model.rules.extensions.test_drop_or_refuse import after, publish, ready

EVERYWHERE = pytest.mark.parametrize("dialect", [name for name, each in DIALECTS.items() if each.extensions])
TYPES = pytest.mark.parametrize("kind", ["classic", "quorum"])
NEWEST = "rabbitmq-4.3"


def queue(arguments: str = "", kind: str = "classic", name: str = "q") -> str:
    return f"a.1 queue.declare {name} durable x-queue-type={kind} {arguments}"


def policy(said: str, name: str = "p") -> str:
    return f"broker operator.set-policy {name} queue=q {said}"


CLEARED = "broker operator.clear-policy p"


def in_force(broker: Broker, argument: str) -> object:
    return broker.queues["q"].in_force.get(argument)


@EVERYWHERE
@TYPES
def test_a_policy_holds_for_queues_that_are_there_and_for_those_to_come(dialect: str, kind: str) -> None:
    for lines in ([queue(kind=kind), policy("max-length=1")], [policy("max-length=1"), queue(kind=kind)]):
        assert ready(after(dialect, *lines, *publish("1", "2"))) == ["2"]


@EVERYWHERE
@TYPES
@pytest.mark.parametrize(
    ("argument", "said", "name", "held"),
    [
        ("x-max-length=5", "max-length=2", "x-max-length", 2),
        ("x-max-length=2", "max-length=5", "x-max-length", 2),
        ("x-message-ttl=5", "message-ttl=2", "x-message-ttl", 2),
        ("x-max-length-bytes=5", "max-length-bytes=7", "x-max-length-bytes", 5),
        ("x-dead-letter-exchange=x", "dead-letter-exchange=y", "x-dead-letter-exchange", "x"),
    ],
)
def test_of_both_the_lower_number_and_the_text_of_the_argument(
    dialect: str, kind: str, argument: str, said: str, name: str, held: object
) -> None:
    assert in_force(after(dialect, queue(argument, kind), policy(said)), name) == held


@EVERYWHERE
def test_a_quorum_queue_goes_by_the_overflow_of_the_policy(dialect: str) -> None:
    def held(kind: str) -> object:
        return in_force(
            after(dialect, queue("x-overflow=drop-head", kind), policy("overflow=reject-publish")), "x-overflow"
        )

    assert (held("classic"), held("quorum")) == ("drop-head", "reject-publish")


@pytest.mark.parametrize(("dialect", "held"), [("rabbitmq-3", 9), ("rabbitmq-4.0", 5), (NEWEST, 5)])
def test_a_quorum_queue_of_3_expires_as_the_policy_says(dialect: str, held: int) -> None:
    assert in_force(after(dialect, queue("x-expires=5", "quorum"), policy("expires=9")), "x-expires") == held
    assert in_force(after(dialect, queue("x-expires=5"), policy("expires=9")), "x-expires") == 5


@pytest.mark.parametrize(("dialect", "held"), [("rabbitmq-3", -1), ("rabbitmq-4.0", 5), (NEWEST, 5)])
def test_a_negative_delivery_limit_is_none(dialect: str, held: int) -> None:
    argument, said = "x-delivery-limit=5", "delivery-limit=-1"
    assert in_force(after(dialect, queue(argument, "quorum"), policy(said)), "x-delivery-limit") == held


@EVERYWHERE
@TYPES
def test_what_is_beyond_a_new_limit_goes_at_once_by_the_policy_that_sets_it(dialect: str, kind: str) -> None:
    letters = policy("max-length=1 dead-letter-exchange= dead-letter-routing-key=d")
    broker = after(dialect, queue(kind=kind), queue(name="d"), *publish("1", "2", "3"), letters)
    assert (ready(broker), ready(broker, "d")) == (["3"], ["1", "2"])


@EVERYWHERE
@TYPES
def test_reject_publish_drops_nothing_that_is_there(dialect: str, kind: str) -> None:
    said = policy("max-length=1 overflow=reject-publish")
    assert ready(after(dialect, queue(kind=kind), *publish("1", "2"), said, *publish("3"))) == ["1", "2"]


@EVERYWHERE
@TYPES
def test_nothing_is_refused_any_more_when_nothing_says_so(dialect: str, kind: str) -> None:
    refusing = [queue(kind=kind), "a.1 confirm.select", policy("max-length=1 overflow=reject-publish")]
    refused = [*refusing, *publish("1", "2", "3", "4")]
    assert ready(after(dialect, *refused, CLEARED, *publish("5")))[-1:] == ["5"]
    assert ready(after(dialect, *refused, policy("max-length=1"), *publish("5"))) == ["5"]


@EVERYWHERE
@TYPES
def test_a_policy_that_is_cleared_says_nothing(dialect: str, kind: str) -> None:
    broker = after(dialect, queue("x-max-length=3", kind), policy("max-length=1"), CLEARED, *publish("1", "2"))
    assert ready(broker) == ["1", "2"] and in_force(broker, "x-max-length") == 3


def test_a_policy_that_is_set_again_for_another_queue_has_left_the_first() -> None:
    moved = "broker operator.set-policy p queue=r max-length=1"
    assert ready(after(NEWEST, queue(), policy("max-length=1"), moved, *publish("1", "2"))) == ["1", "2"]


@EVERYWHERE
def test_the_highest_one_applies_alone(dialect: str) -> None:
    lines = [queue(), policy("max-length=1 message-ttl=5"), policy("max-length=2 priority=1", "p2")]
    broker = after(dialect, *lines, *publish("1", "2"))
    assert ready(broker) == ["1", "2"] and in_force(broker, "x-message-ttl") is None
    lines.append("broker operator.clear-policy p2")
    assert in_force(after(dialect, *lines), "x-max-length") == 1


@EVERYWHERE
def test_times_to_live_are_those_of_the_moment_of_publishing(dialect: str) -> None:
    broker = after(dialect, queue(), *publish("1"), policy("message-ttl=500"), *publish("2"), CLEARED, *publish("3"))
    deadlines = [message.deadline for message in broker.queues["q"].messages]
    assert [each and each.seconds for each in deadlines] == [None, 0.5, None]


@pytest.mark.parametrize(
    "lines",
    [
        [policy("max-length=1", "p1"), policy("max-length=2", "p2")],
        [policy("max-length=1 delivery-limit=2")],
    ],
)
def test_where_nobody_knows_which_policy_applies_the_queue_is_open(lines: list[str]) -> None:
    assert after(NEWEST, queue(), *lines).queues["q"].open_by.endswith(("one priority", "another type of queues"))
    assert not after(NEWEST, queue(), lines[0].replace(" delivery-limit=2", "")).queues["q"].open_by


def test_a_policy_that_mirrors_is_for_classic_queues() -> None:
    assert not after("rabbitmq-3", queue(), policy("ha-mode=all")).queues["q"].open_by
    assert after("rabbitmq-3", queue(kind="quorum"), policy("ha-mode=all")).queues["q"].open_by


def test_a_policy_is_one_of_its_virtual_host() -> None:
    elsewhere = "broker operator.set-policy p queue=q virtual-host=v max-length=1"
    assert ready(after(NEWEST, queue(), elsewhere, *publish("1", "2"))) == ["1", "2"]


def test_a_queue_without_policies_is_left_alone() -> None:
    broker = after(NEWEST, queue("x-max-length=2"))
    put_in_force(broker, broker.queues["q"])
    assert broker.queues["q"].policies is None


@pytest.mark.parametrize(
    ("lines", "counted"),
    [
        ([queue(), policy("max-length=1"), *publish("1", "2")], {"POLICY-001"}),
        ([queue("x-max-length=5"), policy("max-length=1"), *publish("1", "2")], {"POLICY-001", "POLICY-007"}),
        ([queue("x-max-length=1"), policy("max-length=5"), *publish("1", "2")], {"POLICY-007"}),
        ([queue("x-max-length=1"), policy("max-length=1"), *publish("1", "2")], set()),
        ([queue("x-max-length=1"), policy("message-ttl=60000"), *publish("1", "2")], set()),
        ([queue(), *publish("1", "2"), policy("max-length=1")], {"POLICY-001", "POLICY-009"}),
        ([queue(), *publish("1"), policy("max-length=1")], set()),
        ([queue(), policy("max-length=1"), CLEARED, *publish("1", "2")], {"POLICY-012"}),
        ([queue(), policy("max-length=1"), CLEARED, *publish("1")], set()),
        ([queue(), policy("max-length=1"), queue()], {"POLICY-014"}),
        (
            [queue(), policy("max-length=5", "p1"), policy("max-length=1 priority=1"), *publish("1", "2")],
            {"POLICY-001", "POLICY-013"},
        ),
    ],
)
def test_a_requirement_counts_where_it_made_a_difference(lines: list[str], counted: set[str]) -> None:
    plan = Plan(dialect_named(NEWEST))
    plan.broker.bookkeeping.counting = True
    for line in lines:
        plan.carry_out(parse_command(line))
    assert {each for each in plan.broker.bookkeeping.exercised if each.startswith("POLICY")} == counted


@EVERYWHERE
def test_a_dead_letter_by_a_policy_is_one_that_nobody_was_handed(dialect: str) -> None:
    """As one by an argument of its queue: so it is free what it brings along (DLX-010)."""
    said = 'dead-letter-exchange="" dead-letter-routing-key=d'
    broker = after(
        dialect, queue(), queue(name="d"), policy(said), *publish("m"), "a.1 basic.get q", "a.1 basic.reject 1"
    )
    (letter,) = broker.queues["d"].messages
    assert letter.deaths
    assert letter.is_first_here
