"""What a broker says that it has declared is what a sequence has to delete, besides the names that it gave; and of the
broker's own exchanges it is known which were to be deleted.
"""

from __future__ import annotations

import pytest

from amqpspec.conformance.session.declared import Declared
from amqpspec.model.protocol.methods import Method, TraceEvent, event_of


def names(*frames: TraceEvent) -> list[tuple[str, str]]:
    declared = Declared()
    for frame in frames:
        (declared.sent if frame.sent else declared.received)(frame)
    return list(declared.names)


def asked(method: str = "queue.declare", **arguments: object) -> Method:
    return Method("a", 1, method, arguments, sent=True)


def told(method: str = "queue.declare-ok", **arguments: object) -> Method:
    return Method("a", 1, method, arguments, sent=False)


def test_a_name_that_the_broker_made_up_is_known_by_its_answer() -> None:
    assert names(asked(queue=""), told(queue="tmp_1")) == [("queue", "tmp_1")]


def test_a_reserved_name_that_should_have_been_refused_is_there() -> None:
    assert names(asked(queue="amq.own"), told(queue="amq.own")) == [("queue", "amq.own")]


def test_what_was_only_asked_for_or_refused_is_not_ours() -> None:
    assert names(asked(queue="q", passive=True), told(queue="q")) == []
    assert names(asked(queue="q"), told("channel.close"), asked(queue="r"), told(queue="r")) == [("queue", "r")]
    assert names(asked(queue="q", nowait=True), asked(queue="r"), told(queue="r")) == [("queue", "r")]


def test_predeclared_exchanges_stay() -> None:
    frames = (asked("exchange.declare", exchange="amq.direct"), told("exchange.declare-ok"))
    assert names(*frames) == []
    own = (asked("exchange.declare", exchange="amq.own"), told("exchange.declare-ok"))
    assert names(*own) == [("exchange", "amq.own")]


def test_an_exchange_of_the_brokers_own_that_was_to_be_deleted_may_be_gone() -> None:
    declared = Declared()
    declared.sent(asked("exchange.delete", exchange="amq.topic", nowait=True))
    declared.sent(asked("exchange.delete", exchange="e"))
    assert list(declared.let_go) == ["amq.topic"]


@pytest.mark.parametrize("end", ["socket.closed", "connection.close", "connection.close-ok"])
def test_a_new_connection_of_the_same_name_has_asked_for_nothing(end: str) -> None:
    lost = event_of("a", 0, end, {}, sent=False)
    asked_anew = [asked(), told(queue="amq.gen-1")]
    assert names(asked(queue="q", passive=True), lost, *asked_anew) == [("queue", "amq.gen-1")]


def never_made(*frames: TraceEvent) -> list[tuple[str, str]]:
    declared = Declared()
    for frame in frames:
        (declared.sent if frame.sent else declared.received)(frame)
    return list(declared.never_made)


@pytest.mark.parametrize("end", ["channel.close", "connection.close", "socket.closed"])
@pytest.mark.parametrize("nowait", [False, True])
def test_what_was_refused_is_not_there(end: str, nowait: bool) -> None:
    channel = 1 if end == "channel.close" else 0
    ended = event_of("a", channel, end, {}, sent=False)
    assert never_made(asked(queue="x\ny", nowait=nowait), ended) == [("queue", "x\ny")]


def test_what_was_declared_before_it_was_refused_is_there() -> None:
    refused = (asked(queue="q", durable=True), told("channel.close"))
    assert never_made(asked(queue="q"), told(queue="q"), *refused) == []
    assert never_made(*refused, asked(queue="q"), told(queue="q")) == []
    assert never_made(asked(queue="q", nowait=True), asked(queue="r"), told(queue="r"), *refused) == []


def test_a_name_that_the_broker_has_changed_is_there_as_it_says() -> None:
    assert never_made(asked(queue="x\ny"), told(queue="xy")) == [("queue", "x\ny")]


def test_what_a_client_closes_was_refused_by_nobody() -> None:
    assert never_made(asked(queue="q", nowait=True), event_of("a", 0, "connection.close-ok", {}, sent=False)) == []
