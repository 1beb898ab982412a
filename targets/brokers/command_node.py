"""A broker to which faults are done by commands of its own, such as `./ctl stop` (`[operator]` in a file)."""

from __future__ import annotations

import queue
import time

from amqpspec.targets.address import Address
from amqpspec.targets.brokers.command_operator import CommandOperator
from amqpspec.targets.brokers.process_broker import ProcessBroker
from amqpspec.targets.brokers.readiness import BrokerUnavailable, wait_until_open, wait_until_ready
from amqpspec.targets.brokers.single_node import BROKER_FAULTS


class CommandNode:
    """A `Node` (`targets.brokers.single_node`). `started`: what the suite has started, and does by itself whatever no
    command is there for; None: it runs elsewhere.
    """

    def __init__(
        self, operator: CommandOperator, address: Address, start_timeout: float, started: ProcessBroker | None
    ) -> None:
        self.address = address
        self._operator = operator
        self._start_timeout = start_timeout
        self._started = started

    @property
    def offered(self) -> frozenset[str]:
        """Names of faults."""
        if self._started is not None:
            return frozenset(BROKER_FAULTS)
        return self._operator.offered.intersection(BROKER_FAULTS)

    def stop(self) -> None:
        if not self._is_done("broker.stop") and self._started is not None:
            self._started.stop()

    def kill(self) -> None:
        if not self._is_done("broker.kill") and self._started is not None:
            self._started.kill()

    def pause(self) -> None:
        if not self._is_done("broker.pause") and self._started is not None:
            self._started.pause()

    def resume(self) -> None:
        if not self._is_done("broker.resume") and self._started is not None:
            self._started.resume()

    def start_again(self) -> None:
        if not self._is_done("broker.restart"):
            if self._started is not None:
                self._started.start_again()
            return
        deadline = time.monotonic() + self._start_timeout
        signs: queue.SimpleQueue[object] = queue.SimpleQueue()
        if wait_until_ready((self.address,), deadline, signs, lambda: False) is None:
            raise BrokerUnavailable(f"{self.address} does not answer AMQP {self._start_timeout:g} s after its restart")
        wait_until_open(self.address, deadline, signs)

    def _is_done(self, fault: str) -> bool:
        """By a command, if there is one. Raises `OperatorError`."""
        if fault not in self._operator.offered:
            return False
        started = self._started
        directory = "" if started is None else started.environment["AMQPSPEC_DIRECTORY"]
        self._operator.do_fault(fault, 0 if started is None else started.pid, directory)
        return True
