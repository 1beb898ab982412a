"""A broker that lacks what the suite looks at it by is blamed for that, and for nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from amqpspec.conformance.profile.measuring import measure
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.dialects.settled import with_choices
from amqpspec.model.promises.text_means import COUNTS, GET, ROUND_TRIP
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.connection.closing import fail
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker
from amqpspec.targets.faults.all_faults import FAULTS
from tests.end_to_end.runs import run_suite


@pytest.mark.parametrize(
    ("fault", "settled"),
    [
        (None, {}),
        ("predeclared-missing", {ROUND_TRIP: "missing"}),
        ("counts-untold", {COUNTS: "untold"}),
        ("get-unknown", {GET: "unknown"}),
    ],
)
def test_the_profile_tells_what_a_broker_lacks(fault: str | None, settled: dict[str, str]) -> None:
    with EmbeddedBroker(AMQP_0_9_1, fault=fault) as broker:
        description = TargetDescription("embedded", "a broker", "0", AMQP_0_9_1.name)
        target = TargetUnderTest(broker.address, description, deadline=0.5, capabilities=frozenset())
        profile = measure(target, choices=(ROUND_TRIP, COUNTS, GET), extensions=())
    assert profile.settled == settled
    assert [each.choice.name for each in profile.choices if not each.is_right] == list(settled)


@pytest.mark.parametrize(
    ("fault", "choice", "blamed"),
    [
        ("predeclared-missing", {ROUND_TRIP: "missing"}, {"EXCHANGE-002"}),
        ("counts-untold", {COUNTS: "untold"}, {"QUEUE-001"}),
        ("get-unknown", {GET: "unknown"}, {"GET-001", "GET-002"}),
    ],
)
def test_nothing_else_is_taken_for_a_failure(
    fault: str, choice: dict[str, str], blamed: set[str], tmp_path: Path
) -> None:
    dialect = with_choices(AMQP_0_9_1, choice)
    result = run_suite(
        "embedded", tmp_path, only=["QUEUE-00", "EXCHANGE-002", "PUBLISH-00", "GET", "ACK-01"],
        sequences=10, deadline=0.5,
        dialect=AMQP_0_9_1, judged_by=dialect.name, fault=FAULTS[fault], shrinking_time=1.0, fast_forward=True,
    )  # fmt: skip
    assert {found.failure.requirement for found in result.failures} <= blamed
    assert any(found.failure.requirement == min(blamed) for found in result.failures)
    assert (result.lost, result.not_whole) == (None, ())


@pytest.mark.parametrize(
    ("method", "settled"),
    [("exchange.declare", {ROUND_TRIP: "missing"}), ("queue.declare", {COUNTS: "untold"})],
)
def test_a_broker_that_refuses_passive_declares_lacks_what_they_are_asked_for(
    method: str, settled: dict[str, str], tmp_path: Path
) -> None:
    chapter = Chapter()

    @chapter.on_input("passive-unknown", "QUEUE-001", "", method)
    def _(broker: ServedBroker, event: Method, proceed: Proceed) -> None:
        if event.arguments.get("passive"):
            fail(broker, broker.channel(event.connection, event.channel), event, ProtocolError("QUEUE-001", 540, ""))
        else:
            proceed(event)

    fault = chapter.faults["passive-unknown"]
    with EmbeddedBroker(AMQP_0_9_1, fault=fault) as broker:
        description = TargetDescription("embedded", "a broker", "0", AMQP_0_9_1.name)
        target = TargetUnderTest(broker.address, description, deadline=0.5, capabilities=frozenset())
        profile = measure(target, choices=(ROUND_TRIP, COUNTS, GET), extensions=(), ways=False)
    assert profile.settled == settled

    result = run_suite(
        "embedded", tmp_path, only=["PUBLISH-002"], deadline=0.5, dialect=AMQP_0_9_1,
        judged_by=with_choices(AMQP_0_9_1, settled).name, fault=fault, shrinking_time=1.0, fast_forward=True,
    )  # fmt: skip
    # what the scenarios themselves declare passively is blamed on the declare, and no publish is
    assert not any(found.failure.requirement.startswith("PUBLISH") for found in result.failures)


def test_a_broker_that_has_next_to_nothing_lacks_all_three() -> None:
    """No passive declares, no basic.get, no consumers without acknowledgement; each error ends the connection, and
    names no method.
    """
    chapter = Chapter()

    @chapter.on_input("next-to-nothing", "QUEUE-001", "", "exchange.declare", "queue.declare", "basic.get",
                      "basic.consume")  # fmt: skip
    def _(broker: ServedBroker, event: Method, proceed: Proceed) -> None:
        if event.arguments.get("passive") or event.arguments.get("no_ack") or event.name == "basic.get":
            error = ProtocolError("QUEUE-001", 540, "", identifiers=(0, 0))
            fail(broker, broker.channel(event.connection, event.channel), event, error)
        else:
            proceed(event)

    with EmbeddedBroker(AMQP_0_9_1, fault=chapter.faults["next-to-nothing"]) as broker:
        description = TargetDescription("embedded", "a broker", "0", AMQP_0_9_1.name)
        target = TargetUnderTest(broker.address, description, deadline=0.5, capabilities=frozenset())
        profile = measure(target, choices=(ROUND_TRIP, COUNTS, GET), extensions=(), ways=False)
    assert profile.settled == {ROUND_TRIP: "missing", COUNTS: "untold", GET: "unknown"}


def test_a_message_that_is_lost_is_no_count_that_is_untold() -> None:
    chapter = Chapter()

    @chapter.on_input("published-lost", "PUBLISH-001", "", "basic.publish")
    def _(broker: ServedBroker, event: Method, proceed: Proceed) -> None:
        """Each message is taken, and is in no queue."""

    with EmbeddedBroker(AMQP_0_9_1, fault=chapter.faults["published-lost"]) as broker:
        description = TargetDescription("embedded", "a broker", "0", AMQP_0_9_1.name)
        target = TargetUnderTest(broker.address, description, deadline=0.5, capabilities=frozenset())
        profile = measure(target, choices=(ROUND_TRIP, COUNTS, GET), extensions=())
    assert profile.settled == {}


def test_a_limit_that_neither_side_sets_is_none() -> None:
    chapter = Chapter()

    @chapter.on_output("unlimited", "CONN-010", "", "connection.tune")
    def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
        yield altered(method, frame_max=0)

    with EmbeddedBroker(AMQP_0_9_1, fault=chapter.faults["unlimited"]) as broker:
        description = TargetDescription("embedded", "a broker", "0", AMQP_0_9_1.name)
        target = TargetUnderTest(broker.address, description, deadline=0.5, capabilities=frozenset())
        (seen,) = measure(target, choices=["frame-max-zero"], extensions=()).choices
    assert seen.is_right
