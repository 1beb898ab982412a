"""What judging a recording gives, as an object that is kept beside it, and what has changed in that.

The judging is that of `amqpspec check`; only names and numbers are written down here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.conformance.verdicts.known_behaviour import defects_tested
from amqpspec.conformance.verdicts.tally import Tally
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.pipeline.table import compliance_table, judge_traces

#: Where the recordings of the project are.
DIRECTORY = Path(__file__).parent
#: Traces are written in these two forms.
SUFFIXES = (".parquet", ".jsonl")
#: So many sequences are named where a count has changed.
MOST_NAMED = 5

Expectation = dict[str, Any]


def recordings(directory: Path = DIRECTORY) -> list[Path]:
    """The traces in a directory, in the order of their names."""
    return sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES)


def expectation_file(recording: Path) -> Path:
    """Where the expectation of a recording is kept."""
    return recording.with_suffix(".json")


def judge_recording(recording: Path) -> list[SequenceJudgement]:
    """Judge every sequence of a recording. Raises `TraceError`."""
    return list(judge_traces([recording]))


def expectation_of(judgements: Iterable[SequenceJudgement]) -> Expectation:
    """What is kept of the judgements: counts, and each sequence that does not simply pass."""
    frames = 0
    verdicts: Counter[str] = Counter()
    exercised: Counter[str] = Counter()
    refuted: Counter[str] = Counter()
    defects: Counter[str] = Counter()
    measurements: Counter[str] = Counter()
    others: dict[str, Expectation] = {}
    tally = Tally()
    for judgement in judgements:
        frames += judgement.frames
        verdicts[judgement.verdict] += 1
        exercised.update(judgement.exercised)
        refuted.update(judgement.refuted)
        tested = defects_tested(judgement.failures, judgement.refuted, judgement.dialect)
        defects.update(name for name, seen in tested.items() if seen)
        measurements.update(f"{each.requirement} {each.method}" for each in judgement.measurements)
        if judgement.verdict is not Verdict.PASS or judgement.failures or judgement.reason:
            others[_unused(judgement.sequence, others)] = _outcome(judgement)
        tally.add(judgement)
    return {
        "sequences": verdicts.total(),
        "frames": frames,
        "verdicts": dict(sorted(verdicts.items())),
        "known_defects": dict(sorted(defects.items())),
        "refuted": dict(sorted(refuted.items())),
        "measurements": dict(sorted(measurements.items())),
        "requirements that do not pass": _not_passed(tally),
        "sequences that do not pass": others,
        "exercised": dict(sorted(exercised.items())),
    }


def _unused(name: str, used: Iterable[str]) -> str:
    """The name, with a number where it is used already: a trace may use names again."""
    number, candidate = 1, name
    while candidate in used:
        number += 1
        candidate = f"{name} ({number})"
    return candidate


def _outcome(judgement: SequenceJudgement) -> Expectation:
    outcome: Expectation = {"verdict": str(judgement.verdict)}
    if judgement.reason is not None:
        outcome["reason"] = judgement.reason
    if judgement.failures:
        outcome["failures"] = [_failure(failure) for failure in judgement.failures]
    return outcome


def _failure(failure: Failure) -> str:
    """The identity of a failure in full: what a known defect explains has its shape and detail as well."""
    defect = f" = known defect {failure.defect}" if failure.defect else ""
    return f"{failure.requirement}|{failure.shape}|{failure.detail}{defect}"


def _not_passed(tally: Tally) -> dict[str, int]:
    """In how many sequences a requirement ended in another verdict than pass."""
    counts: Counter[str] = Counter()
    for row in compliance_table(tally).rows:
        if row.verdict != Verdict.PASS:
            as_known = f", {row.as_known} as known" if row.as_known != row.verdict else ""
            counts[f"{row.requirement or 'search'} {row.verdict}{as_known}"] += row.sequences
    return dict(sorted(counts.items()))


# ------------------------------------------------------------------------------------------------ files


def read_expectation(recording: Path) -> Expectation:
    """The expectation that is kept; empty if there is none yet."""
    file = expectation_file(recording)
    if not file.exists():
        return {}
    kept: Expectation = json.loads(file.read_text(encoding="utf-8"))
    return kept


def write_expectation(recording: Path, expectation: Expectation) -> None:
    """Keep an expectation beside its recording."""
    text = json.dumps(expectation, indent=1, ensure_ascii=False)
    expectation_file(recording).write_text(text + "\n", encoding="utf-8")


# ----------------------------------------------------------------------------------------------- changes


def changes(recording: Path) -> list[str]:
    """Judge a recording; a line for each thing that is not as it is kept. Raises `TraceError`."""
    judgements = judge_recording(recording)
    kept, found = read_expectation(recording), expectation_of(judgements)
    lines = list(difference(kept, found))
    moved = _changed(kept.get("exercised", {}), found["exercised"])
    return lines + (list(_where_counts_moved(recording, judgements, moved)) if kept and moved else [])


def difference(before: Expectation, after: Expectation, at: str = "") -> Iterator[str]:
    """A line for each value that is another one."""
    for key in _changed(before, after):
        place = f"{at}: {key}" if at else key
        old, new = before.get(key), after.get(key)
        if key == "failures" and isinstance(old, list | None) and isinstance(new, list | None):
            yield from _list_difference(place, old or [], new or [])
        elif isinstance(old or {}, dict) and isinstance(new or {}, dict) and (old or new):
            yield from difference(old or {}, new or {}, place)
        else:
            yield f"{place}: {_said(old)} -> {_said(new)}"


def _changed(before: Expectation, after: Expectation) -> list[str]:
    """The keys of which the value is another one, in order."""
    return [key for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key)]


def _said(value: object) -> str:
    return "nothing" if value is None else str(value)


def _list_difference(place: str, before: list[str], after: list[str]) -> Iterator[str]:
    lost, gained = Counter(before) - Counter(after), Counter(after) - Counter(before)
    yield from (f"{place}: - {each}" for each in lost.elements())
    yield from (f"{place}: + {each}" for each in gained.elements())
    if not lost and not gained:
        yield f"{place}: in another order: {'; '.join(after)}"


def _where_counts_moved(
    recording: Path, judgements: Iterable[SequenceJudgement], moved: Iterable[str]
) -> Iterator[str]:
    """Which sequences count otherwise than their recording says that they did."""
    ends: dict[str, list[dict[str, int]]] = {}
    for row in read_trace(recording):
        if row["kind"] == "end":
            ends.setdefault(row["sequence"], []).append(row["exercised"])
    found: dict[str, list[str]] = {id: [] for id in moved}
    for judgement in judgements:
        if not ends.get(judgement.sequence):
            continue
        recorded = ends[judgement.sequence].pop(0)
        for id, lines in found.items():
            old, new = recorded.get(id, 0), judgement.exercised.get(id, 0)
            if old != new:
                lines.append(f"{judgement.sequence} {old} -> {new}")
    for id, lines in found.items():
        if lines:
            more = f"; and {len(lines) - MOST_NAMED} more" if len(lines) > MOST_NAMED else ""
            yield f"exercised: {id} against the recorded run: {'; '.join(lines[:MOST_NAMED])}{more}"


# ----------------------------------------------------------------------------------- several recordings


def changes_in(directory: Path, processes: int) -> Iterator[tuple[Path, list[str]]]:
    """The changes of every recording in a directory, judged in several processes."""
    paths = recordings(directory)
    with ProcessPoolExecutor(processes) as pool:
        # The largest are begun first, so that none is waited for alone at the end.
        largest_first = sorted(paths, key=lambda path: path.stat().st_size, reverse=True)
        judged = {path: pool.submit(changes, path) for path in largest_first}
        for path in paths:
            yield path, judged[path].result()


def rewrite(recording: Path) -> list[str]:
    """Write the expectation of a recording anew; a line for each thing that was another one before."""
    expectation = expectation_of(judge_recording(recording))
    lines = list(difference(read_expectation(recording), expectation))
    write_expectation(recording, expectation)
    return lines


def rewrite_in(directory: Path, processes: int) -> Iterator[tuple[Path, list[str]]]:
    """The same for every recording in a directory, in several processes."""
    paths = recordings(directory)
    with ProcessPoolExecutor(processes) as pool:
        yield from zip(paths, pool.map(rewrite, paths), strict=True)
