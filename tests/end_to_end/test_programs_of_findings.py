"""Each finding in docs/findings.md that names a version shows there what it says, by the program of its page.

What is tried and how often is in the findings themselves (`conformance.failures.signs`). What needs the broker's
operator is not tried. What shows by chance or rarely need not show: its program has to carry out all its commands, and
to say the same by its last line as by its exit code. Of what shows by chance at least half has to show on each version.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from amqpspec.conformance.failures.signs import Often
from amqpspec.conformance.language.command_file import parse_command_file
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.docker_broker import DockerBroker
from mkdocs_hooks import Shown, findings, shown
from tests.conftest import BrokerPool
from tests.patience import patience

#: Fixture -> the part of docs/findings.md that is about the product, and the version as it stands there.
BROKERS = {
    "rabbitmq_3_10": ("RabbitMQ", "3.10"), "rabbitmq_4_0": ("RabbitMQ", "4.0"), "rabbitmq_4_3": ("RabbitMQ", "4.3"),
    "garagemq": ("GarageMQ", "0.1"), "broker_j": ("Apache Qpid Broker-J", "9.2"),
}  # fmt: skip
#: Tries that it may have; more where the clock runs on while a machine with much to do does something else.
TRIES = {Often.ALWAYS: 1, Often.AT_THE_END: 1, Often.BY_CHANCE: 15, Often.RARELY: 1}
TRIES_BY_THE_CLOCK = 3
#: How often what need not show shows.
PERHAPS = (Often.BY_CHANCE, Often.RARELY)
#: Each short program has this line.
SHORT = "\ncame = []\n"
#: Programs at one time: most of what they take is waiting.
SIDE_BY_SIDE = 12


@dataclass(frozen=True)
class Outcome:
    is_seen: bool
    #: "": nothing is
    wrong: str = ""


@dataclass(frozen=True)
class Trial:
    title: str
    shown: Shown
    often: Often
    version: str
    file: Path

    def run(self, broker: DockerBroker) -> Outcome:
        tries = max(TRIES[self.often], TRIES_BY_THE_CLOCK if self.shown.waits else 1)
        url = f"amqp://guest:guest@{broker.address.host}:{broker.address.port}/%2F"
        for _ in range(tries):
            done = subprocess.run(
                [sys.executable, str(self.file), url], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=patience(150), check=False,
            )  # fmt: skip
            said = [line for line in done.stdout.splitlines() if line.startswith(("SEEN, as on ", "NOT SEEN"))]
            is_told = bool(said) and done.returncode == int(said[0] != "NOT SEEN")
            is_whole = is_told and self._is_carried_out(done.stdout)
            if not is_whole or any(map(self._is_here, said)):
                break
        is_seen = is_whole and any(map(self._is_here, said))
        if is_seen or (is_whole and self.often in PERHAPS):
            return Outcome(is_seen)
        what = f"{self.title} ({self.often} on {self.version}), exit code {done.returncode}"
        return Outcome(is_seen, f"{what}:\n{done.stdout}{done.stderr}")

    def _is_carried_out(self, output: str) -> bool:
        """Has it come to the last command? Each but those that open connections is told. Short programs tell none, and
        say what they saw behind their last command only.
        """
        if self.often not in PERHAPS or SHORT in self.file.read_text(encoding="utf-8"):
            return True
        (file,) = parse_command_file(self.shown.commands, self.title)
        told = [line.removeprefix("> ") for line in output.splitlines() if line.startswith("> ")]
        expected = [str(each) for each in file.commands if each.method != "connection.open"]
        return told[: len(expected)] == expected

    def _is_here(self, line: str) -> bool:
        where = line.removeprefix("SEEN, as on ").partition(":")[0]
        return self.version in where.split(", ")


def trials(part: str, version: str, directory: Path) -> Iterator[Trial]:
    for finding in findings():
        for number, each in enumerate(shown(finding) if finding.part == part else ()):
            here = [signs.often for signs in each.signs if version in signs.versions]
            if here and not each.needs_operator:
                file = directory / f"{finding.place}-{number}.py"
                file.write_text(each.program, encoding="utf-8")
                yield Trial(finding.title, each, min(here, key=list(Often).index), version, file)


CARRIED_OUT = "> a.1 queue.declare q\n> a.1 queue.purge q\n"


@pytest.mark.parametrize(
    ("often", "printed", "code", "is_right"),
    [
        (Often.RARELY, f"{CARRIED_OUT}NOT SEEN", 0, True),
        (Often.BY_CHANCE, f"{CARRIED_OUT}SEEN, as on 4.3: x", 1, True),
        (Often.ALWAYS, f"{CARRIED_OUT}NOT SEEN", 0, False),
        (Often.ALWAYS, f"{CARRIED_OUT}SEEN, as on 4.0: x", 1, False),
        # it has not come to its end, or does not know what it says
        (Often.RARELY, "> a.1 queue.declare q\nNOT SEEN", 0, False),
        (Often.RARELY, CARRIED_OUT, 0, False),
        (Often.RARELY, f"{CARRIED_OUT}NOT SEEN", 1, False),
        (Often.BY_CHANCE, f"{CARRIED_OUT}SEEN, as on 4.3: x", 0, False),
    ],
)
def test_what_need_not_show_has_to_be_tried(
    often: Often, printed: str, code: int, is_right: bool, tmp_path: Path
) -> None:
    file = tmp_path / "program.py"
    file.write_text(f"print({printed!r})\nraise SystemExit({code})\n", encoding="utf-8")
    commands = Shown("a.1 queue.declare q\na.1 queue.purge q\n", "", (), needs_operator=False, waits=False)
    broker = SimpleNamespace(address=Address("localhost", 1))
    outcome = Trial("title", commands, often, "4.3", file).run(cast("DockerBroker", broker))
    assert (outcome.wrong == "") is is_right, outcome.wrong
    assert outcome.is_seen is (is_right and "NOT SEEN" not in printed)


@pytest.mark.parametrize("name", BROKERS)
def test_each_program_shows_its_finding(name: str, broker_pool: BrokerPool, tmp_path: Path) -> None:
    tried = list(trials(*BROKERS[name], tmp_path))
    assert len(tried) > 8
    broker = broker_pool.get(name)
    beside = [each for each in tried if each.often is not Often.AT_THE_END]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as executor:
        outcomes = list(executor.map(lambda each: each.run(broker), beside))
    # A dozen at one time can hide what shows always while nothing else asks the broker.
    missed = [each for each, outcome in zip(beside, outcomes, strict=True) if outcome.wrong]
    assert not (wrong := [text for each in missed if (text := each.run(broker).wrong)]), "\n".join(wrong)
    by_chance = [(each, out) for each, out in zip(beside, outcomes, strict=True) if each.often is Often.BY_CHANCE]
    unseen = [each.title for each, outcome in by_chance if not outcome.is_seen]
    assert len(unseen) <= (len(by_chance) + 1) // 2, unseen
    for each in tried:
        if each.often is Often.AT_THE_END:
            with DockerBroker(broker.image) as own:
                assert not (text := each.run(own).wrong), text
