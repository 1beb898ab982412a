"""Chapter exchange: declare and delete (0-9-1 section 1.6; area EXCHANGE); rabbit_channel:handle_method.

Requirements:

* EXCHANGE-002: Reserved prefix. Declaring a new exchange amq.* is 403; re-declaring an existing amq.direct with equal
  properties is ok, with another type 406. In amqp-0-9-1: as stated, but another type is 530.
  [rabbit_channel.erl:check_name; AMQP 0-9-1 class exchange]
* EXCHANGE-003: Deleting amq.*. Deleting a predeclared exchange is 403; deleting a missing exchange succeeds. In
  amqp-0-9-1: 404 if there is no such exchange; how a predeclared one is refused is not named.
  [rabbit_channel.erl:check_exchange_deletion]
* EXCHANGE-004: Unknown exchange type. Declaring an exchange of a type that the broker does not have is a soft 406 on
  4.x, a hard 503 on 3.10. In rabbitmq-3: hard 503 or soft 406, as versions differ (406 from 3.13.3 on). In
  rabbitmq-4.0: soft 406. In rabbitmq-4.3: soft 406. In amqp-0-9-1: hard 503. [rabbit_exchange:check_type; AMQP 0-9-1
  class exchange]
* EXCHANGE-005: Passive declare. Passive declare of a missing exchange is a soft 404; of an existing one declare-ok,
  regardless of type or flags given. [rabbit_channel.erl; AMQP 0-9-1 class exchange]
* EXCHANGE-006: Equivalence. type, durable, auto_delete, internal and alternate-exchange must match (406); unknown
  arguments are ignored. In amqp-0-9-1: type, durable and arguments are compared; a channel exception, its code is not
  named. [rabbit_exchange:assert_equivalence; AMQP 0-9-1 class exchange]
* EXCHANGE-007: delete if-unused. Deleting a bound exchange with if_unused=true is a soft 406. In amqp-0-9-1: as stated,
  but a missing exchange is 404, and no code is named for one in use. [rabbit_exchange:ensure_deleted; AMQP 0-9-1 class
  exchange]
* EXCHANGE-010: Alternate exchange is named by a text. Declaring a new exchange whose alternate-exchange argument is not
  a string is a soft 406; the exchange that it names need not exist. An empty name finds no queue: the default exchange
  has no bindings to follow. [rabbit_channel.erl exchange.declare; rabbit_misc:r_arg]
* EXCHANGE-011: Types of exchanges that send to one binding. From 4.0 on there is the type x-local-random, from 4.3 on
  x-modulus-hash as well. Such an exchange sends each message to one of its bindings, whichever that is; if only one
  queue is bound, to that. x-local-random takes bindings of classic queues with an empty key. In rabbitmq-4.0:
  x-local-random. In rabbitmq-4.3: x-local-random and x-modulus-hash. [RabbitMQ guide: local random exchange;
  rabbit_exchange_type_local_random; rabbit_exchange_type_modulus_hash]
* EXCHANGE-012: The exchange of the tracer. Every virtual host has the internal topic exchange amq.rabbitmq.trace. A
  passive declare finds it, and queues can be bound to it; publishing to it, deleting it and declaring it otherwise are
  refused. [RabbitMQ guide: firehose; rabbit_vhost:declare_default_exchanges; rabbit_trace]
* QUEUE-028: CR/LF stripped from names. \\r and \\n are removed from queue/exchange names in declare, delete and bind.
  [rabbit_channel.erl:strip_cr_lf]
"""

from __future__ import annotations

from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.broker_state import TRACE_EXCHANGE
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.openness import EXTENSION
from amqpspec.model.broker.queues import Exchange
from amqpspec.model.broker.routing import BY_TYPE
from amqpspec.model.broker.topology import delete_exchange
from amqpspec.model.protocol.erlang_wording import atom, printed, wire_type
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method, Table
from amqpspec.model.protocol.patterns import OneOf
from amqpspec.model.protocol.wording import value_text
from amqpspec.model.rules.common.answer import answer
from amqpspec.model.rules.common.lookup import check_not_default, exchange_text, find_exchange, without_line_breaks
from amqpspec.model.rules.common.permission import check_alternative, check_any, check_configure

