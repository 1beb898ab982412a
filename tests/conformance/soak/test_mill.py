"""What drives the clients of a soak: who cannot be reached holds nobody up."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.soak.errands import Errands
from amqpspec.conformance.soak.mill import Mill
from amqpspec.conformance.soak.options import SoakOptions
from amqpspec.conformance.soak.plan import plan_of
from amqpspec.conformance.soak.soak_trace import SoakTrace
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.targets.address import Address
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.errors import TargetUnreachable
from tests.conformance.soak.soaks import EMBEDDED


@pytest.mark.quick
def test_a_broker_that_does_not_even_refuse_is_left_alone_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one client waits for its connection nothing else is done: no client's turn, and no fault's."""
    tries: list[str] = []

    def connect(self: WireClient, name: str, address: Address | None = None, *, timeout: float) -> None:
        tries.append(name)
        threading.Event().wait(0.2)
        raise TargetUnreachable("no answer in time")

    monkeypatch.setattr(WireClient, "connect", connect)
    target = TargetUnderTest(Address("127.0.0.1", 1), EMBEDDED)
    plan = plan_of(1, dialect_named(EMBEDDED.dialect), "soak")
    trace = SoakTrace(tmp_path, EMBEDDED, plan, "/")
    mill = Mill(target, plan, SoakOptions(1, 1.0, (), tmp_path), trace, lambda line: None, lambda: 0)
    for name in ("p1", "p2", "c1"):
        assert mill.connect(Errands(name, (), mill)) is None
    assert tries == ["p1"]
    mill.back()  # it was started again
    mill.connect(Errands("p2", (), mill))
    assert tries == ["p1", "p2"]
    trace.close()
