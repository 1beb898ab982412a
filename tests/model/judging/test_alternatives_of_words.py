"""Words that the model does not know: what depends on them is undecided, all else is judged as ever."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import event_of
from tests.handshakes import opening, start
from tests.model.judging.test_acceptor import Conversation

DIALECTS = ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"]


def queues(*names: str, dialect: str = "rabbitmq-4.3", arguments: str = "") -> Conversation:
    talk = Conversation(dialect)
    for name in names:
        talk.send(f"a.1 queue.declare {name} durable {arguments}")
        talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest()
    return talk


def declared(kind: str = "x-consistent-hash", dialect: str = "rabbitmq-4.3") -> Conversation:
    """The exchange x, to which q is bound; the queue r is bound to nothing."""
    talk = queues("q", "r", dialect=dialect)
    talk.send(f"a.1 exchange.declare x {kind} durable").see("a.1", "exchange.declare-ok").rest()
    return bound(talk, "q", "x").send("a.1 confirm.select").see("a.1", "confirm.select-ok").rest()


def bound(talk: Conversation, queue: str, exchange: str) -> Conversation:
    return talk.send(f"a.1 queue.bind {queue} {exchange} routing-key=1").see("a.1", "queue.bind-ok").rest()


def consuming(talk: Conversation, queue: str = "q", limit: int = 1) -> Conversation:
    talk.send(f"b.1 basic.qos {limit}").see("b.1", "basic.qos-ok")
    return talk.send(f"b.1 basic.consume {queue} tag=t").see("b.1", "basic.consume-ok", consumer_tag="t").rest()


def got(talk: Conversation, queue: str, body: str | None, left: int = 0) -> Conversation:
    talk.send(f"a.2 basic.get {queue} no-ack")
    if body is None:
        return talk.see("a.2", "basic.get-empty").rest()
    arguments = {"delivery_tag": 1, "redelivered": False, "exchange": "x", "routing_key": "k", "message_count": left}
    return talk.see("a.2", "basic.get-ok", body, **arguments).rest()


def closed(talk: Conversation, code: int, text: str, method: tuple[int, int], channel: str = "a.1") -> Conversation:
    return talk.see(channel, "channel.close", reply_code=code, reply_text=text, class_id=method[0], method_id=method[1])


def is_undecided(talk: Conversation, word: str) -> bool:
    reason = talk.acceptor.why_undecided
    return talk.acceptor.verdict is Verdict.INCONCLUSIVE and reason is not None and f"the {word}," in reason


def returned(talk: Conversation) -> Conversation:
    return talk.see(
        "a.1", "basic.return", "m", reply_code=312, reply_text="NO_ROUTE", exchange="x", routing_key="k"
    )  # fmt: skip


# ------------------------------------------------------------------------------------------ types of exchanges


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_type_of_a_plugin_is_there_or_is_not(dialect: str) -> None:
    asked = Conversation(dialect).send("a.1 exchange.declare x x-delayed-message x-delayed-type=direct")
    assert is_undecided(asked.fork().see("a.1", "exchange.declare-ok").rest(), "exchange type x-delayed-message")
    refused = closed(asked.fork(), 406, "PRECONDITION_FAILED - whatever the plugin says", (40, 10))
    assert refused.acceptor.verdict is Verdict.PASS
    assert closed(asked.fork(), 404, "NOT_FOUND - no", (40, 10)).failure.requirement == "EXCHANGE-004"


@pytest.mark.parametrize("dialect", [*DIALECTS, "amqp-0-9-1"])
def test_a_type_without_x_is_nobodys(dialect: str) -> None:
    talk = Conversation(dialect).send("a.1 exchange.declare x nope").see("a.1", "exchange.declare-ok")
    assert talk.failure.requirement == "EXCHANGE-004"


def test_it_is_known_from_then_on() -> None:
    talk = declared()
    talk.send("a.1 exchange.declare x x-consistent-hash durable").see("a.1", "exchange.declare-ok").rest()
    assert is_undecided(talk, "exchange type x-consistent-hash")
    talk.send("c.1 exchange.declare x x-consistent-hash")
    talk.see("c.1", "exchange.declare-ok")
    assert talk.failure.requirement == "EXCHANGE-006"


def test_of_two_such_exchanges_each_is_open() -> None:
    talk = declared().send("a.1 exchange.declare y x-random durable").see("a.1", "exchange.declare-ok").rest()
    assert is_undecided(talk, "exchange type x-random")
    assert is_undecided(talk, "exchange type x-consistent-hash")


def test_what_it_routes_may_be_returned_or_not_and_is_confirmed_once() -> None:
    talk = declared().send("a.1 basic.publish k exchange=x mandatory body=m")
    for confirm in ("basic.ack", "basic.nack"):
        flags = {"multiple": confirm == "basic.nack", "requeue": confirm == "basic.nack"}
        kept = talk.fork().see("a.1", confirm, delivery_tag=1, **flags)
        assert not kept.rest().acceptor.failures, confirm
        assert kept.see("a.1", confirm, delivery_tag=1, **flags).failure.requirement == "CONFIRM-003"
    assert not returned(talk.fork()).confirm("a.1", 1).rest().acceptor.failures
    assert returned(talk.fork().confirm("a.1", 1)).failure.requirement in ("PUBLISH-008", "CONFIRM-009")
    assert talk.rest().failure.requirement in ("CONFIRM-003", "CONFIRM-010")


def test_that_what_is_not_mandatory_is_returned_is_a_failure() -> None:
    talk = returned(declared().send("a.1 basic.publish k exchange=x body=m"))
    assert talk.failure.requirement == "PUBLISH-008"


def test_in_a_transaction_as_well() -> None:
    talk = queues("q").send("a.1 exchange.declare x x-random durable").see("a.1", "exchange.declare-ok").rest()
    bound(talk, "q", "x").send("a.1 tx.select").see("a.1", "tx.select-ok").rest()
    talk.send("a.1 basic.publish k exchange=x mandatory body=m").rest().send("a.1 tx.commit")
    assert not talk.fork().see("a.1", "tx.commit-ok").rest().acceptor.failures
    assert not returned(talk.fork()).see("a.1", "tx.commit-ok").rest().acceptor.failures


def test_an_open_queue_may_refuse_what_is_committed_and_the_others_have_it() -> None:
    talk = queues("q", "r").send("a.1 exchange.declare x x-random durable").see("a.1", "exchange.declare-ok").rest()
    bound(talk, "q", "x").send("b.1 tx.select").see("b.1", "tx.select-ok").rest()
    talk.send("b.1 basic.publish k exchange=x body=m", "b.1 basic.publish r body=n").rest().send("b.1 tx.commit")
    closed(talk, 406, "PRECONDITION_FAILED - partial tx completion", (90, 20), "b.1")
    talk.send("b.1 channel.close-ok").rest()
    assert not got(talk.fork(), "q", "m").acceptor.failures
    arguments = {"delivery_tag": 1, "redelivered": False, "exchange": "", "routing_key": "r", "message_count": 0}
    assert not talk.send("a.2 basic.get r no-ack").see("a.2", "basic.get-ok", "n", **arguments).rest().acceptor.failures


def test_a_commit_may_be_for_a_queue_that_is_gone() -> None:
    talk = queues("q").send("a.1 exchange.declare x x-random durable").see("a.1", "exchange.declare-ok").rest()
    bound(talk, "q", "x").send("a.1 tx.select").see("a.1", "tx.select-ok").rest()
    talk.send("a.1 basic.publish k exchange=x body=m").rest()
    refused = {"reply_code": 506, "reply_text": "RESOURCE_ERROR - not_found", "class_id": 90, "method_id": 20}
    assert talk.fork().send("a.1 tx.commit").see("a", "connection.close", **refused).failure.requirement == "TX-004"
    talk.send("b.1 queue.delete q").see("b.1", "queue.delete-ok", message_count=0).rest().send("a.1 tx.commit")
    assert not talk.fork().see("a.1", "tx.commit-ok").rest().acceptor.failures
    assert not talk.see("a", "connection.close", **refused).rest().acceptor.failures


def test_a_queue_that_is_bound_to_it_may_hold_anything() -> None:
    talk = declared().send("a.1 basic.publish k exchange=x body=m").confirm("a.1", 1).rest()
    for body in ("m", "of old", None):
        assert is_undecided(got(talk.fork(), "q", body, left=3), "exchange type x-consistent-hash")
    talk.send("a.1 queue.declare q passive")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=7, consumer_count=0).rest()
    talk.send("a.1 queue.delete q if-empty")
    assert not talk.fork().see("a.1", "queue.delete-ok", message_count=9).rest().acceptor.failures
    text = "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty"
    assert not closed(talk, 406, text, (50, 40)).rest().acceptor.failures


def test_another_queue_is_judged_as_ever() -> None:
    talk = declared().send("a.1 basic.publish r body=m").confirm("a.1", 1).rest()
    assert got(talk.fork(), "r", None).failure.requirement == "PUBLISH-002"
    assert got(talk.fork(), "r", "other").failure.requirement == "PUBLISH-016"
    talk.send("a.1 basic.publish k exchange=x body=n").confirm("a.1", 2).rest()
    assert got(talk, "r", "n").acceptor.failures


def test_its_consumers_have_their_limits_and_tags() -> None:
    talk = consuming(declared(), limit=1).deliver("b.1", 1, "m1").rest()
    assert talk.fork().deliver("b.1", 2, "m2").failure.requirement == "QOS-001"
    talk.send("b.1 basic.ack 1").rest()
    assert not talk.fork().deliver("b.1", 2, "m2", redelivered=True).rest().acceptor.failures
    assert talk.fork().deliver("b.1", 3, "m2").failure.requirement == "CONSUME-014"
    assert talk.fork().deliver("b.1", 2, "m2", consumer="u").failure.requirement == "CANCEL-001"
    twice = talk.send("b.1 basic.ack 1")
    text = "PRECONDITION_FAILED - unknown delivery tag 1"
    assert not closed(twice.fork(), 406, text, (60, 80), "b.1").acceptor.failures
    assert twice.rest().failure.requirement == "ACK-007"


def test_what_comes_late_may_cross_a_cancel_and_not_come_behind_its_answer() -> None:
    talk = consuming(declared("x-delayed-message"), limit=0).send("b.1 basic.cancel t")
    crossing = talk.fork().deliver("b.1", 1, "m1").see("b.1", "basic.cancel-ok", consumer_tag="t").rest()
    assert is_undecided(crossing, "exchange type x-delayed-message")
    talk.see("b.1", "basic.cancel-ok", consumer_tag="t").deliver("b.1", 1, "m1")
    assert talk.failure.requirement == "CANCEL-001"


def test_what_comes_late_may_cross_the_end_of_its_queue() -> None:
    talk = consuming(declared("x-delayed-message")).send("a.1 queue.delete q").deliver("b.1", 1, "m1")
    talk.see("a.1", "queue.delete-ok", message_count=0).see("b.1", "basic.cancel", consumer_tag="t", nowait=True)
    assert is_undecided(talk.rest(), "exchange type x-delayed-message")


def test_what_is_given_back_may_come_again_or_be_gone() -> None:
    talk = consuming(declared()).deliver("b.1", 1, "m1").send("b.1 basic.nack 1 requeue").rest()
    assert not talk.fork().deliver("b.1", 2, "m1", redelivered=True).rest().acceptor.failures
    assert not talk.rest().acceptor.failures


def test_it_reaches_through_exchanges_alternates_and_dead_letters() -> None:
    talk = queues("q", "r", "s", "t")
    for exchange in ("y", "z"):
        talk.send(f"a.1 exchange.declare {exchange} fanout durable").see("a.1", "exchange.declare-ok").rest()
    talk.send("a.1 exchange.declare x x-random durable alternate-exchange=z").see("a.1", "exchange.declare-ok").rest()
    talk.send("a.1 queue.declare d durable x-dead-letter-exchange= x-dead-letter-routing-key=s")
    talk.see("a.1", "queue.declare-ok", queue="d", message_count=0, consumer_count=0).rest()
    talk.send("a.1 exchange.bind y x").see("a.1", "exchange.bind-ok").rest()
    for queue, exchange in (("q", "y"), ("d", "y"), ("r", "z")):
        bound(talk, queue, exchange)
    assert {name for name, each in talk.acceptor.broker.queues.items() if each.open_by} == {"q", "d", "r", "s"}
    for queue in ("q", "r", "s"):
        assert not got(talk.fork(), queue, "m").acceptor.failures
    assert got(talk, "t", "m").acceptor.failures


def test_a_binding_may_be_refused() -> None:
    talk = declared().send("a.1 queue.bind r x routing-key=no")
    text = "PRECONDITION_FAILED - The binding key must be an integer: no"
    assert not closed(talk.fork(), 406, text, (50, 20)).rest().acceptor.failures
    assert not talk.see("a.1", "queue.bind-ok").rest().acceptor.failures


# ---------------------------------------------------------------------------------- RabbitMQ's own, of one binding


@pytest.mark.parametrize(("dialect", "kinds"), [("rabbitmq-4.0", 1), ("rabbitmq-4.3", 2)])
def test_types_that_send_to_one_binding_are_there(dialect: str, kinds: int) -> None:
    for kind in ("x-local-random", "x-modulus-hash")[:kinds]:
        talk = declared(kind, dialect).send("a.1 basic.publish k exchange=x mandatory body=m").confirm("a.1", 1).rest()
        assert talk.acceptor.verdict is Verdict.PASS
        assert talk.acceptor.exercised["EXCHANGE-011"] == 2
        assert got(talk.fork(), "q", "m").acceptor.verdict is Verdict.PASS
        assert got(talk.fork(), "q", None).failure.requirement == "EXCHANGE-011"
        assert got(talk.fork(), "r", "m").acceptor.failures


def test_what_several_are_bound_to_may_go_to_either() -> None:
    talk = bound(declared("x-modulus-hash"), "r", "x")
    assert talk.acceptor.verdict is Verdict.PASS, "nothing was published"
    talk.send("a.1 basic.publish k exchange=x mandatory body=m").confirm("a.1", 1).rest()
    assert is_undecided(talk, "choice of the exchange type x-modulus-hash")
    for queue in ("q", "r"):
        assert not got(talk.fork(), queue, "m").acceptor.failures


# ----------------------------------------------------------------------------------------- the broker's exchanges


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_exchange_of_the_tracer(dialect: str) -> None:
    talk = Conversation(dialect).send("a.1 exchange.declare amq.rabbitmq.trace topic passive")
    missing = "NOT_FOUND - no exchange 'amq.rabbitmq.trace' in vhost '/'"
    assert closed(talk.fork(), 404, missing, (40, 10)).failure.requirement == "EXCHANGE-012"
    talk.see("a.1", "exchange.declare-ok").rest()
    assert talk.acceptor.exercised["EXCHANGE-012"] == 1
    talk.send("a.1 basic.publish k exchange=amq.rabbitmq.trace body=m")
    internal = "ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'"
    assert closed(talk, 403, internal, (60, 40)).acceptor.verdict is Verdict.PASS


def test_the_tracer_may_be_on() -> None:
    talk = queues("q").send("a.1 queue.bind q amq.rabbitmq.trace routing-key=#").see("a.1", "queue.bind-ok").rest()
    assert got(talk.fork(), "q", None).acceptor.verdict is Verdict.PASS
    assert is_undecided(got(talk, "q", "m"), "operator's setting of amq.rabbitmq.trace")


@pytest.mark.parametrize(("name", "verdict"), [
    ("amq.rabbitmq.log", Verdict.PASS), ("amq.rabbitmq.event", Verdict.PASS), ("amq.other", Verdict.INCONCLUSIVE),
])  # fmt: skip
def test_others_of_its_own_may_be_there_or_not(name: str, verdict: Verdict) -> None:
    talk = queues("q").send(f"a.1 exchange.declare {name} topic passive")
    missing = f"NOT_FOUND - no exchange '{name}' in vhost '/'"
    assert closed(talk.fork(), 404, missing, (40, 10)).rest().acceptor.verdict is Verdict.PASS
    assert talk.see("a.1", "exchange.declare-ok").rest().acceptor.verdict is verdict
    talk.send(f"a.1 queue.bind q {name} routing-key=#").see("a.1", "queue.bind-ok").rest()
    assert is_undecided(got(talk.fork(), "q", "what the broker says"), f"exchange {name}")
    talk.send(f"a.1 basic.publish k exchange={name} body=m")
    internal = f"ACCESS_REFUSED - cannot publish to internal exchange '{name}' in vhost '/'"
    assert not closed(talk, 403, internal, (60, 40)).rest().acceptor.failures


def test_nobody_makes_one() -> None:
    talk = Conversation().send("a.1 exchange.declare amq.other topic durable").see("a.1", "exchange.declare-ok")
    assert talk.failure.requirement == "EXCHANGE-002"


def test_an_exchange_that_is_missing_is_missing_where_its_name_is_anybodys() -> None:
    talk = Conversation().send("a.1 exchange.declare x topic passive").see("a.1", "exchange.declare-ok")
    assert talk.failure.requirement == "EXCHANGE-005"


# ---------------------------------------------------------------------------------------------------- arguments


def test_an_unknown_argument_makes_a_queue_undecided_once_it_does_something_else() -> None:
    talk = queues("q", arguments="x-message-deduplication=1")
    for tag in (1, 2):
        talk.send(f"b.{tag} confirm.select").see(f"b.{tag}", "confirm.select-ok")
        talk.send(f"b.{tag} basic.publish q body=m{tag}").confirm(f"b.{tag}", 1).rest()
    assert talk.acceptor.verdict is Verdict.PASS
    talk.send("a.1 basic.get q no-ack")
    assert talk.fork().got("a.1", 1, "m1", 1).rest().acceptor.verdict is Verdict.PASS
    word = "argument x-message-deduplication of the queue q"
    assert is_undecided(talk.fork().got("a.1", 1, "m2", 0).rest(), word)
    assert is_undecided(talk.fork().see("a.1", "basic.get-empty").rest(), word)


def test_an_argument_that_means_nothing_to_anybody_excuses_nothing() -> None:
    talk = queues("r")
    table = {"queue": "q", "durable": True, "arguments": {"comment": "x"}}
    talk.acceptor.sent(event_of("a", 1, "queue.declare", table, sent=True))
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("b.1 confirm.select").see("b.1", "confirm.select-ok")
    talk.send("b.1 basic.publish q body=m1").confirm("b.1", 1).rest().send("a.1 basic.get q no-ack")
    assert talk.see("a.1", "basic.get-empty").rest().failure.requirement == "PUBLISH-002"


def test_that_it_is_taken_is_promised() -> None:
    talk = Conversation().send("a.1 queue.declare q durable x-message-deduplication=1")
    assert closed(talk, 406, "PRECONDITION_FAILED - no", (50, 10)).acceptor.failures


def test_of_an_exchange_and_of_a_consumer() -> None:
    talk = queues("q").send("a.1 exchange.declare x direct durable x-cache-size=1").see("a.1", "exchange.declare-ok")
    bound(talk.rest(), "q", "x").send("a.1 confirm.select").see("a.1", "confirm.select-ok").rest()
    talk.send("a.1 basic.publish 1 exchange=x mandatory body=m").confirm("a.1", 1).rest()
    talk.send("a.2 basic.get q no-ack")
    assert is_undecided(talk.see("a.2", "basic.get-empty").rest(), "argument x-cache-size of the exchange x")
    talk = queues("q").send("b.1 basic.consume q tag=t x-match-only=red")
    talk.see("b.1", "basic.consume-ok", consumer_tag="t").rest().send("a.1 basic.publish q body=blue")
    assert is_undecided(talk.rest(), "argument x-match-only of a consumer of q")


# ------------------------------------------------------------------------------------------------ types of queues


def typed() -> Conversation:
    return Conversation().send("a.1 queue.declare q durable x-queue-type=delayed x-max-priority=no")


def test_a_type_of_queues_is_there_or_is_not() -> None:
    what = "invalid arg 'x-queue-type' for queue 'q' in vhost '/'"
    text = f"PRECONDITION_FAILED - {what}: \"unsupported queue type 'delayed'\""
    assert closed(typed(), 406, text, (50, 10)).acceptor.verdict is Verdict.PASS
    talk = typed().see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    assert is_undecided(talk, "queue type delayed")
    assert not got(talk.fork(), "q", "m", left=5).acceptor.failures
    assert is_undecided(consuming(talk.fork()).deliver("b.1", 1, "m").rest(), "queue type delayed")
    talk.send("a.1 basic.get q")
    refused = {"reply_code": 540, "reply_text": "NOT_IMPLEMENTED - of this type", "class_id": 60, "method_id": 70}
    assert not talk.see("a", "connection.close", **refused).rest().acceptor.failures


def test_a_type_that_is_no_text_is_wrong() -> None:
    talk = Conversation().send("a.1 queue.declare q durable x-queue-type=5")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    assert talk.failure.requirement == "QUEUE-013"


# -------------------------------------------------------------------------------------------- deprecated features


def located(dialect: str, locator: str = "min-masters") -> Conversation:
    return Conversation(dialect).send(f"a.1 queue.declare q durable x-queue-master-locator={locator}")


def denied(talk: Conversation) -> Conversation:
    text = "INTERNAL_ERROR - Feature `queue_master_locator` is deprecated.\nBy default, this feature is not permitted."
    return talk.see("a", "connection.close", reply_code=541, reply_text=text, class_id=50, method_id=10)


@pytest.mark.parametrize("locator", ["min-masters", "client-local", "random"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_master_locator(dialect: str, locator: str) -> None:
    talk = located(dialect, locator).see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    assert talk.rest().acceptor.verdict is Verdict.PASS, "or permitted by configuration"
    refused = denied(located(dialect, locator))
    if dialect == "rabbitmq-4.3":
        assert refused.acceptor.verdict is Verdict.PASS
        assert refused.acceptor.exercised["QUEUE-030"] == 1
    else:
        assert refused.failure.requirement == "QUEUE-030"


# ----------------------------------------------------------------------------- authentication, and capabilities


def logging_in(*between: tuple[str, dict[str, Any], bool], mechanisms: str = "PLAIN AMQPLAIN EXTERNAL") -> Conversation:
    """Until connection.tune has come, by a mechanism that the model does not know."""
    talk = Conversation()
    frames = opening("a", talk.acceptor.dialect)
    for each in frames[:2]:
        talk.acceptor.sent(each)
    said = start(talk.acceptor.dialect) | {"mechanisms": mechanisms}
    talk.see("a", "connection.start", **said)
    response = {"client_properties": {"capabilities": {}}, "mechanism": "EXTERNAL", "response": ""}
    for method, arguments, sent in [("connection.start-ok", response, True), *between]:
        event = event_of("a", 0, method, arguments, sent=sent)
        (talk.acceptor.sent if sent else talk.acceptor.received)(event)
    return talk


def test_behind_an_unknown_mechanism_a_connection_is_judged() -> None:
    challenged = (
        ("connection.secure", {"challenge": "who"}, False), ("connection.secure-ok", {"response": "me"}, True),
    )  # fmt: skip
    for between in ((), challenged, challenged * 2):
        talk = logging_in(*between)
        for each in opening("a", talk.acceptor.dialect)[4:]:
            (talk.acceptor.sent if each.sent else talk.acceptor.received)(each)
        assert is_undecided(talk.rest(), "authentication mechanism EXTERNAL")
        channel_open = event_of("a", 1, "channel.open", {}, sent=True)
        talk.acceptor.sent(channel_open)
        talk.see("a.1", "channel.close", reply_code=404, reply_text="NOT_FOUND", class_id=0, method_id=0)
        assert talk.acceptor.verdict is Verdict.FAIL


def test_or_is_refused() -> None:
    refusal = {"reply_code": 403, "reply_text": "ACCESS_REFUSED - no", "class_id": 0, "method_id": 0}
    assert not logging_in(("connection.close", refusal, False)).rest().acceptor.failures
    assert not logging_in(("socket.closed", {}, False)).rest().acceptor.failures


def test_a_mechanism_that_is_not_offered_is_refused() -> None:
    assert logging_in(mechanisms="PLAIN AMQPLAIN").see("a", "connection.tune").failure.requirement == "CONN-007"


def test_unknown_capabilities_of_either_side_say_nothing() -> None:
    talk = Conversation()
    capabilities = {"consumer_cancel_notify": True, "of_tomorrow": True, "table": {"x": 1}}
    for each in opening("a", talk.acceptor.dialect, capabilities, server_capabilities=["of_tomorrow"]):
        (talk.acceptor.sent if each.sent else talk.acceptor.received)(each)
    assert talk.rest().acceptor.verdict is Verdict.PASS
