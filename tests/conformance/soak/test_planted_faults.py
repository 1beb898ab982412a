"""Planted defects of the embedded broker are found by a soak, which is not told where to look."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.conformance.soak.schedule import Kind
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.faults.restarts import RESTARTS
from tests.conformance.soak.soaks import identifiers, soak_of

#: The defect, and a requirement by which it shows. In the quick tier are one of each kind.
_OF_CLIENTS = {
    "ack-acks-nothing": "ACK-001",
    "multiple-ack-ignored": "ACK-001",
    "multiple-acks-too-many": "ACK-006",
    "nack-multiple-single": "CONFIRM-010",
    "others-lose-what-they-hold": "ACK-001",
    "message-lost-on-requeue": "CONFIRM-010",
    "message-lost-on-reject": "CONFIRM-010",
    "reject-requeues-always": "ACK-001",
    "redelivered-never-set": "ACK-015",
    "redelivered-always-set": "ACK-015",
    "delivery-tags-reused": "CONSUME-014",
    "content-altered": "PUBLISH-016",
    "properties-lost": "PUBLISH-016",
    "message-id-lost": "PUBLISH-016",
    "message-delivered-twice": "ACK-001",
    "prefetch-off-by-one": "QOS-006",
    "message-lost-on-channel-close": "CONFIRM-010",
    "routing-ignores-key": "PUBLISH-003",
    "fanout-misses-one": "CONFIRM-010",
    "confirm-missing": "CONFIRM-003",
    "confirm-twice": "CONFIRM-003",
    "confirm-counts-from-zero": "CONFIRM-003",
    "nack-behind-ack": "CONFIRM-003",
    "confirmed-together-and-singly": "CONFIRM-003",
    "several-queues-not-confirmed": "CONFIRM-003",
    "persistent-not-confirmed": "CONFIRM-003",
}
#: Of restarts.
_OF_RESTARTS = {
    "stop-forgets-message": "DURABLE-004",
    "stop-forgets-quorum-message": "DURABLE-004",
    "confirms-before-disk": "DURABLE-004",
    "restart-forgets-redelivered": "ACK-015",
    "restart-doubles-message": "ACK-001",
    "restart-turns-around": "PUBLISH-015",
    "restart-counts-anew": "DURABLE-010",
    "restart-shifts-stream": "DURABLE-008",
    "restart-keeps-transient": "DURABLE-001",
    "restart-flags-all": "DURABLE-013",
    "restart-loses-bindings": "PUBLISH-007",
    "kill-forgets-quorum-message": "DURABLE-004",
    "resume-ends-connections": "DURABLE-014",
    "restart-publishes-half": "PUBLISH-016",
    "restart-forgets-given-back": "ACK-015",
    "restart-keeps-consumer": "DURABLE-006",
}
#: Of restarts, what a soak does not do: the page says why.
_UNSEEN = {
    "restart-keeps-exclusive-queue", "restart-keeps-transient-queue", "restart-deletes-unused-queue",
    "restart-expires-queues", "restart-commits", "restart-renews-time", "restart-doubles-letters",
    "restart-forgets-permissions",
}  # fmt: skip
_PAGE = Path(__file__).parents[3] / "docs" / "soak.md"
#: What shows only where the latest message of a queue had just been confirmed; or where more waits in a queue than its
#: consumers' limits allow.
_AT_A_MOMENT = {
    "confirms-before-disk": (20.0, (Kind.KILL,)), "kill-forgets-quorum-message": (20.0, (Kind.KILL,)),
    "restart-flags-all": (12.0, (Kind.STOP,)), "resume-ends-connections": (8.0, (Kind.PAUSE,)),
}  # fmt: skip
#: What shows only where messages wait in queues: publishers are as fast as they can.
_IN_LONG_QUEUES = ("restart-counts-anew", "restart-turns-around")
_QUICK = ("redelivered-never-set", "message-lost-on-channel-close", "confirm-twice", "prefetch-off-by-one")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.quick if name in _QUICK else ()) for name in _OF_CLIENTS]
)
def test_a_planted_defect_is_found(name: str, tmp_path: Path) -> None:
    """The seed decides what clients do, and the machine how much of it: a slow one may need another, longer soak."""
    found: set[str] = set()
    for seed in range(1, 5):
        with EmbeddedBroker(fault=name) as broker:
            seconds = 2.0 if seed == 1 or name in _QUICK else 5.0
            result = soak_of(broker, tmp_path / str(seed), seconds, Kind.CLIENT, seed=seed)
        found |= identifiers(result)
        if _OF_CLIENTS[name] in found:
            return
    assert _OF_CLIENTS[name] in found


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.quick if name == "restart-keeps-transient" else ()) for name in _OF_RESTARTS],
)
def test_a_planted_defect_of_restarts_is_found(name: str, tmp_path: Path) -> None:
    seconds, kinds = _AT_A_MOMENT.get(name, (8.0, (Kind.STOP, Kind.KILL)))
    rate = 0.0 if name in _IN_LONG_QUEUES else 200.0
    found: set[str] = set()
    for seed in range(1, 4):
        with EmbeddedBroker(fault=name) as broker:
            result = soak_of(broker, tmp_path / str(seed), seconds, *kinds, rate=rate, seed=seed)
        found |= identifiers(result)
        if _OF_RESTARTS[name] in found:
            return
    assert _OF_RESTARTS[name] in found


def test_each_of_restarts_is_found_or_the_page_says_why_not() -> None:
    assert set(_OF_RESTARTS) | _UNSEEN == set(RESTARTS.faults)
    assert not _UNSEEN & set(_OF_RESTARTS)
    page = _PAGE.read_text(encoding="utf-8")
    assert [name for name in _UNSEEN if f"| `{name}` |" not in page] == []
