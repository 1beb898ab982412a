"""What a failure does to an application, as an engineer who runs brokers would say it."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from amqpspec.model.promises import severity
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.severity import ORDER, Severity, rank, severity_of
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.targets.faults.all_faults import FAULTS

CORPUS = Path(__file__).parents[2] / "corpus"

#: requirement|shape|detail, and what it does to an application.
TABLE = {
    # nobody is served any more, and what was on no disk is gone
    "SERVER-001|missing frame|an answer behind queue.delete": Severity.LOST,
    # a publish that nobody gets, though the publisher hears of nothing
    "PUBLISH-002|missing frame|basic.deliver": Severity.LOST,
    "PUBLISH-002|unexpected frame|basic.get-empty although a message is ready": Severity.LOST,
    "TX-002|missing frame|messages ready": Severity.LOST,
    "PUBLISH-007|missing frame|basic.return": Severity.LOST,
    "PUBLISH-010|unexpected frame|basic.return": Severity.LOST,
    "CONFIRM-013|unexpected frame|basic.ack of a message that a queue refused": Severity.LOST,
    "CONFIRM-019|unexpected frame|basic.ack of a publish that is not open": Severity.LOST,
    "TX-008|unexpected frame|tx.commit-ok": Severity.LOST,
    # a durable queue is gone, with what was in it
    "DURABLE-001|unexpected frame|channel.close in place of queue.declare-ok": Severity.LOST,
    # what was given back, rejected or held is gone
    "ACK-013|missing frame|basic.deliver": Severity.LOST,
    "CHAN-016|missing frame|basic.deliver": Severity.LOST,
    "DLX-001|missing frame|basic.deliver": Severity.LOST,
    "OVERFLOW-004|missing frame|messages ready": Severity.LOST,
    "QUEUE-024|wrong argument|queue.purge-ok message-count": Severity.LOST,
    "QUEUE-023|unexpected frame|queue.delete-ok in place of channel.close": Severity.LOST,
    # a body is another one
    "PUBLISH-016|unexpected frame|basic.deliver": Severity.LOST,
    # once more, or before its turn
    "ACK-001|unexpected frame|basic.deliver": Severity.REPEATED,
    "ACK-013|unexpected frame|basic.get-ok": Severity.REPEATED,
    "TX-007|unexpected frame|basic.deliver": Severity.REPEATED,
    "BIND-003|unexpected frame|basic.get-ok": Severity.REPEATED,
    "PUBLISH-015|unexpected frame|basic.deliver": Severity.REPEATED,
    "DLX-009|unexpected frame|basic.get-ok": Severity.REPEATED,
    "STREAM-003|unexpected frame|basic.deliver out of the stream's order": Severity.REPEATED,
    "CONFIRM-011|unexpected frame|basic.nack of a message that no queue refused": Severity.REPEATED,
    # what is beside the body is gone, or another thing
    "PUBLISH-016|wrong argument|basic.get-ok headers": Severity.ALTERED,
    "PUBLISH-016|wrong argument|basic.deliver correlation-id": Severity.ALTERED,
    "PUBLISH-007|wrong argument|basic.return content": Severity.ALTERED,
    # nobody can read it
    "SERVER-002|unexpected frame|basic.cancel: N octets follow the last argument": Severity.ERRED,
    # to a queue, a consumer or a client that it is not for
    "PUBLISH-005|unexpected frame|basic.deliver": Severity.MISDIRECTED,
    "BIND-006|unexpected frame|basic.get-ok": Severity.MISDIRECTED,
    "CANCEL-001|unexpected frame|basic.deliver": Severity.MISDIRECTED,
    "SAC-001|unexpected frame|basic.deliver to a consumer that is not active": Severity.MISDIRECTED,
    "QUEUE-019|unexpected frame|queue.declare-ok in place of channel.close": Severity.MISDIRECTED,
    "QUEUE-019|missing frame|channel.close for queue.bind": Severity.MISDIRECTED,
    "CONN-005|unexpected frame|connection.tune in place of connection.close": Severity.MISDIRECTED,
    "CONSUME-014|wrong argument|basic.deliver delivery-tag": Severity.MISDIRECTED,
    # somebody waits for ever
    "QOS-004|missing frame|basic.deliver": Severity.STUCK,
    "SAC-002|missing frame|basic.deliver": Severity.STUCK,
    "CANCEL-007|missing frame|basic.cancel": Severity.STUCK,
    "CONFIRM-003|missing frame|basic.ack": Severity.STUCK,
    "CHAN-005|missing frame|channel.close-ok": Severity.STUCK,
    "TX-001|missing frame|tx.select-ok": Severity.STUCK,
    "GET-003|unexpected frame|basic.get-empty although a message is ready": Severity.STUCK,
    "TIMEOUT-001|missing frame|channel.close": Severity.STUCK,
    "TIMEOUT-007|unexpected frame|basic.cancel": Severity.STUCK,
    # it goes on with something that is not so
    "QUEUE-006|wrong argument|queue.declare-ok queue that is empty": Severity.WRONG_STATE,
    "GET-001|wrong argument|basic.get-ok message-count": Severity.WRONG_STATE,
    "QUEUE-001|wrong argument|queue.declare-ok message-count with the unacknowledged": Severity.WRONG_STATE,
    "ACK-015|wrong argument|basic.deliver redelivered": Severity.WRONG_STATE,
    "ACK-006|missing frame|channel.close for basic.ack": Severity.WRONG_STATE,
    "EXCHANGE-006|unexpected frame|exchange.declare-ok in place of channel.close": Severity.WRONG_STATE,
    "QOS-001|unexpected frame|basic.deliver beyond the limit": Severity.WRONG_STATE,
    "TTL-001|unexpected frame|basic.get-ok": Severity.WRONG_STATE,
    "CHAN-001|unexpected frame|a reply in place of connection.close": Severity.WRONG_STATE,
    "CONN-015|missing frame|connection.close": Severity.WRONG_STATE,
    # all channels go for the mistake of one, or for none
    "GET-002|unexpected frame|connection.close in place of channel.close": Severity.CLOSED,
    "QUEUE-001|unexpected frame|socket.closed in place of queue.declare-ok": Severity.CLOSED,
    "CANCEL-004|unexpected frame|channel.close in place of basic.cancel-ok": Severity.CLOSED,
    "PUBLISH-002|unexpected frame|socket.garbage": Severity.CLOSED,
    # it ends as it is to, with another number
    "TX-001|wrong argument|channel.close reply-code": Severity.WRONG_CODE,
    "CHAN-007|wrong argument|channel.close method-id": Severity.WRONG_CODE,
    "CONN-014|unexpected frame|socket.closed in place of connection.close": Severity.WRONG_CODE,
    "PUBLISH-009|unexpected frame|channel.close in place of connection.close": Severity.WRONG_CODE,
    "CHAN-020|missing frame|connection.close": Severity.WRONG_CODE,
    # for people only
    "CHAN-008|wrong argument|channel.close reply-text": Severity.WRONG_WORDS,
    "CONN-025|wrong argument|connection.start server-properties": Severity.WRONG_WORDS,
    "CONN-010|wrong argument|connection.tune heartbeat": Severity.WRONG_WORDS,
    "QUEUE-006|wrong argument|queue.declare-ok queue": Severity.WRONG_WORDS,
    "CONFIRM-006|wrong argument|basic.nack multiple": Severity.WRONG_WORDS,
}

#: Faulty variants whose corpus shows them in one way, and what their defect does.
OF_FAULTS = {
    "message-lost-on-channel-close": Severity.LOST,
    "get-empty-with-messages": Severity.LOST,
    "recover-forgets-consumer-deliveries": Severity.LOST,
    "dead-letters-reversed": Severity.REPEATED,
    "newcomer-becomes-active": Severity.MISDIRECTED,
    "delivery-after-cancel": Severity.MISDIRECTED,
    "recover-ok-missing": Severity.STUCK,
    "deletion-not-told": Severity.STUCK,
    "no-ack-consumer-limited": Severity.STUCK,
    "prefetch-off-by-one": Severity.WRONG_STATE,
    "unknown-tag-closes-connection": Severity.CLOSED,
    "wrong-reply-code": Severity.WRONG_CODE,
    "version-not-told": Severity.WRONG_WORDS,
}


def failure(identity: str) -> Failure:
    requirement, shape, detail = identity.partition(" = ")[0].split("|", 2)
    return Failure(requirement, Shape(shape), detail, "", "", (), ())


@pytest.mark.parametrize("identity", TABLE)
def test_what_a_failure_does_to_an_application(identity: str) -> None:
    assert failure(identity).requirement in requirements()
    assert severity_of(failure(identity)) is TABLE[identity]


def test_the_gravest_come_first() -> None:
    ranks = [rank(failure(identity)) for identity in TABLE]
    assert ranks == sorted(ranks)
    assert [ORDER[each] for each in dict.fromkeys(ranks)] == list(Severity)


@cache
def recorded() -> tuple[tuple[str, str], ...]:
    """Sequences of the corpus, and what failed in them."""
    expected = [json.loads(file.read_text(encoding="utf-8")) for file in CORPUS.glob("*.json")]
    return tuple(
        (sequence, identity)
        for each in expected
        for sequence, said in each["sequences that do not pass"].items()
        for identity in said.get("failures", ())
    )


@pytest.mark.parametrize("fault", OF_FAULTS)
def test_what_a_faulty_variant_does_to_an_application(fault: str) -> None:
    assert fault in FAULTS
    shown = {
        severity_of(failure(each)) for sequence, each in recorded() if sequence.endswith(f"embedded-fault-{fault}")
    }
    assert shown == {OF_FAULTS[fault]}


def test_each_row_of_the_table_decides_something_and_names_what_there_is() -> None:
    known = [failure(identity) for identity in {*TABLE, *(identity for _, identity in recorded())}]
    rows = severity._TABLE
    decided = {
        next((row for row in rows if row.shape in (None, each.shape) and re.match(row.requirement, each.requirement)
              and re.fullmatch(row.detail, each.detail)), None)
        for each in known
    }  # fmt: skip
    assert [row for row in rows if row not in decided] == []
    assert all(any(re.match(row.requirement, id) for id in requirements()) for row in rows)
