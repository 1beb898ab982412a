"""A broker that a file describes (`targets.brokers.broker_file`), for as long as a `with` block lasts."""

from __future__ import annotations

import os
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from amqpspec.targets.address import Address
from amqpspec.targets.brokers.broker_file import BrokerFile
from amqpspec.targets.brokers.command_node import CommandNode
from amqpspec.targets.brokers.command_operator import CommandOperator
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.brokers.management_address import ManagementAddress
from amqpspec.targets.brokers.management_operator import ManagementOperator
from amqpspec.targets.brokers.operator import FirstOf, Operator
from amqpspec.targets.brokers.process_broker import ProcessBroker
from amqpspec.targets.brokers.readiness import BrokerUnavailable
from amqpspec.targets.brokers.single_node import SingleNode


class InHouseBroker:
    """Context manager: starts the broker if its file says how, and ends it. Commands run in the file's directory.

    Raises `BrokerUnavailable` where it cannot be started, or does not answer in time.
    """

    def __init__(self, file: BrokerFile, management: ManagementAddress | None = None) -> None:
        """`management`: goes before that of the file."""
        self.file = file
        self._management = management or file.management
        self._directory = file.path.absolute().parent
        self._environment: dict[str, str] = dict(os.environ)
        self._stack = ExitStack()
        self._address: Address | None = None
        self._started: ProcessBroker | None = None

    @property
    def address(self) -> Address:
        if self._address is None:
            raise BrokerUnavailable(f"{self.file.path} is not running")
        return self._address

    @property
    def dialect_name(self) -> str:
        return self.file.dialect

    @property
    def is_ours(self) -> bool:
        """Does the file say how it is started?"""
        return bool(self.file.start)

    def last_lines(self) -> tuple[str, ...]:
        """The last that the broker wrote, where it was started here."""
        return self._started.last_lines() if self._started is not None else ()

    def why_it_ended(self) -> str:
        """A clause, where it was started here and has ended."""
        return self._started.why_it_ended() if self._started is not None else ""

    def operator(self) -> Operator | None:
        by_commands = self._operator() if self.file.operator is not None else None
        if self._management is None:
            return by_commands
        by_api = ManagementOperator(self._management, self.address)
        return by_api if by_commands is None else FirstOf(by_commands, by_api)

    def faults(self) -> FaultInjector | None:
        node = CommandNode(self._operator(), self.address, self.file.start_timeout, self._started)
        return SingleNode(node, node.offered) if node.offered else None

    def _operator(self) -> CommandOperator:
        return CommandOperator(self.file.operator or {}, self.address.port, self._directory, self._environment)

    def __enter__(self) -> Self:
        file = self.file
        if not file.start:
            self._address = file.at(0)
            return self
        program, *arguments = file.start
        # as a shell would find it
        path = str(self._directory / program) if "/" in program else program
        started = self._started = self._stack.enter_context(
            ProcessBroker(
                path,
                arguments,
                address=file.at,
                working_directory=self._directory,
                start_timeout=file.start_timeout,
            )
        )
        self._environment = dict(started.environment)
        self._address = started.address
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._address = None
        self._stack.close()
