"""Each faulty variant of consumer timeouts is caught by the requirement that it names. They wait, so side by side."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.faults.all_faults import FAULTS
from tests.targets.faults.test_faults import run_lines
from tests.targets.faults.timeout_lines import TIMEOUT_LINES

#: Sequences at one time, and seconds that one waits for what is owed while there are so many others.
AT_ONCE = 12
PATIENCE = 1.0


def run_all(names: Iterable[str], directory: Path, *, is_faulty: bool) -> dict[str, SequenceJudgement]:
    def run(name: str) -> SequenceJudgement:
        fault = name if is_faulty else None
        return run_lines(fault, name, TIMEOUT_LINES[name], directory / f"{name}.jsonl", PATIENCE)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(run, names), strict=True))


def blamed_for(judgement: SequenceJudgement) -> str:
    return judgement.failures[0].requirement if judgement.failures else ""


def test_faults_are_caught_by_their_requirements(tmp_path: Path) -> None:
    blamed = {name: blamed_for(each) for name, each in run_all(TIMEOUT_LINES, tmp_path, is_faulty=True).items()}
    # on a busy machine a short wait may have seen nothing, or too much
    wrong = [name for name, requirement in blamed.items() if requirement != FAULTS[name].requirement]
    blamed |= {name: blamed_for(each) for name, each in run_all(wrong, tmp_path, is_faulty=True).items()}
    assert blamed == {name: FAULTS[name].requirement for name in TIMEOUT_LINES}


def test_the_sound_broker_passes_the_lines(tmp_path: Path) -> None:
    judgements = run_all(TIMEOUT_LINES, tmp_path, is_faulty=False)
    seen = {name: (each.verdict, each.failures, each.reason) for name, each in judgements.items()}
    assert seen == dict.fromkeys(TIMEOUT_LINES, (Verdict.PASS, (), None))
