"""Offline the version that a trace has decides what is known of its broker: recordings of 4.3, changed by hand."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path

import pytest

from amqpspec.conformance.traces.trace import TraceRow, read_trace, sequences
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import requirement_verdicts
from amqpspec.conformance.verdicts.tally import Tally
from amqpspec.model.promises.capabilities import ACCEPT_CANCEL_OK
from amqpspec.model.promises.verdict import Verdict
from amqpspec.pipeline.table import compliance_table

RECORDING = Path(__file__).parents[2] / "corpus" / "rabbitmq-4.3-scenarios.parquet"
#: The broker counts the consumer; it serves it again, by an acknowledgement and by a rejection; its tag is in use.
MENDED = ("TIMEOUT-014", "TIMEOUT-016", "TIMEOUT-017", "TIMEOUT-030")


@cache
def recorded() -> dict[str, list[TraceRow]]:
    wanted = {f"scenario {id}" for id in MENDED}
    found = (list(rows) for rows in sequences(read_trace(RECORDING)))
    return {str(rows[0]["requirement"]): rows for rows in found if rows[0]["sequence"] in wanted}


def changed(id: str, version: str, *, announces: bool = False) -> list[TraceRow]:
    """As if it had been recorded of that version; `announces`: of a broker that takes the client's answer."""
    rows = copy.deepcopy(recorded()[id])
    rows[0]["version"] = version
    for row in rows:
        if announces and row["kind"] == "frame" and row["method"] == "connection.start":
            row["arguments"]["server_properties"]["capabilities"][ACCEPT_CANCEL_OK] = True
    return rows


@pytest.mark.parametrize("id", MENDED)
def test_what_was_mended_is_known_of_earlier_versions_only(id: str) -> None:
    for version, as_known in (
        ("4.3.0", Verdict.PASS), ("4.3.6", Verdict.PASS), ("4.3.9", Verdict.FAIL), ("5.0.0", Verdict.FAIL),
    ):  # fmt: skip
        judgement = judge(changed(id, version))
        assert [failure.requirement for failure in judgement.failures] == [id]
        said = requirement_verdicts(judgement)[id]
        assert (said.verdict, said.as_known) == (Verdict.FAIL, as_known), version


@pytest.mark.parametrize("version", ["4.3.6", "4.3.7", "4.4.0"])
@pytest.mark.parametrize("id", MENDED)
def test_a_broker_that_waits_for_the_answer_may_do_all_of_it_for_a_short_time(id: str, version: str) -> None:
    judgement = judge(changed(id, version, announces=True))
    assert (judgement.verdict, judgement.failures, judgement.reason) == (Verdict.PASS, (), None)


def test_the_table_of_any_number_of_traces_names_newer_versions() -> None:
    tally = Tally()
    for version in ("4.3.6", "4.3.9", "4.4.0"):
        tally.add(judge(changed("TIMEOUT-016", version)))
    table = compliance_table(tally)
    assert [version for _, version in table.newer] == ["4.3.9", "4.4.0"]
    assert table.not_fixed == {target for target, _ in table.newer}
    assert sorted((each.is_as_known, each.sequences) for each in table.failures) == [(False, 2), (True, 1)]


@pytest.mark.parametrize(
    ("product", "version", "is_said"),
    [("RabbitMQ", "4.3.6", True), ("RabbitMQ", "4.0.5", False), ("RabbitMQ", "soon", False), ("Hare", "4.3.6", False)],
)
def test_only_of_its_own_product_and_dialect_a_known_defect_may_be_fixed(
    product: str, version: str, is_said: bool
) -> None:
    rows = changed("TIMEOUT-016", version)
    rows[0]["product"] = product
    tally = Tally()
    tally.add(judge(rows))
    table = compliance_table(tally)
    assert (not table.not_fixed) == is_said
    assert table.newer == ()
