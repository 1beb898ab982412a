"""What versions make of properties that should come back as they were: known of them, and of no other."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from amqpspec.model.defects.changed_properties import as_number
from amqpspec.model.protocol.field_types import Int64
from tests.model.judging.test_acceptor import Conversation, declared

pytestmark = pytest.mark.known_defects
DIED = {queue: datetime(2026, 1, 1, second=second, tzinfo=UTC) for second, queue in enumerate("qrs")}
REWRITTEN, TURNED = "expiration-is-rewritten", "deaths-turn-around"


def named(talk: Conversation) -> list[str]:
    return [failure.defect for failure in talk.rest().acceptor.failures]


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
@pytest.mark.parametrize(
    ("dialect", "told", "names"),
    [
        ("rabbitmq-3", "060000", []),
        ("rabbitmq-4.0", "060000", []),
        ("rabbitmq-4.3", "060000", []),
        ("rabbitmq-4.0", "60000", [REWRITTEN]),
        ("rabbitmq-4.3", "60000", [REWRITTEN]),
        ("rabbitmq-4.3", "6000", [""]),
    ],
)
def test_an_expiration_is_to_come_back_as_it_was(kind: str, dialect: str, told: str, names: list[str]) -> None:
    talk = declared(kind, dialect).send("a.1 basic.publish q body=m1 expiration=060000").rest()
    properties: dict[str, Any] = {"expiration": told}
    where = {"redelivered": False, "exchange": "", "routing_key": "q", "delivery_tag": 1}
    if kind == "stream":
        talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").send("a.1 basic.consume q tag=t x-stream-offset=first")
        talk.see("a.1", "basic.consume-ok", consumer_tag="t")
        properties |= {"headers": {"x-stream-offset": Int64(0)}, "delivery_mode": 1}
        talk.see("a.1", "basic.deliver", "m1", consumer_tag="t", properties=properties, **where)
    else:
        if kind == "quorum" and dialect == "rabbitmq-3":
            properties["headers"] = {"x-delivery-count": Int64(0)}
        talk.send("a.1 basic.get q").see("a.1", "basic.get-ok", "m1", message_count=0, properties=properties, **where)
    assert named(talk) == names


@pytest.mark.parametrize(("told", "names"), [("060000", []), ("60000", [REWRITTEN])])
def test_nor_is_that_of_what_is_returned(told: str, names: list[str]) -> None:
    talk = declared().send("a.1 basic.publish nowhere mandatory body=m1 expiration=060000")
    talk.see(
        "a.1", "basic.return", "m1", reply_code=312, reply_text="NO_ROUTE", exchange="", routing_key="nowhere",
        properties={"expiration": told},
    )  # fmt: skip
    assert named(talk) == names


def test_what_is_no_number_stays() -> None:
    assert as_number({"expiration": "x", "headers": {"x-death": "mine"}}) == {
        "expiration": "x", "headers": {"x-death": "mine"},
    }  # fmt: skip
    history = {"x-death": [{"original-expiration": "+007", "queue": "q"}]}
    assert as_number({"headers": history}) == {"headers": {"x-death": [{"original-expiration": "7", "queue": "q"}]}}


def death(queue: str) -> dict[str, Any]:
    told = {"reason": "rejected", "queue": queue, "count": Int64(1), "exchange": "", "routing-keys": [queue]}
    return {**told, "time": DIED[queue]}


def died_three_times(dialect: str, history: list[str]) -> Conversation:
    """m1 was rejected in q, r and s, and is told to have been in these."""
    talk = Conversation(dialect)
    for name, following in (("t", ""), ("s", "t"), ("r", "s"), ("q", "r")):
        letters = f'x-dead-letter-exchange="" x-dead-letter-routing-key={following}' if following else ""
        talk.send(f"a.1 queue.declare {name} durable {letters}")
        talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.publish q body=m1").rest()
    for tag, name in enumerate("qrst", 1):
        told = list(reversed("qrs"[: tag - 1])) if name != "t" else history
        headers: dict[str, Any] = {"x-death": [death(each) for each in told]} if told else {}
        if told:
            headers |= about("first", "q")
        if told and dialect != "rabbitmq-3":
            headers |= about("last", told[0])
        talk.send(f"a.1 basic.get {name}")
        talk.see(
            "a.1", "basic.get-ok", "m1", delivery_tag=tag, exchange="", routing_key=name, message_count=0,
            redelivered=name != "q" and dialect == "rabbitmq-4.3", properties={"headers": headers} if headers else {},
        ).rest()  # fmt: skip
        if name != "t":
            talk.send(f"a.1 basic.reject {tag}").rest()
    return talk


def about(which: str, queue: str) -> dict[str, Any]:
    told = {"reason": "rejected", "queue": queue, "exchange": ""}
    return {f"x-{which}-death-{key}": value for key, value in told.items()}


@pytest.mark.parametrize(
    ("dialect", "history", "names"),
    [
        ("rabbitmq-3", "srq", []),
        ("rabbitmq-4.3", "srq", []),
        ("rabbitmq-3", "sqr", [TURNED]),
        ("rabbitmq-3", "rsq", [""]),
        ("rabbitmq-3", "sq", [""]),
    ],
)
def test_a_history_is_to_tell_the_latest_death_first(dialect: str, history: str, names: list[str]) -> None:
    assert named(died_three_times(dialect, list(history))) == names


@pytest.mark.parametrize(("turned", "names"), [("rqo", []), ("roq", [TURNED]), ("oqr", [""]), ("ro", [""])])
def test_an_entry_that_a_publisher_sent_along_has_no_moment(turned: str, names: list[str]) -> None:
    sent = {"reason": "rejected", "queue": "other", "count": 3}
    entries = {"o": sent, "q": death("q"), "r": death("r")}
    talk = Conversation("rabbitmq-3")
    for name, following in (("t", ""), ("r", "t"), ("q", "r")):
        letters = f'x-dead-letter-exchange="" x-dead-letter-routing-key={following}' if following else ""
        talk.send(f"a.1 queue.declare {name} durable {letters}")
        talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest()
    talk.send(f"a.1 basic.publish q body=m1 headers={json.dumps({'x-death': [sent]})}").rest()
    for tag, (name, told) in enumerate({"q": "o", "r": "qo", "t": turned}.items(), 1):
        history = [entries[each] for each in told]
        talk.send(f"a.1 basic.get {name}")
        talk.see(
            "a.1", "basic.get-ok", "m1", delivery_tag=tag, exchange="", routing_key=name, message_count=0,
            redelivered=False, properties={"headers": {"x-death": history}},
        ).rest()  # fmt: skip
        if name != "t":
            talk.send(f"a.1 basic.reject {tag}").rest()
    assert named(talk) == names


@pytest.mark.parametrize("mode", ["lazy", "default", "eager"])
def test_a_queue_mode_fails_in_4_3_in_whatever_words(mode: str) -> None:
    taken = Conversation("rabbitmq-4.3").send(f"a.1 queue.declare q durable x-queue-mode={mode}")
    refused = taken.fork()
    for text in ("PRECONDITION_FAILED - so it is", "PRECONDITION_FAILED - or so"):
        talk = refused.fork().see("a.1", "channel.close", reply_code=406, reply_text=text, class_id=50, method_id=10)
        assert named(talk) == []
    taken.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    assert named(taken) == ["queue-mode-is-taken"]


@pytest.mark.parametrize("mode", ["lazy", "default"])
@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0"])
def test_and_is_taken_before(dialect: str, mode: str) -> None:
    talk = Conversation(dialect).send(f"a.1 queue.declare q durable x-queue-mode={mode}")
    assert named(talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)) == []
