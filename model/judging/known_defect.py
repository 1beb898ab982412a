"""What a known defect of a broker is to the judge: a further way to process an input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.hooks import NO_HOOKS, Hooks
from amqpspec.model.broker.internal_events import Input, InternalEvent, Kind, kind_of
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import VERIFIED, Version, VersionRange
from amqpspec.model.protocol.methods import Method

#: `DefectTransition.shows_within` without an end.
ANY_NUMBER = 10**9


@dataclass(frozen=True, slots=True)
class KnownDefect:
    """One known wrong behaviour: the promise it breaks, who does it, and where that was read or seen."""

    name: str
    #: the promise
    requirement: str
    strength: Strength
    #: what the broker does instead
    statement: str
    source: str
    #: names of the dialects whose brokers do it
    dialects: tuple[str, ...]
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
        if dialect_name not in self.dialects:
            return False
        return version is None or not self.versions or any(version in each for each in self.versions)


@dataclass(frozen=True, slots=True)
class DefectTransition(KnownDefect):
    """One that is a way to go on: another processing of the input that comes under it."""

    #: the methods that can come under it
    methods: tuple[str, ...]
    #: does this input, one of these, in this state, come under it? It is asked about no others
    applies: Callable[[Broker, Any], bool]
    #: processes the input as the broker does
    process: Callable[[Broker, Any], None]
    #: what the broker does by itself that can come under it
    internal_events: tuple[type[InternalEvent], ...] = ()
    #: after how many more commands what it does may show: so long it is followed though the broker is at rest
    shows_within: int = 0
    #: the broker does it whenever it can: one that has not done it does not begin to
    is_steady: bool = False
    #: the guest that has to be armed for it (`model.broker.hooks`); "": it is asked about every input of its methods
    guest: str = ""
    #: of its methods, those about which it is asked in any case: by them its situation arises
    begins_with: tuple[str, ...] = ()

    @property
    def is_excuse(self) -> bool:
        """Is it a documented defect of some broker? Else it only says how to go on after a new failure."""
        return bool(self.dialects)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of inputs that can come under it."""
        return (*self.methods, *self.internal_events)

    def comes_under(self, broker: Broker, event: Input) -> bool:
        """Does this input, of one of its kinds, come under it? Cheap where its guest is not armed."""
        return self.is_asked(broker, kind_of(event)) and self.applies(broker, event)

    def is_asked(self, broker: Broker, kind: Kind) -> bool:
        """Has its situation arisen, or may it arise by an input of that kind?"""
        return not self.guest or self.guest in broker.armed or kind in self.begins_with


@dataclass(frozen=True, slots=True)
class OutputDefect(KnownDefect):
    """One that is a wrong frame, one too many or one that is missing, and no way to go on: nobody has to follow it.

    The law says what is wrong. Only then this is asked whether it knows why.
    """

    #: given the broker after the frame, the frame, and a mismatch that is not fatal: what is to be recorded in its
    #: place, with its name. None: it does not explain it
    names: Callable[[Broker, Method, Mismatch], Mismatches | None] | None = None
    #: the same for one that is fatal: the state is unchanged, and if it explains the mismatch this changes it as the
    #: broker with the defect did
    goes_on: Callable[[Broker, Method, Mismatch], Mismatches | None] | None = None
    #: with that the frame is right but for what this has named: it is observed again
    is_observed_again: bool = False


@dataclass(frozen=True, slots=True)
class DefectsFollowed:
    """The known defects that a judge follows beside what is lawful, and those that it only names."""

    #: by the kinds of inputs that can come under them
    by_kind: Mapping[Kind, tuple[DefectTransition, ...]]
    #: what follows for the broker's state from the first one that has shown
    once_shown: Callable[[Broker], None]
    #: who keeps in mind what they go by
    hooks: Hooks = NO_HOOKS
    #: asked in this order about a frame that is wrong
    of_outputs: tuple[OutputDefect, ...] = ()
    #: by name: does this known defect explain that the owed frame does not come?
    of_missing: Mapping[str, Callable[[Broker, Method], bool]] = field(default_factory=dict)
    #: names of queues that took too long to tell how much they hold when they were asked last
    untold: Callable[[Broker], list[str]] = lambda broker: []
    _asked: dict[tuple[Kind, frozenset[str]], tuple[DefectTransition, ...]] = field(default_factory=dict)

    def asked(self, broker: Broker, kind: Kind) -> tuple[DefectTransition, ...]:
        """The defects that may matter to an input of that kind: none whose guest is not armed."""
        asked = self._asked.get((kind, broker.armed))
        if asked is None:
            own = self.by_kind.get(kind, ())
            asked = tuple(defect for defect in own if defect.is_asked(broker, kind))
            self._asked[(kind, broker.armed)] = asked
        return asked


#: A judge that knows of no defect.
NO_DEFECTS = DefectsFollowed({}, lambda broker: None)
