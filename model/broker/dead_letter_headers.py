"""What a dead letter looks like: its headers, how it is known, and what is broken if it looks otherwise (area DLX).

RabbitMQ: rabbit_dead_letter:make_msg, update_x_death_header (3.x: the history is in the headers, and the client's own
counts); mc:record_death, mc_amqpl:deaths_to_headers (from 4.0: the broker's own history, put into the headers).

Requirements:

* DLX-001: Reasons. The reason of a dead-lettering is rejected (nack/reject requeue=false), expired, maxlen, or
  delivery_limit (quorum). [rabbit_dead_letter; RabbitMQ Java client test DeadLetterExchange]
* DLX-002: x-death entry. x-death is an array of tables
  {count,reason,queue,time,exchange,routing-keys[,original-expiration]}, newest first, merged by (queue,reason). Field
  order is not fixed across versions. The count is a long-long-int (l), the time a time stamp (T). In rabbitmq-3: broken
  up to 3.12: each further death turns the order of the earlier ones: third, first, second. [mc_amqpl]
* DLX-003: x-first-death-* and x-last-death-*. x-first-death-{exchange,queue,reason} always; x-last-death-* from 4.0
  (3.13). In rabbitmq-3: first only. In rabbitmq-4.0: first and last. In rabbitmq-4.3: first and last. [mc]
* DLX-004: Client-supplied x-death. 3.10 increments the count when a message is REPUBLISHED with its x-death header; 4.x
  ignores client-supplied x-death and starts at 1. In rabbitmq-3: 2. In rabbitmq-4.0: 1. In rabbitmq-4.3: 1. [mc_amqpl;
  RabbitMQ 4.0 release notes]
* DLX-005: Routing. Dead-lettering uses x-dead-letter-routing-key or the original keys; the delivered exchange is the
  name of the dead-letter exchange. [RabbitMQ Java client test DeadLetterExchange]
* DLX-006: Expiration removed. expiration property is removed from the dead-lettered message and kept as
  original-expiration in x-death. [rabbit_dead_letter]
* DLX-008: Cycle detection. A message that would return to a queue in which it has died before, with no rejection on the
  way round, is dropped. In rabbitmq-3: broken up to 3.12: by the order of deaths in DLX-002 a rejection on the way
  round is overlooked, or one before it heeded. [mc:is_death_cycle; up to 3.12 rabbit_dead_letter:is_cycle]
* DLX-009: Order. What is rejected together is dead-lettered in delivery order, and what a limit on length drops at one
  time from the head on. In rabbitmq-3: broken: of what a quorum queue drops at one time the latest comes first. In
  rabbitmq-4.0: broken up to 4.2.0: of what a quorum queue drops at one time the latest comes first. [RabbitMQ release
  notes of 4.2.1 and 4.3.0 (correct order); rabbit_fifo:drop_head]
* DLX-010: redelivered flag and counts in the DLQ. What was handed to nobody before it was dead-lettered comes as a
  first delivery, without counts. Of what was handed out and not acknowledged no text says how many of these deliveries
  it takes along, and whether they go on counting towards a delivery limit: from none to all, told by redelivered and by
  a quorum queue's headers, until it is given back there. In rabbitmq-3: usually none: all counts begin anew. In
  rabbitmq-4.0: usually a quorum queue counts each lost holder and each refusal without requeue, not what nack or reject
  gave back; only a quorum queue looks at the number. In rabbitmq-4.3: usually what QUORUM-002 says counts, in classic
  queues too; it goes on counting towards the limit. A classic queue that hands the message to a waiting consumer at
  once does not look at it: redelivered=false. [mc annotation delivery_count: rabbit_fifo:annotate_msg,
  rabbit_variable_queue:set_deliver_flag (4.3)]
* QUORUM-003: Delivery limit. With x-delivery-limit=L a message is removed (dead-lettered with reason delivery_limit, or
  dropped) when its count of returns would exceed L: where each return counts, L=2 gives 3 deliveries. In rabbitmq-3:
  every return counts; default none. In rabbitmq-4.0: every return counts; default 20. In rabbitmq-4.3: reject and the
  end of the channel count, nack with requeue and recover do not (QUORUM-002), so there may be more deliveries than L+1;
  default 20. [rabbit_fifo:return_one]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.content_size import properties_size
from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import Content, Method, Table
from amqpspec.model.protocol.patterns import AnyMoment, Pattern, choose, matches

#: The arguments by which a queue has dead letters, and with which routing key.
EXCHANGE, ROUTING_KEY = "x-dead-letter-exchange", "x-dead-letter-routing-key"

REJECTED, DELIVERY_LIMIT = "rejected", "delivery_limit"
#: Its time was up (model.broker.time_to_live).
EXPIRED = "expired"
#: Beyond a limit of the queue (model.broker.length_limits).
TOO_MANY = "maxlen"

#: By which requirement a message is in a dead-letter queue, by the reason of its death.
CAUSES = {REJECTED: "DLX-001", DELIVERY_LIMIT: "QUORUM-003", TOO_MANY: "DLX-001", EXPIRED: "DLX-001"}

#: The requirement by which a dead letter goes no further.
CYCLES = "DLX-008"

HISTORY = "x-death"
#: Headers about the first and the last death: header to the key in the entry of the history.
_FIRST = {f"x-first-death-{key}": key for key in ("reason", "queue", "exchange")}
_LAST = {f"x-last-death-{key}": key for key in ("reason", "queue", "exchange")}


# ------------------------------------------------------------------------------------------- making one


def recorded(dialect: Dialect, queue: Queue, message: Message, reason: str) -> tuple[Content, tuple[Table, ...]]:
    """The content of the dead letter, and its deaths so far, the latest one first (DLX-002, DLX-003, DLX-006)."""
    properties = message.content.properties
    headers: Table = dict(properties.get("headers") or {})
    earlier = _earlier(dialect, message, headers)
    deaths = _with_one_more(earlier, _death(queue, message, reason))
    if not dialect.deaths_in_headers:
        if not message.deaths:
            headers |= _about(_FIRST, deaths[0])
        # the entry tells by which exchange the message came first; this, by which it came last (mc:record_death)
        headers |= _about(_LAST, {**deaths[0], "exchange": message.exchange})
    elif HISTORY not in headers:
        headers |= _about(_FIRST, deaths[0])
    headers[HISTORY] = list(deaths)
    kept = {name: value for name, value in properties.items() if name != "expiration"}
    return Content({**kept, "headers": headers}, message.content.body), deaths


def recorded_keys(message: Message) -> list[str]:
    """The routing keys that the history tells: with those of CC, without those of BCC."""
    keys = [message.routing_key, *message.further_keys]
    for hidden in message.hidden_keys:
        if hidden in keys:
            keys.remove(hidden)
    return keys


def is_of_history(header: str) -> bool:
    return header == HISTORY or header in _FIRST or header in _LAST


def without_history(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The properties without such headers; without headers if there are no others."""
    headers = {name: value for name, value in (properties.get("headers") or {}).items() if not is_of_history(name)}
    return {name: value for name, value in {**properties, "headers": headers}.items() if name != "headers" or headers}


