"""Two verdicts: against the promise, and against the broker as it is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.verdicts.deviations import Deviation, with_deviations
from amqpspec.conformance.verdicts.judge import judge_all
from amqpspec.conformance.verdicts.judgement import (
    RunResult,
    SequenceJudgement,
    TargetDescription,
    requirement_verdicts,
)
from amqpspec.conformance.verdicts.known_behaviour import DefectOutcome, Standing, defects_tested
from amqpspec.conformance.verdicts.run_tally import RunTally
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS, known_defects
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker

PASS, FAIL, INCONCLUSIVE = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE
DIALECT = "rabbitmq-4.3"
KNOWN = "quorum-consumer-count"


def failure(defect: str = "", detail: str = "d") -> Failure:
    return Failure("QUEUE-026", Shape.WRONG_ARGUMENT, detail, "c", "o", ("a",), (), defect)


def judged(*failures: Failure, verdict: Verdict = FAIL, **changes: Any) -> SequenceJudgement:
    values: dict[str, Any] = {
        "sequence": "s", "target": "t", "dialect": DIALECT, "requirement": "QUEUE-026", "verdict": verdict,
        "failures": failures, "exercised": {"QUEUE-026": 2}, "reason": None, "frames": 10,
    }  # fmt: skip
    return SequenceJudgement(**values | changes)


def result(*judgements: SequenceJudgement) -> RunResult:
    tally = RunTally()
    for judgement in judgements:
        tally.add(judgement)
    return RunResult(
        tool="amqpspec",
        tool_version="0",
        target=TargetDescription("t", "RabbitMQ", "4.3.6", DIALECT),
        seed=1,
        mode="lockstep",
        requirements=tally.requirements(requirements().values(), DIALECT),
        failures=tuple(tally.found.values()),
        sequences=tally.sequences,
        frames=tally.frames,
        defects=tally.defects(DIALECT),
    )


def verdicts(result: RunResult, id: str = "QUEUE-026") -> tuple[Verdict, Verdict]:
    (outcome,) = [outcome for outcome in result.requirements if outcome.id == id]
    return outcome.verdict, outcome.as_known


@pytest.mark.parametrize(
    ("judgements", "expected"),
    [
        ([judged(failure(KNOWN))], (FAIL, PASS)),
        ([judged(failure(KNOWN)), judged(verdict=PASS)], (FAIL, PASS)),
        ([judged(failure())], (FAIL, FAIL)),
        ([judged(failure(KNOWN), failure())], (FAIL, FAIL)),
        ([judged(failure(), failure(KNOWN))], (FAIL, FAIL)),
        ([judged(failure(KNOWN)), judged(failure())], (FAIL, FAIL)),
        ([judged(failure()), judged(failure(KNOWN))], (FAIL, FAIL)),
        ([judged(failure("direct-replies-not-counted"))], (FAIL, FAIL)),
        ([judged(failure(KNOWN)), judged(verdict=INCONCLUSIVE, reason="lost")], (FAIL, INCONCLUSIVE)),
        ([judged(verdict=PASS)], (PASS, PASS)),
        ([judged(verdict=INCONCLUSIVE, reason="lost")], (INCONCLUSIVE, INCONCLUSIVE)),
    ],
)
def test_a_requirement_passes_as_known_when_defects_explain_all_of_it(
    judgements: list[SequenceJudgement], expected: tuple[Verdict, Verdict]
) -> None:
    assert verdicts(result(*judgements)) == expected


def test_a_defect_of_others_explains_nothing() -> None:
    counted = judged(failure("direct-replies-not-counted"), dialect="rabbitmq-4.0")
    assert requirement_verdicts(counted)["QUEUE-026"] == (FAIL, PASS, 2)
    bare = judged(failure(KNOWN), dialect="amqp-0-9-1")
    assert requirement_verdicts(bare)["QUEUE-026"] == (FAIL, FAIL, 2)


def test_a_defect_never_makes_a_run_green() -> None:
    defective = result(judged(failure(KNOWN)))
    assert defective.exit_code == 1
    assert (defective.summary["fail"], defective.summary_as_known["fail"]) == (1, 0)
    assert sum(defective.summary.values()) == sum(defective.summary_as_known.values())
    (found,) = defective.failures
    assert defective.is_as_known(found) and found.known is None
    # only the list of the user does, and the second verdict does not go by that
    listed = with_deviations(defective, [Deviation(found.failure.identity, "we live with it")])
    assert listed.exit_code == 0
    other = result(judged(failure()))
    listed = with_deviations(other, [Deviation(other.failures[0].failure.identity, "we live with it")])
    assert (listed.exit_code, *verdicts(listed)) == (0, FAIL, FAIL)


def test_a_reason_is_given_for_what_is_inconclusive_as_known() -> None:
    partly = result(judged(failure(KNOWN)), judged(verdict=INCONCLUSIVE, reason="lost"))
    (outcome,) = [outcome for outcome in partly.requirements if outcome.id == "QUEUE-026"]
    assert outcome.reason == "lost"


#: One that shows each time that it is put to the test.
STEADY = "stream-drops-nested-headers"


def test_each_known_defect_was_seen_or_not_or_not_put_to_the_test() -> None:
    run = result(
        judged(failure(KNOWN)),
        judged(verdict=PASS, refuted=(KNOWN, STEADY, "consume-ok-dropped")),
        judged(verdict=PASS, refuted=(STEADY, "consume-ok-dropped")),
    )
    assert [outcome.name for outcome in run.defects] == [each.name for each in known_defects(DIALECT)]
    standing = {outcome.name: (outcome.standing, outcome.seen, outcome.refuted) for outcome in run.defects}
    assert standing.pop(KNOWN) == (Standing.SEEN, 1, 1), "a race that was lost once is there"
    assert standing.pop(STEADY) == (Standing.NOT_SEEN, 0, 2)
    assert standing.pop("consume-ok-dropped") == (Standing.NOT_THIS_TIME, 0, 2), "it shows by chance"
    assert set(standing.values()) == {(Standing.NOT_TESTED, 0, 0)}


def test_only_defects_of_the_dialect_are_put_to_the_test() -> None:
    refuted = ("direct-replies-not-counted", "consume-ok-dropped")
    assert defects_tested([failure(KNOWN), failure()], refuted, DIALECT) == {
        KNOWN: True,
        "consume-ok-dropped": False,
    }
    assert defects_tested([failure(KNOWN)], refuted, "amqp-0-9-1") == {}
    assert defects_tested([failure(KNOWN)], (KNOWN,), DIALECT) == {KNOWN: True}
    assert DefectOutcome(KNOWN, 0, 0).standing is Standing.NOT_TESTED


#: What shows a known defect on RabbitMQ (docs/findings.md); the embedded broker has none.
WAYS = {
    "quorum-consumer-count": (
        "a.1 queue.declare q durable x-queue-type=quorum",
        "a.1 basic.publish q body=m1",
        "a.1 basic.get q",
        "b.1 queue.declare q passive",
    ),
    "stream-drops-nested-headers": (
        "a.1 queue.declare s durable x-queue-type=stream",
        "a.1 basic.qos 1",
        "a.1 basic.consume s tag=t",
        'b.1 basic.publish s body=m1 headers={"list": [1], "text": "v"}',
    ),
    "direct-replies-not-counted": (
        "a.1 queue.declare q durable",
        "a.1 basic.consume amq.rabbitmq.reply-to tag=r no-ack",
        "a.1 basic.publish q reply-to=amq.rabbitmq.reply-to body=request",
        "a.1 basic.get q no-ack",
        "b.1 basic.publish $reply-to body=reply1",
        "b.1 basic.publish $reply-to body=reply2",
    ),
    "exclusive-consumer-ignored": (
        "a.1 queue.declare q durable x-queue-type=quorum",
        "a.1 basic.consume q tag=t exclusive",
        "b.1 basic.consume q tag=u",
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_broker_that_keeps_the_promise_shows_it(name: str, tmp_path: Path) -> None:
    dialect = KNOWN_DEFECTS[name].dialects[-1]
    with EmbeddedBroker(dialect_named(dialect)) as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        target = TargetUnderTest(broker.address, TargetDescription("embedded", "RabbitMQ", "0", dialect), 5.0)
        with Session(target, trace, "s") as session:
            for line in WAYS[name][:-1]:
                session.run(parse_command(line))
            before = session.judge.acceptor.refuted
            session.run(parse_command(WAYS[name][-1]))
        live = session.finish()
    assert before == set(), "nothing has put it to the test"
    assert (live.verdict, live.failures, live.refuted) == (Verdict.PASS, (), (name,))
    (offline,) = judge_all(read_trace(tmp_path))
    assert offline.refuted == live.refuted
