"""The faulty variants of the embedded broker that are changed steps: put into the explored broker, and found there.

All else goes by the rules as they are, so what a property does not find by itself the judge may, on the ways
that it is given. Variants of which only the octets or one frame is wrong are not here: they are beside the model.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from amqpspec.conformance.explore.world import World
from amqpspec.model.broker.broker import Broker
from amqpspec.model.judging import explanation
from amqpspec.model.rules.inputs import process
from amqpspec.targets.embedded.served_broker import ServedBroker
from amqpspec.targets.faults.all_faults import FAULTS
from tests.conformance.explore.small_worlds import CANCELLED, CONFIRMED, GIVEN_BACK, GOT, violated, world

pytestmark = pytest.mark.quick

_Q, _T, _U = "a.1 queue.declare q durable", "a.1 basic.consume q tag=t", "a.2 basic.consume q tag=u"
_ONE_ACTIVE = f"{_Q} x-single-active-consumer=true"
_M = "b.1 basic.publish q"

#: By the name of the variant: a world in which it shows, and the property that finds it.
FOUND: dict[str, tuple[World, str]] = {
    "prefetch-off-by-one": (GIVEN_BACK, "limits"),
    "message-lost-on-channel-close": (world([_Q, _T], [_M, "a.1 channel.close"]), "one place"),
    "cancel-drops-unacked": (CANCELLED, "one place"),
    "purge-removes-unacked": (GOT, "one place"),
    "cancel-requeues-unacked": (CANCELLED, "given back"),
    "unroutable-not-confirmed": (CONFIRMED, "confirms"),
    "several-queues-not-confirmed": (
        world(
            [_Q, "a.1 queue.declare r durable", "a.1 queue.bind q amq.fanout", "a.1 queue.bind r amq.fanout",
             "b.1 confirm.select"],
            ["b.1 basic.publish exchange=amq.fanout"],
        ),
        "confirms",
    ),
    "deletion-forgets-confirms": (world([_Q, "b.1 confirm.select"], [_M, "a.1 queue.delete q"]), "confirms"),
    "returned-unasked": (world([_Q], ["b.1 basic.publish nowhere"]), "returns"),
    "consumer-priority-reversed": (world([_Q, f"{_T} x-priority=1", _U], [_M]), "agreed"),
    "second-active-consumer": (world([_ONE_ACTIVE, _T, _U], [f"2x {_M}"]), "judged"),
    "nobody-follows-cancelled": (world([_ONE_ACTIVE, _T, _U], [_M, "a.1 basic.cancel t"]), "judged"),
    "get-ignores-no-ack": (world([_Q], [_M, "a.1 basic.get q no-ack", "a.1! basic.ack 1"]), "judged"),
    "notice-before-delete-ok": (world([_Q, _T], ["a.1 queue.delete q"]), "judged"),
    "limit-drops-newest": (
        world([f"{_Q} x-max-length=1"], [f"2x {_M}", "a.1 basic.get q"], crossing=False), "judged",
    ),
    "tag-reuse-accepted": (world([_Q, _T], [_T]), "judged"),
    "get-unknown": (world([_Q], ["a.1 basic.get none"]), "judged"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_the_variant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = FAULTS[name]
    hook = fault.input_hook

    def faulty(broker: Broker, event: Any, *more: Any) -> None:
        if hook is not None and isinstance(broker, ServedBroker) and getattr(event, "name", "") in fault.methods:
            hook(broker, event, partial(process, broker))
        else:
            process(broker, event, *more)

    monkeypatch.setattr(explanation, "process", faulty)
    small, property = FOUND[name]
    assert property in violated(small, states=400, broker=fault.broker_type)


@pytest.mark.parametrize("small", {id(small): small for small, _ in FOUND.values()}.values())
def test_the_served_broker_without_a_fault_violates_nothing(small: World) -> None:
    assert violated(small, states=400, broker=ServedBroker) == set()