ALTERNATE = "alternate-exchange"


def declare(broker: Broker, channel: Channel, method: Method) -> None:
    """The order of the checks is RabbitMQ's: an unknown type comes before a forbidden name."""
    arguments = method.arguments
    name = without_line_breaks(arguments.get("exchange", ""))
    if arguments.get("passive"):
        _declare_passive(broker, channel, name, method)
        return
    if not broker.dialect.extensions:
        check_not_default(name)  # no sentence says which of two errors comes first
    wanted = _wanted(broker, name, arguments)
    if not _is_known(broker, wanted.type):
        # "invalid" is what the broker knows as one of its own atoms (rabbit_exchange:check_type): "" and any other word
        code, flaws = broker.dialect.unknown_exchange_type, ("unknown", "invalid") if wanted.type else ("invalid",)
        texts = [f"{flaw} exchange type '{wanted.type}'" for flaw in flaws]
        whole = tuple(ProtocolError("EXCHANGE-004", code, each).text for each in texts)
        any_text = wanted.type.startswith(EXTENSION)  # a plugin that has it may refuse what it is given
        raise ProtocolError(
            "EXCHANGE-004", code, texts[0], pattern=None if any_text else OneOf(whole), any_text=any_text
        )
    check_not_default(name)
    check_configure(broker, channel, name, "exchange")
    exchange = broker.exchanges.get(name)
    requirement = "EXCHANGE-002" if name.startswith("amq.") else "EXCHANGE-006"
    if exchange is None:
        if name.startswith("amq."):
            raise ProtocolError("EXCHANGE-002", 403, f"exchange name '{name}' contains reserved prefix 'amq.*'")
        _check_alternate(broker, channel, wanted)
        broker.exchanges[name] = wanted
        requirement = broker.bookkeeping.ended_exchanges.pop(name, requirement)
        if wanted.type in broker.dialect.further_exchange_types:
            requirement = "EXCHANGE-011"
    else:
        _check_equivalence(broker, channel, exchange, wanted)
    if name != arguments.get("exchange", ""):
        requirement = "QUEUE-028"
    answer(broker, channel, method, "exchange.declare-ok", {}, requirement)


def _is_known(broker: Broker, exchange_type: str) -> bool:
    """Is it a type of the text, one that the broker has besides, or one that it was seen to have?"""
    if exchange_type in BY_TYPE or exchange_type in broker.dialect.further_exchange_types:
        return True
    return broker.has_open and any(each.type == exchange_type for each in broker.exchanges.values())


def _wanted(broker: Broker, name: str, arguments: Table) -> Exchange:
    """The exchange that the arguments ask for. The bare text has no auto-delete and internal exchanges any more."""
    extensions = broker.dialect.extensions
    return Exchange(
        name,
        arguments.get("type", "direct"),
        bool(arguments.get("durable")),
        extensions and bool(arguments.get("auto_delete")),
        extensions and bool(arguments.get("internal")),
        dict(arguments.get("arguments") or {}),
    )


def _declare_passive(broker: Broker, channel: Channel, name: str, method: Method) -> None:
    """EXCHANGE-005: type and properties are not looked at. Shows whether an auto-delete exchange has gone."""
    check_not_default(name)
    check_any(broker, channel, name, "exchange")
    find_exchange(broker, channel, name, broker.bookkeeping.ended_exchanges.get(name, "EXCHANGE-005"))
    requirement = "EXCHANGE-012" if name == TRACE_EXCHANGE else "EXCHANGE-005"
    answer(broker, channel, method, "exchange.declare-ok", {}, requirement)


