"""Shrinking a list of commands: the shortest and plainest one found that still shows the same failure.

A delivery tag means another delivery as soon as an earlier command is left out. So tags are remembered by what they
stood for, the message and who got it from where, and looked up again, with the help of the planning broker, in every
shorter list. What need not cross other commands in flight is made to wait for its answer: less can happen then.

Lists that spend their time waiting are tried many at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from amqpspec.conformance.failures.optional_arguments import OptionalArgument, optional_arguments, with_only
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.scenarios.configured_alike import changes_broker
from amqpspec.conformance.session.plan import Plan
from amqpspec.conformance.session.side_by_side import MOST_SET_ASIDE, first_of
from amqpspec.model.broker.channels import TimedOut, Unacknowledged
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.methods import CLOCK_WAIT

#: Does running these commands show the failure that is looked for?
Shows = Callable[[Sequence[Command]], bool]


@dataclass(frozen=True, slots=True)
class _Delivery:
    """What a delivery tag stands for. A stream may give a body several times, and a message may go to two queues."""

    body: bytes
    queue: str
    #: the tag of the consumer that got it; None: basic.get did
    consumer: str | None

    def resemblance(self, other: _Delivery) -> int:
        """How much of it is the same: at most 3, 0 when it is another message."""
        if self.body != other.body:
            return 0
        return 1 + (self.queue == other.queue) + (self.consumer == other.consumer)


#: A command, and what its delivery tag stands for, if it stands for anything.
_Meant = tuple[Command, _Delivery | None]
#: An argument, and the place of its command.
_Argument = tuple[int, OptionalArgument]
_Element = TypeVar("_Element")


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The shortest commands found. `cut_short`: the time was over before each of them, and each of their arguments, was
    tried to be left out.
    """

    commands: tuple[Command, ...]
    cut_short: bool


def shrink(commands: Sequence[Command], shows: Shows, dialect: Dialect, time_limit: float) -> Shrunk:
    """Leave out commands, and then arguments of those that are left, many at a time and then one by one, as long as the
    failure still shows.

    Ends when none of them can be left out alone, or after `time_limit` seconds with the best so far. `commands`
    themselves must show it; they are given back where nothing shorter does.
    """
    at_once = MOST_SET_ASIDE if waits(commands) and not changes_broker(commands) else 1
    trials = _Trials(shows, time.monotonic() + time_limit, at_once)
    meant = _meant(commands, dialect)
    fewest = trials.fewest(meant, max(len(meant) // 2, 1), lambda some: _written(some, dialect))
    named = [(place, each) for place, (command, _) in enumerate(fewest) for each in optional_arguments(command)]

    def plainer(kept: Sequence[_Argument]) -> tuple[Command, ...]:
        of: list[set[OptionalArgument]] = [set() for _ in fewest]
        for place, each in kept:
            of[place].add(each)
        some = [(with_only(command, of[place]), delivery) for place, (command, delivery) in enumerate(fewest)]
        return _written(some, dialect)

    kept = trials.fewest(named, max(len(named), 1), plainer)
    is_shorter = len(fewest) < len(meant) or len(kept) < len(named)
    return Shrunk(_in_lockstep(plainer(kept) if is_shorter else tuple(commands), trials), trials.cut_short)


@dataclass(slots=True)
class _Trials:
    """Of lists that are tried in turn, until the deadline. `at_once`: so many side by side."""

    shows: Shows
    deadline: float
    at_once: int
    cut_short: bool = False

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.deadline

    def fewest(
        self, elements: list[_Element], size: int, write: Callable[[Sequence[_Element]], tuple[Command, ...]]
    ) -> list[_Element]:
        """The elements that are left when no more can be left out: spans of that size, then of half, down to one.

        `write`: the commands that are made of some of them.
        """
        while not self.is_over:
            shorter = False
            place = len(elements)
            while place > 0 and not self.is_over:
                spans = _spans(place, size)[: self.at_once]
                candidates = [elements[:start] + elements[end:] for start, end in spans]
                written = [write(candidate) for candidate in candidates]
                found = first_of(written, lambda each: bool(each) and self.shows(each))
                if found is not None:
                    elements = candidates[found]
                    shorter = True
                place = spans[-1 if found is None else found][0]
            if size > 1:
                size //= 2
            elif not shorter:
                break
        self.cut_short = self.is_over
        return elements


def waits(commands: Sequence[Command]) -> bool:
    return any(command.method == CLOCK_WAIT for command in commands)


def _spans(end: int, size: int) -> list[tuple[int, int]]:
    """Spans of that size that end there, each before the last."""
    return [(max(place - size, 0), place) for place in range(end, 0, -size)]


def _in_lockstep(commands: tuple[Command, ...], trials: _Trials) -> tuple[Command, ...]:
    """The commands, with as few in flight as the failure needs. Content in pieces is none without that."""
    for place, command in enumerate(commands):
        if command.in_flight and not command.as_it_stands and not trials.is_over:
            waiting = (*commands[:place], replace(command, in_flight=False), *commands[place + 1 :])
            if trials.shows(waiting):
                commands = waiting
    return commands


def _meant(commands: Sequence[Command], dialect: Dialect) -> list[_Meant]:
    """Each command with what its delivery tag stands for."""
    plan = Plan(dialect)
    result: list[_Meant] = []
    for command in commands:
        delivery = _deliveries(plan, command).get(command.arguments.get("delivery_tag", 0))
        result.append((command, delivery))
        plan.carry_out(command)
    return result


def _written(meant: Sequence[_Meant], dialect: Dialect) -> tuple[Command, ...]:
    """The commands, with the tags that the deliveries have in this list; best the same, else the same message's."""
    plan = Plan(dialect)
    result = []
    for command, delivery in meant:
        if delivery is not None:
            out = {tag: delivery.resemblance(each) for tag, each in _deliveries(plan, command).items()}
            # of several that resemble it equally the same tag: a consumer may have had the message twice
            before = command.arguments["delivery_tag"]
            tag = max(out, key=lambda tag: (out[tag], tag == before), default=0)
            if out.get(tag):
                command = replace(command, arguments={**command.arguments, "delivery_tag": tag})
        result.append(command)
        plan.carry_out(command)
    return tuple(result)


def _deliveries(plan: Plan, command: Command) -> dict[int, _Delivery]:
    """What the tags that wait for a settlement stand for, where the command settles one."""
    if "delivery_tag" not in command.arguments:
        return {}
    channel = plan.channel(command.connection, command.channel)
    held: dict[int, Unacknowledged | TimedOut] = {}
    if channel is not None:
        held.update(channel.unacknowledged)
        held.update(channel.timed_out)
    return {
        tag: _Delivery(entry.message.content.body, entry.queue.name, entry.consumer.tag if entry.consumer else None)
        for tag, entry in held.items()
    }
