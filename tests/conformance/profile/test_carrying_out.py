"""A profile of a broker that does not survive it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.profile import carrying_out
from amqpspec.conformance.profile.carrying_out import ENOUGH, CarryingOut
from amqpspec.conformance.profile.profile import BASE
from amqpspec.conformance.profile.shows import shows
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.choices import Dialect
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.errors import TargetError, TargetUnreachable
from tests.conformance.part_ends import part_ends

TARGET = TargetUnderTest(Address("localhost"), TargetDescription("a", "a broker", "0", BASE.name), 1.0)
NAMES = ("ack-of-zero", "recover-async", "if-empty", "deleted-count")
FILES = {name: shows()[name] for name in NAMES}


@pytest.fixture
def ended_by(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of files that end the broker once each; names of those that were begun come after them."""
    deadly: list[str] = []

    def carry_out(self: CarryingOut, name: str, file: CommandFile, base: Dialect) -> bool:
        if name in deadly:
            raise TargetUnreachable("cannot connect")
        return False

    monkeypatch.setattr(carrying_out, "AT_ONCE", 1)
    monkeypatch.setattr(CarryingOut, "_carry_out", carry_out)
    monkeypatch.setattr(carrying_out, "check_alive", lambda *_: True)
    return deadly


def test_it_is_started_again_and_the_others_are_carried_out(ended_by: list[str], tmp_path: Path) -> None:
    ended_by += ["ack-of-zero", "if-empty"]
    begun_again: list[int] = []

    def start_again() -> TargetUnderTest:
        begun_again.append(1)
        return TARGET

    with TraceWriter(tmp_path / "trace.jsonl") as trace:
        done = CarryingOut(TARGET, trace, start_again).carry_out(FILES, dict.fromkeys(NAMES, BASE))
    assert done == {"recover-async", "deleted-count"}
    assert len(begun_again) == 3, "the second one is carried out once more, by itself"


def test_one_of_which_a_part_ended_is_started_again(tmp_path: Path) -> None:
    """Nothing that it has shown since then is taken for its choice; what it does not survive is found one by one."""
    with ExitStack() as stack, TraceWriter(tmp_path / "trace.jsonl") as trace:
        starts: list[int] = []

        def start() -> TargetUnderTest:
            starts.append(1)
            broker = stack.enter_context(EmbeddedBroker(fault=part_ends("basic.recover-async")))
            return replace(TARGET, address=broker.address)

        done = CarryingOut(start(), trace, start).carry_out(FILES, dict.fromkeys(NAMES, BASE))
    assert done == set(NAMES) - {"recover-async"}
    assert len(starts) == 3, "begun, and again behind each loss"


def test_one_that_survives_next_to_nothing_is_not_asked_any_more(ended_by: list[str], tmp_path: Path) -> None:
    ended_by += NAMES
    begun_again: list[int] = []

    def start_again() -> TargetUnderTest:
        begun_again.append(1)
        return TARGET

    with TraceWriter(tmp_path / "trace.jsonl") as trace:
        carrying = CarryingOut(TARGET, trace, start_again)
        assert carrying.carry_out(FILES, dict.fromkeys(NAMES, BASE)) == set()
        assert len(begun_again) == ENOUGH < len(NAMES)
        assert carrying.carry_out(FILES, dict.fromkeys(NAMES, BASE)) == set()
    assert len(begun_again) == ENOUGH


def test_losses_with_something_carried_out_in_between_are_no_reason_to_stop(
    ended_by: list[str], tmp_path: Path
) -> None:
    names = sorted(name for name, file in shows().items() if not file.rough)[: 2 * ENOUGH]
    files = {name: shows()[name] for name in names}
    ended_by += names[1::2]
    with TraceWriter(tmp_path / "trace.jsonl") as trace:
        done = CarryingOut(TARGET, trace, lambda: TARGET).carry_out(files, dict.fromkeys(names, BASE))
    assert done == set(names[::2])


def test_one_that_hangs_shows_nothing_of_its_choices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its sequences end without an error, as nothing comes. It is started again, and looked at one by one."""
    hanging: set[str] = set()

    def carry_out(self: CarryingOut, name: str, file: CommandFile, base: Dialect) -> bool:
        hanging.update({"if-empty"}.intersection({name}))
        return False

    def check_alive(address: Address, time_limit: float = 0, has_served: bool = False) -> bool:
        if hanging:
            raise TargetUnreachable("did not complete the handshake")
        return True

    def start_again() -> TargetUnderTest:
        hanging.clear()
        return TARGET

    monkeypatch.setattr(CarryingOut, "_carry_out", carry_out)
    monkeypatch.setattr(carrying_out, "check_alive", check_alive)
    with TraceWriter(tmp_path / "trace.jsonl") as trace:
        done = CarryingOut(TARGET, trace, start_again).carry_out(FILES, dict.fromkeys(NAMES, BASE))
        assert done == set(NAMES) - {"if-empty"}
        alone = {"if-empty": FILES["if-empty"]}
        assert CarryingOut(TARGET, trace, start_again).carry_out(alone, {"if-empty": BASE}) == set()
    assert not hanging, "who comes next has one that serves"


def test_who_cannot_start_it_says_what_was_under_way(ended_by: list[str], tmp_path: Path) -> None:
    ended_by += ["recover-async"]
    with TraceWriter(tmp_path / "trace.jsonl") as trace, pytest.raises(TargetError) as raised:
        CarryingOut(TARGET, trace).carry_out(FILES, dict.fromkeys(NAMES, BASE))
    assert str(raised.value) == (
        "cannot connect; it answered at first, and was lost while its choices were looked at (recover-async)"
    )
