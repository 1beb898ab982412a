"""Faults that sequences share: each is done once, when all that are left have asked for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from amqpspec.model.protocol.methods import OPERATOR, Fault
from amqpspec.targets.address import Address
from amqpspec.targets.brokers import shared_faults
from amqpspec.targets.brokers.shared_faults import MemberFaults, SharedFaults
from amqpspec.targets.errors import OperatorError, TargetError

STOP, RESTART = (Fault(OPERATOR, 0, name, {}, sent=True) for name in ("broker.stop", "broker.restart"))


class _Injector:
    offered = ("broker.stop", "broker.restart")
    nodes = (1,)

    def __init__(self, error: TargetError | None = None) -> None:
        self.done: list[str] = []
        self._error = error

    def inject(self, fault: Fault) -> None:
        if self._error is not None:
            raise self._error
        self.done.append(fault.name)

    def address_of(self, node: int) -> Address:
        return Address("h")

    def undo(self) -> None:
        self.done.append("undo")


def _member(shared: SharedFaults, asks: Sequence[Fault], says: Callable[[str], None], *, ends: bool = True) -> str:
    """What was raised; "": nothing."""
    with shared.member() as faults:
        return _asks(faults, asks, says, ends)


def _asks(faults: MemberFaults, asks: Sequence[Fault], says: Callable[[str], None], ends: bool) -> str:
    raised = ""
    try:
        for each in asks:
            faults.inject(each)
            says(each.name)
    except TargetError as error:
        raised = str(error)
    if ends:
        try:
            faults.undo()
        except TargetError as error:
            raised = raised or str(error)
        says("end")
    return raised


def _run(injector: _Injector, members: Sequence[Sequence[Fault]], **how: bool) -> list[str]:
    shared = SharedFaults(injector, len(members), lambda: False)
    with ThreadPoolExecutor(len(members)) as pool:
        return list(pool.map(lambda asks: _member(shared, asks, lambda said: None, **how), members))


def test_each_is_done_once() -> None:
    injector = _Injector()
    assert _run(injector, [[STOP, RESTART]] * 5) == [""] * 5
    assert injector.done == ["broker.stop", "broker.restart", "undo"]


def test_nobody_waits_for_those_that_have_ended() -> None:
    injector = _Injector()
    assert _run(injector, [[STOP, RESTART], [], [STOP]]) == ["", "", ""]
    assert injector.done == ["broker.stop", "broker.restart", "undo"]


def test_who_has_ended_waits_until_all_is_as_it_was() -> None:
    injector, said, may_go = _Injector(), list[str](), Event()
    shared = SharedFaults(injector, 2, lambda: False)
    with ThreadPoolExecutor(2) as pool:
        early = pool.submit(_member, shared, [], said.append)
        late = pool.submit(lambda: may_go.wait(10) and _member(shared, [STOP], said.append))
        assert not early.done()
        may_go.set()
        assert (early.result(), late.result()) == ("", "")
    assert injector.done == ["broker.stop", "undo"] and said[0] == "broker.stop"


def test_nobody_waits_for_those_that_are_gone_without_an_end() -> None:
    injector = _Injector()
    assert _run(injector, [[STOP], []], ends=False) == ["", ""]
    assert injector.done == ["broker.stop"]


def test_what_cannot_be_done_is_told_to_all() -> None:
    injector = _Injector(OperatorError("no"))
    assert _run(injector, [[STOP, RESTART]] * 3) == ["no"] * 3
    assert injector.done == ["undo"]


def test_nobody_waits_in_a_run_that_is_ended() -> None:
    injector = _Injector()
    shared = SharedFaults(injector, 2, lambda: True)
    with shared.member() as faults, pytest.raises(OperatorError, match="not all"):
        faults.inject(STOP)
    assert injector.done == []


@pytest.mark.timeout(30)
def test_nobody_waits_for_ever_for_those_that_never_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_faults, "PATIENCE", 0.01)
    injector = _Injector()
    shared = SharedFaults(injector, 2, lambda: True)
    assert _member(shared, [STOP], lambda said: None).startswith("not all")
    assert injector.done == ["undo"]


class _Erring(_Injector):
    def undo(self) -> None:
        super().undo()
        raise RuntimeError("the engine")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("is_stopped", [False, True])
def test_what_nobody_expected_is_raised_by_who_did_it_and_keeps_nobody_waiting(is_stopped: bool) -> None:
    injector = _Erring()
    shared = SharedFaults(injector, 3, lambda: is_stopped)
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(_member, shared, [] if is_stopped else [STOP], lambda said: None) for _ in range(3)]
        errors = [each.exception() for each in asked]
    assert [str(each) for each in errors if each is not None] == ["the engine"]
    assert any("not done: " in each.result() for each in asked if each.exception() is None)
    assert injector.done[-1] == "undo" and injector.done.count("undo") == 1
