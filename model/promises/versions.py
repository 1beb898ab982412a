"""Versions of RabbitMQ: which of them a dialect was verified with, and which of them a known defect is known of.

A dialect covers more versions than anybody has looked at. What was verified is data: `VERIFIED`. A version that is
newer than all of these is judged by the newest dialect's promises. Known defects are looked for there as in the
versions before it; one that does not show is no failure, and nobody says that it was mended.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from amqpspec.model.promises.dialect_names import base_of

RABBITMQ = "RabbitMQ"


class Version(NamedTuple):
    """One version: they are compared by their numbers. 4.3.0-rc.1 counts as 4.3.0."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def version_of(text: str) -> Version | None:
    """The version that a text names; None: it names none. What is left out is 0."""
    found = re.match(r"([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?", text)
    return Version(int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


@dataclass(frozen=True, slots=True)
class VersionRange:
    """The versions of RabbitMQ from one to another, both included; `last` None: nobody knows an end."""

    first: Version
    last: Version | None

    def __contains__(self, version: object) -> bool:
        if not isinstance(version, Version):
            return False
        return self.first <= version and (self.last is None or version <= self.last)

    def __str__(self) -> str:
        if self.last is None:
            return f"{RABBITMQ} {self.first} and later"
        return f"{RABBITMQ} {self.first}" + (f" to {self.last}" if self.last != self.first else "")


def versions(first: str, last: str | None) -> VersionRange:
    """The range between two versions as texts. Raises `ValueError`."""
    ends = [version_of(text) for text in (first, last) if text is not None]
    if None in ends or ends != sorted(end for end in ends if end is not None):
        raise ValueError(f"no versions: {first!r} to {last!r}")
    assert ends[0] is not None
    return VersionRange(ends[0], ends[1] if last is not None else None)


#: By the name of a dialect: the versions that were run (docs/findings.md, `verified` of the requirements). Its known
#: defects are known of its other versions as well, unless they name their own (`model.judging.known_defect`).
VERIFIED: Mapping[str, VersionRange] = MappingProxyType(
    {
        "rabbitmq-3": versions("3.10.8", "3.10.8"),
        "rabbitmq-4.0": versions("4.0.5", "4.0.5"),
        "rabbitmq-4.3": versions("4.3.6", "4.3.6"),
    }
)

#: The seed of the search by which these versions were verified: what it finds in them is known, so what it finds in one
#: of them today is new in the broker, or in this suite.
VERIFIED_SEED = 1


def newest_verified() -> Version:
    """The newest version that was verified."""
    return max(verified.last for verified in VERIFIED.values() if verified.last is not None)


def dialect_name_of(version: Version) -> str:
    """The name of the dialect that a version of RabbitMQ is judged by."""
    if version < (4, 0):
        return "rabbitmq-3"
    return "rabbitmq-4.0" if version < (4, 3) else "rabbitmq-4.3"


def judged_version(product: str, text: str, dialect_name: str) -> Version | None:
    """The version whose known defects count. None: the broker is no RabbitMQ, does not tell its version, or is judged
    by a dialect that is not its own. Then all of that dialect count.
    """
    version = version_of(text) if product == RABBITMQ else None
    return version if version is not None and dialect_name_of(version) == base_of(dialect_name) else None


def is_newer(version: Version | None) -> bool:
    """Is the version newer than all that were verified?"""
    return version is not None and version > newest_verified()


def newer_sentence(version: Version | None) -> str | None:
    """What every report says of a version that is newer than all that were verified; None: it is not newer."""
    if version is None or not is_newer(version):
        return None
    return (
        f"{RABBITMQ} {version} is newer than what was verified ({newest_verified()}): it is judged by the promises of"
        " the newest dialect, and what is known of earlier versions need not hold for it"
    )
