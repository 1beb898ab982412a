"""Whatever a peer sends or does not send, a run ends with a verdict, in bounded time and memory, without a traceback.

Each attack is made on a run in a process of its own; they run side by side, as most of their time is waiting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from tests.end_to_end.hostile_attacks import ATTACKS, REPLY, says_before
from tests.end_to_end.hostile_broker import Attack, HostileBroker
from tests.end_to_end.hostile_octets import FRAMES
from tests.end_to_end.suite_process import Outcome, amqpspec

#: All attacks are made at once, by one worker.
pytestmark = pytest.mark.together("hostile")

#: Seconds that a run may take on an idle machine: it asks twice, for ten seconds, whether a silent broker is alive.
SECONDS = 240.0
#: Runs at one time.
SIDE_BY_SIDE = 16
DEADLINE = "0.3"
#: … and where other work on the machine has kept the broker from coming to the attack in that time.
PATIENT_DEADLINE = "5"


@dataclass(frozen=True)
class Made:
    """An attack that was made on a run; after the run its trace was judged again."""

    strikes: int
    outcome: Outcome
    trace: Path


def identifier(attack: Attack) -> str:
    return re.sub(r"\W+", "-", attack.name)


def make(attack: Attack, broker: EmbeddedBroker, directory: Path) -> Made:
    made = _make(attack, broker, directory / "at-once", DEADLINE)
    return made if made.strikes or attack.instead else _make(attack, broker, directory / "later", PATIENT_DEADLINE)


def _make(attack: Attack, broker: EmbeddedBroker, directory: Path, deadline: str) -> Made:
    out = directory / "out"
    directory.mkdir(parents=True)
    with HostileBroker(attack, broker) as hostile:
        run = ["run", hostile.url, "--seed", "1", "--steps", "10", "--deadline", deadline, *attack.arguments]
        reports = ["--out", str(out), "--junit", str(directory / "junit.xml")]
        outcome = amqpspec([[*run, *reports], ["check", str(out)]], directory, SECONDS)
        return Made(hostile.strikes, outcome, out / "trace.jsonl")


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(scope="module")
def made(
    request: pytest.FixtureRequest, embedded: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Attack], Made]]:
    """What came of an attack. All that are selected are begun at once."""
    directory = tmp_path_factory.mktemp("hostile")
    asked = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    attacks: list[Attack] = [params["attack"] for params in asked if isinstance(params.get("attack"), Attack)]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        futures: dict[str, Future[Made]] = {
            attack.name: pool.submit(make, attack, embedded, directory / identifier(attack))
            for attack in attacks
        }
        yield lambda attack: futures[attack.name].result()
        for future in futures.values():
            future.cancel()


@pytest.mark.parametrize("attack", ATTACKS, ids=identifier)
def test_run_ends_with_a_verdict(attack: Attack, made: Callable[[Attack], Made]) -> None:
    result = made(attack)
    outcome = result.outcome
    assert result.strikes or attack.instead, "the attack was not made"
    assert "Traceback" not in outcome.errors and "Thread 0x" not in outcome.errors, outcome.errors
    assert len(outcome.codes) == 2, f"no end in {outcome.seconds:.1f} s: {outcome.errors}"
    ran, checked = outcome.codes
    assert ran in attack.codes, outcome.output
    if result.trace.exists():
        # what was seen is seen again in the trace, also where the broker was lost in the end
        assert checked in attack.checked, outcome.output
    else:
        assert ran == 3 and outcome.errors.count("\n") == 2
    assert outcome.left == ()
    assert re.search("[\ud800-\udfff\x00-\x08\x0b-\x1f]", outcome.output) is None


def test_frames_are_shown_by_replay(embedded: EmbeddedBroker, tmp_path: Path) -> None:
    """Where nothing is between what came and the terminal."""
    commands = tmp_path / "commands.amqp"
    commands.write_text("a.1 queue.declare q durable\na.1 basic.get q\n")
    every = [octets for name, octets in FRAMES.items() if "UTF-8" in name or "tag" in name]
    assert len(every) > 3
    for octets in every:
        with HostileBroker(Attack("replay", REPLY, says_before(octets)), embedded) as hostile:
            outcome = amqpspec([["replay", str(commands), hostile.url, "--deadline", DEADLINE]], tmp_path, SECONDS)
        assert outcome.codes == (1,), outcome.errors
        assert outcome.errors == ""


def test_good_broker_is_green_after_all_that(embedded: EmbeddedBroker, tmp_path: Path) -> None:
    with HostileBroker(Attack("none"), embedded) as relay:
        run = ["run", relay.url, "--seed", "1", "--sequences", "3", "--only", "GET-001", "--only", "CONSUME-001"]
        outcome = amqpspec([[*run, "--out", str(tmp_path / "out")]], tmp_path, SECONDS)
    assert outcome.codes == (0,), outcome.output
    assert outcome.errors == ""
    assert outcome.left == ()
