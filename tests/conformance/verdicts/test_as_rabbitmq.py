"""Against the text, as RabbitMQ does: found by judging the same frames by RabbitMQ's dialects, listed by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from amqpspec.conformance.traces.trace import TraceRow, read_trace, sequences
from amqpspec.conformance.traces.trace_failures import failure_from_json, failure_to_json
from amqpspec.conformance.verdicts.gate import Gate, excuse_of
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription, is_harmless_only
from amqpspec.conformance.verdicts.minor import AS_RABBITMQ
from amqpspec.conformance.verdicts.run_tally import RunTally
from amqpspec.conformance.verdicts.tally import Tally
from amqpspec.model.promises.severity import Severity, severity_of
from amqpspec.model.promises.verdict import Verdict
from amqpspec.pipeline.table import compliance_table

CORPUS = Path(__file__).parents[2] / "corpus"
TEXT = "amqp-0-9-1"


@cache
def _recorded(name: str) -> dict[str, list[TraceRow]]:
    return {rows[0]["sequence"]: rows for rows in sequences(read_trace(CORPUS / f"{name}.parquet"))}


def _as_if_of(product: str, rows: list[TraceRow]) -> SequenceJudgement:
    """What RabbitMQ did, judged as if a broker of that name that is held to the text had done it."""
    return judge([TraceRow(**{**rows[0], "dialect": TEXT, "product": product}), *rows[1:]])


@pytest.mark.parametrize(
    ("scenario", "identity"),
    [
        ("EXCHANGE-003", "EXCHANGE-003|unexpected frame|exchange.delete-ok in place of channel.close"),
        ("QUEUE-022", "QUEUE-022|unexpected frame|queue.delete-ok in place of channel.close"),
        ("EXCHANGE-004", "EXCHANGE-004|unexpected frame|channel.close in place of connection.close"),
        ("EXCHANGE-001", "BIND-001|unexpected frame|channel.close in place of queue.bind-ok"),
        ("CHAN-010", "CHAN-010|unexpected frame|connection.close in place of channel.flow-ok"),
    ],
)
def test_what_rabbitmq_does_is_told_apart(scenario: str, identity: str) -> None:
    rows = _recorded("rabbitmq-4.3-scenarios")[f"scenario {scenario}"]
    judgement = _as_if_of("MyBroker", rows)
    assert {each.identity: each.like for each in judgement.failures}[identity] == "rabbitmq-4.3"
    assert judgement.verdict is Verdict.FAIL and is_harmless_only(judgement)
    table = Tally()
    table.add(judgement)
    assert compliance_table(table).exit_code == 0
    target = TargetDescription("t", "MyBroker", "1", TEXT)
    assert {excuse_of(each, target, Gate.PROMISE) for each in judgement.failures} == {AS_RABBITMQ}


def test_what_no_rabbitmq_of_today_does_any_more_is_asked_of_the_older_ones() -> None:
    likes = {
        each.like
        for rows in _recorded("rabbitmq-3.10-scenarios").values()
        if " TIMEOUT-03" in rows[0]["sequence"]
        for each in _as_if_of("MyBroker", rows).failures
    }
    assert likes & {"rabbitmq-4.0", "rabbitmq-3"}


def test_rabbitmq_itself_held_to_the_text_is_told_all_of_it_as_before() -> None:
    rows = _recorded("rabbitmq-4.3-scenarios")["scenario EXCHANGE-003"]
    judgement = _as_if_of("RabbitMQ", rows)
    assert judgement.failures and not any(each.like for each in judgement.failures)
    assert not is_harmless_only(judgement)


def _of_broker_j() -> Iterator[SequenceJudgement]:
    yield from map(judge, _recorded("broker-j-scenarios").values())


def test_nothing_that_loses_a_message_is_excused_by_it() -> None:
    failures = [each for judgement in _of_broker_j() for each in judgement.failures]
    assert any(severity_of(each) is Severity.LOST for each in failures)
    assert not [each for each in failures if each.like and severity_of(each) is Severity.LOST]


def test_an_example_that_is_none_is_shown_before_one_that_is() -> None:
    like = _as_if_of("MyBroker", _recorded("rabbitmq-4.3-scenarios")["scenario EXCHANGE-003"])
    (found,) = (each for each in like.failures if each.requirement == "EXCHANGE-003")
    other = failure_from_json({**failure_to_json(found), "like": ""})
    assert failure_from_json(failure_to_json(found)) == found != other
    tally = RunTally()
    tally.add(like)
    tally.add(replace(like, sequence="later", failures=(other,)))
    shown = tally.found[found.identity]
    assert (shown.failure.like, shown.sequence, shown.sequences) == ("", "later", 2)


def test_the_code_for_a_second_open_settles_no_other_error_of_channel_zero() -> None:
    """As in Qpid Broker-J, which answers connection.open with 503, and a method of another class with 504."""
    rows = _recorded("rabbitmq-4.3-scenarios")["scenario CONN-019"]
    settled = TraceRow(**{**rows[0], "dialect": f"{TEXT};second-open=503", "product": "MyBroker"})
    found = [each.observed for each in judge([settled, *rows[1:]]).failures]
    assert len(found) == 1 and found[0].startswith("b.0") and "method-id=40" in found[0]


def test_numbers_that_take_in_the_unacknowledged_do_not_hide_it() -> None:
    """Broker-J keeps a limit of the connection for each channel, as RabbitMQ does, and counts so from the beginning."""
    judgement = judge(_recorded("broker-j-scenarios")["scenario QOS-016-connection"])
    like = {each.identity: each.like for each in judgement.failures}
    assert like["QOS-016|unexpected frame|basic.deliver beyond the limit"].startswith("rabbitmq-")
    assert any(identity.endswith("with the unacknowledged") and not other for identity, other in like.items())
