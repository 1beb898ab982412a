"""Where a message goes (areas PUBLISH and BIND; rabbit_exchange:route): a function of the topology, only read here.

With each queue it gives the requirement by which the message gets there, and with each bound queue that is passed
over the one that keeps it out: what is to blame if the broker decides otherwise.

Requirements:

* BIND-003: Duplicate bindings deliver once. A queue bound several times (equal or different keys) that all match gets
  ONE copy per publish. [rabbit_exchange:route; AMQP 0-9-1 queue.bind]
* BIND-004: Exchange-to-exchange bindings. Messages follow e2e bindings; cycles deliver once per queue;
  basic.deliver.exchange is the exchange originally published to. [rabbit_exchange:route1]
* BIND-006: bind-ok order. bind-ok/unbind-ok take effect before they are sent: a publish on the same channel after
  bind-ok is routed with the binding. [rabbit_binding:add]
* EXCHANGE-011: Types of exchanges that send to one binding. From 4.0 on there is the type x-local-random, from 4.3 on
  x-modulus-hash as well. Such an exchange sends each message to one of its bindings, whichever that is; if only one
  queue is bound, to that. x-local-random takes bindings of classic queues with an empty key. In rabbitmq-4.0:
  x-local-random. In rabbitmq-4.3: x-local-random and x-modulus-hash. [RabbitMQ guide: local random exchange;
  rabbit_exchange_type_local_random; rabbit_exchange_type_modulus_hash]
* PUBLISH-002: Default exchange routes by queue name. routing key = queue name; unknown name is unroutable.
  [rabbit_exchange:route; AMQP 0-9-1 basic.publish]
* PUBLISH-003: direct. A direct exchange routes on an exact, case-sensitive match of the key; the empty key is allowed.
  [rabbit_exchange_type_direct; AMQP 0-9-1 3.1.3.1]
* PUBLISH-004: fanout. A fanout exchange ignores the routing key. [rabbit_exchange_type_fanout; AMQP 0-9-1 3.1.3.2]
* PUBLISH-005: topic. Words split on "."; * = exactly one word (possibly empty), # = zero or more words. "" is the empty
  word list: it matches "#" and "" but not "*"; "." is two empty words and matches "*.*". [rabbit_exchange_type_topic;
  AMQP 0-9-1 3.1.3.3]
* PUBLISH-006: headers all / any. x-match default is all; all = every non-x- binding header present with equal value;
  any = at least one; header value void (None) tests presence only; keys starting x- are ignored except with
  all-with-x/any-with-x; empty all matches everything, empty any matches nothing; string "1" is not integer 1. The
  header BCC is not seen. In rabbitmq-3: as stated; 1 may equal 1.0, or not, as no text says (not from 3.13.0 on). In
  rabbitmq-4.0: as stated; 1 may equal 1.0, or not, as no text says. In rabbitmq-4.3: as stated; 1 may equal 1.0, or
  not, as no text says. In amqp-0-9-1: as stated, without all-with-x and any-with-x.
  [rabbit_exchange_type_headers:route, v3.10.9 headers_match; AMQP 0-9-1 3.1.3.4]
* PUBLISH-010: Alternate exchange. An unroutable message goes to the alternate exchange, keeping original exchange name
  and key; if that routes it, mandatory does not return it. [rabbit_exchange:process_alternate]
* PUBLISH-011: CC/BCC headers. CC and BCC (arrays of strings) add routing keys; BCC is removed before delivery, CC is
  kept; each queue gets one copy; delivered routing_key is the primary one. Wrong type is 406. [mc:routing_keys; up to
  3.12 rabbit_basic:header_routes]
* PUBLISH-018: Time stamps in a headers exchange. A header that is a time stamp matches a binding argument of the same
  time stamp. In rabbitmq-4.0: broken: never matches. In rabbitmq-4.3: broken: never matches. [AMQP 0-9-1 3.1.3.4;
  mc_amqpl:routing_value (from 4.0)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from amqpspec.model.broker.field_kinds import doubt, law, to_blame
from amqpspec.model.broker.headers_matching import headers_match
from amqpspec.model.broker.queues import Binding, Exchange, Queue
from amqpspec.model.broker.topic_matching import topic_matches
from amqpspec.model.promises.choices import Dialect

#: The requirement by which an exchange of each type chooses.
BY_TYPE = {"direct": "PUBLISH-003", "fanout": "PUBLISH-004", "topic": "PUBLISH-005", "headers": "PUBLISH-006"}
#: RabbitMQ's types that send a message to one of the bindings, whichever that is (rabbit_exchange_type_local_random,
#: rabbit_exchange_type_modulus_hash).
TO_ONE = ("x-local-random", "x-modulus-hash")
TO_ONE_BINDING = "EXCHANGE-011"
DEFAULT_EXCHANGE, ALTERNATE, FURTHER_KEYS = "PUBLISH-002", "PUBLISH-010", "PUBLISH-011"
TIME_STAMPS = "PUBLISH-018"
EXCHANGE_BINDING, SEVERAL_BINDINGS, ENDED_BINDING = "BIND-004", "BIND-003", "BIND-006"

#: From what every broker does to what few clients use.
OUT_OF_THE_ORDINARY = (SEVERAL_BINDINGS, FURTHER_KEYS, EXCHANGE_BINDING, ALTERNATE)


@dataclass(slots=True)
class Routes:
    """Queues that the message reaches, each once (BIND-003), and bound queues that it does not reach."""

    # ---- law
    queues: dict[Queue, str] = law(factory=dict, view="reached")

    # ---- doubt
    #: it comes through an exchange that nobody can follow, because of this word; and where it may go from there
    open_by: str = doubt("")
    perhaps: tuple[Queue, ...] = doubt((), view="perhaps")

    # ---- blame
    passed_over: dict[Queue, str] = to_blame(factory=dict)
    #: the requirement to blame if the message goes somewhere although nothing matches
    decided_by: str = to_blame(DEFAULT_EXCHANGE)

    def reach(self, queue: Queue, requirement: str) -> None:
        known = self.queues.get(queue)
        if known is not None:
            requirement = out_of_the_ordinary(known, requirement, SEVERAL_BINDINGS)
        self.queues[queue] = requirement
        self.passed_over.pop(queue, None)

    def miss(self, destination: Queue) -> None:
        """There was a binding by which the message would go there, until it was taken back (BIND-006)."""
        if destination not in self.queues:
            # the first that the broker is asked about
            self.passed_over = {destination: ENDED_BINDING} | self.passed_over | {destination: ENDED_BINDING}


def out_of_the_ordinary(*requirements: str) -> str:
    """The one of several that is most likely to be got wrong."""
    return max(requirements, key=lambda each: OUT_OF_THE_ORDINARY.index(each) if each in OUT_OF_THE_ORDINARY else -1)


def route(
    exchanges: Mapping[str, Exchange],
    queues: Mapping[str, Queue],
    exchange: Exchange,
    keys: Sequence[str],
    headers: Mapping[str, Any],
    dialect: Dialect,
    *,
    chooses: bool = False,
) -> Routes:
    """`keys`: the routing key, and then those of CC and BCC (PUBLISH-011). `chooses`: where a broker may send it to one
    queue or another, the first is taken (the embedded broker).
    """
    if not exchange.name:
        return _by_queue_name(queues, keys)
    routes = Routes(decided_by=FURTHER_KEYS if len(keys) > 1 else _requirement(exchange))
    seen = {exchange.name}
    # exchanges to ask, and how the message got there
    work = [(exchange, "")]
    while work:
        source, way = work.pop()
        matched = False
        if source.open_by or (source.type in TO_ONE and not chooses and len(_destinations(source)) > 1):
            routes.open_by = source.open_by or f"choice of the exchange type {source.type}"
            routes.perhaps = tuple(dict.fromkeys((*routes.perhaps, *reachable(exchanges, queues, source))))
            continue
        bindings = source.bindings[:1] if source.type in TO_ONE else source.bindings
        for binding in bindings:
            requirement = _matches(source, binding, keys, headers, dialect)
            name = binding.destination
            if requirement is None:
                if not binding.to_exchange and queues[name] not in routes.queues:
                    routes.passed_over[queues[name]] = way or _requirement(source)
                continue
            matched = True
            if not binding.to_exchange:
                routes.reach(queues[name], way or requirement)
            else:
                routes.decided_by = way or EXCHANGE_BINDING
                if name not in seen:
                    seen.add(name)
                    work.append((exchanges[name], way or EXCHANGE_BINDING))
        for binding in source.unbound:
            if _matches(source, binding, keys, headers, dialect) is None:
                continue
            if binding.to_exchange:
                routes.decided_by = EXCHANGE_BINDING
            else:
                routes.miss(queues[binding.destination])
        if not matched and source.alternate is not None and dialect.has("alternate-exchange"):
            routes.decided_by = ALTERNATE
            alternate = exchanges.get(source.alternate)
            if alternate is not None and alternate.name not in seen:
                seen.add(alternate.name)
                work.append((alternate, ALTERNATE))
    return routes


def reachable(exchanges: Mapping[str, Exchange], queues: Mapping[str, Queue], exchange: Exchange) -> list[Queue]:
    """The queues that the exchange may send something to, whatever the bindings say."""
    found: dict[Queue, None] = {}
    seen, work = {exchange.name}, [exchange]
    while work:
        source = work.pop()
        found.update({queues[each.destination]: None for each in source.bindings if not each.to_exchange})
        for name in (*(each.destination for each in source.bindings if each.to_exchange), source.alternate):
            if isinstance(name, str) and name not in seen and name in exchanges:
                seen.add(name)
                work.append(exchanges[name])
    return list(found)


def _destinations(source: Exchange) -> set[tuple[bool, str]]:
    return {(each.to_exchange, each.destination) for each in source.bindings}


def _requirement(exchange: Exchange) -> str:
    """By which the exchange chooses."""
    return BY_TYPE.get(exchange.type, TO_ONE_BINDING)


def _by_queue_name(queues: Mapping[str, Queue], keys: Sequence[str]) -> Routes:
    routes = Routes(decided_by=FURTHER_KEYS if len(keys) > 1 else DEFAULT_EXCHANGE)
    for key in dict.fromkeys(keys):
        queue = queues.get(key)
        if queue is not None:
            routes.queues[queue] = DEFAULT_EXCHANGE if key == keys[0] else FURTHER_KEYS
    return routes


def _matches(
    source: Exchange, binding: Binding, keys: Sequence[str], headers: Mapping[str, Any], dialect: Dialect
) -> str | None:
    """The requirement by which the binding matches, or None."""
    by_type = _requirement(source)
    match source.type:
        case "fanout" | "x-local-random" | "x-modulus-hash":
            return by_type
        case "headers":
            fits = headers_match(
                binding.arguments,
                headers,
                numbers_by_value=dialect.headers_numbers_by_value,
                any_of_nothing_matches=dialect.text.any_of_nothing_matches,
            )
            if fits and any(isinstance(value, datetime) for value in binding.arguments.values()):
                return TIME_STAMPS
            return by_type if fits else None
        case "topic":
            matching = (key for key in keys if topic_matches(binding.routing_key, key))
        case _:
            matching = (key for key in keys if binding.routing_key == key)
    key = next(matching, None)
    if key is None:
        return None
    return by_type if key == keys[0] else FURTHER_KEYS
