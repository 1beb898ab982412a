"""The deviation file: failures that a team knows and accepts for now. It can make a run green, and says why.

    [[deviation]]
    identity = "QUEUE-026|wrong argument|queue.declare-ok consumer-count"
    reason = "counts consumers that were cancelled"
    link = "https://…"                  # optional, like all that follows
    product = "MyBroker"                # of these targets only
    versions = "2.1.0 to 2.4.9"         # or one version
    expires = 2027-03-01                # from that day on the entry fails the run
    shown-by = "scenario QUEUE-026"     # that sequence was run, and the failure is gone: the entry fails the run
    by-chance = true                    # the broker does it at one time and not at another

In place of `identity` a known defect's name may stand: `defect = "quorum-consumer-count"`, or that of a change between
two versions, which is for `amqpspec diff`, and says nothing in a run: `change = "channel-prefetch"`. In an identity
`*` stands for any text, for one cause that shows in many ways: `ACK-015|*` accepts whatever breaks that requirement,
`*|missing frame|basic.deliver` a delivery that does not come, whichever requirement is blamed for it. An entry that
accepts everything is refused. One that names nothing real, has expired, or was put to the test in vain is a problem,
and makes the run fail: a list of what is accepted must not grow old unseen.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult, TargetDescription
from amqpspec.conformance.verdicts.known_behaviour import Standing
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS
from amqpspec.model.promises.differences_of_choices import ARGUMENTS, CHOICES
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.recommended import recommendation
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.versions import VersionRange, version_of, versions

_TEXTS = ("identity", "defect", "change", "reason", "link", "issue", "product", "versions", "shown-by")
_KEYS = {*_TEXTS, "expires", "by-chance"}
#: Stands for any text in an identity.
_ANY = "*"
_TYPES = tuple(str(each.value) for each in QueueType)
#: Begins the identity of a change between two versions.
OF_CHANGE = "change|"
#: The names of changes by the choices of a dialect, those of arguments of queue.declare behind "queue_arguments.".
CHANGES = {name: name.replace("_", "-") for name in CHOICES} | {
    f"queue_arguments.{name}": f"{name}-arguments" if name in _TYPES else name.replace("_", "-") for name in ARGUMENTS
}


class DeviationFileError(Exception):
    """The file cannot be used; the message names it and what is wrong."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """One entry; "" and None: the entry does not say it. In `identity` a "*" stands for any text."""

    identity: str
    reason: str
    link: str = ""
    product: str = ""
    versions: VersionRange | None = None
    expires: date | None = None
    shown_by: str = ""
    by_chance: bool = False

    def is_about(self, target: TargetDescription) -> bool:
        """Is it for that target's product and version?"""
        if self.product and self.product.casefold() != target.product.casefold():
            return False
        return self.versions is None or version_of(target.version) in self.versions

    def is_expired(self, today: date) -> bool:
        return self.expires is not None and self.expires <= today

    def lists(self, identity: str) -> bool:
        """Is a failure of that identity meant?"""
        return _matches(self.identity, identity)

    @property
    def excuse(self) -> str:
        """What reports say of a failure that it lists."""
        return f"{self.reason} ({self.link})" if self.link else self.reason

    @property
    def defect(self) -> str:
        """The name of the known defect that it is about, if there is one."""
        return name if (name := self.identity.rpartition("|")[2]) in KNOWN_DEFECTS else ""


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split(_ANY))), text, re.DOTALL) is not None


