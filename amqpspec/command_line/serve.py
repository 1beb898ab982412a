"""`amqpspec serve`: the embedded broker on a port."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from rich.console import Console

from amqpspec.command_line.exit_codes import CONFORMS
from amqpspec.command_line.usage import UsageError
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker, EmbeddedBrokerFailure
from amqpspec.targets.brokers.served_file import ServedFile, read_served_file


def execute(options: argparse.Namespace, console: Console) -> int:
    try:
        said = ServedFile() if options.config is None else read_served_file(options.config)
        broker = _broker(said, options)
    except ValueError as error:
        raise UsageError(str(error)) from None

    ending = ExitStack()

    def begin(address: Address) -> None:
        ending.enter_context(_ended_in_order(broker))
        for name, number in said.mishaps.items():
            broker.loop.mishaps.begin(name, number)
        console.print(f"serving {broker.dialect.title} at {address} (Ctrl-C ends it)")

    with ending:
        broker.serve_forever(begin)
    if broker.failures:
        raise EmbeddedBrokerFailure("; ".join(broker.failures))
    return CONFORMS


def _broker(said: ServedFile, options: argparse.Namespace) -> EmbeddedBroker:
    """What the file says, and the command line before it. Raises ValueError."""
    broker = EmbeddedBroker(
        options.dialect or said.dialect,
        said.host if options.host is None else options.host,
        said.port if options.port is None else options.port,
        fault=options.fault or said.fault,
        user=said.user,
        password=said.password,
        vhost=said.virtual_hosts[0],
        ssl_context=said.tls,
    )
    for action in said.actions:
        broker.responder.take(action)
    return broker


@contextmanager
def _ended_in_order(broker: EmbeddedBroker) -> Iterator[None]:
    """A block in which SIGINT and SIGTERM have the broker close its connections; the second one ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def end(number: int, frame: FrameType | None) -> None:
        for each, handler in before.items():
            signal.signal(each, handler)
        broker.stop_in_order()

    heard = [each for each, handler in before.items() if handler is not signal.SIG_IGN]
    for each in heard:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
