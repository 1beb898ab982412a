"""What is judged live is judged the same again, from each form of the trace; what is cut short is never passed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.scenarios.applicability import applicable
from amqpspec.conformance.scenarios.scenario_files import selected, sequence_name
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceError, TraceRow, TraceWriter, jsonl_to_parquet, read_trace, sequences
from amqpspec.conformance.traces.trace_failures import failure_to_json
from amqpspec.conformance.traces.trace_row import measurement_row
from amqpspec.conformance.verdicts.judge import SequenceJudge, judge, judge_all
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription, is_harmless_only
from amqpspec.conformance.verdicts.open_judge import OpenSequenceJudge
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker

#: Faults (none: a sound broker) and the scenarios run on them; between them they break things in each way.
RUNS: dict[str, list[str]] = {
    "": ["ACK", "CANCEL", "CHAN-01", "CONFIRM", "TIMEOUT-008"],
    "redelivered-always-set": ["ACK-01", "GET"],
    "prefetch-off-by-one": ["QOS", "ACK-00"],
    "message-lost-on-requeue": ["ACK-01", "RECOVER"],
    "confirm-twice": ["CONFIRM"],
    "unknown-tag-closes-connection": ["ACK-00"],
    "octet-behind-arguments": ["CANCEL", "SERVER-002"],
}


class Recorded(NamedTuple):
    """A trace that was recorded live, with the judgements that were made then."""

    directory: Path
    fault: str
    live: dict[str, SequenceJudgement]


@pytest.fixture(scope="module", params=RUNS, ids=lambda name: name or "sound")
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    directory = tmp_path_factory.mktemp("judge")
    live = {}
    with EmbeddedBroker(fault=request.param or None) as broker, TraceWriter(directory / "trace.jsonl") as trace:
        described = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
        # nothing is missing from the sound broker, which on a busy machine takes its time
        deadline = 0.2 if request.param else 2.0
        target = TargetUnderTest(broker.address, described, deadline=deadline, operator=broker.operator())
        for scenario in applicable(selected(RUNS[request.param], "rabbitmq-4.3"), target):
            name = sequence_name(scenario)
            with Session(target, trace, name, requirement=scenario.requirement, seed=5) as session:
                for command in scenario.commands:
                    session.run(command)
                live[name] = session.finish()
    return Recorded(directory, request.param, live)


def test_offline_says_what_live_said(recorded: Recorded) -> None:
    jsonl_to_parquet(recorded.directory / "trace.jsonl", recorded.directory / "trace.parquet")
    assert len(recorded.live) > 5
    for name in ("trace.jsonl", "trace.parquet"):
        offline = {rows[0]["sequence"]: judge(rows) for rows in sequences(read_trace(recorded.directory / name))}
        assert offline == recorded.live, name


@pytest.mark.parametrize("recorded", ["octet-behind-arguments"], indirect=True)
def test_of_a_method_that_goes_on_behind_its_arguments_all_is_told_once(recorded: Recorded) -> None:
    failed = [each for each in recorded.live.values() if each.failures]
    assert len(failed) > 5
    for each in failed:
        assert each.ended_by is None
        (failure,) = each.failures
        assert failure.identity == "SERVER-002|unexpected frame|basic.consume-ok: N octets follow the last argument"
        assert failure.observed.endswith("octets-behind=00")
    aimed = recorded.live["scenario SERVER-002"]
    assert aimed.exercised["SERVER-002"] == 1, "it was followed up to its end"


def test_the_end_row_holds_what_was_found_live(recorded: Recorded) -> None:
    for rows in sequences(read_trace(recorded.directory)):
        live = recorded.live[rows[0]["sequence"]]
        end = rows[-1]
        assert end["kind"] == "end"
        assert end["verdict"] == str(live.verdict)
        assert end["failures"] == [failure_to_json(failure) for failure in live.failures]
        assert end["exercised"] == live.exercised


def test_the_rows_before_it_hold_what_was_measured_live(recorded: Recorded) -> None:
    for rows in sequences(read_trace(recorded.directory)):
        live = recorded.live[rows[0]["sequence"]]
        measured = [row for row in rows if row["kind"] == "measurement"]
        assert measured == [measurement_row(live.sequence, measurement) for measurement in live.measurements]
        assert rows[-1 - len(measured) : -1] == measured
        assert bool(measured) == live.sequence.startswith("scenario TIMEOUT")


def test_sound_and_faulty_runs_differ(recorded: Recorded) -> None:
    verdicts = {judgement.verdict for judgement in recorded.live.values()}
    assert Verdict.FAIL in verdicts if recorded.fault else verdicts == {Verdict.PASS}
    for judgement in recorded.live.values():
        assert (judgement.verdict is Verdict.FAIL) == bool(judgement.failures)
        assert "amqpspec-" not in repr(judgement.failures), "names are shown without their prefix"


@pytest.fixture
def rows(tmp_path: Path) -> list[TraceRow]:
    """One sequence that passes: a message, a delivery, an acknowledgement."""
    with EmbeddedBroker() as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        described = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
        with Session(TargetUnderTest(broker.address, described), trace, "one", requirement="ACK-001") as session:
            for line in ("a.1 queue.declare q", "a.1 basic.publish q body=m1", "a.1 basic.get q", "a.1 basic.ack 1"):
                session.run(parse_command(line))
    (collected,) = sequences(read_trace(tmp_path))
    return collected


def test_the_whole_sequence_passes(rows: list[TraceRow]) -> None:
    judgement = judge(rows)
    assert (judgement.verdict, judgement.reason, judgement.failures) == (Verdict.PASS, None, ())
    assert (judgement.sequence, judgement.requirement, judgement.dialect) == ("one", "ACK-001", "rabbitmq-4.3")
    assert judgement.exercised["ACK-001"] == 1
    assert judgement.frames == sum(row["kind"] == "frame" for row in rows)


def test_a_sequence_without_end_is_never_passed(rows: list[TraceRow]) -> None:
    for length in range(1, len(rows)):
        judgement = judge(rows[:length])
        assert judgement.verdict is Verdict.INCONCLUSIVE, length
        assert judgement.reason == "the trace ends in the middle of the sequence"


def test_a_failure_stays_one_without_the_end(rows: list[TraceRow]) -> None:
    changed = [TraceRow(**row) for row in rows]
    place = next(i for i, row in enumerate(changed) if row.get("method") == "basic.get-ok")
    changed[place]["arguments"] = {**changed[place]["arguments"], "redelivered": True}
    assert judge(changed[: place + 1]).verdict is Verdict.FAIL
    (failure,) = judge(changed).failures
    assert (failure.requirement, failure.command) == ("ACK-015", "a.1 basic.get q")


def test_what_was_recorded_wrong_is_found(rows: list[TraceRow]) -> None:
    """Leaving out, or repeating, what the broker sent is seen; so the judge does look at every frame."""
    ignored = []
    for place, row in enumerate(rows):
        if row["kind"] != "frame" or row["direction"] != "received" or row["method"].startswith("connection."):
            continue
        if judge(rows[:place] + rows[place + 1 :]).verdict is not Verdict.FAIL:
            ignored.append(("left out", row["method"]))
        if judge(rows[: place + 1] + rows[place:]).verdict is not Verdict.FAIL:
            ignored.append(("repeated", row["method"]))
    assert ignored == []


def test_rows_that_are_no_sequence(rows: list[TraceRow]) -> None:
    with pytest.raises(TraceError, match="does not begin with a start row"):
        judge([])
    with pytest.raises(TraceError, match="does not begin with a start row"):
        judge(rows[1:])
    start = TraceRow(**rows[0])
    start["dialect"] = "rabbitmq-5"
    with pytest.raises(TraceError, match=r"the sequence 'one': unknown dialect 'rabbitmq-5'"):
        SequenceJudge(start)


def test_another_dialect_judges_differently(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker, TraceWriter(tmp_path / "nack.jsonl") as trace:
        described = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
        with Session(TargetUnderTest(broker.address, described), trace, "nack") as session:
            session.run(parse_command("a.1 basic.nack 0 multiple"))
    (collected,) = sequences(read_trace(tmp_path / "nack.jsonl"))
    assert judge(collected).verdict is Verdict.PASS
    collected[0]["dialect"] = "amqp-0-9-1"
    # the text wants to know the host, and has no such method
    assert [failure.requirement for failure in judge(collected).failures] == ["CONN-025", "CHAN-011"]


def test_a_judgement_in_the_open_world_names_the_product() -> None:
    start = {"sequence": "s", "target": "t", "dialect": "amqp-0-9-1", "product": "MyBroker", "version": "1.0"}
    assert OpenSequenceJudge(start).judgement().product == "MyBroker"


def test_a_row_that_cannot_be_judged_is_named(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        description = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
        with Session(TargetUnderTest(broker.address, description), trace, "one") as session:
            for line in ("a.1 queue.declare q", "a.1 basic.publish q", "a.1 basic.get q"):
                session.run(parse_command(line))
    rows = list(read_trace(tmp_path))
    for row in rows:
        if row.get("method") == "basic.get-ok":
            del row["arguments"]["delivery_tag"]
    with pytest.raises(TraceError, match=r"'one' cannot be judged at its row basic\.get-ok: KeyError: 'delivery_tag'"):
        list(judge_all(rows))


@pytest.mark.parametrize(("dialect", "also_asked", "verdict"), [
    ("rabbitmq-4.3", False, Verdict.PASS), ("rabbitmq-4.3", True, Verdict.FAIL), ("rabbitmq-4.0", False, Verdict.FAIL),
])  # fmt: skip
def test_silence_of_a_queue_that_was_not_asked_says_nothing(dialect: str, also_asked: bool, verdict: Verdict) -> None:
    """RabbitMQ 4.3.6, recorded by a session that looked where 4.0 has the message: in d. By 4.3 it may be in e."""
    rows = list(read_trace(Path(__file__).with_name("asked-of-one-queue.jsonl")))
    rows[0]["dialect"] = dialect
    overdue = next(number for number, row in enumerate(rows) if row.get("mark") == "overdue")
    if also_asked:
        asked = [{**row, "arguments": {**row["arguments"], "queue": "e"}} for row in rows[overdue - 2 : overdue]]
        rows[overdue:overdue] = asked  # type: ignore[assignment]
    judgement = judge(rows)
    assert judgement.verdict is verdict, judgement.reason
    assert "QUORUM-003" in {each.requirement for each in judgement.failures} or verdict is Verdict.PASS


def test_what_fails_nothing_does_not_hide_that_the_rest_is_not_known(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "trace.jsonl") as trace:
        start = trace.start("s", target="b", product="MyBroker", version="1", dialect="amqp-0-9-1", mode="lockstep")
    warning = Failure("CONN-025", Shape.WRONG_ARGUMENT, "connection.start server-properties", "a", "seen", (), ())
    open_one = Failure("BIND-005", Shape.UNEXPECTED, "queue.bind-ok in place of channel.close", "b", "seen", (), ())
    for failures, verdict in (([warning], Verdict.FAIL), ([warning, open_one], Verdict.INCONCLUSIVE)):
        judge = SequenceJudge(start)
        judge.acceptor.failures += failures
        judgement = judge.judgement()
        assert (judgement.verdict, judgement.failures) == (verdict, (warning,))
        assert is_harmless_only(judgement) is (verdict is Verdict.FAIL)


@pytest.mark.parametrize(
    ("product", "defect"),
    [("RabbitMQ", "exclusive-consumer-ignored"), (None, "exclusive-consumer-ignored"), ("Another broker", "")],
)
def test_what_rabbitmq_is_known_for_excuses_no_other_product(tmp_path: Path, product: str | None, defect: str) -> None:
    """A trace of old may not name the product."""
    with EmbeddedBroker() as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        description = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
        with Session(TargetUnderTest(broker.address, description), trace, "one") as session:
            for line in (
                "a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.consume q tag=t exclusive",
                "b.1 basic.consume q tag=u",
            ):  # fmt: skip
                session.run(parse_command(line))
    rows = [TraceRow(**row) for row in read_trace(tmp_path)]
    place = next(i for i, row in enumerate(rows) if row.get("method") == "channel.close")
    rows[place] |= {"method": "basic.consume-ok", "arguments": {"consumer_tag": "u"}}
    if product is None:
        del rows[0]["product"]
    else:
        rows[0]["product"] = product
    (failure,) = judge(rows[: place + 1]).failures
    assert (failure.requirement, failure.defect) == ("CONSUME-008", defect)
    assert judge(rows[: place + 1]).windows == ((defect,) if defect else ())
