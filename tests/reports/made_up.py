"""A made-up result with every verdict, known and flaky failures, and text as a hostile broker sends it."""

from __future__ import annotations

from dataclasses import replace

from amqpspec.conformance.verdicts.judgement import FoundFailure, RequirementVerdict, RunResult, TargetDescription
from amqpspec.conformance.verdicts.known_behaviour import DefectOutcome
from amqpspec.model.broker.measurement import Measurement
from amqpspec.model.defects.known_defects import known_defects
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape, Verdict

#: Ends a script, CDATA, a Rich tag, a Markdown fence; steers a terminal; is neither XML nor UTF-8.
HOSTILE = "</script><b>&amp;]]>[red]``` \x1b[2J\x00\ud800\u202e|"

TARGET = TargetDescription("docker:rabbitmq-4.3", "RabbitMQ", "4.3.6", "rabbitmq-4.3")

ACK = Failure(
    requirement="ACK-002",
    shape=Shape.MISSING,
    detail="basic.deliver",
    command="a.1 basic.ack tag=2 multiple=true",
    observed="nothing",
    allowed=("a.1 < basic.deliver consumer-tag=t delivery-tag=3 redelivered=false body=m3",),
    state=("queue q: 1 ready (m3)", "consumer t on a.1: 0 unacknowledged of 2"),
)
ACK_COMMANDS = (
    "a.1 basic.qos prefetch=2",
    "a.1 basic.consume q tag=t",
    "a.1 basic.publish routing-key=q body=m1",
    "a.1 basic.publish routing-key=q body=m2",
    "a.1 basic.publish routing-key=q body=m3",
    "a.1 basic.ack tag=2 multiple=true",
)
KNOWN = Failure(
    requirement="CANCEL-001",
    shape=Shape.WRONG_ARGUMENT,
    detail="basic.deliver redelivered",
    command="a.1 basic.cancel t",
    observed="a.1 < basic.deliver consumer-tag=t delivery-tag=1 redelivered=false body=m1",
    allowed=("a.1 < basic.cancel-ok consumer-tag=t",),
    state=(),
)
ODD = Failure(
    requirement="QOS-003",
    shape=Shape.UNEXPECTED,
    detail="basic.deliver",
    command=f"a.1 basic.publish body={HOSTILE}",
    observed=f"a.1 < basic.deliver body={HOSTILE}",
    allowed=(),
    state=(HOSTILE,),
)
#: A known defect that is known of the target's dialect.
DEFECTIVE = Failure(
    requirement="CONSUME-008",
    shape=Shape.UNEXPECTED,
    detail="basic.consume-ok",
    command="b.1 basic.consume q tag=u",
    observed="b.1 < basic.consume-ok consumer-tag=u",
    allowed=("b.1 < channel.close 403",),
    state=(),
    defect="exclusive-consumer-ignored",
)


#: In time, early for as far as is known, far too late, by ticks, and many of one place.
MEASUREMENTS = (
    ("scenario TIMEOUT-008", Measurement("TIMEOUT-031", "basic.cancel", 3.0, 0.5, 0.003, 0.004)),
    ("scenario TIMEOUT-009", Measurement("TIMEOUT-031", "channel.close", 3.0, 2.0, -0.03, 0.02)),
    (f"search {HOSTILE}", Measurement("TIMEOUT-031", "basic.cancel", 9.0, 1.5, 2.95, 3.0)),
    ("scenario TIMEOUT-002", Measurement("TIMEOUT-002", "channel.close", 3.0, 0.3, 0.7, 0.75, 1.0)),
    *((f"search {number}", Measurement("TIMEOUT-031", "basic.cancel", 1.0, 0.5, 0.01, 0.012)) for number in range(40)),
)


def result(*, failures: bool = True, undecided: bool = True) -> RunResult:
    """Requirements of the real registry with made-up verdicts, spread over all areas."""
    found = (
        FoundFailure(ACK, "search 17", ACK_COMMANDS, "amqpspec replay out/ACK-002-1.amqp docker:rabbitmq-4.3", 3),
        FoundFailure(KNOWN, "scenario CANCEL-001", ("a.1 basic.cancel t",), "", 1, known="D-0012"),
        FoundFailure(DEFECTIVE, "scenario CONSUME-008", ("b.1 basic.consume q tag=u",), "", 2),
        FoundFailure(ODD, f"search {HOSTILE}", (HOSTILE,), f"echo '{HOSTILE}'", 1, rate=(7, 20)),
    )
    blamed = {each.failure.requirement for each in found} if failures else set()
    tested = {
        "exclusive-consumer-ignored": (2 if failures else 0, 1, 5),
        "cancel-before-consume-ok-beside-breaks": (0, 7, 0),
    }
    return RunResult(
        tool="amqpspec",
        tool_version="0.1.0",
        target=TARGET,
        seed=20260917,
        mode="lockstep",
        requirements=tuple(
            replace(
                _outcome(number, id, id in blamed), differing=Verdict.PASS if failures and id == "CONSUME-008" else None
            )
            for number, id in enumerate(requirements())
        ),
        failures=found if failures else (),
        sequences=1812,
        frames=93_455,
        undecided=(("search 90", f"too many explanations {HOSTILE}"),) if undecided else (),
        seconds=74.25,
        measurements=MEASUREMENTS,
        defects=tuple(
            DefectOutcome(each.name, *tested.get(each.name, (0, 0, 0))) for each in known_defects(TARGET.dialect)
        ),
    )


def _outcome(number: int, id: str, blamed: bool) -> RequirementVerdict:
    if blamed:
        return RequirementVerdict(id, Verdict.FAIL, 4)
    if number % 7 == 3:
        return RequirementVerdict(id, Verdict.NOT_EXERCISED, 0)
    if number % 23 == 5:
        return RequirementVerdict(id, Verdict.NOT_APPLICABLE, 0, "needs an administrator: a <policy> & more")
    if number == 40:
        return RequirementVerdict(id, Verdict.INCONCLUSIVE, 1, f"connection lost {HOSTILE}")
    return RequirementVerdict(id, Verdict.PASS, number * 3 + 1)
