"""All known defects by name: those that the judge follows, and those that are a wrong frame.

The second verdict of a report goes by this: a failure that a known defect explains which is known of the target's
dialect is none against the broker as it is known. It stays a failure against the promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from amqpspec.model.defects.transitions import DEFECT_TRANSITIONS
from amqpspec.model.defects.wrong_outputs import OUTPUT_DEFECTS
from amqpspec.model.judging.known_defect import KnownDefect
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Failure
from amqpspec.model.promises.versions import Version

KNOWN_DEFECTS: Mapping[str, KnownDefect] = MappingProxyType(
    {defect.name: defect for defect in (*DEFECT_TRANSITIONS, *OUTPUT_DEFECTS)}
)


@cache
def known_defects(dialect_name: str, version: Version | None = None) -> tuple[KnownDefect, ...]:
    """The known defects of the brokers of a dialect and version, in the order of their requirements.

    `version` None: of all versions of the dialect.
    """
    own = (defect for defect in KNOWN_DEFECTS.values() if defect.is_known_of(dialect_name, version))
    return tuple(sorted(own, key=lambda defect: (defect.requirement, defect.name)))


def defects_from(requirement: str) -> tuple[KnownDefect, ...]:
    """The known defects from one requirement, of any broker."""
    return tuple(defect for defect in KNOWN_DEFECTS.values() if defect.requirement == requirement)


def strength_of(failure: Failure) -> Strength:
    """How strong the promise is that the failure breaks: that of the known defect which explains it, else that of its
    requirement. Of what is not registered nobody can say that it is less than a promise.
    """
    defect = KNOWN_DEFECTS.get(failure.defect)
    if defect is not None:
        return defect.strength
    requirement = requirements().get(failure.requirement)
    return Strength.PROMISED if requirement is None else requirement.strength


def is_as_known(failure: Failure, dialect_name: str, version: Version | None = None) -> bool:
    """Is the failure explained by a known defect that is known of the dialect's brokers of that version?"""
    defect = KNOWN_DEFECTS.get(failure.defect)
    return defect is not None and defect.is_known_of(dialect_name, version)
