"""All known defects by name, and what the judge of a dialect follows.

The second verdict of a report goes by this: a failure that a known defect explains which is known of the target's
dialect is none against the broker as it is known. It stays a failure against the promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from amqpspec.model.defects.active_consumers import ACTIVE_CONSUMERS
from amqpspec.model.defects.answers import ANSWERS
from amqpspec.model.defects.changed_properties import CHANGED_PROPERTIES
from amqpspec.model.defects.crashes import CRASHES
from amqpspec.model.defects.crossings import CROSSINGS
from amqpspec.model.defects.habits import HABITS
from amqpspec.model.defects.limits import LIMITS
from amqpspec.model.defects.nodes import NODES
from amqpspec.model.defects.policies import POLICIES
from amqpspec.model.defects.queues import QUEUES
from amqpspec.model.defects.restarts import FORGOTTEN_FLAGS, RESTARTS
from amqpspec.model.defects.reused_names import REUSED_NAMES
from amqpspec.model.defects.reused_tags import REUSED_TAGS
from amqpspec.model.defects.streams import STREAMS
from amqpspec.model.defects.timeouts import TIMEOUT_TEXT, TIMEOUTS
from amqpspec.model.defects.told_numbers import TOLD_NUMBERS
from amqpspec.model.defects.transactions import TRANSACTIONS
from amqpspec.model.judging.acceptor import DEFAULT_BOUND, Acceptor
from amqpspec.model.judging.defects_followed import DefectsFollowed
from amqpspec.model.judging.known_defect import DefectTransition, KnownDefect, OutputDefect
from amqpspec.model.judging.windows import Window
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Failure
from amqpspec.model.promises.versions import RABBITMQ, Version

TRANSITIONS: tuple[DefectTransition, ...] = (*CRASHES, *ANSWERS)
OUTPUT_DEFECTS: tuple[OutputDefect, ...] = (*TOLD_NUMBERS, TIMEOUT_TEXT, *CHANGED_PROPERTIES, *FORGOTTEN_FLAGS)
WINDOWS: tuple[Window, ...] = (
    *CROSSINGS, *REUSED_NAMES, *REUSED_TAGS, *ACTIVE_CONSUMERS, *TIMEOUTS, *STREAMS, *TRANSACTIONS, *QUEUES, *LIMITS,
    *POLICIES, *RESTARTS, *NODES,
)  # fmt: skip

KNOWN_DEFECTS: Mapping[str, KnownDefect] = MappingProxyType(
    {defect.name: defect for defect in (*TRANSITIONS, *OUTPUT_DEFECTS, *WINDOWS)}
)

#: What is followed of brokers that are held to the text alone, and of others that are no RabbitMQ.
_OF_THE_TEXT = DefectsFollowed(HABITS, OUTPUT_DEFECTS)
_OF_OTHERS = DefectsFollowed(of_outputs=OUTPUT_DEFECTS)


def acceptor_for(
    dialect: Dialect,
    bound: int = DEFAULT_BOUND,
    virtual_host: str = "/",
    own_user: str = "",
    product: str = RABBITMQ,
) -> Acceptor:
    """The acceptor that follows what is known of the dialect's brokers. What RabbitMQ does after it broke explains
    nothing of another product, whatever dialect it is held to.
    """
    if not dialect.extensions:
        return Acceptor(dialect, bound, virtual_host, own_user, _OF_THE_TEXT)
    known = followed(dialect.name) if product == RABBITMQ else _OF_OTHERS
    return Acceptor(dialect, bound, virtual_host, own_user, known)


@cache
def followed(dialect: str) -> DefectsFollowed:
    """What is followed of RabbitMQ where it is held to that dialect."""
    return DefectsFollowed(
        tuple(each for each in TRANSITIONS if each.is_known_of(dialect)),
        OUTPUT_DEFECTS,
        tuple(each for each in WINDOWS if each.is_known_of(dialect)),
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
