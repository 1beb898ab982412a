"""Known defects of limits and dead letters come in by policies as by arguments."""

from __future__ import annotations

import pytest

from tests.model.defects.lawful_answers import Answered

pytestmark = pytest.mark.known_defects

LETTERS = "dead-letter-exchange= dead-letter-routing-key=d"


@pytest.mark.parametrize(
    ("dialect", "said", "window"),
    [
        ("rabbitmq-4.3", "max-length-bytes=5", "quorum-bytes-count-properties"),
        ("rabbitmq-4.0", f"max-length=5 {LETTERS}", "drops-latest-letter-first"),
    ],
)
def test_a_policy_arms_what_arguments_arm(dialect: str, said: str, window: str) -> None:
    def windows(said: str) -> frozenset[str]:
        talk = Answered(dialect)
        talk.carry_out(f"broker operator.set-policy p queue=q {said}", "a.1 basic.qos 1")
        return frozenset(talk.acceptor.windows)

    assert window in windows(said)
    assert window not in windows("message-ttl=5")


def test_dead_letters_that_a_policy_brings_along_are_touched_as_well() -> None:
    """What a classic queue drops before reject-publish holds goes to another queue."""
    talk = Answered("rabbitmq-4.3")
    said = f"max-length=1 overflow=reject-publish {LETTERS}"
    talk.carry_out(
        "a.1 queue.declare d durable", "a.1 queue.declare q durable", "a.1 confirm.select",
        "a.1 basic.publish q body=m1", "a.1 basic.publish q body=m2",
        f"broker operator.set-policy p queue=q {said}", "a.1 queue.declare d durable passive",
    )  # fmt: skip
    talk.see("a.1", "queue.declare-ok", queue="d", message_count=1, consumer_count=0)
    assert [each.defect for each in talk.acceptor.failures] == ["limit-comes-before-reject-publish"]