def sent_history(message: Message) -> int:
    """Octets of the history that the client sent along with what is a dead letter now, or will be."""
    if message.deaths:
        return message.sent_history
    properties = message.content.properties
    if not properties.get("headers"):
        return 0
    return properties_size(properties) - properties_size(without_history(properties))


def has_own_history(message: Message) -> bool:
    """Did the client send a history along (DLX-004)?"""
    return not message.deaths and HISTORY in (message.content.properties.get("headers") or {})


def in_a_cycle(deaths: Sequence[Table], queue: str) -> bool:
    """DLX-008: did the message come this way before, and nobody rejected it since (mc:is_death_cycle)?"""
    for death in deaths:
        if death.get("reason") == REJECTED:
            return False
        if death.get("queue") == queue:
            return True
    return False


def published_expiration(history: Any) -> str | None:
    """The expiration that the message of that history was published with; none if it never died with one."""
    entries = history if isinstance(history, list | tuple) else ()
    own = (entry.get("original-expiration") for entry in entries if isinstance(entry, dict))
    return next((each for each in own if isinstance(each, str)), None)


def _earlier(dialect: Dialect, message: Message, headers: Table) -> list[Table]:
    if not dialect.deaths_in_headers:
        return list(message.deaths)
    told = headers.get(HISTORY)
    return [entry for entry in told if isinstance(entry, dict)] if isinstance(told, list | tuple) else []


