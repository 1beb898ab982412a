"""What is refused again and again in the same way is one failure; what it blocks says so, and says no more."""

from __future__ import annotations

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.verdicts.causes import ENOUGH, Argument, Causes, without
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.model.promises.verdict import Failure, Shape, Verdict

TYPE = Argument("queue.declare", "x-queue-type")
REFUSED = "connection.close in place of queue.declare-ok"
CLOSE = "a.0 connection.close reply-code=542"


def refused(command: str, detail: str = REFUSED, observed: str = CLOSE, requirement: str = "QUEUE-001") -> Failure:
    return Failure(requirement, Shape.UNEXPECTED, detail, command, observed, (), ())


def judgement(*failures: Failure) -> SequenceJudgement:
    return SequenceJudgement("s", "t", "amqp-0-9-1", "ACK-001", Verdict.FAIL, failures, {"QUEUE-003": 1}, None, 9)


def learned(failure: Failure, times: int = ENOUGH) -> Causes:
    causes = Causes()
    for _ in range(times):
        assert causes.judged(judgement(failure)).failures == (failure,)
    return causes


def test_what_is_refused_three_times_blocks_what_comes_then() -> None:
    failure = refused("a.1 queue.declare q x-queue-type=quorum")
    causes = learned(failure)
    later = causes.judged(judgement(refused("b.1 queue.declare r durable x-queue-type=stream")))
    assert later.verdict is Verdict.INCONCLUSIVE and later.reason == f"blocked by {failure.identity}"
    assert not later.failures and not later.exercised
    assert causes.refused == {TYPE}
    (cause,) = causes.causes
    assert cause.failure == failure.identity and cause.blocked == 1


def test_twice_is_not_enough() -> None:
    causes = learned(refused("a.1 queue.declare q x-queue-type=quorum"), times=ENOUGH - 1)
    assert not causes.refused and not causes.causes


def test_another_identity_of_the_same_cause_is_named_under_it() -> None:
    causes = learned(refused("a.1 queue.declare q x-queue-type=quorum"))
    other = refused("a.1 queue.declare q x-queue-type=no", "connection.close in place of channel.close")
    causes.judged(judgement(other))
    assert causes.causes[0].under == (other.identity,)


def test_what_is_refused_in_another_way_is_another_failure() -> None:
    causes = learned(refused("a.1 queue.declare q x-queue-type=quorum"))
    others = (
        refused("a.1 queue.declare q x-queue-type=quorum", observed="a.0 connection.close reply-code=541"),
        refused("a.1 queue.declare q durable"),
        refused("a.1 basic.consume q x-queue-type=quorum"),
    )
    for other in others:
        assert causes.judged(judgement(other)).failures == (other,)


def test_failures_that_were_there_before_stay() -> None:
    causes = learned(refused("a.1 queue.declare q x-queue-type=quorum"))
    own = Failure("GET-001", Shape.WRONG_ARGUMENT, "basic.get-ok message-count", "a.1 basic.get q", "", (), ())
    both = causes.judged(judgement(own, refused("a.1 queue.declare q x-queue-type=quorum")))
    assert both.failures == (own,) and both.verdict is Verdict.FAIL


def test_a_known_defect_is_no_cause() -> None:
    failure = refused("a.1 queue.declare q x-queue-type=quorum")
    known = Failure(**{name: getattr(failure, name) for name in failure.__slots__} | {"defect": "known"})
    causes = learned(known)
    assert causes.judged(judgement(known)).failures == (known,)


def test_the_search_leaves_the_argument_out() -> None:
    command = parse_command("a.1 queue.declare q durable x-queue-type=quorum x-max-length=1")
    assert str(without(command, frozenset({TYPE}))) == "a.1 queue.declare q durable x-max-length=1"
    alone = parse_command("a.1 queue.declare q durable x-queue-type=quorum")
    assert str(without(alone, frozenset({TYPE}))) == "a.1 queue.declare q durable"
    assert without(alone, frozenset({Argument("basic.consume", "x-queue-type")})) is alone


def silent(command: str, detail: str, requirement: str = "TX-001") -> Failure:
    return Failure(requirement, Shape.MISSING, detail, command, "nothing", ("an answer",), ())


def test_a_method_that_is_never_answered_is_one_cause() -> None:
    causes = Causes()
    for requirement in ("EXCHANGE-001", "EXCHANGE-003", "EXCHANGE-007"):
        shown = judgement(silent("a.1 exchange.delete x", "channel.close for exchange.delete", requirement))
        assert causes.judged(shown, {"queue.declare"}) == shown
    assert causes.never_answered == {"exchange.delete"}
    ended = causes.judged(judgement(silent("a.1 exchange.delete x", "exchange.delete-ok", "EXCHANGE-008")))
    assert ended.verdict is Verdict.INCONCLUSIVE and not ended.failures
    (cause,) = causes.causes
    assert (cause.what, cause.answer, cause.blocked) == ("exchange.delete", "", 1)
    assert [each.partition("|")[0] for each in cause.under] == ["EXCHANGE-003", "EXCHANGE-007", "EXCHANGE-008"]
    assert causes.blocking([parse_command("a.1 exchange.delete y")]) == cause.failure
    assert causes.blocking([parse_command("a.1 exchange.declare y direct")]) is None


def test_a_method_that_was_answered_once_is_none() -> None:
    failure = silent("a.1 exchange.delete x", "exchange.delete-ok")
    for answered_first in (True, False):
        causes = Causes()
        answers = [{"exchange.delete"}, set[str]()][:: 1 if answered_first else -1]
        for each in (answers[0], set[str](), answers[1]):
            causes.judged(judgement(failure), each)
        assert (causes.never_answered, causes.causes) == (frozenset(), ())


def test_a_method_that_has_no_answer_is_none() -> None:
    """What is missing is the error that it should have raised."""
    causes = learned(silent("a.1 basic.nack 7", "channel.close for basic.nack", "ACK-006"))
    assert causes.never_answered == frozenset()
    assert learned(silent("a.1 queue.declare q", "queue.declare-ok")).never_answered == frozenset(), "indispensable"
