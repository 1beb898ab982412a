"""By which frames of an application a change is met: one rule or more for each choice of a dialect.

A rule looks at one frame. What it says holds where the queue is as `need` says (`conformance.upgrade.needs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from amqpspec.conformance.upgrade.application import ChannelView, Effect, Met, Rule, Rules
from amqpspec.conformance.upgrade.changes import Change
from amqpspec.conformance.upgrade.needs import (
    ACTIVE,
    CLASSIC,
    OTHER_THAN,
    QUORUM,
    QUORUM_NO_LIMIT,
    QUORUM_TTL,
    QUORUM_UNLIMITED,
    STREAM,
)
from amqpspec.model.broker.topic_matching import ANY_WORDS, words
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.promises.queue_arguments import KNOWN_TO_3
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.field_types import is_whole_number
from amqpspec.model.protocol.methods import METHOD_IDS, TraceEvent
from amqpspec.model.rules.connection.handshake_content import HEADER_0_9_1

_GONE, _OTHERWISE, _PERHAPS, _WORDS, _UNKNOWN = Effect
#: Makes a rule for a change: what it says may depend on both values.
Makes = Callable[[Change], Rule]
_STANDARD = ("direct", "fanout", "topic", "headers")
#: Seconds that a delivery may be held by default (consumer_timeout of rabbit).
_HELD = 1800.0
_REPLY_TO = "amq.rabbitmq.reply-to."
#: Arguments that one queue type or another knew before; others were ignored by all.
_KNOWN_EARLIER = frozenset((*KNOWN_TO_3.classic, *KNOWN_TO_3.quorum, *KNOWN_TO_3.stream))
_CLOSES = (("channel.close", False), ("connection.close", False))


def _table(event: TraceEvent) -> Mapping[str, Any]:
    found = event.arguments.get("arguments")
    return found if isinstance(found, Mapping) else {}


def _properties(event: TraceEvent) -> Mapping[str, Any]:
    return event.content.properties if event.content is not None else {}


def _headers(event: TraceEvent) -> Mapping[str, Any]:
    found = _properties(event).get("headers")
    return found if isinstance(found, Mapping) else {}


def _declares(event: TraceEvent) -> bool:
    return not event.arguments.get("passive")


def _says(effect: Effect, why: str, when: Callable[[TraceEvent], bool], need: str = "") -> Makes:
    """A rule that asks the frame alone, and the queue that it is about."""

    def make(change: Change) -> Rule:
        def rule(event: TraceEvent, channel: ChannelView) -> Iterable[Met]:
            return [Met(effect, why, channel.queue_of(event), need)] if when(event) else ()

        return rule

    return make


def _refused(event: TraceEvent, code: int, text: str = "", method: str = "") -> bool:
    arguments = event.arguments
    identifiers = arguments.get("class_id"), arguments.get("method_id")
    is_it = not method or METHOD_IDS[method] == identifiers
    return is_it and code in (0, arguments.get("reply_code")) and text in str(arguments.get("reply_text", ""))


def _told(why: str, code: int = 0, text: str = "", method: str = "", effect: Effect = _WORDS) -> Makes:
    """By a refusal that the application was told of."""
    return _says(effect, why, lambda event: _refused(event, code, text, method))


# ------------------------------------------------------------------------------------------------- connections


def _mechanism(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if event.arguments.get("mechanism") not in change.now:
            yield Met(_GONE, "it logs in by a mechanism that is not offered")

    return rule


def _other_header(event: TraceEvent) -> bool:
    return event.arguments.get("octets") != HEADER_0_9_1


def _frame_max(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if 0 < int(event.arguments.get("frame_max") or 0) < change.now:
            yield Met(_GONE, f"it asks for a frame-max below {change.now:,}, and is refused")

    return rule


def _body(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if change.now is not None and event.content is not None and len(event.content.body) > change.now:
            yield Met(_GONE, f"it publishes a body of more than {change.now:,} octets")

    return rule


# ----------------------------------------------------------------------------------------------------- topology


def _exchange_type(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if _declares(event) and event.arguments.get("type") not in _STANDARD:
            yield Met(_PERHAPS, "it declares an exchange of a type that needs a plugin; without it this is refused")

    return rule


def _further_type(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        kind = event.arguments.get("type")
        if _declares(event) and kind in set(change.before) ^ set(change.now):
            is_there = kind in change.now
            yield Met(_OTHERWISE if is_there else _GONE, f"an exchange of type {kind} is {'made' if is_there else 'refused'}")

    return rule


def _wildcards(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        key = str(event.arguments.get("routing_key", ""))
        if change.now is not None and words(key).count(ANY_WORDS) > change.now:
            yield Met(_GONE, f"it binds with more than {change.now} `#`; refused if the exchange is a topic exchange")

    return rule


def _numbers(event: TraceEvent) -> bool:
    table = _table(event)
    numbers = (value for name, value in table.items() if name != "x-match")
    return "x-match" in table and any(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers)


def _transient(event: TraceEvent) -> bool:
    return _declares(event) and not event.arguments.get("durable") and not event.arguments.get("exclusive")


def _has(*names: str) -> Callable[[TraceEvent], bool]:
    return lambda event: _declares(event) and any(name in _table(event) for name in names)


def _argument_value(argument: str, why: str, need: str, effect: Effect = _GONE) -> Makes:
    """A value that was right, and is not any more."""

    def make(change: Change) -> Rule:
        def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
            value = _table(event).get(argument)
            if _declares(event) and value in change.before and value not in change.now:
                yield Met(effect, why.format(value), channel.queue_of(event), need)

        return rule

    return make


def _known_arguments(kind: QueueType, need: str) -> Makes:
    def make(change: Change) -> Rule:
        def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
            for name in _table(event) if _declares(event) else ():
                if name in change.now and name not in change.before:
                    why = f"{name} is an argument of {kind.value} queues now, and has an effect"
                    yield Met(_OTHERWISE, why, channel.queue_of(event), need)
                    if name not in _KNOWN_EARLIER:
                        why = f"{name} is refused with 406 by this queue type, as another knows it now"
                        yield Met(_GONE, why, channel.queue_of(event), OTHER_THAN[need])
                elif name in change.before and name not in change.now:
                    yield Met(_GONE, f"{name} is no argument of {kind.value} queues any more", channel.queue_of(event), need)

        return rule

    return make


# ---------------------------------------------------------------------------------------------------- consumers


def _global_qos(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if (event.arguments.get("global_") or event.arguments.get("global")) and event.arguments.get("prefetch_count"):
            if change.now:
                yield Met(_OTHERWISE, "its global limit is one of the whole channel")
            else:
                yield Met(_GONE, "it limits the whole channel, which nothing does any more: each consumer has that limit")

    return rule


def _checked_timeout(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        value, queue = _table(event).get("x-consumer-timeout"), channel.queue_of(event)
        if value is None or not change.now:
            return
        if not is_whole_number(value) or value < 0:
            yield Met(_GONE, "its x-consumer-timeout of basic.consume is refused with 406", queue, QUORUM)
        yield Met(_GONE, "x-consumer-timeout of basic.consume is refused with 406 by this queue type", queue, OTHER_THAN[QUORUM])

    return rule


def _timeout_argument(change: Change) -> Rule:
    """Of a queue, or of a consumer."""

    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if not _declares(event) or "x-consumer-timeout" not in _table(event):
            return
        queue = channel.queue_of(event)
        if change.now is ConsumerTimeouts.OF_QUORUM_QUEUES:
            yield Met(_OTHERWISE, "when x-consumer-timeout is up, the message goes back and the consumer ends", queue, QUORUM)
        elif event.name == "queue.declare":
            yield Met(_OTHERWISE, "x-consumer-timeout has an effect", queue)

    return rule


def _held_long(change: Change) -> Rule:
    """Longer than a broker lets it by default, as its configuration is not known."""

    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        for queue, tag, since in channel.settled_by(event):
            if event.time - since > _HELD:
                yield Met(_OTHERWISE, "it holds deliveries for more than half an hour", queue, "")
                return

    return rule


def _unsettled_consumer(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if not event.arguments.get("no_ack"):
            yield Met(_UNKNOWN, "whether it ever holds a delivery for longer than the time that is set")

    return rule


def _get_refused(event: TraceEvent) -> bool:
    return _refused(event, 405, method="basic.get")


def _mandatory_reply(event: TraceEvent) -> bool:
    arguments = event.arguments
    is_reply = not arguments.get("exchange") and str(arguments.get("routing_key", "")).startswith(_REPLY_TO)
    return bool(arguments.get("mandatory")) and is_reply


# ------------------------------------------------------------------------------------------------ quorum queues


def _given_back(effect: Effect, why: str, need: str) -> Makes:
    """By what a client gives back."""

    def make(change: Change) -> Rule:
        def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
            if event.name in ("basic.nack", "basic.reject", "basic.recover") and not event.arguments.get("requeue"):
                return
            for queue in dict.fromkeys(queue for queue, _, _ in channel.settled_by(event)):
                yield Met(effect, why, queue, need)

        return rule

    return make


def _came_back_often(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        count = _headers(event).get("x-delivery-count")
        if change.now is not None and isinstance(count, int) and count > change.now:
            why = f"a message came back more than {change.now} times: it would be dropped or dead-lettered by then"
            yield Met(_GONE, why, channel.queue_of(event), QUORUM_NO_LIMIT)

    return rule


def _negative_limit(event: TraceEvent) -> bool:
    limit = _table(event).get("x-delivery-limit")
    return _declares(event) and isinstance(limit, int) and limit < 0


def _redelivered(event: TraceEvent) -> bool:
    return bool(event.arguments.get("redelivered"))


def _dead_of_quorum(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        deaths = _headers(event).get("x-death")
        first = deaths[0] if isinstance(deaths, list) and deaths else None
        if change.now and isinstance(first, Mapping):
            yield Met(_OTHERWISE, "a dead letter keeps the header x-acquired-count", str(first.get("queue", "")), QUORUM)

    return rule


def _count_of_zero(event: TraceEvent) -> bool:
    return _headers(event).get("x-delivery-count") == 0


def _several_holders(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        ending = [channel] if event.channel else list(channel.connection.channels.values())
        for each in ending:
            holders: dict[str, set[str]] = {}
            for queue, tag, _ in each.unsettled.values():
                holders.setdefault(queue, set()).add(tag)
            for queue, tags in holders.items():
                if len(tags) > 1:
                    yield Met(_PERHAPS, "several consumers of a channel hold deliveries when it ends", queue, QUORUM)

    return rule


def _priority(why: str, need: str, effect: Effect = _OTHERWISE, expires: bool = False) -> Makes:
    """By a message with a priority, on its way in or out."""

    def make(change: Change) -> Rule:
        def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
            if _properties(event).get("priority") is None or (expires and "expiration" not in _properties(event)):
                return
            exchange = str(event.arguments.get("exchange", ""))
            if event.name == "basic.publish" and exchange:
                yield Met(effect, why, need=need, exchange=exchange)
            elif event.name == "basic.publish":
                yield Met(effect, why, str(event.arguments.get("routing_key", "")), need)
            else:
                yield Met(effect, why, channel.queue_of(event), need)

        return rule

    return make


# ----------------------------------------------------------------------------------------------------- messages


def _several_faults(event: TraceEvent) -> bool:
    others = "expiration" in _properties(event) or "CC" in _headers(event) or "BCC" in _headers(event)
    return "user_id" in _properties(event) and others


def _dies(event: TraceEvent) -> bool:
    return "x-death" in _headers(event)


def _unnamed_mode(event: TraceEvent) -> bool:
    return "delivery_mode" not in _properties(event)


def _classic(event: TraceEvent) -> bool:
    return _declares(event) and bool(event.arguments.get("durable"))


_DECLARE, _PUBLISH, _CONSUME = ("queue.declare", True), ("basic.publish", True), ("basic.consume", True)
_HANDED_OVER = (("basic.deliver", False), ("basic.get-ok", False))
_GIVES_BACK = tuple((f"basic.{name}", True) for name in ("nack", "reject", "recover", "recover-async"))
_TAKEN = ", ".join(KNOWN_DEFECTS["queue-mode-is-taken"].brokers)
_BACK = "messages that it gives back go to the front, and come again before the others"
_DEAD = "a dead letter has redelivered=true, or counts, where it had none"
_TEXT_OF = "it was refused, with a text that is another now"

#: By choice: on which frames its rules look, and what makes them.
MEETINGS: Mapping[str, tuple[tuple[tuple[tuple[str, bool], ...], Makes], ...]] = {
    "mechanisms": (((("connection.start-ok", True),), _mechanism),),
    **{
        choice: (
            ((("protocol.header", True),), _says(_PERHAPS, "its protocol header is not that of 0-9-1", _other_header)),
        )
        for choice in ("speaks_0_8", "headers_1_0", "refuses_with_1_0_header")
    },
    "least_frame_max": (((("connection.tune-ok", True),), _frame_max),),
    "largest_announced_body": (((_PUBLISH,), _body),),
    "max_message_size": (((_PUBLISH,), _body),),
    "rechecks_consumers": (
        (
            (("connection.update-secret", True),),
            _says(_PERHAPS, "it renews its secret: consumers that may not read any more end", lambda event: True),
        ),
    ),
    "client_cancel_ok": (
        ((("basic.cancel-ok", True),), _says(_OTHERWISE, "it answers basic.cancel", lambda event: True)),
    ),
    "refusals_name_permission": ((_CLOSES, _told(_TEXT_OF, 403)),),
    "passive_declare_permission": (
        (
            (_DECLARE, ("exchange.declare", True)),
            _says(_UNKNOWN, "whether its user has any permission for what it declares passively", lambda e: not _declares(e)),
        ),
    ),
    "unknown_exchange_type": (((("exchange.declare", True),), _exchange_type),),
    "further_exchange_types": (((("exchange.declare", True),), _further_type),),
    "topic_wildcard_limit": (((("queue.bind", True), ("exchange.bind", True)), _wildcards),),
    "headers_numbers_by_value": (
        (
            (("queue.bind", True), ("exchange.bind", True)),
            _says(_PERHAPS, "it binds by numbers in headers: a message with the same number of another type differs", _numbers),
        ),
    ),
    "transient_queues": (
        ((_DECLARE,), _says(_GONE, "it declares a queue that is neither durable nor exclusive", _transient)),
    ),
    "master_locators": (((_DECLARE,), _says(_GONE, "it declares a queue with that argument", _has("x-queue-master-locator"))),),
    "least_max_priority": (
        ((_DECLARE,), _says(_OTHERWISE, "its queue has two priorities", lambda e: _declares(e) and _table(e).get("x-max-priority") == 0)),
    ),
    "default_queue_type_in_errors": ((_CLOSES, _told(_TEXT_OF, 406, "'x-queue-type'")),),
    "queue_arguments.classic": (((_DECLARE,), _known_arguments(QueueType.CLASSIC, CLASSIC)),),
    "queue_arguments.quorum": (((_DECLARE,), _known_arguments(QueueType.QUORUM, QUORUM)),),
    "queue_arguments.stream": (((_DECLARE,), _known_arguments(QueueType.STREAM, STREAM)),),
    "queue_arguments.queue_versions": (
        ((_DECLARE,), _argument_value("x-queue-version", "x-queue-version={} is refused with 406", CLASSIC)),
    ),
    "queue_arguments.queue_modes": (
        (
            (_DECLARE,),
            _argument_value(
                "x-queue-mode",
                "by its release notes it refuses x-queue-mode={} with 406; "
                + f"{_TAKEN} takes it all the same (known defect queue-mode-is-taken)",
                CLASSIC,
                _PERHAPS,
            ),
        ),
    ),
    "queue_arguments.leader_locators": (
        ((_DECLARE,), _argument_value("x-queue-leader-locator", "x-queue-leader-locator={} is refused with 406", "")),
    ),
    "queue_arguments.age_is_compared_by_length": (
        (_CLOSES, _told("a second declare was refused for its x-max-age", 406, "x-max-age", effect=_PERHAPS)),
    ),
    "queue_arguments.filter_size_text": ((_CLOSES, _told(_TEXT_OF, 406, "x-stream-filter-size-bytes")),),
    "channel_prefetch": (((("basic.qos", True),), _global_qos),),
    "consumer_timeout_checked": (((_CONSUME,), _checked_timeout),),
    "consumer_timeouts": (
        ((_DECLARE, _CONSUME), _timeout_argument),
        ((("basic.ack", True), *_GIVES_BACK), _held_long),
        (_CLOSES, _told("its channel was closed, as a delivery was held too long", 406, "delivery ack", effect=_OTHERWISE)),
        ((_CONSUME,), _unsettled_consumer),
    ),
    "first_stream_texts": ((_CLOSES, _told(_TEXT_OF, method="basic.consume")),),
    "queue_type_in_get_error": ((_CLOSES, _says(_WORDS, _TEXT_OF, _get_refused)),),
    "reply_address_is_routable": (
        ((_PUBLISH,), _says(_OTHERWISE, "a reply to a client that is gone is not returned", _mandatory_reply)),
    ),
    "quorum_requeue": (
        (_GIVES_BACK, _given_back(_OTHERWISE, _BACK, QUORUM_UNLIMITED)),
    ),
    "quorum_delivery_limit": (
        (_GIVES_BACK, _given_back(_PERHAPS, "what it gives back more than 20 times is dropped or dead-lettered", QUORUM_NO_LIMIT)),
        (_HANDED_OVER, _came_back_often),
    ),
    "negative_delivery_limit_is_none": (
        ((_DECLARE,), _says(_OTHERWISE, "its negative x-delivery-limit means that there is none", _negative_limit, QUORUM)),
    ),
    "quorum_expires_by_policy": (
        ((_DECLARE,), _says(_UNKNOWN, "whether a policy has `expires` for a queue with x-expires", _has("x-expires"), QUORUM)),
    ),
    "quorum_nack_has_not_failed": (
        (
            (("basic.nack", True), ("basic.recover", True), ("basic.recover-async", True)),
            _given_back(_OTHERWISE, "what it gives back so is not counted, and is never dropped for it", QUORUM),
        ),
    ),
    "quorum_acquired_count": (
        (_HANDED_OVER, _says(_OTHERWISE, "a message that comes again has the header x-acquired-count", _redelivered, QUORUM)),
        (_HANDED_OVER, _dead_of_quorum),
    ),
    "quorum_count_on_first_get": (
        (((_HANDED_OVER[1]),), _says(_OTHERWISE, "x-delivery-count is not there at the first delivery", _count_of_zero, QUORUM)),
    ),
    "lost_consumers_by_creation": (
        ((("channel.close", True), ("connection.close", True), ("socket.closed", False)), _several_holders),
    ),
    "quorum_active_by_priority": (
        ((_CONSUME,), _says(_OTHERWISE, "x-priority decides which consumer is active", lambda e: "x-priority" in _table(e), ACTIVE)),
    ),
    "quorum_priorities": (
        ((_PUBLISH, *_HANDED_OVER), _priority("messages with a priority are served in another order", QUORUM)),
    ),
    "quorum_expires_by_priority": (
        ((_PUBLISH,), _priority("an expired message may leave earlier or later", QUORUM_TTL, _PERHAPS)),
        ((_PUBLISH,), _priority("an expired message may leave earlier or later", QUORUM, _PERHAPS, expires=True)),
    ),
    "user_id_checked_first": (
        ((_PUBLISH,), _says(_WORDS, "a message with several faults is refused with another text", _several_faults)),
    ),
    "deaths_in_headers": (
        ((_PUBLISH,), _says(_OTHERWISE, "it publishes x-death: the broker does not go on with these counts", _dies)),
    ),
    "carried_failures": ((_HANDED_OVER, _says(_PERHAPS, _DEAD, _dies)),),
    "deleted_before_commit": (
        ((("tx.commit", True),), _says(_UNKNOWN, "whether a queue is ever deleted before a commit", lambda event: True)),
    ),
    "stream_names_delivery_mode": (
        (_HANDED_OVER, _says(_OTHERWISE, "what comes from a stream has a delivery-mode", _unnamed_mode, STREAM)),
    ),
    "mirrors_classic_queues": (
        ((_DECLARE,), _says(_UNKNOWN, "whether a policy mirrors its classic queues", _classic, CLASSIC)),
    ),
}  # fmt: skip

#: Choices that no frame of an application tells anything of.
NOT_IN_A_RECORDING: Mapping[str, str] = {
    "nodes_pause_themselves": "whether nodes of its cluster are ever cut off from each other",
}


def rules_of(changes: Iterable[Change]) -> Rules:
    """The rules of these changes, by the frames that they look at."""
    found: dict[tuple[str, bool], list[tuple[str, Rule]]] = {}
    for change in changes:
        for frames, make in MEETINGS.get(change.choice, ()):
            rule = make(change)
            for frame in frames:
                found.setdefault(frame, []).append((change.choice, rule))
    return {frame: tuple(rules) for frame, rules in found.items()}