def delete(broker: Broker, channel: Channel, method: Method) -> None:
    """EXCHANGE-003, EXCHANGE-007: only bindings from an exchange keep it in use, those to it do not."""
    name = without_line_breaks(method.arguments.get("exchange", ""))
    check_not_default(name)
    if name.startswith("amq."):
        raise ProtocolError(
            "EXCHANGE-003", 403, f"deletion of system {exchange_text(broker, channel, name)} not allowed"
        )
    check_configure(broker, channel, name, "exchange")
    exchange = broker.exchanges.get(name)
    if exchange is not None:
        if method.arguments.get("if_unused") and exchange.bindings:
            raise ProtocolError("EXCHANGE-007", 406, f"{exchange_text(broker, channel, name)} in use")
        delete_exchange(broker, exchange)
    requirement = "EXCHANGE-007" if method.arguments.get("if_unused") else "EXCHANGE-003"
    if exchange is None and broker.dialect.text.missing_is_not_found:
        raise ProtocolError(requirement, 404, f"no {exchange_text(broker, channel, name)}", named_code=True)
    answer(broker, channel, method, "exchange.delete-ok", {}, requirement)


def _check_alternate(broker: Broker, channel: Channel, wanted: Exchange) -> None:
    """EXCHANGE-010. The alternate exchange need not exist, and is looked at for new exchanges only."""
    if broker.dialect.extensions and ALTERNATE in wanted.arguments:
        value = wanted.arguments[ALTERNATE]
        if not isinstance(value, str):
            where = exchange_text(broker, channel, wanted.name)
            raise ProtocolError(
                "EXCHANGE-010", 406, f"invalid type '{wire_type(value)}' for arg '{ALTERNATE}' in {where}"
            )
        check_alternative(broker, channel, wanted.name, "exchange", value)


def _check_equivalence(broker: Broker, channel: Channel, exchange: Exchange, wanted: Exchange) -> None:
    """EXCHANGE-006, EXCHANGE-002; in the order of rabbit_exchange:assert_equivalence."""
    requirement = "EXCHANGE-002" if exchange.name.startswith("amq.") else "EXCHANGE-006"
    where = exchange_text(broker, channel, exchange.name)
    if not exchange.type:
        return  # the broker's own, of which nothing is known
    for argument, received, current in (
        ("type", wanted.type, exchange.type),
        ("durable", wanted.durable, exchange.durable),
        ("auto_delete", wanted.auto_delete, exchange.auto_delete),
        ("internal", wanted.internal, exchange.internal),
    ):
        if received != current:
            raise ProtocolError(
                requirement,
                broker.dialect.exchange_type_change if argument == "type" else 406,
                f"inequivalent arg '{argument}' for {where}:"
                f" received '{_printed(received)}' but current is '{_printed(current)}'",
                named_code=argument == "type",
            )
    if not broker.dialect.extensions:
        if wanted.arguments != exchange.arguments:
            raise ProtocolError(requirement, 406, f"inequivalent arguments for {where}")
        return
    difference = _difference(wanted.arguments, exchange.arguments)
    if difference is not None:
        raise ProtocolError(requirement, 406, f"inequivalent arg '{ALTERNATE}' for {where}: {difference}")


def _printed(value: bool | str) -> str:
    return atom(value) if isinstance(value, str) else value_text(value)


def _difference(wanted: Table, current: Table) -> str | None:
    """rabbit_misc:assert_args_equivalence, for the one argument that counts."""
    if ALTERNATE not in wanted and ALTERNATE not in current:
        return None
    if ALTERNATE in wanted and ALTERNATE in current:
        # what the exchange has is a text; another type is never equal to it
        received, is_so = wanted[ALTERNATE], current[ALTERNATE]
        return None if received == is_so else f"received '{printed(received)}' but current is '{printed(is_so)}'"
    return f"received {_one_sided(wanted)} but current is {_one_sided(current)}"


def _one_sided(table: Table) -> str:
    if ALTERNATE not in table:
        return "none"
    value: Any = table[ALTERNATE]
    return f"the value '{printed(value)}' of type '{wire_type(value)}'"
