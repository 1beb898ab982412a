"""By which frames changes of connections, exchanges and of the declaring of queues are met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from amqpspec.conformance.upgrade.application import ChannelView, Effect, Met, Rule
from amqpspec.conformance.upgrade.changes import Change
from amqpspec.conformance.upgrade.needs import CLASSIC, OTHER_THAN, QUORUM, STREAM
from amqpspec.conformance.upgrade.rule_parts import (
    BIND,
    CLOSES,
    DECLARE,
    PUBLISH,
    Makes,
    Meeting,
    declares,
    has,
    says,
    table,
    told,
)
from amqpspec.model.broker.topic_matching import ANY_WORDS, words
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS
from amqpspec.model.promises.choices import DeprecatedFeature
from amqpspec.model.promises.queue_arguments import KNOWN_TO_3
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.model.rules.connection.handshake_content import HEADER_0_9_1

_STANDARD = ("direct", "fanout", "topic", "headers")
#: Arguments that one queue type or another knew before; others were ignored by all.
_KNOWN_EARLIER = frozenset((*KNOWN_TO_3.classic, *KNOWN_TO_3.quorum, *KNOWN_TO_3.stream))
_TAKEN = ", ".join(KNOWN_DEFECTS["queue-mode-is-taken"].brokers)


def _mechanism(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if event.arguments.get("mechanism") not in change.now:
            yield Met(Effect.GONE, "it logs in by a mechanism that is not offered")

    return rule


def _frame_max(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if 0 < int(event.arguments.get("frame_max") or 0) < change.now:
            yield Met(Effect.GONE, f"it asks for a frame-max below {change.now:,}, and is refused")

    return rule


def _body(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if change.now is not None and event.content is not None and len(event.content.body) > change.now:
            yield Met(Effect.GONE, f"it publishes a body of more than {change.now:,} octets")

    return rule


def _exchange_type(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if declares(event) and event.arguments.get("type") not in _STANDARD:
            why = "it declares an exchange of a type that needs a plugin; without it this is refused"
            yield Met(Effect.PERHAPS, why)

    return rule


def _further_type(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        kind = event.arguments.get("type")
        if declares(event) and kind in set(change.before) ^ set(change.now):
            is_there = kind in change.now
            what = "made without a plugin" if is_there else "refused without a plugin"
            yield Met(Effect.OTHERWISE if is_there else Effect.GONE, f"an exchange of type {kind} is {what}")

    return rule


def _wildcards(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        key = str(event.arguments.get("routing_key", ""))
        if change.now is not None and words(key).count(ANY_WORDS) > change.now:
            why = f"it binds with more than {change.now} `#`: refused if that is a topic exchange"
            yield Met(Effect.GONE, why)

    return rule


def _numbers(event: TraceEvent) -> bool:
    numbers = (value for name, value in table(event).items() if name != "x-match")
    is_number = any(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers)
    return "x-match" in table(event) and is_number


def _is_transient(event: TraceEvent) -> bool:
    return declares(event) and not event.arguments.get("durable") and not event.arguments.get("exclusive")


def _given_up(why: str, when: Callable[[TraceEvent], bool]) -> Makes:
    """A feature that RabbitMQ gives up: without more than the version it is not known how the broker is set."""

    def make(change: Change) -> Rule:
        if change.now is DeprecatedFeature.ALLOWED:
            return says(Effect.OTHERWISE, f"{why}, which is made", when)(change)
        is_certain = change.now is DeprecatedFeature.REFUSED
        said = f"{why}, which is refused{'' if is_certain else ' unless the broker permits it'}"
        return says(Effect.GONE, said, when)(change)

    return make


def _value(argument: str, need: str, why: str = "{} is refused with 406", effect: Effect = Effect.GONE) -> Makes:
    """A value that was right, and is not any more."""

    def make(change: Change) -> Rule:
        def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
            value = table(event).get(argument)
            if declares(event) and value in change.before and value not in change.now:
                yield Met(effect, why.format(f"{argument}={value}"), channel.queue_of(event), need)

        return rule

    return make


def _known_arguments(kind: str) -> Makes:
    """Arguments that a queue type has got, or has not any more."""

    def make(change: Change) -> Rule:
        def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
            queue = channel.queue_of(event)
            for name in table(event) if declares(event) else ():
                if name in change.now and name not in change.before:
                    yield Met(Effect.OTHERWISE, f"{name} is an argument of {kind} queues now", queue, kind)
                    if name not in _KNOWN_EARLIER:
                        why = f"{name} is refused with 406, as {kind} queues know it now and this one does not"
                        yield Met(Effect.GONE, why, queue, OTHER_THAN[kind])
                elif name in change.before and name not in change.now:
                    yield Met(Effect.GONE, f"{name} is no argument of {kind} queues any more", queue, kind)

        return rule

    return make


_HEADER: tuple[Meeting, ...] = (
    (
        (("protocol.header", True),),
        says(
            Effect.PERHAPS,
            "its protocol header is not that of 0-9-1",
            lambda event: event.arguments.get("octets") != HEADER_0_9_1,
        ),
    ),
)

#: By choice.
TOPOLOGY: Mapping[str, tuple[Meeting, ...]] = {
    "mechanisms": (((("connection.start-ok", True),), _mechanism),),
    "speaks_0_8": _HEADER,
    "headers_1_0": _HEADER,
    "refuses_with_1_0_header": _HEADER,
    "least_frame_max": (((("connection.tune-ok", True),), _frame_max),),
    "largest_announced_body": ((PUBLISH, _body),),
    "max_message_size": ((PUBLISH, _body),),
    "rechecks_consumers": (
        (
            (("connection.update-secret", True),),
            says(Effect.PERHAPS, "it renews its secret: consumers that may not read any more end", lambda event: True),
        ),
    ),
    "refusals_name_permission": ((CLOSES, told(403)),),
    "passive_declare_permission": (
        (
            (*DECLARE, ("exchange.declare", True)),
            says(
                Effect.UNKNOWN,
                "whether its user has any permission for what it declares passively",
                lambda event: not declares(event),
            ),
        ),
    ),
    "unknown_exchange_type": (((("exchange.declare", True),), _exchange_type),),
    "further_exchange_types": (((("exchange.declare", True),), _further_type),),
    "topic_wildcard_limit": ((BIND, _wildcards),),
    "headers_numbers_by_value": (
        (BIND, says(Effect.PERHAPS, "it binds by numbers in headers, which may be of another type", _numbers)),
    ),
    "transient_queues": (
        (DECLARE, _given_up("it declares a queue that is neither durable nor exclusive", _is_transient)),
    ),
    "master_locators": (
        (DECLARE, _given_up("it declares a queue with x-queue-master-locator", has("x-queue-master-locator"))),
    ),
    "least_max_priority": (
        (
            DECLARE,
            says(
                Effect.OTHERWISE,
                "its queue has two priorities",
                lambda event: declares(event) and table(event).get("x-max-priority") == 0,
            ),
        ),
    ),
    "default_queue_type_in_errors": ((CLOSES, told(406, "'x-queue-type'")),),
    "queue_arguments.classic": ((DECLARE, _known_arguments(CLASSIC)),),
    "queue_arguments.quorum": ((DECLARE, _known_arguments(QUORUM)),),
    "queue_arguments.stream": ((DECLARE, _known_arguments(STREAM)),),
    "queue_arguments.queue_versions": ((DECLARE, _value("x-queue-version", CLASSIC)),),
    "queue_arguments.queue_modes": (
        (
            DECLARE,
            _value(
                "x-queue-mode",
                CLASSIC,
                "{} is refused with 406 by the release notes; " + _TAKEN + " takes it all the same (known defect)",
                Effect.PERHAPS,
            ),
        ),
    ),
    "queue_arguments.leader_locators": ((DECLARE, _value("x-queue-leader-locator", "")),),
    "queue_arguments.age_is_compared_by_length": (
        (CLOSES, told(406, "x-max-age", why="a second declare was refused for its x-max-age", effect=Effect.PERHAPS)),
    ),
    "queue_arguments.filter_size_text": ((CLOSES, told(406, "x-stream-filter-size-bytes")),),
    "mirrors_classic_queues": (
        (
            DECLARE,
            says(
                Effect.UNKNOWN,
                "whether a policy mirrors its classic queues",
                lambda event: declares(event) and bool(event.arguments.get("durable")),
                CLASSIC,
            ),
        ),
    ),
}
