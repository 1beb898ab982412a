"""What RabbitMQ 4.3.0 to 4.3.6 do wrong after a timeout, and what 4.3.7 describes, done by the embedded broker.

The first breaks the promise, and is known of these versions only; the second is right, by whatever version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import requirement_verdicts
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.promises.capabilities import ACCEPT_CANCEL_OK
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.extensions.timed_out_consumer_still_known import recovering, resume
from amqpspec.targets.embedded.hooks import Fault, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker
from amqpspec.targets.faults.all_faults import FAULTS
from tests.end_to_end.runs import failed_requirements, run_suite
from tests.targets.faults.test_faults import run_lines
from tests.targets.faults.timeout_lines import TIMEOUT_LINES

#: Variant to the name of the known defect.
MENDED_IN_4_3_7 = {
    "late-ack-resumes": "late-ack-resumes-consumer",
    "late-commit-resumes": "late-ack-resumes-consumer",
    "late-nack-resumes": "late-reject-resumes-consumer",
    "late-recover-resumes": "late-requeue-resumes-consumer",
    "timed-out-tag-in-use": "timed-out-tag-stays-in-use",
    "timed-out-consumer-counted": "timed-out-consumer-counted",
    "timeout-told-again": "timeout-told-again",
}


@pytest.mark.parametrize("name", MENDED_IN_4_3_7)
def test_it_breaks_the_promise_and_is_known_of_the_versions_that_do_it(name: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    lines = TIMEOUT_LINES[name]
    if name == "late-recover-resumes":
        # RabbitMQ serves it again at once where the queue serves one consumer only
        lines = lines.replace("type=quorum", "type=quorum x-single-active-consumer=true")
    bare = run_lines(name, name, lines, trace, patience=1.0)
    requirement = FAULTS[name].requirement
    assert (bare.verdict, bare.failures[0].requirement) == (Verdict.FAIL, requirement)
    rows = list(read_trace(trace))
    for version, as_known in (("4.3.0", Verdict.PASS), ("4.3.6", Verdict.PASS), ("4.3.7", Verdict.FAIL)):
        rows[0] |= {"product": "RabbitMQ", "version": version}
        judgement = judge(rows)
        assert {failure.defect for failure in judgement.failures} == {MENDED_IN_4_3_7[name]}
        said = requirement_verdicts(judgement)[requirement]
        assert (said.verdict, said.as_known) == (Verdict.FAIL, as_known), version


# ----------------------------------------------------------------------------------------- what 4.3.7 describes

#: Seconds that the variant waits for the client's basic.cancel-ok.
WAITING = 10.0


def _waited_for(broker: ServedBroker, consumers: Iterable[Consumer]) -> Iterator[Consumer]:
    """Those among them whose client may still answer that they are cancelled."""
    return (each for each in consumers if each.timed_out and broker.now - each.cancelled_at <= WAITING)


def _announced(broker: ServedBroker, method: Method) -> Iterable[Method]:
    """It takes a client's answer to its basic.cancel."""
    if method.name != "connection.start":
        yield from _counted(broker, method)
        return
    properties = method.arguments["server_properties"]
    capabilities = {**properties["capabilities"], ACCEPT_CANCEL_OK: True}
    yield altered(method, server_properties={**properties, "capabilities": capabilities})


def _counted(broker: ServedBroker, method: Method) -> Iterable[Method]:
    """Until it has the answer the consumer is counted."""
    if method.name == "connection.start":
        yield method
    else:
        queue = broker.queues.get(method.arguments.get("queue", ""))
        waited_for = list(_waited_for(broker, queue.consumers)) if queue is not None else []
        told = method.arguments.get("consumer_count", 0)
        yield altered(method, consumer_count=told + len(waited_for)) if waited_for else method


def _until_answered(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    """Until it has the answer the tag is in use, and the consumer comes back when all is settled."""
    consumers = broker.channel(method.connection, method.channel).consumers
    if method.name == "basic.consume":
        named = [each for each in (consumers.get(method.arguments["consumer_tag"]),) if each is not None]
        for consumer in _waited_for(broker, named):
            consumer.timed_out = 0
        proceed(method)
        return
    coming_back = list(_waited_for(broker, [consumer for consumer, _ in recovering(broker, method)]))
    proceed(method)
    for consumer in coming_back:
        resume(broker, consumer)


_INPUTS = ("basic.consume", "basic.ack", "basic.nack", "basic.reject", "basic.recover", "tx.commit")
_OUTPUTS = ("connection.start", "queue.declare-ok")
WAITS_FOR_THE_ANSWER = Fault(
    "waits-for-the-answer",
    "TIMEOUT-030",
    "A consumer that has timed out is known until its client has answered.",
    frozenset((*_INPUTS, *_OUTPUTS)),
    input_hook=_until_answered,
    output_hook=_announced,
)

#: The same of a broker that says nothing of it.
DOES_NOT_SAY_SO = replace(WAITS_FOR_THE_ANSWER, output_hook=_counted)


def failed(fault: Fault, directory: Path, sequences: int) -> set[str]:
    result = run_suite(
        "embedded", directory, only=("TIMEOUT", "CANCEL"), sequences=sequences, themes=("timeouts",),
        deadline=1.0, fast_forward=True, fault=fault, shrinking_time=0.0,
    )  # fmt: skip
    return failed_requirements(result)


def test_a_broker_that_does_what_4_3_7_describes_passes(tmp_path: Path) -> None:
    assert failed(WAITS_FOR_THE_ANSWER, tmp_path, sequences=12) == set()


def test_who_does_not_say_that_it_waits_for_the_answer_fails(tmp_path: Path) -> None:
    expected = {"TIMEOUT-014", "TIMEOUT-016", "TIMEOUT-017", "TIMEOUT-030"}
    assert failed(DOES_NOT_SAY_SO, tmp_path, sequences=0) >= expected
