"""Faults of transactions (area TX), and of what keeps them apart from confirms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.ruling import Outcome, Ruling
from amqpspec.model.broker.transaction import Transaction
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.publish import deliver
from amqpspec.model.rules.basic.settlement import carry_out
from amqpspec.targets.embedded.hooks import Chapter, Proceed
from amqpspec.targets.embedded.served_broker import ServedBroker

TRANSACTIONS = Chapter()
on_input, on_output = TRANSACTIONS.on_input, TRANSACTIONS.on_output
_SETTLING = ("basic.ack", "basic.nack", "basic.reject")


def _open(broker: ServedBroker, method: Method) -> tuple[Channel, Transaction | None]:
    """The frame's channel, and its transaction if the channel is open and has one."""
    channel = broker.channel(method.connection, method.channel)
    return channel, channel.transaction if channel.state is ChannelState.OPEN else None


def _without_transaction(channel: Channel, method: Method, proceed: Proceed) -> None:
    """Process the frame as if the channel were in no transaction."""
    transaction, channel.transaction = channel.transaction, None
    proceed(method)
    if channel.state is ChannelState.OPEN:
        channel.transaction = transaction


def _committed(channel: Channel, method: Method, proceed: Proceed) -> None:
    """Process a tx.commit in place of the frame, and do not answer it."""
    proceed(replace(method, name="tx.commit", arguments={}))
    channel.owed = [owed for owed in channel.owed if not isinstance(owed, Expected) or owed.method != "tx.commit-ok"]
    if channel.transaction is not None:
        channel.transaction.arriving = ()


# --------------------------------------------------------------------------------------------- the mode


@on_input("tx-in-confirm-mode", "CONFIRM-015", "tx.select is accepted in confirm mode.", "tx.select")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel, _ = _open(broker, method)
    confirming, channel.confirming = channel.confirming, False
    proceed(method)
    channel.confirming = confirming


@on_input("confirm-in-tx-mode", "CONFIRM-015", "confirm.select is accepted in transaction mode.", "confirm.select")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    _without_transaction(_open(broker, method)[0], method, proceed)


@on_input(
    "commit-without-select", "TX-001", "tx.commit and tx.rollback are answered without tx.select.",
    "tx.commit", "tx.rollback",
)  # fmt: skip
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel, transaction = _open(broker, method)
    if transaction is None and channel.state is ChannelState.OPEN:
        channel.transaction = Transaction()
        proceed(method)
        channel.transaction = None
    else:
        proceed(method)


# ----------------------------------------------------------------------------------------- what is published


@on_input("published-before-commit", "TX-002", "A transaction publishes at once.", "basic.publish")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    _without_transaction(_open(broker, method)[0], method, proceed)


@on_input("commit-loses-publishes", "TX-002", "tx.commit publishes nothing.", "tx.commit")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    _, transaction = _open(broker, method)
    if transaction is not None:
        transaction.publications.clear()
    proceed(method)


@on_input("rollback-commits", "TX-002", "tx.rollback commits.", "tx.rollback")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel, transaction = _open(broker, method)
    if transaction is not None:
        _committed(channel, method, proceed)
    proceed(method)


@on_input("returned-before-commit", "TX-003", "A mandatory message is returned when it is published.", "basic.publish")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    channel, transaction = _open(broker, method)
    if transaction is not None and transaction.publications:
        latest = transaction.publications[-1]
        if latest.mandatory and not latest.routes.queues:
            transaction.publications.pop()
            deliver(broker, channel, latest)


@on_input("commit-ok-before-return", "TX-003", "commit-ok comes before what is returned.", "tx.commit")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    channel, _ = _open(broker, method)
    channel.owed.sort(key=lambda owed: isinstance(owed, Expected) and owed.method == "basic.return")


@on_output("commit-confirms", "TX-004", "What a transaction publishes is confirmed as well.", "tx.commit-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield replace(method, name="basic.ack", arguments={"delivery_tag": 1, "multiple": False})
    yield method


@on_output("failed-commit-hidden", "TX-008", "commit-ok comes although a queue has refused.", "channel.close")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    is_partial = "partial tx completion" in method.arguments["reply_text"]
    yield replace(method, name="tx.commit-ok", arguments={}) if is_partial else method


# ------------------------------------------------------------------------------------------- what is settled


@on_input("settled-before-commit", "TX-005", "What a transaction settles is settled at once.", *_SETTLING)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    _without_transaction(_open(broker, method)[0], method, proceed)


@on_input("commit-settles-nothing", "TX-005", "tx.commit forgets what was settled.", "tx.commit")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    _, transaction = _open(broker, method)
    if transaction is not None:
        transaction.rulings.clear()
    proceed(method)


@on_input("settled-twice-in-tx", "TX-006", "Settling again what the transaction has settled is no error.", *_SETTLING)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    _, transaction = _open(broker, method)
    if transaction is None or method.arguments.get("delivery_tag") not in transaction.reserved:
        proceed(method)


@on_input("rollback-requeues", "TX-007", "tx.rollback gives back what was settled.", "tx.rollback")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel, transaction = _open(broker, method)
    proceed(method)
    if transaction is not None:
        carry_out(broker, channel, sorted(transaction.reserved), Ruling(Outcome.REQUEUED), "TX-007")


@on_input("rollback-keeps-tags", "TX-007", "What tx.rollback restores cannot be settled again.", "tx.rollback")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel, transaction = _open(broker, method)
    proceed(method)
    if transaction is not None and channel.transaction is not None:
        channel.transaction.rulings = list(transaction.rulings)


# ---------------------------------------------------------------------------------------------- what is left


@on_input("close-commits", "TX-009", "Closing the channel commits its transaction.", "channel.close")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel, transaction = _open(broker, method)
    if transaction is not None:
        _committed(channel, method, proceed)
    proceed(method)
