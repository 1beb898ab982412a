"""JUnit by its schema and as a consumer reads it; `report.json` by the schema that is published."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import xmlschema
from junitparser import Error, Failure, JUnitXml, Skipped

from amqpspec.conformance.verdicts.judgement import Cause, Extent, RunResult
from amqpspec.model.promises.verdict import Verdict
from amqpspec.reports.json_report import report_object
from amqpspec.reports.junit import render_junit
from tests.reports.made_up import result

SCHEMA = Path(__file__).parents[2] / "docs" / "report.schema.json"

RESULTS: dict[str, RunResult] = {
    "every verdict": result(),
    "nothing failed": result(failures=False, undecided=False),
    "a lost target": replace(result(), lost="the target was lost", seed=None),
    "no requirement": replace(result(failures=False, undecided=False), requirements=(), measurements=(), defects=()),
    "causes and what was left": replace(
        result(),
        causes=(Cause("ACK-002|missing frame|x", "x-queue-type=quorum", "503", 12, ("QOS-003|a|b",)),),
        left_behind=("queue q",),
        scenarios_extent=Extent(7, 5, (("ACK-002|missing frame|x", 2),)),
        decided=frozenset({"scenario ACK-002 classic"}),
    ),
}


@cache
def schema_of_junit() -> Any:
    return xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd"))


@cache
def validator() -> Any:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(_closed(schema))


def _closed(node: Any) -> Any:
    """Readers take keys that they do not know; here each must be published."""
    if isinstance(node, list):
        return [_closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    closed = {key: _closed(value) for key, value in node.items()}
    return {**closed, "additionalProperties": False} if node.get("type") == "object" else closed


@pytest.mark.parametrize("name", RESULTS)
def test_junit_is_valid(name: str) -> None:
    schema_of_junit().validate(render_junit(RESULTS[name]))


def test_the_schema_of_junit_refuses_what_is_wrong() -> None:
    text = render_junit(result())
    for before, after in (("<failure", "<mistake"), (' classname="', ' class="'), ('failures="', 'failures="-')):
        wrong = text.replace(before, after).replace("</failure>", "</mistake>" if "mistake" in after else "</failure>")
        assert not schema_of_junit().is_valid(wrong)


def test_a_consumer_reads_junit() -> None:
    made = result()
    (suite,) = JUnitXml.fromstring(render_junit(made).encode())
    cases = {case.name.split()[0]: case for case in suite}
    assert (suite.tests, len(cases)) == (len(made.requirements) + 2, len(made.requirements) + 2)
    assert suite.time == pytest.approx(made.seconds, abs=0.01), "the time of the run"
    kinds = {
        Verdict.PASS: None, Verdict.FAIL: Failure, Verdict.INCONCLUSIVE: Error, Verdict.NOT_EXERCISED: Skipped,
        Verdict.NOT_APPLICABLE: Skipped,
    }  # fmt: skip
    for outcome in made.requirements:
        kind = Skipped if outcome.id == "CANCEL-001" else kinds[outcome.verdict]  # accepted by the deviation file
        found = cases[outcome.id].result
        assert [type(each) for each in found] == ([] if kind is None else [kind]), outcome
    assert "basic.deliver" in cases["ACK-002"].result[0].text


@pytest.mark.parametrize("name", RESULTS)
def test_json_is_as_published(name: str) -> None:
    validator().validate(json.loads(json.dumps(report_object(RESULTS[name]))))


def test_the_schema_names_every_key_and_refuses_what_is_wrong() -> None:
    written = json.loads(json.dumps(report_object(RESULTS["causes and what was left"])))
    wrong = [
        {**written, "another": 1},
        {key: value for key, value in written.items() if key != "seed"},
        {**written, "exit_code": "0"},
        {**written, "requirements": [{**written["requirements"][0], "verdict": "good"}]},
        {**written, "failures": [{**written["failures"][0], "as_known": None}]},
        {**written, "summary": {"pass": 1}},
    ]
    assert [validator().is_valid(each) for each in wrong] == [False] * len(wrong)
    # no key is without a word of what it is
    for name, each in json.loads(SCHEMA.read_text())["properties"].items():
        assert each.get("description"), name
