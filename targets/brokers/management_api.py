"""One request to the HTTP API of a broker's management: JSON goes there, and comes back."""

from __future__ import annotations

import base64
import json
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote

from amqpspec.targets.address import Address
from amqpspec.targets.brokers.management_address import ManagementAddress
from amqpspec.targets.client.connecting import reason_of, trusting_context
from amqpspec.targets.errors import OperatorError

#: Seconds for it to take a connection, and for each part of an answer.
_TIME_LIMIT = 30.0
#: Octets of the longest answer that is read: thousands of connections.
_LONGEST = 32 * 1024 * 1024
_UNAUTHORIZED, _NOT_FOUND = 401, 404


class NotThere(OperatorError):
    """It does not know what the request names."""


class ManagementApi:
    """`address` has a login. May be asked by several threads: each request has a connection of its own.

    Raises `AddressError` for a file that is no certificate.
    """

    def __init__(self, address: ManagementAddress) -> None:
        self.address = address
        login = base64.b64encode(f"{address.user}:{address.password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        self._context: ssl.SSLContext | None = None
        if address.tls:
            self._context = trusting_context(Address(address.host, cacertfile=address.cacertfile))

    def get(self, *path: str, query: str = "") -> Any:
        """What the answer is as JSON. Raises `OperatorError`."""
        answer = self._asked("GET", path, query=query)
        try:
            return json.loads(answer)
        except ValueError:
            raise OperatorError(f"{self.address}: the answer to GET {_path(path)} is not JSON") from None

    def put(self, *path: str, said: dict[str, Any]) -> None:
        """Raises `OperatorError`."""
        self._asked("PUT", path, said)

    def delete(self, *path: str, reason: str = "") -> None:
        """Raises `OperatorError`, and `NotThere` where there is no such thing."""
        self._asked("DELETE", path, reason=reason)

    def _asked(
        self, method: str, path: tuple[str, ...], said: dict[str, Any] | None = None, query: str = "", reason: str = ""
    ) -> bytes:
        address, what = self.address, f"{method} {_path(path)}"
        headers = {**self._headers, **({"X-Reason": quote(reason, safe=" ")} if reason else {})}
        body = None if said is None else json.dumps(said)
        connection = self._connection()
        try:
            connection.request(method, f"{address.prefix}{_path(path)}{query}", body, headers)
            answer = connection.getresponse()
            octets = answer.read(_LONGEST + 1)
        except TimeoutError:
            raise OperatorError(f"{address}: no answer to {what} within {_TIME_LIMIT:g} s") from None
        except (HTTPException, ValueError):
            raise OperatorError(f"{address}: the answer to {what} is not HTTP") from None
        except OSError as error:
            raise OperatorError(f"{address}: no answer to {what}: {reason_of(error)}") from None
        finally:
            connection.close()
        if len(octets) > _LONGEST:
            raise OperatorError(f"{address}: the answer to {what} has more than {_LONGEST} octets")
        if answer.status in range(200, 300):
            return octets
        why = f"{answer.status} {answer.reason}".strip()
        if because := _reason(octets):
            why += f": {because}"
        if answer.status == _UNAUTHORIZED:
            raise OperatorError(f"{address}: user {address.user!r} may not {what}: {why}")
        raise (NotThere if answer.status == _NOT_FOUND else OperatorError)(f"{address}: {what}: {why}")

    def _connection(self) -> HTTPConnection:
        address = self.address
        if self._context is not None:
            return HTTPSConnection(address.host, address.port, timeout=_TIME_LIMIT, context=self._context)
        return HTTPConnection(address.host, address.port, timeout=_TIME_LIMIT)


def _path(parts: tuple[str, ...]) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in ("api", *parts))


def _reason(octets: bytes) -> str:
    """What an answer that is an error says of it."""
    try:
        said = json.loads(octets)
    except ValueError:
        return ""
    return " ".join(str(said.get("reason", "")).split())[:300] if isinstance(said, dict) else ""
