"""The file of `amqpspec serve --config FILE`: an embedded broker that an application is tried with.

host = "127.0.0.1"                  # all is optional; what the command line says comes first
port = 5672
dialect = "rabbitmq-4.3"
fault = "multiple-ack-ignored"      # a defect of the broker, one of `amqpspec faults`
user = "guest"                      # who may do everything
password = "guest"
virtual-hosts = ["/", "shop"]

[tls]                               # then nothing but TLS is spoken
certfile = "server.pem"             # PEM; files are looked for beside this one
keyfile = "server.key"              # if it is not in the same file
cafile = "ca.pem"                   # clients need a certificate that these have signed

[users.app]
password = "secret"
[users.app.permissions.shop]        # patterns of names by virtual host; "" permits nothing, as does what is left out
configure = "^app"
write = ".*"
read = ".*"

[mishaps]                           # what goes wrong for applications (`amqpspec.testing.FAULTS`)
confirms-late = 0.5                 # with its number, or true
"""

from __future__ import annotations

import ssl
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.protocol.methods import OPERATOR, OperatorAction
from amqpspec.targets.embedded.mishaps import MISHAPS
from amqpspec.targets.faults.all_faults import fault_named

_KEYS = ("host", "port", "dialect", "fault", "user", "password", "virtual-hosts", "tls", "users", "mishaps")
_PATTERNS = ("configure", "write", "read")


class ServedFileError(ValueError):
    """The file cannot be used: one line that names it, the key, and what is wrong; never a password."""


@dataclass(frozen=True, slots=True)
class ServedFile:
    """What such a file says."""

    host: str = "127.0.0.1"
    port: int = 5672
    dialect: str | None = None
    fault: str | None = None
    user: str = "guest"
    password: str = field(default="guest", repr=False)
    virtual_hosts: tuple[str, ...] = ("/",)
    tls: ssl.SSLContext | None = None
    #: what makes the further virtual hosts and users
    actions: tuple[OperatorAction, ...] = field(default=(), repr=False)
    #: name to number
    mishaps: Mapping[str, float] = field(default_factory=dict)


def read_served_file(path: Path) -> ServedFile:
    """What the file says. Raises `ServedFileError`."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ServedFileError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    except tomllib.TOMLDecodeError as error:
        raise ServedFileError(f"{path}: {error}") from None
    try:
        return _read(_Table("", table, _KEYS), path.parent)
    except ValueError as error:
        raise ServedFileError(f"{path}: {error}") from None


class _Table:
    """A table of the file with its name, "" for the whole. All of it raises `ValueError`: key, and what is wrong."""

    def __init__(self, name: str, said: object, keys: Iterable[str] | None = None) -> None:
        self.name = name
        if not isinstance(said, dict):
            raise ValueError(f"{name} is not a table")
        known = None if keys is None else tuple(keys)
        for key in said:
            if known is not None and key not in known:
                raise ValueError(f"{self._place(key)} is none of {', '.join(known)}")
        self._said: dict[str, Any] = said

    def names(self) -> list[str]:
        return list(self._said)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._said.get(key, default)
        if value is None:
            raise ValueError(f"{self._place(key)} is missing")
        if not isinstance(value, str):
            raise ValueError(f"{self._place(key)} is not a text")
        return value

    def port(self, key: str, default: int) -> int:
        value = self._said.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 65_535:
            raise ValueError(f"{self._place(key)} is not a port (0 to 65535)")
        return value

    def texts(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self._said.get(key, default)
        if not isinstance(value, list | tuple) or not value or not all(isinstance(each, str) for each in value):
            raise ValueError(f"{self._place(key)} is not a list of texts")
        return tuple(value)

    def number(self, key: str, default: float) -> float:
        """Of a mishap: `true` is its usual number."""
        value = self._said[key]
        if value is True:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or (default and not value):
            raise ValueError(f"{self._place(key)} is neither true nor a positive number")
        return float(value)

    def table(self, key: str, keys: Iterable[str] | None = None) -> _Table:
        return _Table(self._place(key), self._said.get(key, {}), keys)

    def _place(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key


def _read(table: _Table, folder: Path) -> ServedFile:
    """Raises `ValueError`: what is wrong with it."""
    dialect, fault = (table.text(key, "") or None for key in ("dialect", "fault"))
    for key, named, known in (("dialect", dialect, dialect_named), ("fault", fault, fault_named)):
        try:
            if named:
                known(named)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    hosts = table.texts("virtual-hosts", ("/",))
    user = table.text("user", "guest")
    mishaps = table.table("mishaps", MISHAPS)
    return ServedFile(
        host=table.text("host", "127.0.0.1"),
        port=table.port("port", 5672),
        dialect=dialect,
        fault=fault,
        user=user,
        password=table.text("password", "guest"),
        virtual_hosts=hosts,
        tls=_tls(table.table("tls", ("certfile", "keyfile", "cafile")), folder),
        actions=(*_further(hosts), *_users(table.table("users"), user, hosts)),
        mishaps={name: mishaps.number(name, MISHAPS[name].default) for name in mishaps.names()},
    )


def _further(hosts: tuple[str, ...]) -> Iterable[OperatorAction]:
    for host in hosts[1:]:
        yield _action("operator.add-vhost", virtual_host=host)


def _users(table: _Table, own: str, hosts: tuple[str, ...]) -> Iterable[OperatorAction]:
    for name in table.names():
        if name == own:
            raise ValueError(f"users.{name} is the user that may do everything (user, password)")
        said = table.table(name, ("password", "permissions"))
        yield _action("operator.add-user", user=name, password=said.text("password"))
        permissions = said.table("permissions", hosts)
        for host in permissions.names():
            patterns = permissions.table(host, _PATTERNS)
            texts = {each: patterns.text(each, "") for each in _PATTERNS}
            yield _action("operator.set-permissions", user=name, virtual_host=host, **texts)


def _action(name: str, **arguments: str) -> OperatorAction:
    return OperatorAction(OPERATOR, 0, name, dict(arguments), sent=True)


def _tls(table: _Table, folder: Path) -> ssl.SSLContext | None:
    if not table.names():
        return None
    certificate = folder / table.text("certfile")
    key = folder / table.text("keyfile") if "keyfile" in table.names() else None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"tls.certfile: {certificate}{f' and {key}' if key else ''}: {_reason(error)}") from None
    if "cafile" in table.names():
        authority = folder / table.text("cafile")
        try:
            context.load_verify_locations(authority)
        except (OSError, ssl.SSLError) as error:
            raise ValueError(f"tls.cafile: {authority}: {_reason(error)}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _reason(error: OSError) -> str:
    return "no certificate and key in PEM" if isinstance(error, ssl.SSLError) else error.strerror or str(error)
