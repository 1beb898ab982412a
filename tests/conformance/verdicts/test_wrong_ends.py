"""A broker that ends the stream where it owes an exception does so in many requirements: that is one cause."""

from __future__ import annotations

from amqpspec.conformance.verdicts.judgement import STREAM_ENDS, FoundFailure
from amqpspec.conformance.verdicts.wrong_ends import ENOUGH, wrong_ends
from amqpspec.model.promises.verdict import Failure, Shape

CHANNEL = "socket.closed in place of channel.close"
CONNECTION = "socket.closed in place of connection.close"


def found(requirement: str, detail: str = CHANNEL, shape: Shape = Shape.UNEXPECTED, defect: str = "") -> FoundFailure:
    observed = "a.0 < socket.closed reason='the broker ended the stream'"
    return FoundFailure(Failure(requirement, shape, detail, "a.1 basic.get nosuch", observed, (), (), defect), "s")


def test_three_requirements_make_a_cause_of_what_is_owed() -> None:
    shown = [found("GET-002"), found("BIND-001"), found("QUEUE-007")]
    (cause,) = wrong_ends(shown)
    assert (cause.what, cause.answer, cause.blocked) == ("channel.close", STREAM_ENDS, 0)
    assert [cause.failure, *cause.under] == [each.failure.identity for each in shown]


def test_exceptions_of_channels_and_of_connections_are_two_causes() -> None:
    of_channels = [found(id) for id in ("GET-002", "BIND-001", "QUEUE-007")]
    of_connections = [found(id, CONNECTION) for id in ("CHAN-001", "CONN-014", "CHAN-011")]
    assert [each.what for each in wrong_ends([*of_connections, *of_channels])] == ["channel.close", "connection.close"]


def test_two_requirements_are_not_enough() -> None:
    assert wrong_ends([found("GET-002"), *[found("BIND-001")] * ENOUGH]) == ()


def test_what_may_be_a_crash_of_its_own_or_is_known_stays_apart() -> None:
    cause = [found("GET-002"), found("BIND-001")]
    others = [
        found("QUEUE-001", "socket.closed in place of queue.declare-ok"),
        found("QUEUE-001", "socket.closed"),
        found("QUEUE-001", "socket.garbage in place of channel.close"),
        found("QUEUE-001", f"{CHANNEL}-ok"),
        found("QUEUE-001", shape=Shape.MISSING),
        found("QUEUE-001", defect="known-defect"),
    ]
    for other in others:
        assert wrong_ends([*cause, other]) == (), other


def test_a_channel_that_is_closed_in_place_of_the_connection_is_one_cause_as_well() -> None:
    shown = [found(id, "channel.close in place of connection.close") for id in ("CHAN-001", "CONN-014", "CHAN-011")]
    (cause,) = wrong_ends(shown)
    assert (cause.what, cause.answer, cause.is_wrong_end) == ("connection.close", "channel.close", True)
