"""Sequences of which something is left out, because the target is known to break a rule."""

from __future__ import annotations

from pathlib import Path

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.command_sequence import CommandSequence, Place
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.model.promises.verdict import Verdict
from tests.conformance.session.test_session import broker, under_test

LINES = (
    "a.1 queue.declare q durable",
    "a.1 basic.publish q body=m1",
    "a.1 basic.get q",
    "a.1 basic.ack 1",
    "a.1 basic.ack 1",
    "a.1 basic.publish q body=m2",
    "a.1 basic.get q",
)


def test_what_would_come_under_an_avoided_rule_as_things_are_now_is_left_out(tmp_path: Path) -> None:
    commands = tuple(map(parse_command, LINES))
    with broker("double-ack-accepted") as target, TraceWriter(tmp_path / "trace.jsonl") as trace:
        place = Place(under_test(target), trace)
        shown = place.carry_out(CommandSequence("s", commands))
        avoiding = place.carry_out(CommandSequence("t", commands, avoided=frozenset({"ACK-007"})))
    assert shown.judgement.verdict is Verdict.FAIL and shown.sequence.commands == commands
    assert avoiding.judgement.verdict is Verdict.PASS
    assert avoiding.sequence.commands == commands[:4] + commands[5:]
