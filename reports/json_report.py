"""The machine-readable report: one JSON object, the contract of `--json`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from amqpspec.conformance.profile.profile import choices_in_words
from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult
from amqpspec.model.broker.measurement import Measurement
from amqpspec.model.defects.known_defects import strength_of
from amqpspec.model.promises.severity import severity_of
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.promises.versions import newer_sentence
from amqpspec.reports.as_known import DefectEntry, defect_entries
from amqpspec.reports.compatibility import compatibility_as_json
from amqpspec.reports.listing import in_order


def report_object(result: RunResult) -> dict[str, Any]:
    """The report as an object.

    `requirements[].verdict` and `summary` are against the promise, `as_known` and `summary_as_known` against the
    broker as it is known; `exit_code` goes by the gate. What only a warning breaks passes both.
    `requirements[].reason` is there where a verdict other than pass or fail has one, `cut_short_by` where the scenario
    of a requirement was ended by another failure. `failures[].rate` is
    [failed, tried] when the commands were run again, and `seen_again` whether that showed it, else null;
    `failures[].known` what explains a known deviation, `failures[].as_known` "pass" where it is a known defect of the
    target's version (of its dialect, where the version is not known).
    `target.newer` is a sentence where the version is newer than what was verified, else null.
    `known_defects` are all that are known of it, with the sequences that showed them, and those that would have.
    `strength` is how strong the promise is that a failure or a known defect breaks: "promised", "conventional" or
    "arguable"; what is only arguable fails no run. `severity` is what a failure does to an application
    (`model.promises.severity`); they stand in the order of all reports (`reports.listing`). `as_rabbitmq` is the
    dialect of RabbitMQ that permits what is against the text, else null.
    `frames` are those that show it, in order, as far as the one that is wrong: `kind` is "command", "sent", "received",
    "wrong" (a frame that is not allowed), "missing" (one that did not come) or "gap" (some are left out), `place` the
    connection and channel.
    `extent` says how many scenarios and sequences of the search were judged to their end, and what ended the others;
    `decided` are the scenarios that were carried out and decided;
    `causes` what the broker refuses in one way again and again (`answer` is empty where it never answers), and how many
    sequences are `blocked` by that; where `answer` is "socket.closed" or a close, it comes in place of `what` is owed;
    `left_alone` the rules that the search leaves alone, each with the identity that is the reason;
    `left_behind` what the run made and the broker did not delete, `connections_left` how many connections it keeps;
    `not_whole` what is wrong with the broker at the end; `compatibility` the ways of RabbitMQ's own that were looked at
    of a product that is not RabbitMQ, `same` if it has them, else what RabbitMQ does and what was `observed`;
    `problems` what is wrong with the deviation file; `errors` are those of this suite, each with the commands of the
    sequence that it was raised in, if it was in one.
    `measurements` are of times that were up, all in seconds: `late` is by how much the broker was late, at least and
    at most, `expected` the same as the model expects it, `tick` the time between two looks at its clock.
    """
    return {
        "tool": {"name": result.tool, "version": result.tool_version},
        "target": {
            "label": result.target.label,
            "product": result.target.product,
            "version": result.target.version,
            "dialect": result.target.dialect,
            "choices": choices_in_words(result.target.dialect),
            "newer": newer_sentence(result.target.judged_version),
        },
        "seed": result.seed,
        "mode": result.mode,
        "summary": result.summary,
        "summary_as_known": result.summary_as_known,
        "sequences": result.sequences,
        "frames": result.frames,
        "seconds": round(result.seconds, 3),
        "extent": {"scenarios": asdict(result.scenarios_extent), "search": asdict(result.search_extent)},
        "causes": [asdict(cause) for cause in result.causes],
        "left_alone": dict(result.left_alone),
        "left_behind": list(result.left_behind),
        "connections_left": result.connections_left,
        "compatibility": compatibility_as_json(result.compatibility),
        "decided": sorted(result.decided),
        "not_whole": list(result.not_whole),
        "problems": list(result.problems),
        "errors": [
            {"sequence": each.sequence, "error": each.what, "commands": list(each.commands)} for each in result.errors
        ],
        "exit_code": result.exit_code,
        "lost": result.lost,
        "requirements": [
            {
                "id": requirement.id,
                "verdict": str(requirement.verdict),
                "as_known": str(requirement.as_known),
                "exercised": requirement.exercised,
                **({} if requirement.reason is None else {"reason": requirement.reason}),
                **({} if requirement.cut_short_by is None else {"cut_short_by": requirement.cut_short_by}),
            }
            for requirement in result.requirements
        ],
        "failures": [_failure(found, result.is_as_known(found)) for found in in_order(result)],
        "known_defects": [_defect(entry) for entry in defect_entries(result)],
        "measurements": [_measurement(sequence, measurement) for sequence, measurement in result.measurements],
        "undecided": [{"sequence": sequence, "reason": reason} for sequence, reason in result.undecided],
    }


def _defect(entry: DefectEntry) -> dict[str, Any]:
    defect, outcome = entry.defect, entry.outcome
    return {
        "name": defect.name,
        "requirement": defect.requirement,
        "strength": str(defect.strength),
        "statement": defect.statement,
        "source": defect.source,
        "brokers": list(defect.brokers),
        "standing": str(outcome.standing),
        "sequences": outcome.seen,
        "not_seen_in": outcome.refuted,
        "window_open_in": outcome.window_open,
    }


def _measurement(sequence: str, measurement: Measurement) -> dict[str, Any]:
    return {
        "sequence": sequence,
        "requirement": measurement.requirement,
        "method": measurement.method,
        "nominal": measurement.nominal,
        "late": [round(measurement.least, 6), round(measurement.most, 6)],
        "expected": [round(measurement.earliest, 6), round(measurement.latest, 6)],
        "tick": measurement.tick,
        "is_expected": measurement.is_expected,
    }


def _failure(found: FoundFailure, as_known: bool) -> dict[str, Any]:
    failure = found.failure
    return {
        "requirement": failure.requirement,
        "identity": failure.identity,
        "shape": str(failure.shape),
        "detail": failure.detail,
        "sequence": found.sequence,
        "sequences": found.sequences,
        "command": failure.command,
        "commands": list(found.commands),
        "allowed": list(failure.allowed),
        "observed": failure.observed,
        "state": list(failure.state),
        "reproducer": found.reproducer,
        "known": found.known,
        "known_defect": failure.defect or None,
        "as_rabbitmq": failure.like or None,
        "strength": str(strength_of(failure)),
        "severity": str(severity_of(failure)),
        "as_known": str(Verdict.PASS if as_known else Verdict.FAIL),
        "rate": None if found.rate is None else list(found.rate),
        "seen_again": None if found.rate is None else not found.not_seen_again,
        "cut_short": found.cut_short,
        "frames": [{"kind": str(each.kind), "place": each.place, "text": each.text} for each in found.ladder],
    }


def render_json(result: RunResult, ended_with: int | None = None) -> str:
    """The report as text. Pure ASCII, since what a broker sent need not be proper text.

    `ended_with`: the exit code of a run that a signal has ended.
    """
    report = report_object(result)
    if ended_with is not None:
        report["exit_code"] = ended_with
    return json.dumps(report, indent=2) + "\n"
