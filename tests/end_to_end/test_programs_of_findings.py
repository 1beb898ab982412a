"""Each finding in docs/findings.md that names a version shows there what it says, by the program of its page.

What is tried and how often is in the findings themselves (`conformance.failures.signs`). What needs the broker's
operator is not tried, and what shows rarely has one try, which need not show it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from amqpspec.conformance.failures.signs import Often
from amqpspec.targets.brokers.docker_broker import DockerBroker
from mkdocs_hooks import Shown, findings, shown
from tests.conftest import BrokerPool
from tests.patience import patience

#: Fixture -> the part of docs/findings.md that is about the product, and the version as it stands there.
BROKERS = {
    "rabbitmq_3_10": ("RabbitMQ", "3.10"), "rabbitmq_4_0": ("RabbitMQ", "4.0"), "rabbitmq_4_3": ("RabbitMQ", "4.3"),
    "garagemq": ("GarageMQ", "0.1"), "broker_j": ("Apache Qpid Broker-J", "9.2"),
}  # fmt: skip
#: Tries that may be needed; more where the clock runs on while a machine with much to do does something else.
TRIES = {Often.ALWAYS: 1, Often.AT_THE_END: 1, Often.BY_CHANCE: 15, Often.RARELY: 1}
TRIES_BY_THE_CLOCK = 3
#: Programs at one time: most of what they take is waiting.
SIDE_BY_SIDE = 12


@dataclass(frozen=True)
class Trial:
    title: str
    shown: Shown
    often: Often
    version: str
    file: Path

    def run(self, broker: DockerBroker) -> str:
        """What is wrong; "": nothing is."""
        tries = max(TRIES[self.often], TRIES_BY_THE_CLOCK if self.shown.waits else 1)
        url = f"amqp://guest:guest@{broker.address.host}:{broker.address.port}/%2F"
        for _ in range(tries):
            done = subprocess.run(
                [sys.executable, str(self.file), url], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=patience(150), check=False,
            )  # fmt: skip
            said = [line for line in done.stdout.splitlines() if line.startswith(("SEEN, as on ", "NOT SEEN"))]
            if done.returncode != int(bool(said) and said[0] != "NOT SEEN") or not said:
                break
            if any(map(self._is_here, said)) or self.often is Often.RARELY:
                return ""
        what = f"{self.title} ({self.often} on {self.version}), exit code {done.returncode}"
        return f"{what}:\n{done.stdout}{done.stderr}"

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


@pytest.mark.parametrize("name", BROKERS)
def test_each_program_shows_its_finding(name: str, broker_pool: BrokerPool, tmp_path: Path) -> None:
    tried = list(trials(*BROKERS[name], tmp_path))
    assert len(tried) > 8
    broker = broker_pool.get(name)
    beside = [each for each in tried if each.often is not Often.AT_THE_END]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as executor:
        texts = list(executor.map(lambda each: each.run(broker), beside))
    missed = [each for each, text in zip(beside, texts, strict=True) if text]
    # A dozen at one time can hide what shows always while nothing else asks the broker.
    assert not (wrong := [text for each in missed if (text := each.run(broker))]), "\n".join(wrong)
    for each in tried:
        if each.often is Often.AT_THE_END:
            with DockerBroker(broker.image) as own:
                assert not (text := each.run(own)), text
