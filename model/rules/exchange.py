"""Chapter exchange: declare and delete (0-9-1 section 1.6; area EXCHANGE), as far as routing needs them."""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.errors import ProtocolError
from model.rules.answer import answer
from model.rules.lookup import exchange_text, find_exchange, without_line_breaks
from model.state import Channel, Exchange
from model.wording import value_text

TYPES = ("direct", "fanout", "topic", "headers")


def declare(broker: Broker, channel: Channel, frame: Frame) -> None:
    arguments = frame.arguments
    name = without_line_breaks(arguments.get("exchange", ""))
    if arguments.get("passive"):
        _check_not_default(name)
        find_exchange(broker, channel, name, "EXCHANGE-005")
        answer(broker, channel, frame, "exchange.declare-ok", {}, "EXCHANGE-005")
        return
    wanted_type = arguments.get("type", "direct")
    if wanted_type not in TYPES:
        raise ProtocolError(
            "EXCHANGE-004", broker.dialect.unknown_exchange_type, f"unknown exchange type '{wanted_type}'"
        )
    _check_not_default(name)
    exchange = broker.exchanges.get(name)
    if exchange is None:
        if name.startswith("amq."):
            raise ProtocolError("EXCHANGE-002", 403, f"exchange name '{name}' contains reserved prefix 'amq.*'")
        broker.exchanges[name] = Exchange(
            name,
            wanted_type,
            bool(arguments.get("durable")),
            bool(arguments.get("auto_delete")),
            bool(arguments.get("internal")),
            dict(arguments.get("arguments") or {}),
        )
    else:
        _check_equivalence(broker, channel, exchange, frame)
    requirement = "EXCHANGE-002" if name.startswith("amq.") else "EXCHANGE-006"
    if name != arguments.get("exchange", ""):
        requirement = "QUEUE-028"
    answer(broker, channel, frame, "exchange.declare-ok", {}, requirement)


def delete(broker: Broker, channel: Channel, frame: Frame) -> None:
    name = without_line_breaks(frame.arguments.get("exchange", ""))
    _check_not_default(name)
    if name.startswith("amq."):
        raise ProtocolError(
            "EXCHANGE-003", 403, f"deletion of system {exchange_text(broker, channel, name)} not allowed"
        )
    exchange = broker.exchanges.get(name)
    if exchange is not None:
        if frame.arguments.get("if_unused") and exchange.bindings:
            raise ProtocolError("EXCHANGE-007", 406, f"{exchange_text(broker, channel, name)} in use")
        del broker.exchanges[name]
    requirement = "EXCHANGE-007" if frame.arguments.get("if_unused") else "EXCHANGE-003"
    answer(broker, channel, frame, "exchange.delete-ok", {}, requirement)


def _check_not_default(name: str) -> None:
    if not name:
        raise ProtocolError("EXCHANGE-001", 403, "operation not permitted on the default exchange")


def _check_equivalence(broker: Broker, channel: Channel, exchange: Exchange, frame: Frame) -> None:
    """EXCHANGE-006, in RabbitMQ's order (rabbit_exchange:assert_equivalence)."""
    compared = (
        ("type", frame.arguments.get("type", "direct"), exchange.type),
        ("durable", bool(frame.arguments.get("durable")), exchange.durable),
        ("auto_delete", bool(frame.arguments.get("auto_delete")), exchange.auto_delete),
        ("internal", bool(frame.arguments.get("internal")), exchange.internal),
    )
    for argument, received, current in compared:
        if received != current:
            raise ProtocolError(
                "EXCHANGE-006",
                406,
                f"inequivalent arg '{argument}' for {exchange_text(broker, channel, exchange.name)}:"
                f" received '{value_text(received)}' but current is '{value_text(current)}'",
            )
