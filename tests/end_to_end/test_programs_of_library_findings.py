"""Each program about a client library in docs/findings.md prints what it says there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from amqpspec.targets.brokers.docker_broker import DockerBroker
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from tests.patience import patience

FINDINGS = Path(__file__).parents[2] / "docs" / "findings.md"
PART = FINDINGS.read_text(encoding="utf-8").partition("# Client libraries")[2]
#: Title -> program.
PROGRAMS = dict(re.findall(r"^\*\*(.*?)\*\*$.*?^```python\n(.*?)^```", PART, re.MULTILINE | re.DOTALL))


def test_each_finding_has_a_program() -> None:
    titles = re.findall(r"^\*\*(.*?)\*\*$", PART, re.MULTILINE)
    assert list(PROGRAMS) == titles and len(titles) > 3
    assert all(re.match(r"(pika|aio-pika) [\d.]+.*, `LIBRARY-[A-Z]+`: ", each) for each in titles)


@pytest.mark.parametrize("title", PROGRAMS)
def test_on_the_embedded_broker(title: str, tmp_path: Path) -> None:
    with EmbeddedBroker("rabbitmq-4.3") as broker:
        shows(PROGRAMS[title], f"amqp://guest:guest@{broker.address.host}:{broker.address.port}/", tmp_path)


def test_on_rabbitmq(rabbitmq_4_3: DockerBroker, tmp_path: Path) -> None:
    address = rabbitmq_4_3.address
    for program in PROGRAMS.values():
        shows(program, f"amqp://guest:guest@{address.host}:{address.port}/", tmp_path)


def shows(program: str, url: str, folder: Path) -> None:
    file = folder / "program.py"
    file.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(file), url], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=patience(60), check=False,
    )  # fmt: skip
    expected = re.findall(r"^# prints: (.*)$", program, re.MULTILINE)
    assert expected and done.stdout.splitlines() == expected, done.stderr
