"""A run as its `report.json` tells of it: what several runs are compared by.

Reports of earlier versions of this suite are read too: what they do not have is empty. A directory that has a trace and
no report, as after a run that was killed, is judged again by the caller (`amqpspec.command_line.stored_runs`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amqpspec.conformance.verdicts.judgement import THROUGH
from amqpspec.conformance.verdicts.known_behaviour import Standing
from amqpspec.conformance.verdicts.minor import AS_RABBITMQ, RECOMMENDED
from amqpspec.conformance.verdicts.rung import Kind, Rung
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS
from amqpspec.model.promises.verdict import Verdict

REPORT = "report.json"
#: Verdicts by which a requirement was tried: what did not fail then was not there to be seen.
DECIDED = (Verdict.PASS, Verdict.FAIL)


class StoredRunError(Exception):
    """There is no report that can be read; the message names the file and what is wrong, in one line."""


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """How a requirement ended."""

    verdict: Verdict
    as_known: Verdict
    exercised: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StoredFailure:
    """A failure of a stored run; fields as in `report.json`."""

    requirement: str
    identity: str
    shape: str
    detail: str
    command: str
    commands: tuple[str, ...]
    allowed: tuple[str, ...]
    observed: str
    defect: str
    strength: str
    is_as_known: bool
    sequence: str
    sequences: int
    #: showed in each repetition of its commands, and wherever it would have shown, as far as that is known
    is_steady: bool = True
    #: the frames that show it, where the report has them
    ladder: tuple[Rung, ...] = ()
    #: the text only recommends what the broker does not do, or RabbitMQ does not do it either
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class StoredDefect:
    """What became of a known defect; `not_seen_in` so many sequences that would have shown it."""

    standing: str
    not_seen_in: int


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run on one target. `requirements` and `failures` are by identifier and by identity."""

    place: Path
    label: str
    product: str
    version: str
    dialect: str
    seed: int | None
    sequences: int
    lost: str
    requirements: Mapping[str, StoredVerdict]
    failures: Mapping[str, StoredFailure]
    #: known defects of the target's version, by name
    defects: Mapping[str, StoredDefect] = field(default_factory=dict)
    #: scenarios that were decided; None: the report does not say
    decided: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """Of the broker, and of the client library through which it was asked."""
        through = THROUGH + self.library if self.library else ""
        return f"{self.product} {self.version}".strip() + through

    @property
    def where(self) -> str:
        """The broker, as the command line named it."""
        return self.label.partition(THROUGH)[0]

    @property
    def library(self) -> str:
        """The client library through which it was asked, with its version; "": none."""
        return self.label.partition(THROUGH)[2]

    def has_tried(self, failure: StoredFailure) -> bool:
        """Would this run have shown that failure, which another one showed?

        A known defect of its version says so itself. Else it has if the scenario that showed it was carried out. Of
        what a search found it is enough that the requirement was decided.
        """
        if failure.identity in self.failures:
            return True
        if failure.defect in self.defects:
            return self.defects[failure.defect].standing == Standing.NOT_SEEN
        if failure.sequence.startswith("scenario ") and self.decided is not None:
            return failure.sequence in self.decided
        said = self.requirements.get(failure.requirement)
        return said is not None and said.verdict in DECIDED


def read_run(path: Path) -> StoredRun:
    """The run of a directory, or of the report itself. Raises `StoredRunError`."""
    file = path / REPORT if path.is_dir() else path
    try:
        written = json.loads(file.read_bytes())
    except OSError as error:
        raise StoredRunError(f"{file}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise StoredRunError(f"{file}: is not JSON") from None
    try:
        return run_of(written, file.parent)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoredRunError(f"{file}: is not a report of this suite ({type(error).__name__}: {error})") from None


def run_of(written: Any, place: Path) -> StoredRun:
    """The run that the object (`reports.json_report`) tells of. Raises what a wrong form raises."""
    target = written["target"]
    defects = {
        each["name"]: StoredDefect(str(each.get("standing", "")), int(each.get("not_seen_in", 0)))
        for each in written.get("known_defects", ())
    }
    failures = [_failure(each, defects) for each in written["failures"]]
    decided = written.get("decided")
    return StoredRun(
        place,
        str(target.get("label", "")),
        str(target["product"]),
        str(target["version"]),
        str(target["dialect"]),
        written.get("seed"),
        int(written.get("sequences", 0)),
        str(written.get("lost") or ""),
        {each["id"]: _verdict(each) for each in written["requirements"]},
        {each.identity: each for each in failures},
        defects,
        None if decided is None else frozenset(map(str, decided)),
    )


def _verdict(each: Mapping[str, Any]) -> StoredVerdict:
    verdict = Verdict(each["verdict"])
    return StoredVerdict(
        verdict, Verdict(each.get("as_known", verdict)), int(each["exercised"]), str(each.get("reason", ""))
    )


def _failure(each: Mapping[str, Any], defects: Mapping[str, StoredDefect]) -> StoredFailure:
    """A known defect that shows by chance, or did not show where it would have, is no steady one."""
    requirement, shape, detail = str(each["requirement"]), str(each.get("shape", "")), str(each.get("detail", ""))
    rate, defect = each.get("rate"), str(each.get("known_defect") or "")
    by_chance = defect in KNOWN_DEFECTS and KNOWN_DEFECTS[defect].by_chance
    missed = defect in defects and defects[defect].not_seen_in
    is_steady = (rate is None or rate[0] == rate[1]) and not by_chance and not missed
    return StoredFailure(
        requirement,
        str(each.get("identity") or f"{requirement}|{shape}|{detail}"),
        shape,
        detail,
        str(each.get("command", "")),
        tuple(map(str, each["commands"])),
        tuple(map(str, each["allowed"])),
        str(each["observed"]),
        defect,
        str(each.get("strength", "")),
        each.get("as_known") == Verdict.PASS,
        str(each.get("sequence", "")),
        int(each.get("sequences", 1)),
        is_steady,
        tuple(Rung(Kind(rung["kind"]), str(rung["place"]), str(rung["text"])) for rung in each.get("frames", ())),
        each.get("known") in (RECOMMENDED, AS_RABBITMQ),
    )
