"""By which frames changes of consumers, of quorum queues and streams, and of messages are met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from amqpspec.conformance.upgrade.application import ChannelView, Effect, Met, Rule
from amqpspec.conformance.upgrade.changes import Change
from amqpspec.conformance.upgrade.needs import (
    ACTIVE,
    OTHER_THAN,
    QUORUM,
    QUORUM_NO_LIMIT,
    QUORUM_TTL,
    QUORUM_UNLIMITED,
    STREAM,
)
from amqpspec.conformance.upgrade.rule_parts import (
    CLOSES,
    CONSUME,
    DECLARE,
    GET_OK,
    GIVES_BACK,
    HANDED_OVER,
    PUBLISH,
    Makes,
    Meeting,
    declares,
    has,
    headers,
    properties,
    says,
    table,
    told,
)
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.protocol.field_types import is_whole_number
from amqpspec.model.protocol.methods import TraceEvent

#: Seconds that a delivery may be held by default (consumer_timeout of rabbit).
_HELD = 1800.0
_REPLY_TO = "amq.rabbitmq.reply-to."
_TIMEOUT = "x-consumer-timeout"


def _global_qos(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if event.arguments.get("global_") and event.arguments.get("prefetch_count"):
            if change.now:
                yield Met(Effect.OTHERWISE, "its global limit is one of the whole channel")
            else:
                yield Met(Effect.GONE, "it limits the whole channel: each consumer has that limit now")

    return rule


def _checked_timeout(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        value, queue = table(event).get(_TIMEOUT), channel.queue_of(event)
        if value is None or not change.now:
            return
        if not is_whole_number(value) or value < 0:
            yield Met(Effect.GONE, f"its {_TIMEOUT} of basic.consume is refused with 406", queue, QUORUM)
        why = f"{_TIMEOUT} of basic.consume is refused with 406 by this queue type"
        yield Met(Effect.GONE, why, queue, OTHER_THAN[QUORUM])

    return rule


def _timeout_argument(change: Change) -> Rule:
    """Of a queue, or of a consumer."""

    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        if not declares(event) or _TIMEOUT not in table(event):
            return
        queue = channel.queue_of(event)
        if change.now is ConsumerTimeouts.OF_QUORUM_QUEUES:
            why = f"when {_TIMEOUT} is up, the message goes back and the consumer ends"
            yield Met(Effect.OTHERWISE, why, queue, QUORUM)
        elif event.name == "queue.declare":
            yield Met(Effect.OTHERWISE, f"{_TIMEOUT} has an effect", queue)

    return rule


def _held_long(change: Change) -> Rule:
    """Longer than a broker lets it by default, as its configuration is not known."""

    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        for queue, _, since in channel.settled_by(event):
            if event.time - since > _HELD:
                yield Met(Effect.OTHERWISE, "it holds deliveries for more than half an hour", queue)
                return

    return rule


def _mandatory_reply(event: TraceEvent) -> bool:
    arguments = event.arguments
    is_reply = not arguments.get("exchange") and str(arguments.get("routing_key", "")).startswith(_REPLY_TO)
    return bool(arguments.get("mandatory")) and is_reply


def _given_back(effect: Effect, why: str, need: str) -> Makes:
    """By what a client gives back."""

    def make(change: Change) -> Rule:
        def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
            if event.name != "basic.recover-async" and not event.arguments.get("requeue"):
                return
            for queue in dict.fromkeys(queue for queue, _, _ in channel.settled_by(event)):
                yield Met(effect, why, queue, need)

        return rule

    return make


def _came_back_often(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        count = headers(event).get("x-delivery-count")
        if change.now is not None and isinstance(count, int) and count > change.now:
            why = f"a message came back more than {change.now} times: it is dropped or dead-lettered by then"
            yield Met(Effect.GONE, why, channel.queue_of(event), QUORUM_NO_LIMIT)

    return rule


def _negative_limit(event: TraceEvent) -> bool:
    limit = table(event).get("x-delivery-limit")
    return declares(event) and isinstance(limit, int) and limit < 0


def _dead_of_quorum(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        deaths = headers(event).get("x-death")
        first = deaths[0] if isinstance(deaths, list) and deaths else None
        if change.now and isinstance(first, Mapping):
            why = "a dead letter keeps the header x-acquired-count"
            yield Met(Effect.OTHERWISE, why, str(first.get("queue", "")), QUORUM)

    return rule


def _several_holders(change: Change) -> Rule:
    def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
        ending = [channel] if event.channel else list(channel.connection.channels.values())
        for each in ending:
            holders: dict[str, set[str]] = {}
            for queue, tag, _ in each.unsettled.values():
                holders.setdefault(queue, set()).add(tag)
            for queue, tags in holders.items():
                if len(tags) > 1:
                    why = "several consumers of a channel hold deliveries when it ends"
                    yield Met(Effect.PERHAPS, why, queue, QUORUM)

    return rule


def _priority(why: str, need: str, effect: Effect = Effect.OTHERWISE, expires: bool = False) -> Makes:
    """By a message with a priority, and with `expires` an expiration, on its way in or out."""

    def make(change: Change) -> Rule:
        def rule(event: TraceEvent, channel: ChannelView) -> Iterator[Met]:
            told_of = properties(event)
            if told_of.get("priority") is None or (expires and "expiration" not in told_of):
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


def _has_several_faults(event: TraceEvent) -> bool:
    others = "expiration" in properties(event) or "CC" in headers(event) or "BCC" in headers(event)
    return "user_id" in properties(event) and others


def _has_died(event: TraceEvent) -> bool:
    return "x-death" in headers(event)


def _always(event: TraceEvent) -> bool:
    return True


_EXPIRES = "an expired message may leave earlier or later"

#: By choice.
MESSAGES: Mapping[str, tuple[Meeting, ...]] = {
    # ---------------------------------------------------------------------------------------------- consumers
    "client_cancel_ok": (((("basic.cancel-ok", True),), says(Effect.OTHERWISE, "it answers basic.cancel", _always)),),
    "channel_prefetch": (((("basic.qos", True),), _global_qos),),
    "consumer_timeout_checked": ((CONSUME, _checked_timeout),),
    "consumer_timeouts": (
        ((*DECLARE, *CONSUME), _timeout_argument),
        ((("basic.ack", True), *GIVES_BACK), _held_long),
        (
            CLOSES,
            told(406, "delivery ack", why="its channel was closed for a delivery", effect=Effect.OTHERWISE),
        ),
        (
            CONSUME,
            says(
                Effect.UNKNOWN,
                "whether it ever holds a delivery for longer than the time that is set",
                lambda event: not event.arguments.get("no_ack"),
            ),
        ),
    ),
    "first_stream_texts": ((CLOSES, told(method="basic.consume")),),
    "queue_type_in_get_error": ((CLOSES, told(405, method="basic.get")),),
    "reply_address_is_routable": (
        (PUBLISH, says(Effect.OTHERWISE, "a reply to a client that is gone is not returned", _mandatory_reply)),
    ),
    # ------------------------------------------------------------------------------------ quorum queues, streams
    "quorum_requeue": (
        (
            GIVES_BACK,
            _given_back(Effect.OTHERWISE, "what it gives back goes to the front, and comes first", QUORUM_UNLIMITED),
        ),
    ),
    "quorum_delivery_limit": (
        (
            GIVES_BACK,
            _given_back(
                Effect.PERHAPS, "what comes back more than 20 times is dropped or dead-lettered", QUORUM_NO_LIMIT
            ),
        ),
        (HANDED_OVER, _came_back_often),
    ),
    "negative_delivery_limit_is_none": (
        (DECLARE, says(Effect.OTHERWISE, "its negative x-delivery-limit means none", _negative_limit, QUORUM)),
    ),
    "quorum_expires_by_policy": (
        (DECLARE, says(Effect.UNKNOWN, "whether a policy has `expires` as well", has("x-expires"), QUORUM)),
    ),
    "quorum_nack_has_not_failed": (
        (
            tuple(each for each in GIVES_BACK if each[0] != "basic.reject"),
            _given_back(Effect.OTHERWISE, "what it gives back so is not counted, and is never dropped for it", QUORUM),
        ),
    ),
    "quorum_acquired_count": (
        (
            HANDED_OVER,
            says(
                Effect.OTHERWISE,
                "a message that comes again has the header x-acquired-count",
                lambda event: bool(event.arguments.get("redelivered")),
                QUORUM,
            ),
        ),
        (HANDED_OVER, _dead_of_quorum),
    ),
    "quorum_count_on_first_get": (
        (
            GET_OK,
            says(
                Effect.OTHERWISE,
                "x-delivery-count is not there at the first delivery",
                lambda event: headers(event).get("x-delivery-count") == 0,
                QUORUM,
            ),
        ),
    ),
    "lost_consumers_by_creation": (
        ((("channel.close", True), ("connection.close", True), ("socket.closed", False)), _several_holders),
    ),
    "quorum_active_by_priority": (
        (
            CONSUME,
            says(
                Effect.OTHERWISE,
                "x-priority decides which consumer is active",
                lambda event: "x-priority" in table(event),
                ACTIVE,
            ),
        ),
    ),
    "quorum_priorities": (
        ((*PUBLISH, *HANDED_OVER), _priority("messages with a priority are served in another order", QUORUM)),
    ),
    "quorum_expires_by_priority": (
        (PUBLISH, _priority(_EXPIRES, QUORUM_TTL, Effect.PERHAPS)),
        (PUBLISH, _priority(_EXPIRES, QUORUM, Effect.PERHAPS, expires=True)),
    ),
    "stream_names_delivery_mode": (
        (
            HANDED_OVER,
            says(
                Effect.OTHERWISE,
                "what comes from a stream has a delivery-mode",
                lambda event: "delivery_mode" not in properties(event),
                STREAM,
            ),
        ),
    ),
    # ----------------------------------------------------------------------------------------------- messages
    "user_id_checked_first": (
        (PUBLISH, says(Effect.WORDS, "a message with several faults is refused otherwise", _has_several_faults)),
    ),
    "deaths_in_headers": (
        (PUBLISH, says(Effect.OTHERWISE, "it publishes x-death: the broker does not go on with its counts", _has_died)),
        (
            HANDED_OVER,
            says(
                Effect.OTHERWISE,
                "a dead letter has the headers x-last-death-exchange, -queue and -reason",
                lambda event: _has_died(event) and "x-last-death-reason" not in headers(event),
            ),
        ),
    ),
    "carried_failures": (
        (
            HANDED_OVER,
            says(Effect.PERHAPS, "a dead letter has redelivered=true, or counts, where it had none", _has_died),
        ),
    ),
    "deleted_before_commit": (
        ((("tx.commit", True),), says(Effect.UNKNOWN, "whether a queue is ever deleted before a commit", _always)),
    ),
}
