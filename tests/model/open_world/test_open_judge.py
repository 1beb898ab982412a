"""The rules of a channel in the open world, on frames that are in flight, and where the beginning is not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from amqpspec.model.open_world.findings import Findings
from amqpspec.model.open_world.judge import OpenJudge
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.model.protocol.methods import Content, event_of

BEGUN = [
    (">", "socket.open", {}),
    (">", "connection.start-ok", {"client_properties": {"capabilities": {"consumer_cancel_notify": True}}}),
    ("<", "connection.open-ok", {}),
    (">", "channel.open", {}),
    ("<", "channel.open-ok", {}),
]

Step = tuple[str, str, dict[str, Any]]


def findings(*steps: Step, begun: Iterable[Step] = BEGUN, dialect: str = "rabbitmq-4.0") -> Findings:
    judge = OpenJudge(DIALECTS[dialect])
    for direction, name, arguments in [*begun, *steps]:
        content = None
        if name in ("basic.publish", "basic.deliver", "basic.get-ok", "basic.return"):
            content = Content({}, arguments.get("body", b""))
        channel = 0 if name.startswith(("connection.", "socket.")) else 1
        fields = {key: value for key, value in arguments.items() if key != "body"}
        judge.event(event_of("a", channel, name, fields, direction == ">", content))
    judge.end()
    return judge.findings


def failed(*steps: Step, **options: Any) -> list[str]:
    return [each.requirement for each in findings(*steps, **options).failures]


def test_frames_that_cannot_be_read_are_of_a_requirement_of_their_own() -> None:
    cancel = {"consumer_tag": "t", "nowait": False, "octets_behind": "00"}
    found = findings(*consuming(), ("<", "basic.cancel", cancel), delivery(1))
    assert [each.identity for each in found.failures] == [
        "SERVER-002|unexpected frame|basic.cancel: N octets follow the last argument",
        "CANCEL-007|unexpected frame|basic.deliver behind basic.cancel",
    ]
    (garbage,) = findings(("<", "socket.garbage", {"octets": "0001", "reason": "there is no frame type 0"})).failures
    assert garbage.identity == "SERVER-002|unexpected frame|there is no frame type N"


def consuming(limit: int = 2) -> list[Step]:
    return [
        (">", "basic.qos", {"prefetch_count": limit}), ("<", "basic.qos-ok", {}),
        (">", "basic.consume", {"consumer_tag": "t"}), ("<", "basic.consume-ok", {"consumer_tag": "t"}),
    ]  # fmt: skip


def delivery(tag: int, **others: Any) -> Step:
    return "<", "basic.deliver", {"consumer_tag": "t", "delivery_tag": tag} | others


def ack(tag: int, multiple: bool = False) -> Step:
    return ">", "basic.ack", {"delivery_tag": tag, "multiple": multiple}


def confirm(tag: int, multiple: bool = False) -> Step:
    return "<", "basic.ack", {"delivery_tag": tag, "multiple": multiple}


PUBLISH: Step = (">", "basic.publish", {"routing_key": "q"})
MANDATORY: Step = (">", "basic.publish", {"routing_key": "nosuch", "mandatory": True, "body": b"m"})
RETURN: Step = ("<", "basic.return", {"reply_code": 312, "routing_key": "nosuch", "body": b"m"})
SELECT: list[Step] = [(">", "confirm.select", {}), ("<", "confirm.select-ok", {})]
QOS: list[Step] = [(">", "basic.qos", {}), ("<", "basic.qos-ok", {})]
CLOSE: Step = ("<", "channel.close", {"reply_code": 406, "class_id": 60, "method_id": 80})


class TestDeliveries:
    def test_anything_may_be_delivered_within_the_limit(self) -> None:
        steps = [*consuming(), delivery(1), delivery(2, redelivered=True), ack(1), delivery(3), ack(3, True)]
        found = findings(*steps, delivery(4), delivery(5))
        assert found.failures == []
        assert found.exercised["QOS-001"] == 3

    def test_more_than_the_limit(self) -> None:
        assert failed(*consuming(), delivery(1), delivery(2), delivery(3)) == ["QOS-006"]

    def test_an_acknowledgement_in_flight_makes_room(self) -> None:
        assert failed(*consuming(1), delivery(1), ack(1), delivery(2)) == []

    def test_tags_without_a_gap(self) -> None:
        assert failed(*consuming(), delivery(1), delivery(3)) == ["CONSUME-014"]

    def test_the_text_lets_a_broker_leave_out_numbers(self) -> None:
        assert failed(*consuming(), delivery(1), delivery(3), dialect="amqp-0-9-1") == []
        assert failed(*consuming(), delivery(1), delivery(1), dialect="amqp-0-9-1") == ["CONSUME-014"]

    def test_a_delivery_that_the_recording_lacks_is_blamed_once_or_undecided(self) -> None:
        gap = [*consuming(5), delivery(1), delivery(3)]
        for settled in ([], [ack(1)], [ack(1), ack(3)], [ack(3, True)]):
            assert failed(*gap, *settled, *QOS) == ["CONSUME-014"], "nobody knows of another delivery"
        for settled in ([ack(2)], [ack(1), ack(2), ack(3)], [ack(2, True)], [ack(3, True), ack(2)]):
            found = findings(*gap, *settled, *QOS)
            assert found.failures == []
            assert found.undecided == {"CONSUME-014": "a delivery that the client has settled is not in the recording"}
            assert "CONSUME-014" not in +found.exercised or found.exercised["CONSUME-014"] == 1
        for early in (ack(2), ack(2, True)):
            assert failed(*consuming(5), delivery(1), early, *QOS, delivery(3), *QOS) == []
        assert failed(*consuming(5), delivery(1), ack(9), *QOS, delivery(3), *QOS) == ["CONSUME-014"]

    def test_one_gap_is_settled_and_another_is_not(self) -> None:
        gaps = [*consuming(9), delivery(1), delivery(3), delivery(4), delivery(7)]
        (failure,) = findings(*gaps, ack(2), *QOS).failures
        assert failure.allowed == ("delivery-tag=5",)
        assert failed(*gaps, ack(2), ack(6), *QOS) == []
        assert failed(*gaps, ack(1), ack(1), *QOS) == ["CONSUME-014", "ACK-007"], "a tag that it has settled"

    def test_a_reply_to_get_that_the_recording_lacks(self) -> None:
        get: list[Step] = [(">", "basic.get", {"queue": "q"}), ("<", "basic.get-ok", {"delivery_tag": 2})]
        lacking: Step = (">", "basic.get", {"queue": "q"})
        assert failed(lacking, *get) == ["CONSUME-014"]
        assert failed(lacking, *get, ack(1), ack(2)) == []

    def test_nothing_behind_cancel_ok(self) -> None:
        cancel = (">", "basic.cancel", {"consumer_tag": "t"})
        ok = ("<", "basic.cancel-ok", {"consumer_tag": "t"})
        assert failed(*consuming(), cancel, delivery(1), ok, ack(1)) == []
        assert failed(*consuming(), cancel, ok, delivery(1)) == ["CANCEL-001"]

    def test_behind_recover_all_may_come_again(self) -> None:
        recover = [(">", "basic.recover", {"requeue": True}), delivery(3), ("<", "basic.recover-ok", {})]
        begin = [*consuming(), delivery(1), delivery(2), *recover]
        assert failed(*begin, delivery(4), delivery(5)) == []
        assert failed(*begin, delivery(4), delivery(5), delivery(6)) == ["QOS-006"]


class TestSettlements:
    def test_what_is_settled_two_times_ends_the_channel(self) -> None:
        begin = [*consuming(), delivery(1), ack(1), ack(1)]
        assert failed(*begin, CLOSE) == []
        assert failed(*begin, *QOS) == ["ACK-007"]
        assert findings(*begin).undecided.keys() == {"ACK-007"}

    def test_a_reply_to_what_was_asked_before_says_nothing(self) -> None:
        qos, ok = QOS
        assert failed(*consuming(), delivery(1), ack(1), qos, ack(1), ok, CLOSE) == []

    def test_a_known_tag_ends_nothing(self) -> None:
        assert failed(*consuming(), delivery(1), ack(1), CLOSE) == ["ACK-006"]

    def test_a_tag_that_may_be_on_its_way_may_be_refused_or_not(self) -> None:
        assert failed(*consuming(), ack(1), delivery(1), *QOS) == []
        assert failed(*consuming(), ack(1), CLOSE) == []

    def test_what_is_on_its_way_may_be_settled_with_all(self) -> None:
        begin = [*consuming(), delivery(1), ack(0, True), delivery(2)]
        assert failed(*begin, ack(2), CLOSE) == []
        assert failed(*begin, *QOS, ack(2), *QOS) == []
        assert failed(*consuming(), delivery(1), ack(0, True), *QOS, delivery(2), ack(2), CLOSE) == ["ACK-006"]

    def test_no_delivery_is_on_its_way_to_who_asked_for_none(self) -> None:
        assert failed(ack(9), *QOS) == ["ACK-006"]
        assert failed(ack(9), ("<", "channel.close", {**CLOSE[2], "reply_code": 404})) == ["ACK-006"]


class TestWhatMustBeRefused:
    @pytest.mark.parametrize(
        ("steps", "requirement"),
        [
            ([*SELECT, (">", "tx.select", {}), ("<", "tx.select-ok", {})], "CONFIRM-015"),
            ([(">", "tx.select", {}), ("<", "tx.select-ok", {}), *SELECT], "CONFIRM-015"),
            ([(">", "tx.commit", {}), ("<", "tx.commit-ok", {})], "TX-001"),
            ([(">", "basic.qos", {"prefetch_size": 1}), ("<", "basic.qos-ok", {})], "QOS-007"),
            ([(">", "channel.flow", {"active": False}), ("<", "channel.flow-ok", {})], "CHAN-010"),
            ([*consuming(), *consuming()[2:]], "CONSUME-003"),
        ],
    )
    def test_and_is_answered(self, steps: list[Step], requirement: str) -> None:
        assert failed(*steps) == [requirement]

    def test_a_tag_is_free_when_its_consumer_was_ended(self) -> None:
        ended = ("<", "basic.cancel", {"consumer_tag": "t", "nowait": True})
        consume, consumed = consuming()[2:]
        assert failed(*consuming(), consume, ended, consumed) == []
        taken = ("<", "connection.close", {"reply_code": 530, "class_id": 60, "method_id": 20})
        assert failed(*consuming(), ended, consume, taken) == ["CANCEL-013"]
        assert failed(*consuming(), consume, taken) == []

    def test_notices(self) -> None:
        cancel = [(">", "basic.cancel", {"consumer_tag": "t"}), ("<", "basic.cancel-ok", {"consumer_tag": "t"})]
        notice: Step = ("<", "basic.cancel", {"consumer_tag": "t", "nowait": True})
        assert failed(*consuming(), *cancel, notice) == ["CANCEL-002"]
        assert failed(*consuming(), ("<", "basic.cancel", {"consumer_tag": "t"})) == ["CANCEL-008"]

    def test_a_wrong_code_for_a_channel_that_is_not_open(self) -> None:
        close = ("<", "connection.close", {"reply_code": 503, "class_id": 60, "method_id": 10})
        closed = [(">", "channel.close", {}), ("<", "channel.close-ok", {}), QOS[0]]
        assert failed(*closed, close) == ["CHAN-001"]


class TestFlagsOfConfirms:
    def test_of_one_publish_by_itself(self) -> None:
        nack: Step = ("<", "basic.nack", {"delivery_tag": 1, "multiple": True, "requeue": True})
        assert failed(*SELECT, PUBLISH, nack) == []
        assert failed(*SELECT, PUBLISH, confirm(1, True)) == ["CONFIRM-006"]
        assert failed(*SELECT, PUBLISH, PUBLISH, confirm(1, True)) == [], "the other one may be in the same batch"
        assert failed(*SELECT, PUBLISH, ("<", "basic.nack", {**nack[2], "multiple": False})) == ["CONFIRM-006"]
        assert failed(*SELECT, PUBLISH, ("<", "basic.nack", {**nack[2], "requeue": False})) == ["CONFIRM-007"]

    def test_what_closes_the_channel_is_not_confirmed(self) -> None:
        close = ("<", "channel.close", {"reply_code": 404, "class_id": 60, "method_id": 40})
        assert failed(*SELECT, PUBLISH, PUBLISH, confirm(1), close) == []
        assert failed(*SELECT, PUBLISH, confirm(1), close) == ["CONFIRM-019"]


class TestConfirms:
    def test_any_batches(self) -> None:
        steps = [*SELECT, PUBLISH, PUBLISH, confirm(2), PUBLISH, PUBLISH, confirm(4, True)]
        assert failed(*steps) == []

    @pytest.mark.parametrize(
        ("steps", "requirement"),
        [
            ([*SELECT, PUBLISH, confirm(1), confirm(1)], "CONFIRM-003"),
            ([*SELECT, PUBLISH, PUBLISH, confirm(2, True), confirm(1)], "CONFIRM-003"),
            ([*SELECT, PUBLISH, confirm(2)], "CONFIRM-002"),
            ([PUBLISH, confirm(1)], "CONFIRM-003"),
            ([*SELECT, MANDATORY, confirm(1), RETURN], "CONFIRM-009"),
            ([*SELECT, PUBLISH, RETURN, confirm(1)], "PUBLISH-008"),
            ([MANDATORY, *QOS, RETURN], "PUBLISH-008"),
        ],
    )
    def test_not_so(self, steps: list[Step], requirement: str) -> None:
        assert failed(*steps) == [requirement]

    def test_returns(self) -> None:
        assert failed(MANDATORY, RETURN, *QOS) == []
        assert failed(*SELECT, MANDATORY, MANDATORY, RETURN, confirm(1), RETURN, confirm(2)) == []

    def test_immediate(self) -> None:
        name, (_, _, fields) = "basic.publish", MANDATORY
        publish = (">", name, {**fields, "mandatory": False, "immediate": True})
        returned = ("<", "basic.return", {**RETURN[2], "reply_code": 313})
        assert failed(publish, returned) == []
        assert failed(MANDATORY, returned) == ["PUBLISH-007"]

    def test_a_confirm_that_has_not_come_is_not_decided(self) -> None:
        found = findings(*SELECT, PUBLISH)
        assert found.failures == []
        assert found.undecided == {"CONFIRM-003": "1 confirms had not come when the connection ended"}


class TestReplies:
    def test_in_the_order_of_the_requests(self) -> None:
        declare = [(">", "queue.declare", {"queue": "q"}), ("<", "queue.declare-ok", {"queue": "q"})]
        qos, ok = QOS
        assert failed(qos, declare[0], ok, declare[1]) == []
        assert failed(qos, declare[0], declare[1], ok) == ["QOS-014", "QOS-014"]
        assert failed(declare[0], ("<", "queue.declare-ok", {"queue": "x"})) == ["QUEUE-001"]

    def test_consume_ok_may_be_late(self) -> None:
        consume, consumed = consuming()[2:]
        assert failed(consume, *QOS, consumed) == []
        assert failed(consume, delivery(1), consumed) == ["CONSUME-001"]

    def test_nothing_on_a_closed_channel(self) -> None:
        closing = [(">", "channel.close", {}), delivery(1), ("<", "channel.close-ok", {})]
        assert failed(*consuming(), *closing) == []
        assert failed(*consuming(), *closing, delivery(2)) == ["CHAN-003"]
        crossing = [CLOSE, (">", "channel.close", {}), ("<", "channel.close-ok", {})]
        assert failed(ack(9), *crossing, (">", "channel.open", {}), ("<", "channel.open-ok", {})) == []

    def test_close_and_open_at_one_time_is_a_race(self) -> None:
        both = [(">", "channel.close", {}), (">", "channel.open", {})]
        assert failed(*both, ("<", "channel.close-ok", {}), ("<", "channel.open-ok", {}), *QOS) == []


class TestAnUnknownBeginning:
    def test_what_was_before_is_not_known(self) -> None:
        steps = [delivery(7), delivery(8), ack(3), ack(8, True), confirm(4), RETURN, ("<", "basic.qos-ok", {})]
        assert failed(*steps, begun=()) == []

    def test_what_needs_no_beginning_is_judged(self) -> None:
        assert failed(delivery(7), delivery(9), begun=()) == ["CONSUME-014"]
        close = [(">", "channel.close", {}), ("<", "channel.close-ok", {})]
        assert failed(*close, (">", "channel.open", {}), ("<", "channel.open-ok", {}), confirm(1), begun=()) == [
            "CONFIRM-003"
        ]