def _death(queue: Queue, message: Message, reason: str) -> Table:
    death: Table = {
        "count": Int64(1), "reason": reason, "queue": queue.name, "time": AnyMoment(), "exchange": message.exchange,
        "routing-keys": recorded_keys(message),
    }  # fmt: skip
    expiration = message.content.properties.get("expiration")
    return death if expiration is None else {**death, "original-expiration": expiration}


def _with_one_more(earlier: list[Table], death: Table) -> tuple[Table, ...]:
    """One entry for each queue and reason, which keeps what it told of its first time."""
    others = []
    for entry in earlier:
        if (entry.get("queue"), entry.get("reason")) == (death["queue"], death["reason"]):
            death = {**entry, "count": Int64(entry.get("count", 0) + 1)}
        else:
            others.append(entry)
    return (death, *others)


def _about(names: Mapping[str, str], death: Table) -> Table:
    return {name: death[key] for name, key in names.items()}


# ------------------------------------------------------------------------------------- recognizing one


def as_seen(expected: Any, observed: Any) -> Any:
    """What is expected, with what was observed in the place of each pattern that it matches."""
    if isinstance(expected, Pattern):
        return observed if matches(expected, observed) else expected
    if isinstance(expected, dict) and isinstance(observed, dict):
        return {name: as_seen(value, observed.get(name)) for name, value in expected.items()}
    if isinstance(expected, list) and isinstance(observed, list) and len(expected) == len(observed):
        return [as_seen(*pair) for pair in zip(expected, observed, strict=True)]
    return expected


def chosen(expected: Any) -> Any:
    """What is expected, with a value in the place of each pattern: what the embedded broker sends."""
    if isinstance(expected, dict):
        return {name: chosen(value) for name, value in expected.items()}
    if isinstance(expected, list):
        return [chosen(value) for value in expected]
    return choose(expected)


def is_likely(message: Message, method: Method, *, tells: bool = True) -> bool:
    """Of several messages with one body: is this the one that came that way, and with that history? `tells`: does the
    broker tell of it as RabbitMQ does?
    """
    if message.deaths and not tells:
        return True
    arguments = method.arguments
    if (message.exchange, message.routing_key) != (arguments.get("exchange", ""), arguments.get("routing_key", "")):
        return False
    expected = _history(message.content)
    observed = None if method.content is None else _history(method.content)
    return bool(as_seen(expected, observed) == observed)


def is_dead_letter(content: Content) -> bool:
    return _history(content) is not None


def _history(content: Content) -> Any:
    headers = content.properties.get("headers")
    return headers.get(HISTORY) if headers else None


# ------------------------------------------------------------------------------------------- the verdict


def shown_by(queue: Queue, message: Message) -> list[str]:
    """What the first delivery of a dead letter shows; the message is out of the queue."""
    latest = message.deaths[0]
    shown = ["DLX-001", "DLX-002", "DLX-003", "DLX-005", "DLX-010"]
    if latest["reason"] == DELIVERY_LIMIT:
        shown.append("QUORUM-003")
    if latest["count"] == 1 and "original-expiration" in latest:
        shown.append("DLX-006")
    if any(other.is_first_here and other.via == message.via for other in queue.messages):
        shown.append("DLX-009")
    return shown


def wrong_of_death(properties: Mapping[str, Any], told: Mapping[str, Any]) -> str | None:
    """The requirement that the properties of a dead letter break, if they do so as those of a dead letter."""
    if "expiration" in told:
        return "DLX-006"
    return _wrong_header(properties.get("headers") or {}, told.get("headers") or {})


def _wrong_header(expected: Mapping[str, Any], observed: Mapping[str, Any]) -> str | None:
    wrong = {name for name in {*expected, *observed} if expected.get(name) != observed.get(name)}
    if HISTORY in wrong:
        told = observed.get(HISTORY)
        latest = told[0] if isinstance(told, list) and told and isinstance(told[0], dict) else {}
        meant = expected[HISTORY][0]
        if latest.get("reason") != meant["reason"]:
            return "DLX-001"
        return "DLX-006" if latest.get("original-expiration") != meant.get("original-expiration") else "DLX-002"
    return "DLX-003" if wrong & {*_FIRST, *_LAST} else None
