"""Choosing from the runs what the corpus keeps: much is shown by few frames.

All scenarios of one version are kept. Of everything else, sequence by sequence, the one that adds the most for each of
its frames: known defects and failures, reasons of inconclusive verdicts, requirements exercised, all of these for
each broker and dialect; scenarios that end otherwise than in the version of which all are kept; themes of the search.
Sequences that only repeat or shorten others are left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path

import pyarrow.parquet as pq

from amqpspec.conformance.traces.trace import TraceRow, read_trace, sequences
from amqpspec.conformance.traces.trace_parquet import SCHEMA, write_parquet
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.model.promises.verdict import Verdict
from tests.corpus.expectations import judge_recording
from tests.corpus.runs import Run, all_runs

#: The recording of which every sequence is kept.
COMPLETE = "rabbitmq-4.3-scenarios"
#: Frames of everything else.
MOST_FRAMES = 28_000
#: No single sequence is longer, unless all are kept.
LONGEST = 3_000

#: A sequence of the search says something about its theme if it has so many frames.
LEAST_OF_A_THEME = 200

#: How much the first sequence that shows something adds, by what that is.
WORTH = {"known_defect": 16.0, "failure": 4.0, "undecided": 40.0, "otherwise": 3.0, "exercised": 1.0, "refuted": 1.0,
         "measured": 2.0, "theme": 16.0}  # fmt: skip
#: The second one adds so much: what shows in many ways is worth a second look. A third adds nothing.
SECOND = {"known_defect": 4.0, "theme": 4.0, "undecided": 10.0}
#: A sequence has to add as much as this for each frame.
LEAST_WORTH = 0.002

#: What a sequence shows: kind, whose (broker and dialect), and what.
Feature = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sequence of a run, and what its judgement was."""

    run: Run
    sequence: str
    judgement: SequenceJudgement
    features: frozenset[Feature]


def choose(runs: Path, directory: Path, processes: int) -> None:
    """Choose from the runs in a directory, and write the recordings to another one."""
    with ProcessPoolExecutor(processes) as pool:
        surveyed = list(pool.map(_survey, all_runs(), repeat(runs)))
        candidates = _with_differing_scenarios([each for found in surveyed for each in found])
        by_recording: defaultdict[str, list[Candidate]] = defaultdict(list)
        for each in _greedily(candidates):
            by_recording[each.run.recording].append(each)
        for old in [*directory.glob("*.parquet"), *directory.glob("*.json")]:
            if old.stem not in by_recording:
                old.unlink()
        paths = [directory / f"{recording}.parquet" for recording in by_recording]
        list(pool.map(_store, paths, repeat(runs), by_recording.values()))


# ---------------------------------------------------------------------------------------------- candidates


def _survey(run: Run, runs: Path) -> list[Candidate]:
    """The sequences of a run that could be kept."""
    found = []
    for rows in sequences(read_trace(runs / run.name)):
        judgement = judge(rows)
        complete = rows[-1]["kind"] == "end"
        if complete and judgement.repeats is None and (judgement.frames <= LONGEST or run.recording == COMPLETE):
            found.append(Candidate(run, judgement.sequence, judgement, frozenset(_features(run, judgement))))
    return found


def _features(run: Run, judgement: SequenceJudgement) -> Iterator[Feature]:
    whose = f"{run.target.partition(':')[0]} {run.recording.partition('-s')[0]} {judgement.dialect}"
    for failure in judgement.failures:
        if failure.defect:
            yield "known_defect", whose, failure.defect
        yield "failure", whose, f"{failure.requirement}|{failure.shape}|{failure.detail}|{failure.defect}"
    if judgement.verdict is Verdict.INCONCLUSIVE:
        yield "undecided", whose, re.sub(r"\d+", "0", judgement.reason or "")
    if run.recording == "embedded-faults":
        return  # what goes right there goes right elsewhere
    for id in judgement.exercised:
        yield "exercised", whose, id
    for defect in judgement.refuted:
        yield "refuted", whose, defect
    for measurement in judgement.measurements:
        yield "measured", whose, f"{measurement.requirement} {measurement.method}"
    if run.sequences and judgement.frames >= LEAST_OF_A_THEME:
        yield "theme", whose, run.theme


