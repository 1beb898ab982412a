"""Which queues are mirrored."""

from __future__ import annotations

import pytest

from amqpspec.model.broker.mirrors import is_mirrored
from tests.model.rules.extensions.test_drop_or_refuse import after
from tests.model.rules.extensions.test_policy import policy

MIRRORS = policy("ha-mode=all")


@pytest.mark.parametrize(
    ("dialect", "declared", "mirrored"),
    [
        ("rabbitmq-3", "durable", True),
        ("rabbitmq-3", "", True),
        ("rabbitmq-3", "exclusive", False),
        ("rabbitmq-3", "durable x-queue-type=quorum", False),
        ("rabbitmq-4.0", "durable", False),
        ("rabbitmq-4.3", "durable", False),
    ],
)
def test_classic_queues_of_more_than_one_connection_up_to_3_13(dialect: str, declared: str, mirrored: bool) -> None:
    broker = after(dialect, MIRRORS, f"a.1 queue.declare q {declared}")
    queue = broker.queues["q"]
    assert is_mirrored(broker, queue) is mirrored
    assert queue.mirrors == ({1, 2, 3} if mirrored else set())


def test_a_policy_makes_it_so_and_unmakes_it() -> None:
    lines = ["a.1 queue.declare q durable", MIRRORS]
    broker = after("rabbitmq-3", *lines)
    assert is_mirrored(broker, broker.queues["q"])
    assert not broker.queues["q"].mirrors  # nobody knows when they have it
    broker = after("rabbitmq-3", MIRRORS, "a.1 queue.declare q durable", "broker operator.clear-policy p")
    assert not is_mirrored(broker, broker.queues["q"])
    assert not broker.queues["q"].mirrors
