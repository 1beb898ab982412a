"""An in-house broker in a file that is named as TARGET: `amqpspec run broker.toml` (docs/in-house-broker.md).

address = "amqp://guest:guest@127.0.0.1:{port}/"     # {port}: a free one, which the broker is told
dialect = "amqp-0-9-1"                               # or FILE.toml; optional, as all that follows
start = ["./mybroker", "--port", "{port}"]           # stays in the foreground, ends with the run
start-timeout = 30
management = "http://127.0.0.1:15672"                # its HTTP API, for what has no command

[operator]                                           # commands for what only the operator can do
add-user = ["./ctl", "add-user", "{user}", "{password}"]
delete-user = ["./ctl", "delete-user", "{user}"]
kill = ["./ctl", "kill", "{pid}"]                    # and for what happens to it (docs/faults.md)
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amqpspec.model.promises.dialects import UnknownDialect
from amqpspec.targets.address import Address, AddressError, logged_in, parse_address
from amqpspec.targets.brokers.command_operator import PLACEHOLDER, PLACEHOLDERS
from amqpspec.targets.brokers.dialect_file import dialect_in
from amqpspec.targets.brokers.management_address import ManagementAddress, parse_management_address
from amqpspec.targets.brokers.operator import UNDONE_BY
from amqpspec.targets.brokers.single_node import ENDED_BY

_KEYS = ("address", "dialect", "start", "start-timeout", "management", "operator")
START_TIMEOUT = 90.0


class BrokerFileError(ValueError):
    """The file cannot be used: one line that names it and what is wrong, and never a password."""


@dataclass(frozen=True, slots=True)
class BrokerFile:
    """What such a file says. `address` has no port yet where it says `{port}`; `start` () where the broker runs."""

    path: Path
    address: str
    dialect: str = ""
    start: tuple[str, ...] = ()
    start_timeout: float = START_TIMEOUT
    #: by the name of an operator's action
    operator: Mapping[str, tuple[str, ...]] | None = None
    management: ManagementAddress | None = None

    def at(self, port: int) -> Address:
        """The address, with that port where it says `{port}`, and the login of the environment where it has none.

        Raises `AddressError`.
        """
        text = self.address.replace("{port}", str(port))
        return logged_in(parse_address(text), text, os.environ)


def read_broker_file(path: Path) -> BrokerFile:
    """What the file says. Raises `BrokerFileError`."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BrokerFileError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    except tomllib.TOMLDecodeError as error:
        raise BrokerFileError(f"{path}: {error}") from None
    try:
        return _read(path, table)
    except (AddressError, UnknownDialect, ValueError) as error:
        raise BrokerFileError(f"{path}: {error}") from None


def _read(path: Path, table: dict[str, Any]) -> BrokerFile:
    """Raises `ValueError`: what is wrong with it."""
    if "restart" in table:
        raise ValueError("restart belongs under [operator]")
    if unknown := sorted(set(table) - set(_KEYS)):
        raise ValueError(f"has {unknown[0]!r}, which is none of {', '.join(_KEYS)}")
    address = table.get("address")
    if not isinstance(address, str):
        raise ValueError('needs an address, such as address = "amqp://guest:guest@127.0.0.1:5672/"')
    start = _command("start", table["start"], ("port", "directory")) if "start" in table else ()
    if "{port}" in address and not start:
        raise ValueError("the address has {port}, which is only for a broker that is started: there is no start")
    if any("{port}" in part for part in start) and "{port}" not in address:
        raise ValueError("start has {port}, and the address has not: it would be another port")
    dialect = table.get("dialect", "")
    if not isinstance(dialect, str):
        raise ValueError("dialect is not a text")
    if dialect:
        dialect = dialect_in(dialect, path.parent).name
    timeout = table.get("start-timeout", START_TIMEOUT)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
        raise ValueError("start-timeout is not a number of seconds")
    if "start-timeout" in table and not start:
        raise ValueError("has a start-timeout and no start")
    management = table.get("management")
    if management is not None and not isinstance(management, str):
        raise ValueError('management is not an address, such as "http://127.0.0.1:15672"')
    by_api = None if management is None else parse_management_address(management)
    operator = _operator(table.get("operator"), bool(start))
    said = BrokerFile(path, address, dialect, start, float(timeout), operator, by_api)
    said.at(1)
    return said


def _operator(table: object, is_started: bool) -> Mapping[str, tuple[str, ...]] | None:
    if table is None:
        return None
    if not isinstance(table, dict) or not table:
        raise ValueError("[operator] is not a table of commands")
    commands: dict[str, tuple[str, ...]] = {}
    for name, command in table.items():
        action = next((each for each in PLACEHOLDERS if _key_of(each) == name), "")
        if not action:
            there_are = ", ".join(map(_key_of, PLACEHOLDERS))
            raise ValueError(f"[operator] has {name!r}, which is none of {there_are}")
        commands[action] = _command(f"[operator] {name}", command, (*PLACEHOLDERS[action], "port"))
    # a broker that the suite has started it can start again, and resume
    for made, taken_away in {**UNDONE_BY, **({} if is_started else ENDED_BY)}.items():
        if made in commands and taken_away not in commands:
            one, other = map(_key_of, (made, taken_away))
            raise ValueError(f"[operator] has {one} and no {other}: what the suite makes it takes away again")
    return commands


def _key_of(action: str) -> str:
    """What the action is called in the file."""
    return action.partition(".")[2]


def _command(name: str, value: object, placeholders: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(part, str) and part for part in value):
        raise ValueError(f'{name} is not a command, such as ["./mybroker", "--verbose"]: a list of texts')
    for part in value:
        for placeholder in PLACEHOLDER.findall(part):
            if placeholder not in placeholders:
                known = ", ".join(f"{{{each}}}" for each in placeholders)
                raise ValueError(f"{name} has {{{placeholder}}}, which is none of {known}")
    return tuple(value)
