"""What is minor is so wherever it is judged: in a run, in a test, and when it is replayed or judged again."""

from __future__ import annotations

import pytest

from amqpspec.conformance.verdicts.judgement import SequenceJudgement, is_harmless_only
from amqpspec.conformance.verdicts.minor import COMPATIBILITY, WORDS_ONLY, why_minor
from amqpspec.conformance.verdicts.tally import Tally
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.pipeline.table import compliance_table

WORDS = Failure("CHAN-008", Shape.WRONG_ARGUMENT, "channel.close reply-text", "c", "seen", (), ())
CODE = Failure("EXCHANGE-003", Shape.WRONG_ARGUMENT, "channel.close reply-code", "c", "seen", (), ())
LOST = Failure("ACK-014", Shape.MISSING, "basic.deliver", "c", "nothing", (), ())


@pytest.mark.parametrize(
    ("failure", "product", "dialect", "why"),
    [
        (WORDS, "MyBroker", "amqp-0-9-1", WORDS_ONLY),
        (WORDS, "MyBroker", "rabbitmq-4.3", WORDS_ONLY),
        (WORDS, "RabbitMQ", "rabbitmq-4.3", None),
        (WORDS, "amqpspec", "rabbitmq-4.3", None),
        # a trace that does not say whose it is
        (WORDS, "", "rabbitmq-4.3", None),
        (CODE, "MyBroker", "rabbitmq-4.3", COMPATIBILITY),
        (CODE, "MyBroker", "amqp-0-9-1+basic.nack", None),
        (LOST, "MyBroker", "rabbitmq-4.3", None),
    ],
)
def test_one_function_says_what_is_minor(failure: Failure, product: str, dialect: str, why: str | None) -> None:
    assert why_minor(failure, product, dialect) == why
    one = _judged(product, dialect, failure)
    assert is_harmless_only(one) is (why is not None)
    tally = Tally()
    tally.add(one)
    table = compliance_table(tally)
    assert table.exit_code == (1 if why is None else 0)
    assert [found.is_minor for found in table.failures] == [why is not None]


def test_beside_a_grave_failure_it_does_not_count() -> None:
    assert not is_harmless_only(_judged("MyBroker", "amqp-0-9-1", WORDS, LOST))
    assert not is_harmless_only(_judged("MyBroker", "amqp-0-9-1"))


def _judged(product: str, dialect: str, *failures: Failure) -> SequenceJudgement:
    verdict = Verdict.FAIL if failures else Verdict.PASS
    return SequenceJudgement("s", "t", dialect, None, verdict, failures, {}, None, 1, product=product)