def _with_differing_scenarios(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates; scenarios that end otherwise than in the recording which is complete show that as well."""
    candidates = list(candidates)
    usual = {each.sequence: _ending(each) for each in candidates if each.run.recording == COMPLETE}
    return [
        replace(each, features=each.features | {("otherwise", each.run.recording, each.sequence)})
        if _is_scenario_of_another_version(each) and usual.get(each.sequence, ("pass", ())) != _ending(each)
        else each
        for each in candidates
    ]


def _is_scenario_of_another_version(candidate: Candidate) -> bool:
    return candidate.run.recording.startswith("rabbitmq") and not candidate.run.sequences


def _ending(candidate: Candidate) -> tuple[str, tuple[str, ...]]:
    judgement = candidate.judgement
    return str(judgement.verdict), tuple(failure.identity for failure in judgement.failures)


# ------------------------------------------------------------------------------------------------ choosing


def _greedily(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that are kept, in the order of the runs."""
    candidates = list(candidates)
    shown: Counter[Feature] = Counter()
    chosen: set[int] = set()
    for number, each in enumerate(candidates):
        if each.run.recording == COMPLETE:
            chosen.add(number)
            shown.update(each.features)
    left = MOST_FRAMES
    open_ones = dict(enumerate(candidates))
    while open_ones:
        worth = {number: _worth(each, shown) / max(1, each.judgement.frames) for number, each in open_ones.items()}
        # What adds nothing now never will, as everything only comes to be worth less.
        open_ones = {
            number: each
            for number, each in open_ones.items()
            if number not in chosen and worth[number] >= LEAST_WORTH and each.judgement.frames <= left
        }
        if open_ones:
            best = max(open_ones, key=lambda number: (worth[number], -number))
            chosen.add(best)
            shown.update(candidates[best].features)
            left -= candidates[best].judgement.frames
    return [candidates[number] for number in sorted(chosen)]


def _worth(candidate: Candidate, shown: Mapping[Feature, int]) -> float:
    worths = (WORTH, SECOND)
    return sum(worths[shown[each]].get(each[0], 0.0) for each in candidate.features if shown[each] < len(worths))


# ------------------------------------------------------------------------------------------------- storing


def _store(path: Path, runs: Path, kept: list[Candidate]) -> None:
    """Write a recording, and see to it that what is in it is judged as it was in the whole run."""
    several = len({each.run.name for each in kept}) > 1
    write_parquet(_rows(runs, kept, several), path)
    _repack(path)
    stored = judge_recording(path)
    expected = {_stored_name(each, several): replace(each.judgement, sequence="") for each in kept}
    for judgement in stored:
        if replace(judgement, sequence="") != expected.pop(judgement.sequence):
            raise ValueError(f"{path.name}: {judgement.sequence} is judged otherwise by itself than in its run")
    if expected:
        raise ValueError(f"{path.name}: not written: {', '.join(expected)}")


def _rows(runs: Path, kept: Iterable[Candidate], several: bool) -> Iterator[TraceRow]:
    """The rows of what is kept, each sequence by itself."""
    by_run: dict[Run, dict[str, Candidate]] = {}
    for each in kept:
        by_run.setdefault(each.run, {})[each.sequence] = each
    for run, wanted in by_run.items():
        for rows in sequences(read_trace(runs / run.name)):
            candidate = wanted.get(rows[0]["sequence"])
            if candidate is not None:
                for row in rows:
                    row["sequence"] = _stored_name(candidate, several)
                    yield row


def _stored_name(candidate: Candidate, several: bool) -> str:
    """Where the sequences of several runs are together, their names say of which they are."""
    return f"{candidate.sequence} of {candidate.run.name}" if several else candidate.sequence


def _repack(path: Path) -> None:
    """The same table in fewer octets: numbers of rows and times are most of it otherwise."""
    table = pq.read_table(path, schema=SCHEMA)
    others = [name for name in SCHEMA.names if name not in ("row", "time")]
    pq.write_table(
        table, path, compression="zstd", compression_level=19, use_dictionary=others,
        column_encoding={"row": "DELTA_BINARY_PACKED", "time": "BYTE_STREAM_SPLIT"},
    )  # fmt: skip
