"""What a command can do without, and the command without it."""

from __future__ import annotations

import pytest

from amqpspec.conformance.failures.optional_arguments import optional_arguments, with_only
from amqpspec.conformance.language.command_parsing import parse_command


@pytest.mark.parametrize(
    ("line", "names", "plainest"),
    [
        ("a.1 queue.declare q durable x-queue-type=quorum x-max-length=1",
         ["durable", "x-queue-type", "x-max-length"], "a.1 queue.declare q"),
        ('a.1 basic.publish q exchange=e mandatory body=m priority=3 headers={"h": 1}',
         ["mandatory", "priority", "headers"], "a.1 basic.publish q exchange=e body=m"),
        ("a.1 basic.nack 3 multiple requeue", ["multiple", "requeue"], "a.1 basic.nack 3"),
        ("a.1 basic.consume q consumer-tag=t x-priority=-1 &", ["x-priority"], "a.1 basic.consume q consumer-tag=t &"),
        ("a.1 basic.publish q unfinished", [], "a.1 basic.publish q unfinished"),
        ("a connection.open frame-max=4096 consumer_cancel_notify=true", [],
         "a connection.open frame-max=4096 consumer_cancel_notify=true"),
        ("broker operator.set-policy p queue=q consumer-timeout=1", [],
         "broker operator.set-policy p queue=q consumer-timeout=1"),
    ],
)  # fmt: skip
def test_all_that_may_be_left_out(line: str, names: list[str], plainest: str) -> None:
    command = parse_command(line)
    found = optional_arguments(command)
    assert [each.name for each in found] == names
    assert with_only(command, set(found)) == command
    assert str(with_only(command, set())) == plainest


def test_some_stay() -> None:
    command = parse_command("a.1 queue.declare q durable x-queue-type=quorum x-max-length=1")
    _, kind, limit = optional_arguments(command)
    assert str(with_only(command, {kind})) == "a.1 queue.declare q x-queue-type=quorum"
    assert str(with_only(command, {limit})) == "a.1 queue.declare q x-max-length=1"
