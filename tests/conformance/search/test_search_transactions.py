"""What the theme publishing leaves out of its transactions: commits of which nothing tells what comes first."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.search.transactions import TransactionActions
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.promises.dialects import dialect_named

TO_R = 'x-dead-letter-exchange="" x-dead-letter-routing-key=r'


class Transactions(TransactionActions):
    dialect = dialect_named("rabbitmq-4.3")

    def __init__(self) -> None:
        super().__init__()
        self.plan = Plan(self.dialect)
        self.done: list[str] = []

    def carry_out(self, command: Command) -> None:
        self.done.append(command.method)
        self.plan.carry_out(command)


@pytest.mark.parametrize(
    ("of_q", "of_r", "settlements", "end"),
    [
        (TO_R, "x-max-length=1", ("reject 1", "reject 2 requeue"), "tx.rollback"),
        (TO_R, "x-max-length=1", ("reject 2 requeue", "reject 1"), "tx.rollback"),
        (TO_R, "", ("reject 1", "reject 2 requeue"), "tx.commit"),
        ("", "x-max-length=1", ("reject 1", "reject 2 requeue"), "tx.commit"),
        (TO_R, "x-max-length=1", ("reject 1", "ack 2"), "tx.commit"),
        (TO_R, "x-max-length=1", ("ack 1", "reject 2 requeue"), "tx.commit"),
        ("", 'x-max-length=1 x-dead-letter-exchange=""', ("reject 2", "reject 3 requeue"), "tx.rollback"),
    ],
)
def test_no_commit_brings_messages_to_a_limited_queue_from_two_places(
    of_q: str, of_r: str, settlements: tuple[str, ...], end: str
) -> None:
    actions: Any = Transactions()
    lines = [f"b.1 queue.declare q {of_q}", f"b.1 queue.declare r {of_r}", "a.1 tx.select"]
    for number, queue in enumerate("qrr", start=1):
        lines += [f"b.1 basic.publish {queue} body=m{number}", f"a.1 basic.get {queue}"]
    for line in (*lines, *(f"a.1 basic.{settlement}" for settlement in settlements)):
        actions.carry_out(parse_command(line))
    actions.end(("a", 1), "tx.commit")
    assert actions.done[-1] == end


@pytest.mark.parametrize(
    ("of_q", "settlement", "is_left_out"),
    [
        ("x-max-length=0", "reject 1", True),
        ("x-max-length=0", "nack 0 multiple", True),
        ("x-max-length=0", "nack 2 multiple requeue", True),
        ("x-max-length=0", "reject 2", False),
        ("x-max-length=0", "ack 7", False),
        ("", "reject 1", False),
    ],
)
def test_no_settlement_meets_publishes_of_its_transaction_at_a_limited_queue(
    of_q: str, settlement: str, is_left_out: bool
) -> None:
    actions: Any = Transactions()
    lines = [f"b.1 queue.declare q {of_q}", "b.1 queue.declare r", "a.1 tx.select", "a.1 basic.consume q"]
    for number, queue in enumerate("qr", start=1):
        lines.append(f"b.1 basic.publish {queue} body=m{number}")
    for line in (*lines, "a.1 basic.get r", "a.1 basic.publish q body=m3"):
        actions.carry_out(parse_command(line))
    command = parse_command(f"a.1 basic.{settlement}")
    before = len(actions.done)
    actions.issue(("a", 1), command.method, command.arguments)
    assert (len(actions.done) == before) is is_left_out


@pytest.mark.parametrize(
    ("letters", "is_left_out"), [('x-dead-letter-exchange="" x-dead-letter-routing-key=q', True), ("", False)]
)
def test_nor_does_it_meet_the_dead_letters_of_these(letters: str, is_left_out: bool) -> None:
    actions: Any = Transactions()
    for line in (
        "b.1 queue.declare q x-max-length=1",
        f"b.1 queue.declare p x-max-length=1 x-overflow=reject-publish-dlx {letters}",
        "a.1 tx.select", "b.1 basic.publish q body=m1", "a.1 basic.get q", "a.1 basic.publish p body=m2",
    ):  # fmt: skip
        actions.carry_out(parse_command(line))
    before = len(actions.done)
    actions.issue(("a", 1), "basic.reject", {"delivery_tag": 1, "requeue": True})
    assert (len(actions.done) == before) is is_left_out
