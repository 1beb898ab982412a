"""`amqpspec serve`: the embedded broker on a port."""

from __future__ import annotations

import argparse

from rich.console import Console

from amqpspec.command_line.exit_codes import CONFORMS
from amqpspec.command_line.usage import UsageError
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker, EmbeddedBrokerFailure


def execute(options: argparse.Namespace, console: Console) -> int:
    dialect = dialect_named(options.dialect) if options.dialect else None
    try:
        broker = EmbeddedBroker(dialect, options.host, options.port, fault=options.fault)
    except ValueError as error:
        raise UsageError(str(error)) from None
    broker.serve_forever(lambda address: console.print(f"serving {broker.dialect.title} at {address} (Ctrl-C ends it)"))
    if broker.failures:
        raise EmbeddedBrokerFailure("; ".join(broker.failures))
    return CONFORMS
