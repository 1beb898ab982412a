"""What is minor: the text only recommends it, it does nothing to an application, it is compatibility with RabbitMQ and
nothing else, or it is against the text as RabbitMQ is (`conformance.verdicts.as_rabbitmq`).

Such a failure of a broker that is no RabbitMQ is told and fails nothing: no run, no test, no command file and no trace
that is judged again. What the text only recommends is so of any product that is held to it, and is called a warning.
"""

from __future__ import annotations

from amqpspec.model.defects.known_defects import strength_of
from amqpspec.model.promises.dialects import EMBEDDED_PRODUCT, dialect_named
from amqpspec.model.promises.recommended import recommendation
from amqpspec.model.promises.registry import suite_requirements
from amqpspec.model.promises.severity import Severity, severity_of
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Failure
from amqpspec.model.promises.versions import RABBITMQ

#: Why a failure is minor.
RECOMMENDED = "only recommended"
WORDS_ONLY = "wrong words only"
COMPATIBILITY = "compatibility with RabbitMQ only"
AS_RABBITMQ = "against the text, as RabbitMQ does"

#: The embedded broker imitates RabbitMQ. A trace that names no product is taken to be of RabbitMQ.
_RABBITMQS = (RABBITMQ, EMBEDDED_PRODUCT, "")


def why_minor(failure: Failure, product: str, dialect: str) -> str | None:
    """Why the failure of a broker of that product, judged by the dialect of that name, is minor; None: it is not."""
    if recommendation(failure, dialect) is not None:
        return RECOMMENDED
    if failure.requirement not in suite_requirements():
        return None  # who wrote a rule of their own wants it kept
    if product in _RABBITMQS:
        return None
    if failure.like:
        return AS_RABBITMQ
    severity = severity_of(failure)
    if severity is Severity.WRONG_WORDS:
        return WORDS_ONLY
    is_text = not dialect_named(dialect).extensions
    if severity is Severity.WRONG_CODE and not is_text and strength_of(failure) is Strength.CONVENTIONAL:
        return COMPATIBILITY
    return None


def what_it_is(minor: str) -> str:
    """What a failure is called that is minor for that reason."""
    return {RECOMMENDED: "warning", AS_RABBITMQ: "as RabbitMQ does"}.get(minor, "minor")


def is_harmless(failure: Failure, product: str, dialect: str) -> bool:
    """Does the failure fail nothing, as it is arguable or minor?"""
    return strength_of(failure) is Strength.ARGUABLE or why_minor(failure, product, dialect) is not None
