"""What a broker does wrong in many requirements in the same way is one cause, such as to end the stream."""

from __future__ import annotations

from amqpspec.conformance.verdicts.habits import ENOUGH, habits
from amqpspec.conformance.verdicts.judgement import IS_TAKEN, IS_WRONG, STREAM_ENDS, FoundFailure
from amqpspec.model.promises.verdict import Failure, Shape

CHANNEL = "socket.closed in place of channel.close"
CONNECTION = "socket.closed in place of connection.close"


def found(requirement: str, detail: str = CHANNEL, shape: Shape = Shape.UNEXPECTED, defect: str = "") -> FoundFailure:
    observed = "a.0 < socket.closed reason='the broker ended the stream'"
    return FoundFailure(Failure(requirement, shape, detail, "a.1 basic.get nosuch", observed, (), (), defect), "s")


def test_three_requirements_make_a_cause_of_what_is_owed() -> None:
    shown = [found("GET-002"), found("BIND-001"), found("QUEUE-007")]
    (cause,) = habits(shown)
    assert (cause.what, cause.answer, cause.blocked) == ("channel.close", STREAM_ENDS, 0)
    assert [cause.failure, *cause.under] == [each.failure.identity for each in shown]


def test_a_stream_that_ends_is_one_cause_whatever_was_owed() -> None:
    of_channels = [found(id) for id in ("GET-002", "BIND-001", "QUEUE-007")]
    of_connections = [found(id, CONNECTION) for id in ("CHAN-001", "CONN-014", "CHAN-011")]
    answers = [found("QUEUE-001", "socket.closed in place of queue.declare-ok"), found("PUBLISH-002", "socket.closed")]
    (cause,) = habits([*of_connections, *of_channels])
    assert cause.what == "channel.close or connection.close"
    (cause,) = habits([*answers, *of_connections, *of_channels])
    assert (cause.what, len(cause.under)) == ("channel.close, connection.close or an answer", 7)


def test_two_requirements_are_not_enough() -> None:
    assert habits([found("GET-002"), *[found("BIND-001")] * ENOUGH]) == ()


def test_what_may_be_a_crash_of_its_own_makes_no_habit_nor_does_what_is_known() -> None:
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
        assert habits([*cause, other]) == (), other


def test_a_channel_that_is_closed_in_place_of_the_connection_is_one_cause_as_well() -> None:
    shown = [found(id, "channel.close in place of connection.close") for id in ("CHAN-001", "CONN-014", "CHAN-011")]
    (cause,) = habits(shown)
    assert (cause.what, cause.answer, cause.is_habit) == ("connection.close", "channel.close", True)


def test_a_broker_that_takes_any_delivery_tag_is_one_cause() -> None:
    detail = "channel.close for basic.ack"
    shown = [found(id, detail, Shape.MISSING) for id in ("ACK-006", "ACK-007", "ACK-010", "TX-006")]
    (cause,) = habits([*shown, found("EXCHANGE-007", "channel.close for exchange.delete", Shape.MISSING)])
    assert (cause.what, cause.answer, len(cause.under)) == ("delivery tags that are not outstanding", IS_TAKEN, 3)


def test_wrong_numbers_of_messages_are_one_cause_but_for_those_of_a_purge() -> None:
    details = ("queue.declare-ok message-count with the unacknowledged", "basic.get-ok message-count")
    shown = [
        found(id, detail, Shape.WRONG_ARGUMENT)
        for id, detail in zip(("QUEUE-001", "GET-001", "ACK-001"), (*details, details[0]), strict=True)
    ]
    purge = found("QUEUE-024", "queue.purge-ok message-count", Shape.WRONG_ARGUMENT)
    (cause,) = habits([purge, *shown])
    assert (cause.answer, cause.failure, len(cause.under)) == (IS_WRONG, shown[0].failure.identity, 2)
