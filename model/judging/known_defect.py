"""What is known of a broker's wrong behaviour, and the three forms in which the judge meets it.

* A *transition* is another way to process an input, where the state that it leads to is certain: a crash, a refusal.
* A *wrong output* is a frame that says something wrong, and changes nothing else.
* A *window* is all the rest: what a broken broker does after it broke is nobody's law, and is not followed
  (`model.judging.windows`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.internal_events import Input, kind_of
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.promises.settings import law_of
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import VERIFIED, Version, VersionRange
from amqpspec.model.protocol.methods import Method

#: Those of RabbitMQ.
ALL_DIALECTS = ("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3")


@dataclass(frozen=True, slots=True)
class KnownDefect:
    """One known wrong behaviour: the promise it breaks, who does it, and where that was read or seen."""

    name: str
    #: the promise
    requirement: str
    #: what the broker does instead
    statement: str
    source: str
    #: names of the dialects whose brokers do it
    dialects: tuple[str, ...] = ALL_DIALECTS
    strength: Strength = field(default=Strength.PROMISED, kw_only=True)
    #: where it begins and ends, if that is known; (): it is known of all that its dialects were verified with
    versions: tuple[VersionRange, ...] = field(default=(), kw_only=True)
    #: it depends on the moment, or on more than the model knows, on one verified version at least: that it was not seen
    #: does not tell that it is mended
    by_chance: bool = field(default=False, kw_only=True)

    @property
    def brokers(self) -> tuple[str, ...]:
        """The products and versions that have the defect."""
        return tuple(map(str, self.versions or (VERIFIED[name] for name in self.dialects)))

    def is_known_of(self, dialect_name: str, version: Version | None = None) -> bool:
        """Is it known of a broker of that dialect and version? Where neither its begin nor its end is known, a version
        that nobody has verified may have it as well. None: the version is not known.
        """
        if law_of(self.requirement, dialect_name) not in self.dialects:
            return False
        return version is None or not self.versions or any(version in each for each in self.versions)


@dataclass(frozen=True, slots=True)
class DefectTransition(KnownDefect):
    """One that is another processing of the input that comes under it, and shows before the broker is at rest."""

    #: the methods that can come under it
    methods: tuple[str, ...] = field(kw_only=True)
    #: does this input, one of these, in this state, come under it? It is asked about no others
    applies: Callable[[Broker, Any], bool] = field(kw_only=True)
    #: processes the input as the broker does
    process: Callable[[Broker, Any], None] = field(kw_only=True)

    @property
    def is_excuse(self) -> bool:
        """Is it a documented defect of some broker? Else it only says how to go on after a new failure."""
        return bool(self.dialects)

    def comes_under(self, broker: Broker, event: Input) -> bool:
        """Does this input come under it?"""
        return kind_of(event) in self.methods and self.applies(broker, event)


@dataclass(frozen=True, slots=True)
class OutputDefect(KnownDefect):
    """One that is a wrong frame, one too many or one that is missing, and no way to go on: nobody has to follow it.

    The law says what is wrong. Only then this is asked whether it knows why.
    """

    #: given the broker after the frame, the frame, and a mismatch that is not fatal: does it explain it?
    explains: Callable[[Broker, Method, Mismatch], bool] = lambda broker, method, mismatch: False
    #: the same for one that is fatal: the state is unchanged, and if it explains the mismatch this changes it so that
    #: the frame is right but for that; it is observed again
    goes_on: Callable[[Broker, Method, Mismatch], bool] = lambda broker, method, mismatch: False
    #: does this frame, with which nothing is wrong, show that the broker does not have it?
    is_refuted_by: Callable[[Broker, Method], bool] | None = None
