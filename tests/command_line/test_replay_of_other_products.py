"""A failure of a product that nobody knows is replayed by the dialect that it was found by."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.command_line.entry import main
from amqpspec.conformance.language.command_file import judged_by
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.dialects.extensions import text_with
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.faults.all_faults import FAULTS

TEXT = "amqp-0-9-1"
#: What the suite was held to that found that a dead letter is lost.
WITH_DEAD_LETTERS = text_with(("x-dead-letter-exchange", "x-dead-letter-routing-key")).name
LOST = """\
a.1 queue.declare d
a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=d
a.1 basic.publish q body=m1
a.1 basic.get q
a.1 basic.reject 1
a.1 basic.get d
"""


def test_it_is_a_failure_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "01-DLX-001.amqp"
    file.write_text(judged_by(WITH_DEAD_LETTERS) + LOST, encoding="utf-8")
    with EmbeddedBroker(fault=FAULTS["dead-letter-lost"], properties={"product": "Nobody's", "version": "1"}) as broker:
        address = broker.address
        target = f"amqp://{address.user}:{address.password}@{address.host}:{address.port}/"
        replay = ["replay", str(file), target, "--quiet", "--deadline", "1"]
        assert main(replay) == 1
        assert "\nDLX-001: " in capsys.readouterr().out
        # what the caller says goes before what the file says, and without either it is the text
        assert main([*replay, "--dialect", TEXT]) == 0
        file.write_text(LOST, encoding="utf-8")
        assert main(replay) == 0


def test_who_says_its_dialect_is_judged_by_its_own(tmp_path: Path) -> None:
    file = tmp_path / "a.amqp"
    file.write_text(judged_by(TEXT) + "a.1 queue.declare q x-dead-letter-exchange=5\n", encoding="utf-8")
    assert main(["replay", str(file), "--quiet"]) == 0


@pytest.mark.parametrize("name", [*DIALECTS, WITH_DEAD_LETTERS])
def test_a_file_names_the_dialect_where_the_broker_does_not(name: str) -> None:
    assert judged_by(name) == ("" if dialect_named(name).extensions else f"@judged-by {name}\n")
