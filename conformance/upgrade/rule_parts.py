"""What the rules of `meeting_rules` are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from amqpspec.conformance.upgrade.application import ChannelView, Effect, Met, Rule
from amqpspec.conformance.upgrade.changes import Change
from amqpspec.model.protocol.methods import METHOD_IDS, TraceEvent

#: Makes a rule for a change: what it says may depend on both values.
Makes = Callable[[Change], Rule]
#: Frames by the name of their method, and whether the client sent them.
Frames = tuple[tuple[str, bool], ...]
#: On which frames a rule looks, and what makes it.
Meeting = tuple[Frames, Makes]

DECLARE: Frames = (("queue.declare", True),)
PUBLISH: Frames = (("basic.publish", True),)
CONSUME: Frames = (("basic.consume", True),)
BIND: Frames = (("queue.bind", True), ("exchange.bind", True))
GET_OK: Frames = (("basic.get-ok", False),)
HANDED_OVER: Frames = (("basic.deliver", False), *GET_OK)
GIVES_BACK: Frames = tuple((f"basic.{name}", True) for name in ("nack", "reject", "recover", "recover-async"))
CLOSES: Frames = (("channel.close", False), ("connection.close", False))


def table(event: TraceEvent) -> Mapping[str, Any]:
    """The table of arguments of a declare, a bind or a consume."""
    found = event.arguments.get("arguments")
    return found if isinstance(found, Mapping) else {}


def properties(event: TraceEvent) -> Mapping[str, Any]:
    return event.content.properties if event.content is not None else {}


def headers(event: TraceEvent) -> Mapping[str, Any]:
    found = properties(event).get("headers")
    return found if isinstance(found, Mapping) else {}


def declares(event: TraceEvent) -> bool:
    """Is it no passive declare?"""
    return not event.arguments.get("passive")


def has(name: str) -> Callable[[TraceEvent], bool]:
    """Does it declare something with that argument?"""
    return lambda event: declares(event) and name in table(event)


def says(effect: Effect, why: str, when: Callable[[TraceEvent], bool], need: str = "") -> Makes:
    """A rule that asks the frame alone, and the queue that it is about."""

    def make(change: Change) -> Rule:
        def rule(event: TraceEvent, channel: ChannelView) -> Iterable[Met]:
            return [Met(effect, why, channel.queue_of(event), need)] if when(event) else ()

        return rule

    return make


def told(code: int = 0, text: str = "", method: str = "", why: str = "", effect: Effect = Effect.WORDS) -> Makes:
    """A rule about a refusal that the application was told of. `code` 0: any."""

    def refused(event: TraceEvent) -> bool:
        arguments = event.arguments
        identifiers = arguments.get("class_id"), arguments.get("method_id")
        is_it = not method or METHOD_IDS[method] == identifiers
        return is_it and code in (0, arguments.get("reply_code")) and text in str(arguments.get("reply_text", ""))

    return says(effect, why or "it was refused, with a text that is another now", refused)
