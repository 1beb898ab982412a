"""The plugin of pytest: scenarios as tests, with and without pytest-xdist; nothing where the option is not given."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from amqpspec.conformance.session.command_sequence import CarriedOut, CommandSequence, Place
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from tests.reports.made_up import ACK, DEFECTIVE

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
PLUGIN = ("-p", "amqpspec.pytest_plugin", "-p", "no:cacheprovider")


@pytest.fixture(autouse=True)
def _finds_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def faulty() -> Iterator[str]:
    with EmbeddedBroker(fault="multiple-zero-ignored") as broker:
        yield f"amqp://guest:guest@{broker.address.host}:{broker.address.port}/"


def test_it_costs_no_import_and_does_nothing_without_the_option(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys
        def test_nothing_is_loaded():
            assert "amqpspec.pytest_plugin" in sys.modules
            loaded = [each for each in sys.modules if each.startswith("amqpspec.") and not each.endswith("_plugin")]
            assert not loaded and "hypothesis" not in sys.modules and "rich" not in sys.modules
    """)
    result = pytester.runpytest_subprocess(*PLUGIN, "-p", "no:hypothesispytest", "-p", "no:aiohttp")
    result.assert_outcomes(passed=1)


def test_scenarios_are_tests_by_identifier(pytester: pytest.Pytester, faulty: str) -> None:
    pytester.makepyfile("def test_own(): pass")
    result = pytester.runpytest_subprocess(*PLUGIN, "--amqp-target", faulty, "--amqp-only", "ACK-00", "-v", "-rA")
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] >= 2 and outcomes["passed"] > 10
    result.stdout.fnmatch_lines(
        ["*::test_own PASSED*", "amqp::ACK-001-classic PASSED*", "amqp::ACK-003-classic FAILED*"]
    )
    result.stdout.fnmatch_lines(["*ACK-003 multiple with tag 0", "*allowed   a.1 < basic.*", "*observed  nothing"])
    assert "guest:guest" not in "\n".join(result.outlines[5:]) and "Traceback" not in result.stdout.str()


def test_scenarios_of_ones_own_are_tests_as_well(pytester: pytest.Pytester, faulty: str) -> None:
    head = "@requirement ORDERS-00{}\n@title {}\n@severity stuck\na.1 queue.declare q\n"
    own = pytester.mkdir("own")
    (own / "ORDERS-001.amqp").write_text(head.format(1, "It is empty") + "expect ready q 0\n")
    (own / "ORDERS-002.amqp").write_text(head.format(2, "It holds one") + "expect a.1 queue.declare-ok message-count=1")
    words = ("--amqp-target", faulty, "--amqp-scenarios", "own", "--amqp-only", "ORDERS", "-v", "-rA")
    result = pytester.runpytest_subprocess(*PLUGIN, *words)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["amqp::ORDERS-001 PASSED*", "amqp::ORDERS-002 FAILED*"])
    result.stdout.fnmatch_lines(["*ORDERS-002 It holds one", "*expected: a.1 queue.declare-ok message-count=1*"])
    result = pytester.runpytest_subprocess(*PLUGIN, "--amqp-target", faulty, "--amqp-scenarios", "none")
    assert result.ret == 4 and "amqpspec: none: no such folder" in result.stderr.str()


def test_with_xdist_and_chosen_by_k(pytester: pytest.Pytester, faulty: str) -> None:
    result = pytester.runpytest_subprocess(
        *PLUGIN, "--amqp-target", faulty, "--amqp-only", "ACK-00", "-n", "2", "-k", "ACK-003 or ACK-001-classic"
    )
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] >= 1 and outcomes["failed"] >= 1
    assert sum(outcomes.values()) < 8


@pytest.mark.parametrize(
    "failure, gate, outcome",
    [
        (DEFECTIVE, "promise", "failed"),
        (DEFECTIVE, "known", "xfailed"),
        (ACK, "known", "failed"),
        (replace(DEFECTIVE, requirement="PUBLISH-015", defect="get-overtakes-deliveries"), "promise", "xfailed"),
    ],
)
def test_what_is_accepted_is_expected_to_fail(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, failure: Failure, gate: str, outcome: str
) -> None:
    """A known defect under the known gate; what is only arguable under both."""

    def carried_out(self: Place, sequence: CommandSequence) -> CarriedOut:
        found = SequenceJudgement(
            sequence.name, "made up", "rabbitmq-4.3", sequence.requirement, Verdict.FAIL, (failure,), {}, None, 1
        )
        return CarriedOut(sequence, found, 0)

    monkeypatch.setattr(Place, "carry_out", carried_out)
    result = pytester.runpytest_inprocess(
        *PLUGIN, "--amqp-target", "embedded", "--amqp-only", "CONSUME-008", "--amqp-gate", gate, "-rx"
    )
    outcomes = result.parseoutcomes()
    outcomes.pop("warnings", None)  # pytest warns of modules that are imported already, as it is run in a process
    assert outcomes.keys() == {outcome}, result.stdout.str()
    assert (result.ret == 0) == (outcome == "xfailed")
    if gate == "known" and failure is DEFECTIVE:
        result.stdout.fnmatch_lines(["*known defect exclusive-consumer-ignored*"])


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("amqp://127.0.0.1:1/",), "cannot connect to 127.0.0.1 port 1"),
        (("nonsense",), "nonsense"),
        (("embedded", "--amqp-only", "NOPE"), "NOPE"),
        (("embedded", "--amqp-dialect", "nope"), "nope"),
        (("embedded", "--amqp-management", "http://u:sekret@h"), "is not operated by its management"),
    ],
)
def test_bad_input_is_told_in_a_line(pytester: pytest.Pytester, arguments: tuple[str, ...], said: str) -> None:
    result = pytester.runpytest_subprocess(*PLUGIN, "--amqp-target", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines + result.outlines if "amqpspec: " in line]
    assert errors and said in errors[0]
    assert not any("sekret" in line for line in errors)
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_pytest_finds_it_where_the_suite_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"amqpspec.pytest_plugin": "amqpspec.pytest_plugin"}


@pytest.mark.parametrize("further, code", [(("ACK-001",), 4), (("ACK-001", "ACK-003"), 1)])
@pytest.mark.parametrize("spread", [(), ("-n", "1")])
def test_an_error_of_the_suite_is_undecided(
    pytester: pytest.Pytester, faulty: str, further: tuple[str, ...], code: int, spread: tuple[str, ...]
) -> None:
    """4, as for a run, unless something has failed."""
    pytester.makeconftest("""
        import pytest
        from tests.planted import break_judge
        break_judge(pytest.MonkeyPatch(), "basic.recover")
    """)
    only = [word for id in ("RECOVER-001", *further) for word in ("--amqp-only", id)]
    result = pytester.runpytest_subprocess(*PLUGIN, "--amqp-target", faulty, *only, *spread)
    assert result.ret == code, result.stdout.str()
    assert result.parseoutcomes()["passed"] >= 1
    result.stdout.fnmatch_lines(
        ["*inconclusive: the suite erred: KeyError: 'planted' (*", "*send *trace.jsonl to *", "*basic.recover*"]
    )
