"""The suite on a broker that has the text of 0-9-1 and extensions beside it."""

from __future__ import annotations

from pathlib import Path

from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with
from amqpspec.model.promises.verdict import Verdict
from tests.end_to_end.runs import run_suite

ALL = text_with(EXTENSIONS)


def test_an_embedded_broker_of_such_a_dialect_conforms_and_its_extensions_are_exercised(tmp_path: Path) -> None:
    """It says what it is, so that nothing has to be told on the command line."""
    result = run_suite(
        "embedded", tmp_path, only=("ACK", "CONFIRM", "BIND", "QOS", "CONN"), sequences=30, seed=3, dialect=ALL,
        fast_forward=True,
    )  # fmt: skip
    assert result.target.dialect == ALL.name
    assert (result.failures, result.undecided, result.exit_code) == ((), (), 0)
    verdicts = {each.id: each.verdict for each in result.requirements}
    assert {verdicts[each] for each in ("ACK-014", "ACK-004", "CONFIRM-001", "CONFIRM-002", "BIND-001")} == {
        Verdict.PASS
    }