def read_deviations(path: Path) -> tuple[Deviation, ...]:
    """The entries of the file. Raises `DeviationFileError`."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DeviationFileError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    except tomllib.TOMLDecodeError as error:
        raise DeviationFileError(f"{path}: {error}") from None
    entries = table.get("deviation", [])
    if not isinstance(entries, list) or set(table) - {"deviation"}:
        raise DeviationFileError(f"{path}: holds something else than [[deviation]] entries")
    read: list[Deviation] = []
    for number, entry in enumerate(entries, 1):
        try:
            deviation = _read(entry)
        except ValueError as error:
            raise DeviationFileError(f"{path}: deviation {number} {error}") from None
        if any(_overlap(each, deviation) for each in read):
            raise DeviationFileError(f"{path}: deviation {number} repeats {deviation.identity!r}")
        read.append(deviation)
    return tuple(read)


def _read(entry: Any) -> Deviation:
    """Raises `ValueError`: what is wrong with the entry."""
    if not isinstance(entry, dict):
        raise ValueError("is not a table")
    if unknown := sorted(set(entry) - _KEYS):
        raise ValueError(f"has {unknown[0]!r}, which is none of {', '.join(sorted(_KEYS))}")
    for key in _TEXTS:
        if key in entry and (not isinstance(entry[key], str) or not entry[key].strip()):
            raise ValueError(f"needs an identity and a reason: {key} is not a text, or is empty")
    if sum(key in entry for key in ("identity", "defect", "change")) != 1 or "reason" not in entry:
        raise ValueError("needs an identity and a reason, or a defect or change in place of the identity")
    if "change" in entry and entry["change"] not in CHANGES.values():
        raise ValueError(f"has the change {entry['change']!r}, which is none of {', '.join(sorted(CHANGES.values()))}")
    if not entry.get("identity", "x").strip("*| "):
        raise ValueError("accepts everything")
    if type(entry.get("expires", date.min)) is not date:
        raise ValueError("expires is not a date such as 2027-03-01")
    if not isinstance(entry.get("by-chance", False), bool):
        raise ValueError("by-chance is not true or false")
    return Deviation(
        _identity_in(entry), entry["reason"],
        entry.get("link") or entry.get("issue") or "", entry.get("product", ""), _range(entry.get("versions")),
        entry.get("expires"), entry.get("shown-by", ""), entry.get("by-chance", False),
    )  # fmt: skip


def _identity_in(entry: dict[str, Any]) -> str:
    if "identity" in entry:
        return str(entry["identity"])
    return OF_CHANGE + entry["change"] if "change" in entry else _identity_of(entry["defect"])


def _identity_of(defect: str) -> str:
    """The failures that a known defect explains have an identity of their own (`model.promises.verdict`)."""
    known = KNOWN_DEFECTS.get(defect)
    return f"{known.requirement}|{defect}" if known is not None else f"|{defect}"


def _range(text: str | None) -> VersionRange | None:
    if text is None:
        return None
    first, _, last = text.partition(" to ")
    try:
        return versions(first.strip(), (last or first).strip())
    except ValueError:
        raise ValueError(f"versions {text!r} is not like '4.3.6' or '4.3.0 to 4.3.6'") from None


def _overlap(one: Deviation, other: Deviation) -> bool:
    return one.identity == other.identity and (one.product, one.versions) == (other.product, other.versions)


# ------------------------------------------------------------------------------------------ applied to a result


def with_deviations(result: RunResult, listed: Sequence[Deviation]) -> RunResult:
    """The result with the failures that are listed marked so. What is only a warning stays one, listed or not."""
    excuse_of = excuses(listed, result.target)
    return replace(
        result,
        failures=tuple(
            found if recommendation(found.failure, result.target.dialect) else _marked(found, excuse_of)
            for found in result.failures
        ),
    )


def excuses(listed: Sequence[Deviation], target: TargetDescription) -> Callable[[str], str | None]:
    """A function that says why a failure of the target is accepted, by its identity; None: it is not.

    An entry that has the very identity goes before those that it matches.
    """
    about_it = [each for each in listed if each.is_about(target)]

    def excuse_of(identity: str) -> str | None:
        matching = (each for each in about_it if each.lists(identity))
        best = min(matching, key=lambda each: each.identity != identity, default=None)
        return best.excuse if best is not None else None

    return excuse_of


def _marked(found: FoundFailure, excuse_of: Callable[[str], str | None]) -> FoundFailure:
    return replace(found, known=excuse_of(found.failure.identity) or found.known)


def problem_of(deviation: Deviation, result: RunResult, today: date) -> str | None:
    """Why the entry must not stay as it is; None: it may."""
    if stale := out_of_date(deviation, today):
        return stale
    if not deviation.is_about(result.target) or deviation.by_chance or deviation.identity.startswith(OF_CHANGE):
        return None
    if any(deviation.lists(found.failure.identity) for found in result.failures):
        return None
    if deviation.defect:
        gone = {each.name for each in result.defects if each.standing is Standing.NOT_SEEN}
        return "what would have shown it did not" if deviation.defect in gone else None
    return f"{deviation.shown_by} did not show it" if deviation.shown_by in result.decided else None


def out_of_date(deviation: Deviation, today: date) -> str | None:
    """Why the entry must not stay as it is, whatever was tested; None: it may."""
    if deviation.identity.startswith(OF_CHANGE):
        return f"it expired on {deviation.expires}" if deviation.is_expired(today) else None
    if deviation.identity.startswith("|"):
        return f"there is no known defect {deviation.identity[1:]!r}"
    requirement = deviation.identity.partition("|")[0]
    if not any(_matches(requirement, each) for each in requirements()):
        return f"there is no requirement {requirement!r}"
    return f"it expired on {deviation.expires}" if deviation.is_expired(today) else None


def problems_of(listed: Iterable[Deviation], today: date | None = None) -> list[str]:
    """What must not stay in the file as it is, whatever was tested, in lines."""
    stale = ((each, out_of_date(each, today or date.today())) for each in listed)
    return [f"deviation {each.identity.lstrip('|')}: {problem}" for each, problem in stale if problem]


def with_problems(result: RunResult, listed: Collection[Deviation], today: date) -> RunResult:
    """The result with what is wrong with the entries: such a run fails."""
    found = ((each.identity, problem_of(each, result, today)) for each in listed)
    problems = (f"deviation {identity.lstrip('|')}: {problem}" for identity, problem in found if problem)
    return replace(result, problems=tuple(problems))
