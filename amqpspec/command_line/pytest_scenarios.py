"""Scenarios as tests of pytest: one for each scenario and queue type, by the requirement's identifier."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from amqpspec.command_line.logins import remember_logins, without_logins
from amqpspec.command_line.options import run_options
from amqpspec.command_line.suite_errors import kept
from amqpspec.command_line.targets import target_under_test
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.language.command_file import CommandFile, CommandFileError
from amqpspec.conformance.language.faults import breaks_broker
from amqpspec.conformance.scenarios.applicability import obstacle
from amqpspec.conformance.scenarios.scenario_files import own_scenarios, selected, sequence_name, sequence_of
from amqpspec.conformance.session.command_sequence import Place
from amqpspec.conformance.traces.trace import TraceError, TraceWriter
from amqpspec.conformance.verdicts.gate import Gate, excuse_of
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.model.defects.known_defects import strength_of
from amqpspec.model.promises.dialects import UnknownDialect, dialect_named
from amqpspec.model.promises.registry import UnknownRequirement, requirements, select
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.reports.text import visible
from amqpspec.targets.brokers.resolve import introduction, running
from amqpspec.targets.errors import TargetError

#: A property of the report of a test that failed because nothing was decided.
UNDECIDED = "amqpspec undecided"
#: What cannot be, because of what the user wrote or the target is.
_ERRORS = (UsageError, CommandFileError, TargetError, TraceError, UnknownDialect, UnknownRequirement, ValueError)


def check_options(config: pytest.Config) -> None:
    """Raises `pytest.UsageError`. A target that runs already is asked whether it does."""
    target = str(config.getoption("--amqp-target"))
    remember_logins([target, str(config.getoption("--amqp-management"))])
    try:
        with own_scenarios(_own(config)):
            select(config.getoption("--amqp-only"))
        if (dialect := config.getoption("--amqp-dialect")) is not None:
            dialect_named(dialect)
        if "://" in target:
            with running(target) as address:
                introduction(address)
    except _ERRORS as error:
        raise pytest.UsageError(_line(error)) from None


def _own(config: pytest.Config) -> Path | None:
    directory = config.getoption("--amqp-scenarios")
    return None if directory is None else Path(directory)


def _line(error: Exception) -> str:
    return "amqpspec: " + " ".join(without_logins(str(error)).split())


class Scenarios:
    """The target of this process, and its tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._only: list[str] = config.getoption("--amqp-only")
        self.gate = Gate(config.getoption("--amqp-gate"))
        #: other processes test the same broker at the same time
        self.is_shared = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1
        words: list[object] = [config.getoption("--amqp-target"), "--no-profile"]
        if (dialect := config.getoption("--amqp-dialect")) is not None:
            words += ["--dialect", dialect]
        if (management := config.getoption("--amqp-management")) is not None:
            words += ["--management", management]
        options: argparse.Namespace = run_options(words)
        self._stack = ExitStack()
        try:
            self._stack.enter_context(own_scenarios(_own(config)))
            self.target = self._stack.enter_context(target_under_test(options))
            directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="amqpspec-")))
            trace = self._stack.enter_context(TraceWriter(directory / "trace.jsonl"))
        except _ERRORS as error:
            self._stack.close()
            raise pytest.UsageError(_line(error)) from None
        self.place = Place(self.target, trace)

    def items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        """In the order of a run."""
        parent = _Suite.from_parent(session, name="amqp", nodeid="amqp")
        for scenario in selected(self._only, self.target.description.dialect):
            name = sequence_name(scenario).partition(" ")[2].replace(" ", "-")
            yield ScenarioItem.from_parent(parent, name=name, scenario=scenario, scenarios=self)

    def close(self) -> None:
        self._stack.close()


class _Suite(pytest.Collector):
    """Where the tests hang; it is never asked to collect them."""

    def collect(self) -> list[pytest.Item]:
        return []


class ScenarioFailed(Exception):
    """What the report of a failed test is made from."""

    def __init__(self, judgement: SequenceJudgement, failures: tuple[Failure, ...]) -> None:
        super().__init__(judgement.sequence)
        self.judgement, self.failures = judgement, failures


class ScenarioItem(pytest.Item):
    """One scenario, for one type of queue."""

    def __init__(self, *, scenario: CommandFile, scenarios: Scenarios, **others: Any) -> None:
        super().__init__(**others)
        self.scenario, self.scenarios = scenario, scenarios

    def runtest(self) -> None:
        scenario, scenarios = self.scenario, self.scenarios
        if reason := obstacle(scenario, scenarios.target):
            pytest.skip(f"not applicable: {reason}")
        is_broken = breaks_broker(scenario.commands) and scenarios.target.own_broker is None
        if is_broken and scenarios.target.faults is None:
            pytest.skip("is done to another broker than the one of these tests: amqpspec run does it")
        if (scenario.alone or is_broken) and scenarios.is_shared:
            pytest.skip("wants the broker for itself: run it without -n")
        sequence = sequence_of(scenario)
        judgement = scenarios.place.carry_out(sequence).judgement
        if judgement.verdict is Verdict.NOT_APPLICABLE:
            pytest.skip(f"not applicable: {judgement.reason}")
        if judgement.verdict is Verdict.INCONCLUSIVE:
            self.user_properties.append((UNDECIDED, True))
            pytest.fail(visible("\n".join(self._undecided(judgement))), pytrace=False)
        reasons = {failure: self._excuse(failure) for failure in judgement.failures}
        if new := tuple(failure for failure, reason in reasons.items() if reason is None):
            raise ScenarioFailed(judgement, new)
        if reasons:
            pytest.xfail(visible("; ".join(sorted({reason for reason in reasons.values() if reason}))))

    def _undecided(self, judgement: SequenceJudgement) -> Iterator[str]:
        yield f"inconclusive: {judgement.reason}"
        if judgement.suite_error is not None:
            yield f"please send this and {kept(self.scenarios.place.trace.path)} to the project; commands:"
            yield from (f"  {command}" for command in self.scenario.commands)

    def _excuse(self, failure: Failure) -> str | None:
        """Why a failure fails no test."""
        known = excuse_of(failure, self.scenarios.target.description, self.scenarios.gate)
        if known is not None:
            return known
        return f"{failure.identity}: only arguable" if strength_of(failure) is Strength.ARGUABLE else None

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        error = excinfo.value
        if isinstance(error, TargetError):
            return visible(f"the target was lost: {error}")
        if not isinstance(error, ScenarioFailed):
            return super().repr_failure(excinfo, style)
        lines: list[str] = []
        for failure in error.failures:
            rule = requirements().get(failure.requirement)
            lines += [f"{failure.requirement} {rule.title if rule else ''}", f"  {rule.statement if rule else ''}"]
            lines += [f"  {failure.shape}: {failure.detail} ({strength_of(failure)}), after {failure.command}"]
            lines += [f"  allowed   {each}" for each in failure.allowed or ("nothing",)]
            lines += [f"  observed  {failure.observed}", *(f"  state     {each}" for each in failure.state)]
        lines += ["commands:", *(f"  {command}" for command in self.scenario.commands)]
        return visible("\n".join(lines))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name
