"""Which changes a recorded application meets: what its recording shows (`application`) under the changes between the
dialect that it was recorded with and another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from amqpspec.conformance.upgrade.application import Application, Effect, Key, Queue, Seen, Sight
from amqpspec.conformance.upgrade.changes import Change, changes_between
from amqpspec.conformance.upgrade.meeting_rules import NOT_IN_A_RECORDING
from amqpspec.conformance.upgrade.needs import NEEDS
from amqpspec.model.promises.choices import Dialect

_ORDER = tuple(Effect)
#: Queues that are named of what is met.
_MOST_QUEUES = 5


@dataclass(slots=True)
class Reason:
    """One thing that the application does. `queues`: the first of those that it does it with."""

    effect: Effect
    why: str
    queues: list[str] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen)


@dataclass(frozen=True, slots=True)
class Meeting:
    """A change, and what the application does that comes under it, the gravest first. `known`: why it is accepted."""

    change: Change
    reasons: tuple[Reason, ...]
    known: str | None = None

    @property
    def effect(self) -> Effect:
        """The gravest."""
        return self.reasons[0].effect

    @property
    def times(self) -> int:
        return sum(each.seen.times for each in self.reasons)


@dataclass(frozen=True, slots=True)
class Met:
    """`met` are the changes that are met, the gravest first; `unknown` those of which the recording does not tell,
    `not_met` those that it shows nothing of.
    """

    application: Application
    one: Dialect
    other: Dialect
    met: tuple[Meeting, ...]
    unknown: tuple[Meeting, ...]
    not_met: tuple[Change, ...]


def met_by(application: Application, one: Dialect, other: Dialect) -> Met:
    """The changes that the application meets which goes from one dialect to the other."""
    limited = one.quorum_delivery_limit is not None
    changes = changes_between(one, other)
    known: list[Meeting] = []
    unknown: list[Meeting] = []
    for change in changes:
        reasons = _reasons(application, change, limited)
        told = [each for each in reasons if each.effect is not Effect.UNKNOWN]
        open_ones = [each for each in reasons if each.effect is Effect.UNKNOWN]
        if told:
            known.append(Meeting(change, tuple(told)))
        elif open_ones:
            unknown.append(Meeting(change, tuple(open_ones)))
    known.sort(key=lambda each: (_ORDER.index(each.effect), -each.times, each.change.name))
    said = {each.change for each in (*known, *unknown)}
    return Met(
        application, one, other, tuple(known), tuple(unknown), tuple(each for each in changes if each not in said)
    )


def _reasons(application: Application, change: Change, limited: bool) -> list[Reason]:
    found: dict[tuple[Effect, str], Reason] = {}
    for key, seen in application.seen.items():
        if key.choice != change.choice:
            continue
        for effect, why, queue in _decided(application, key, limited):
            reason = found.setdefault((effect, why), Reason(effect, why))
            reason.seen.add(seen)
            if queue and queue not in reason.queues and len(reason.queues) < _MOST_QUEUES:
                reason.queues.append(queue)
    if change.choice in NOT_IN_A_RECORDING:
        why = NOT_IN_A_RECORDING[change.choice]
        found[Effect.UNKNOWN, why] = Reason(Effect.UNKNOWN, why)
    return sorted(found.values(), key=lambda each: (_ORDER.index(each.effect), -each.seen.times, each.why))


def _decided(application: Application, key: Key, limited: bool) -> Iterator[tuple[Effect, str, str]]:
    """What is said of it, with the queue: nothing, where the queue is another than it had to be."""
    effect = Effect(key.effect)
    if not key.need:
        yield effect, key.why, key.queue.name if key.queue is not None else ""
        return
    if key.queue is None:
        yield Effect.UNKNOWN, f"whether the queue is {key.need}: {key.why}", ""
        return
    queues = list(_queues(application, key.queue))
    declared = [each for each in queues if each in application.declared]
    needed = NEEDS[key.need]
    fitting = [each for each in declared if any(needed(table, limited) for table in application.declared[each])]
    for each in fitting:
        yield effect, key.why, each.name
    if not declared:
        where = f"exchange {key.queue.name}" if key.queue.passed_by else "queue"
        for each in queues or [key.queue]:
            yield Effect.UNKNOWN, f"whether the {where} is {key.need}: {key.why}", "" if each.passed_by else each.name


def _queues(application: Application, queue: Queue) -> Iterable[Queue]:
    """The queue, or those that are bound to the exchange."""
    if not queue.passed_by:
        return (queue,)
    return [Queue(queue.virtual_host, name) for name in sorted(application.bound.get(queue, ()))]


def sights(reasons: Iterable[Reason]) -> list[Sight]:
    """The first frames of all."""
    return list(dict.fromkeys(sight for each in reasons for sight in each.seen.sights))
