"""When a run is over the broker serves a fresh connection, and what the run made is gone: else the run fails."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from html import unescape
from pathlib import Path

import pytest

from amqpspec.conformance import target_in_use
from amqpspec.conformance.failures.findings import Findings
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.session.cleanup import Cleaner, Made
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.judgement import RunResult, TargetDescription
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.connection.closing import fail
from amqpspec.reports.html import render_html
from amqpspec.reports.json_report import render_json
from amqpspec.reports.junit import render_junit
from amqpspec.reports.markdown import render_markdown
from amqpspec.targets.address import Address
from amqpspec.targets.brokers import health
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.embedded.hooks import Fault, Proceed
from amqpspec.targets.embedded.served_broker import ServedBroker
from tests.reports.test_as_known import terminal

DESCRIPTION = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")


def a_run(directory: Path, fault: str | None = None) -> RunResult:
    with EmbeddedBroker(fault=fault) as broker, TraceWriter(directory / "trace.jsonl") as trace:
        target = TargetUnderTest(broker.address, DESCRIPTION)
        return Runner(target, trace, RunOptions(only=("QUEUE-001",), seed=1, sequences=0, shrinking_time=0.0)).run()


def test_a_sound_broker_is_whole(tmp_path: Path) -> None:
    result = a_run(tmp_path)
    assert (result.not_whole, result.left_behind, result.exit_code) == ((), (), 0)


def test_a_broker_that_serves_no_fresh_connection_as_it_ought_to_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "PUBLISHING_TIME", 0.1)
    result = a_run(tmp_path, "get-empty-with-messages")
    assert result.not_whole == ("what a fresh connection publishes does not come: basic.get-empty",)
    assert result.exit_code == 1


def test_what_a_sequence_could_not_delete_is_deleted_when_all_connections_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queues of sequences are not deleted after them here: one may be in use by another connection."""
    there: list[Made] = []

    class Leaves(Cleaner):
        def clean_up(self, address: Address, made: Iterable[Made], *limits: object, **further: object) -> list[Made]:
            there.extend(made)
            return list(made)

    monkeypatch.setattr(target_in_use, "Cleaner", Leaves)
    result = a_run(tmp_path)
    assert there, "something was left"
    assert (result.left_behind, result.not_whole) == ((), ())


class LeavesTheLocked(Cleaner):
    def clean_up(self, address: Address, made: Iterable[Made], *limits: object, **further: object) -> list[Made]:
        return [("queue", "locked")]


def test_what_cannot_be_deleted_is_in_every_report_and_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exclusive queue of a connection that goes on belongs to nobody else."""
    with EmbeddedBroker() as broker, WireClient(broker.address) as owner, TraceWriter(tmp_path / "t.jsonl") as trace:
        owner.open("owner")
        for method, arguments in (("channel.open", {}), ("queue.declare", {"queue": "locked", "exclusive": True})):
            owner.send(Method("owner", 1, method, arguments, sent=True))
            assert owner.receive(10.0) is not None
        monkeypatch.setattr(target_in_use, "Cleaner", LeavesTheLocked)
        options = RunOptions(only=("CONN-001",), seed=1, sequences=0, shrinking_time=0.0)
        result = Runner(TargetUnderTest(broker.address, DESCRIPTION), trace, options).run()
    assert set(result.left_behind) == {"queue locked"}
    (wrong,) = result.not_whole
    assert wrong.startswith("1 of the queues and exchanges that this run made cannot be deleted: RESOURCE_LOCKED")
    assert result.exit_code == 1
    said = f"The broker failed the check at the end of the run: {result.not_whole[0]}"
    for text in (terminal(result), render_markdown(result), render_html(result)):
        text = " ".join(unescape(text).replace("\\", "").split())
        assert said in text and "queue locked" in text
    assert json.loads(render_json(result))["not_whole"] == list(result.not_whole)
    (case,) = (each for each in ET.fromstring(render_junit(result)).iter("testcase") if "passes" in each.attrib["name"])
    assert case[0].tag == "failure" and case[0].attrib["message"] == result.not_whole[0]


def test_an_operator_who_has_nobody_to_act_upon_shows_no_failure(tmp_path: Path) -> None:
    """Shrinking leaves out what opens the connection that is to be closed."""
    with EmbeddedBroker() as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        target = TargetUnderTest(broker.address, DESCRIPTION, operator=broker.operator())
        runner = Runner(target, trace, RunOptions(seed=1, sequences=0))
        commands = [parse_command("a.1 queue.declare q"), parse_command("broker operator.close-connection b reason=r")]
        assert runner._run_again("shrinking s 1", "s", commands) == ()


def test_a_broker_that_is_gone_at_the_end_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedBroker() as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:

        def end(findings: object, took: float) -> None:
            broker.__exit__(None, None, None)

        monkeypatch.setattr(Findings, "shrink_all", end)
        options = RunOptions(only=("CONN-001",), seed=1, sequences=0)
        result = Runner(TargetUnderTest(broker.address, DESCRIPTION), trace, options).run()
    assert result.lost is not None
    assert result.exit_code == 3


@pytest.mark.parametrize("code", [406, 501])
def test_a_queue_whose_declaration_was_refused_is_no_damage(tmp_path: Path, code: int) -> None:
    """Nor is its deletion refused by a broker that is damaged: it has no such names."""

    def refuses(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
        if "\n" not in method.arguments["queue"]:
            proceed(method)
            return
        channel = broker.channels[method.connection, method.channel]
        fail(broker, channel, method, ProtocolError("QUEUE-028", code, "no such name"))

    fault = Fault("line-breaks-refused", "QUEUE-028", "", frozenset({"queue.declare", "queue.delete"}), refuses)
    with EmbeddedBroker(fault=fault) as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        target = TargetUnderTest(broker.address, DESCRIPTION, deadline=0.3)
        options = RunOptions(only=("QUEUE-028",), seed=1, sequences=0, shrinking_time=0.0)
        result = Runner(target, trace, options).run()
    assert {found.failure.requirement for found in result.failures} == {"QUEUE-028"}
    assert (result.left_behind, result.not_whole) == ((), ())
