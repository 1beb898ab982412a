"""Where a message went that was published to an exchange: by the bindings that the clients of the run have made.

The routing itself is that of the model (`model.broker.routing`). Nothing is said where the recording does not tell: of
exchanges whose type it does not have or the model does not know, of what changed while the message was under way, and
of headers whose equality no text decides.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import cache
from math import inf
from typing import Any

from amqpspec.model.broker.broker_state import PREDECLARED_EXCHANGES
from amqpspec.model.broker.headers_matching import ALL_WITH_X, ANY_WITH_X
from amqpspec.model.broker.queues import Exchange, Queue
from amqpspec.model.broker.routing import BY_TYPE, route
from amqpspec.model.promises.choices import Dialect
from amqpspec.pipeline.judging.topology_changes import Change, Kind

#: Why it is not known where messages went: the numbers of these are in the facts.
NOT_TOLD = (
    "its type is not in the recording",
    "the model does not know its type",
    "what was bound changed while a message was under way",
    "headers were compared whose equality no text decides",
    "a message was mandatory and not returned, and no binding in the recording matches it",
)
TYPE_UNRECORDED, TYPE_UNKNOWN, CHANGED, HEADERS, UNBOUND = range(len(NOT_TOLD))


@dataclass(frozen=True, slots=True)
class Sent:
    """What decides where a message goes. `place`: its channel; `keys`: the routing key, and those of CC and BCC."""

    host: str
    exchange: str
    keys: tuple[str, ...]
    headers: Mapping[str, Any]
    place: tuple[str, str, int]
    time: float


@dataclass(frozen=True, slots=True)
class Reached:
    """Queues that have got a message for certain, and those and exchanges of which it is not known, with the number of
    the reason in `NOT_TOLD`.
    """

    queues: frozenset[str] = frozenset()
    doubtful: Mapping[str, int] = field(default_factory=dict)
    exchanges: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Host:
    """Exchanges of a virtual host as they are at one time."""

    exchanges: dict[str, Exchange]

    def apply(self, change: Change) -> None:
        name, known = change.name, self.exchanges.get(change.name)
        if change.kind is Kind.DECLARED and change.exchange is not None:
            bindings = known.bindings if known is not None else ()
            self.exchanges[name] = replace(change.exchange, bindings=bindings)
        elif change.kind is Kind.DELETED:
            self.exchanges.pop(name, None)
            self._without(name, to_exchange=True)
        elif change.kind is Kind.QUEUE_DELETED:
            self._without(name, to_exchange=False)
        elif change.binding is not None:
            known = known or Exchange(name, "")
            kept = tuple(each for each in known.bindings if each != change.binding)
            self.exchanges[name] = replace(known, bindings=(*kept, change.binding) if _adds(change) else kept)
            if not _adds(change):
                self._end_if_last(name)

    def _without(self, destination: str, *, to_exchange: bool) -> None:
        for name, exchange in list(self.exchanges.items()):
            kept = tuple(
                each
                for each in exchange.bindings
                if each.destination != destination or each.to_exchange is not to_exchange
            )
            if len(kept) < len(exchange.bindings):
                self.exchanges[name] = replace(exchange, bindings=kept)
                self._end_if_last(name)

    def _end_if_last(self, name: str) -> None:
        """An exchange that deletes itself does so with its last binding."""
        exchange = self.exchanges.get(name)
        if exchange is not None and exchange.auto_delete and not exchange.bindings:
            del self.exchanges[name]
            self._without(name, to_exchange=True)


def _is_of_headers(change: Change) -> bool:
    """May headers count where messages pass that are routed by it?"""
    names = change.name, change.binding.destination if change.binding is not None else ""
    is_declared = change.exchange is not None and change.exchange.type == "headers"
    return is_declared or any(PREDECLARED_EXCHANGES.get(name) == "headers" for name in names)


def _adds(change: Change) -> bool:
    return change.kind in (Kind.BOUND, Kind.DECLARED)


class Topology:
    """Of all virtual hosts of a run. `changes`: of all its connections."""

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        of_host: dict[str, list[Change]] = {}
        for change in changes:
            of_host.setdefault(change.host, []).append(change)
        self._hosts = {host: _Timeline(found) for host, found in of_host.items()}
        self._nothing = _Timeline([])

    def reached(self, sent: Sent, read: float, dialect: Dialect) -> Reached:
        """Where a message went that the broker has routed between the times of `sent` and `read`."""
        return self._hosts.get(sent.host, self._nothing).reached(sent, read, dialect)


class _Timeline:
    def __init__(self, changes: list[Change]) -> None:
        _doubt_what_crosses(changes)
        self._done = sorted((change for change in changes if change.done < inf), key=lambda change: change.done)
        self._done_times = [change.done for change in self._done]
        self._asked = sorted(changes, key=lambda change: change.asked)
        self._asked_times = [change.asked for change in self._asked]
        self._compares_headers = any(map(_is_of_headers, changes))
        self._kept: dict[Any, tuple[_Host, _Host]] = {}
        self._routes: dict[Any, Reached] = {}

    def reached(self, sent: Sent, read: float, dialect: Dialect) -> Reached:
        before = bisect_right(self._done_times, sent.time)
        under_way, own = self._under_way(sent, read)
        key = (before, tuple(map(id, under_way)), tuple(map(id, own)))
        compared = tuple(sorted(map(repr, sent.headers.items()))) if self._compares_headers else ()
        whole = (key, sent.exchange, sent.keys, compared, dialect.name)
        found = self._routes.get(whole)
        if found is None:
            if len(self._routes) > 10_000:
                self._routes.clear()
            least, most = self._hosts_at(key, before, under_way, own)
            found = self._routes[whole] = _reached(least, most, bool(under_way), sent, dialect)
        return found

    def _under_way(self, sent: Sent, read: float) -> tuple[list[Change], list[Change]]:
        """Changes that the broker may have made before or after it routed the message, and those that its own channel
        had asked for before it.
        """
        asked = self._asked[: bisect_left(self._asked_times, read)]
        open_ones = [change for change in asked if change.done > sent.time] if self._may_be_open(sent, read) else []
        own = [change for change in open_ones if change.place == sent.place and change.asked <= sent.time]
        behind = [change for change in open_ones if change.place == sent.place and change.asked > sent.time]
        return [change for change in open_ones if change not in own and change not in behind], own

    def _may_be_open(self, sent: Sent, read: float) -> bool:
        """Were there more changes asked for till then than done before?"""
        return bisect_left(self._asked_times, read) > bisect_right(self._done_times, sent.time)

    def _hosts_at(
        self, key: Any, before: int, under_way: Sequence[Change], own: Sequence[Change]
    ) -> tuple[_Host, _Host]:
        """With as little bound as possible, and with as much."""
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) > 100:
                self._kept.clear()
            certain = [*self._done[:before], *own]
            least, most = _at(certain), _at(certain)
            for change in under_way:
                # that an exchange was there shows by its confirm
                if change.kind is Kind.DECLARED or not _adds(change):
                    least.apply(change)
                if _adds(change):
                    most.apply(change)
            kept = self._kept[key] = least, most
        return kept


def _at(changes: Iterable[Change]) -> _Host:
    host = _Host({name: Exchange(name, type) for name, type in PREDECLARED_EXCHANGES.items()})
    for change in changes:
        host.apply(change)
    return host


def _doubt_what_crosses(changes: list[Change]) -> None:
    """Where one client binds while another unbinds the same, it is never known which came last."""
    latest: dict[tuple[str, str], Change] = {}
    for change in sorted(changes, key=lambda change: change.asked):
        if change.binding is None:
            continue
        key = change.name, change.binding.destination
        other = latest.get(key)
        if (
            other is not None
            and other.done > change.asked
            and other.place != change.place
            and other.kind != change.kind
        ):
            change.done = other.done = inf
        latest[key] = change


def _reached(least: _Host, most: _Host, is_changing: bool, sent: Sent, dialect: Dialect) -> Reached:
    untold, has_alternate = _untold(most.exchanges, sent.exchange)
    if sent.exchange in untold:
        return Reached(exchanges={sent.exchange: untold[sent.exchange]})
    reason = CHANGED if is_changing else HEADERS
    surely = _routed(least.exchanges, untold, sent, dialect, doubtful_matches=False)
    perhaps = _routed(most.exchanges, untold, sent, dialect, doubtful_matches=True)
    certain = surely & perhaps
    if has_alternate and surely != perhaps:
        certain = frozenset()  # what is bound less reaches more
    return Reached(certain, dict.fromkeys((surely | perhaps) - certain, reason), untold)


def _untold(exchanges: Mapping[str, Exchange], first: str) -> tuple[dict[str, int], bool]:
    """Exchanges that a message may come to and of which it is not known where they send it; and is there an alternate
    one?
    """
    found: dict[str, int] = {}
    has_alternate = False
    work, seen = [first], {first}
    while work:
        name = work.pop()
        exchange = exchanges.get(name)
        if exchange is None or not exchange.type:
            found[name] = TYPE_UNRECORDED
            continue
        if exchange.type not in BY_TYPE:
            found[name] = TYPE_UNKNOWN
            continue
        has_alternate = has_alternate or exchange.alternate is not None
        further = [binding.destination for binding in exchange.bindings if binding.to_exchange]
        for each in [*further, *filter(None, [exchange.alternate])]:
            if each not in seen:
                seen.add(each)
                work.append(each)
    return found, has_alternate


def _routed(
    exchanges: Mapping[str, Exchange],
    untold: Mapping[str, int],
    sent: Sent,
    dialect: Dialect,
    *,
    doubtful_matches: bool,
) -> frozenset[str]:
    """The queues, by the model, which is shown only bindings that it can judge."""
    shown: dict[str, Exchange] = {}
    for name, exchange in exchanges.items():
        if name in untold or exchange.type not in BY_TYPE:
            continue
        bindings = [each for each in exchange.bindings if not (each.to_exchange and each.destination in untold)]
        if exchange.type == "headers":
            doubtful = [each for each in bindings if _is_doubtful(each.arguments, sent.headers, dialect)]
            bindings = [each for each in bindings if each not in doubtful]
            if doubtful_matches:
                bindings += [replace(each, arguments={}) for each in doubtful]  # all of nothing, which matches
        shown[name] = replace(exchange, bindings=tuple(bindings))
    first = shown.get(sent.exchange)
    if first is None:
        return frozenset()
    names = {each.destination for exchange in shown.values() for each in exchange.bindings if not each.to_exchange}
    routes = route(shown, {name: _queue(name) for name in names}, first, sent.keys, sent.headers, dialect)
    return frozenset(queue.name for queue in routes.queues)


@cache
def _queue(name: str) -> Queue:
    return Queue(name)


def _is_doubtful(arguments: Mapping[str, Any], headers: Mapping[str, Any], dialect: Dialect) -> bool:
    """Texts, truth values and integers are compared by all brokers alike; all else, and 1 with 1.0, is not."""
    if arguments.get("x-match") in (ALL_WITH_X, ANY_WITH_X) and not dialect.extensions:
        return True
    for name, value in arguments.items():
        if name == "x-match" or value is None or name not in headers:
            continue
        if not isinstance(value, str | int) or isinstance(headers[name], float | Decimal | datetime | list | dict):
            return True
    return False
