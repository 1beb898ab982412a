"""What is asked of the sequences that the search makes about publishers (see `test_search_distribution.py`).

Each question has the least share of all sequences in which the answer must be yes at least once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from amqpspec.conformance.language.command import Command
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.ruling import Outcome
from amqpspec.model.broker.transaction import Transaction
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Content
from tests.conformance.search.consumer_questions import PairQuestion, Question, exercised


def _channel(broker: Broker, command: Command | None) -> Channel | None:
    return broker.channels.get((command.connection, command.channel)) if command is not None else None


def _transaction(broker: Broker, command: Command | None, method: str) -> Transaction | None:
    """The one that the command, of that method, ends."""
    channel = _channel(broker, command)
    if command is None or command.method != method or channel is None:
        return None
    return channel.transaction


def _ends(method: str, question: Callable[[Transaction], object]) -> Question:
    def asks(broker: Broker, command: Command | None) -> bool:
        transaction = _transaction(broker, command, method)
        return transaction is not None and bool(question(transaction))

    return asks


def _rules(*outcomes: Outcome) -> Callable[[Transaction], bool]:
    return lambda transaction: any(ruling.outcome in outcomes for ruling, _ in transaction.rulings)


def _sends(question: Callable[[Content], object]) -> Question:
    return lambda _, command: command is not None and command.content is not None and bool(question(command.content))


def _publishes_in_vain(broker: Broker, command: Command | None) -> bool:
    channel = _channel(broker, command)
    return (
        command is not None
        and command.method == "basic.publish"
        and command.arguments.get("exchange") == "missing"
        and channel is not None
        and channel.transaction is not None
    )


def _ends_unsettled(broker: Broker, command: Command | None) -> bool:
    """The channel is closed with something uncommitted."""
    channel = _channel(broker, command)
    transaction = channel.transaction if channel is not None else None
    return (
        command is not None
        and command.method == "channel.close"
        and transaction is not None
        and bool(transaction.publications or transaction.rulings)
    )


def _limited(broker: Broker, *kinds: QueueType) -> Iterator[Queue]:
    for queue in broker.queues.values():
        if queue.type in kinds and {"x-max-length", "x-max-length-bytes"} & set(queue.arguments):
            yield queue


def _has_reason(reason: str) -> Question:
    """Is a message ready that is a dead letter for that reason?"""
    return lambda broker, _: any(
        message.deaths and message.deaths[0]["reason"] == reason
        for queue in broker.queues.values()
        for message in queue.messages
    )


def _died_twice(broker: Broker, command: Command | None) -> bool:
    return any(
        len(message.deaths) > 1 or any(death["count"] > 1 for death in message.deaths)
        for queue in broker.queues.values()
        for message in queue.messages
    )


QUESTIONS: dict[str, tuple[float, Question]] = {
    "a nack of a publish": (0.04, exercised("CONFIRM-013", "CONFIRM-014")),
    "a nack of a publish by a classic queue": (0.025, exercised("CONFIRM-013")),
    "a nack of a publish by a quorum queue": (0.01, exercised("CONFIRM-014")),
    "one queue refuses what another takes": (0.002, exercised("CONFIRM-011")),
    "a return in confirm mode": (0.08, exercised("CONFIRM-009")),
    "a return": (0.12, exercised("PUBLISH-007")),
    "an unroutable message is confirmed": (0.1, exercised("CONFIRM-008")),
    "a confirm of several queues": (0.02, exercised("CONFIRM-010")),
    "a channel error with confirms outstanding or to come": (0.03, exercised("CONFIRM-018", "CONFIRM-019")),
    "both modes": (0.02, exercised("CONFIRM-015")),
    "channels in confirm mode and in transactions": (
        0.08,
        lambda broker, _: len({each.transaction is not None for each in broker.channels.values() if _has_mode(each)})
        > 1,
    ),
    "several channels in confirm mode": (
        0.1, lambda broker, _: sum(each.confirming for each in broker.channels.values()) > 1
    ),
    "a commit of publishes": (0.08, _ends("tx.commit", lambda each: each.publications)),
    "a commit of acknowledgements": (0.02, _ends("tx.commit", _rules(Outcome.ACKNOWLEDGED))),
    "a commit of returns or refusals": (0.03, _ends("tx.commit", _rules(Outcome.REQUEUED, Outcome.DISCARDED))),
    "a commit of publishes and settlements": (
        0.01, _ends("tx.commit", lambda each: each.publications and each.rulings)
    ),
    "a rollback of publishes": (0.05, _ends("tx.rollback", lambda each: each.publications)),
    "a rollback of settlements": (0.025, _ends("tx.rollback", lambda each: each.rulings)),
    "a close with something uncommitted": (0.015, _ends_unsettled),
    "a commit that a queue refuses": (0.003, exercised("TX-008")),
    "a message is returned at commit": (0.015, exercised("TX-003")),
    "a second settlement in a transaction": (0.005, exercised("TX-006")),
    "a settlement after rollback": (0.005, exercised("TX-007")),
    "a commit without select": (0.01, exercised("TX-001")),
    "drops at the head": (0.06, exercised("OVERFLOW-001")),
    "a limit of 0": (0.015, exercised("OVERFLOW-003")),
    "a limit of octets": (0.015, exercised("OVERFLOW-004")),
    "what is held does not count": (0.02, exercised("OVERFLOW-002")),
    "refused without a word": (0.01, exercised("OVERFLOW-005")),
    "refused and dead-lettered": (0.003, exercised("OVERFLOW-006")),
    "a limited classic queue": (0.1, lambda broker, _: any(_limited(broker, QueueType.CLASSIC))),
    "a limited quorum queue": (0.1, lambda broker, _: any(_limited(broker, QueueType.QUORUM))),
    "a dead letter by length": (0.015, _has_reason("maxlen")),
    "a dead letter by expiry": (0.01, _has_reason("expired")),
    "a dead letter by rejection": (0.03, _has_reason("rejected")),
    "a dead letter that died several times": (0.008, _died_twice),
    "a cycle is cut": (0.005, exercised("DLX-008")),
    "a missing dead-letter exchange": (0.02, exercised("DLX-007")),
    "time passes": (0.05, lambda _, command: command is not None and command.method == "clock.wait"),
    "a message expires": (0.03, exercised("TTL-001", "TTL-002")),
    "a message without any time": (0.03, exercised("TTL-004")),
    "what is given back has expired": (0.004, exercised("TTL-005")),
    "a publish to a missing exchange with a transaction begun": (0.01, _publishes_in_vain),
    "headers": (0.05, _sends(lambda content: "headers" in content.properties)),
    "an empty body": (0.02, _sends(lambda content: not content.body)),
    "a body over one frame": (0.01, _sends(lambda content: len(content.body) > 131_064)),
}  # fmt: skip

PAIRS: dict[str, tuple[float, PairQuestion]] = {
    "publishes of two channels cross": (
        0.01, lambda first, second: _are_publishes(first, second) and first.channel != second.channel
    ),
    "a publish crosses the commit": (
        0.03, lambda first, second: first.method == "basic.publish" and second.method == "tx.commit"
    ),
    "a publish crosses an acknowledgement": (
        0.002, lambda first, second: first.method == "basic.publish" and second.method == "basic.ack"
    ),
}  # fmt: skip


def _has_mode(channel: Channel) -> bool:
    return channel.confirming or channel.transaction is not None


def _are_publishes(first: Command, second: Command) -> bool:
    return first.method == second.method == "basic.publish"
