"""Where a broker is, and as whom to log in: the `amqp://` and `amqps://` forms of TARGET."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import hexdigits
from typing import Any
from urllib.parse import quote, unquote_to_bytes

#: Octets of the longest virtual host: it is a short string.
_LONGEST_NAME = 255
_PORTS = {"amqp": 5672, "amqps": 5671}
#: Also of one that is written wrongly.
_SCHEME = re.compile(r"amqps?\W{0,3}", re.IGNORECASE)
_DIGEST = re.compile(r"sha256:[0-9a-f]+$")
TLS_FILES = ("cacertfile", "certfile", "keyfile")


class AddressError(ValueError):
    """A TARGET text that is no AMQP address; one line that names the wrong part and never a secret."""


@dataclass(frozen=True, slots=True)
class Address:
    """One broker, one virtual host, one user. Neither `str` nor `repr` shows the password."""

    host: str
    port: int = 5672
    user: str = "guest"
    password: str = field(default="guest", repr=False)
    vhost: str = "/"
    tls: bool = False
    #: names of PEM files: who signs the broker's certificate, the client's own, and its key; "": the system's, none
    cacertfile: str = ""
    certfile: str = ""
    keyfile: str = ""
    #: seconds between the heartbeats that connections ask for of which nothing else is said, 0 for none
    heartbeat: int = 0
    #: where TCP connections are made, if not there: the port of a proxy on the way to it
    way: tuple[str, int] | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "amqps" if self.tls else "amqp"
        query = f"?heartbeat={self.heartbeat}" if self.heartbeat else ""
        return f"{scheme}://{quote(self.user, safe='')}@{host}:{self.port}/{quote(self.vhost, safe='')}{query}"


def parse_address(text: str) -> Address:
    """`amqp[s]://[user[:password]@]host[:port][/vhost]`, percent-encoded, as in RabbitMQ's URI specification.

    Without a path, or with an empty one, the virtual host is "/". It may end in a query of `heartbeat`, and for TLS of
    `cacertfile`, `certfile` and `keyfile`, as RabbitMQ's URI query parameters. Raises `AddressError`.
    """
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _PORTS:
        raise AddressError("the address must begin with amqp:// or amqps://")
    # The last "@" before the path ends the login. A password that was pasted unencoded may hold one, or a
    # "/": its pieces must never be taken, and printed, for a host.
    # A query begins after that "@": a path of it has a "/" of its own.
    begin = rest.find("?", rest.rfind("@") + 1)
    rest, query = (rest, "") if begin < 0 else (rest[:begin], rest[begin + 1 :])
    authority, _, path = rest.partition("/")
    if "@" not in authority and "@" in path:
        raise AddressError('a "/" in user or password is written %2F, an "@" in the virtual host %40')
    login, at, place = authority.rpartition("@")
    if "#" in place or "#" in path or "#" in query:
        raise AddressError("the address has a fragment part, which is not supported")
    user, colon, password = login.partition(":")
    host, port = host_and_port(place, _PORTS[scheme])
    vhost = decoded(path, "virtual host") if path else "/"
    if len(vhost.encode("utf-8", "surrogateescape")) > _LONGEST_NAME:
        raise AddressError(f"the virtual host has more than {_LONGEST_NAME} octets")
    return Address(
        host=host,
        port=port,
        user=decoded(user, "user") if at else "guest",
        password=decoded(password, "password") if colon else "guest",
        vhost=vhost,
        tls=scheme == "amqps",
        **_parameters(query, scheme),
    )


def logged_in(address: Address, text: str, environment: Mapping[str, str]) -> Address:
    """The address with the login that the environment names where the text has none.

    AMQPSPEC_USER, and AMQPSPEC_PASSWORD or the first line of the file AMQPSPEC_PASSWORD_FILE: arguments are seen by all
    users of a machine. Raises `AddressError`.
    """
    if "@" in text.partition("://")[2].partition("/")[0]:
        return address
    password = environment.get("AMQPSPEC_PASSWORD")
    if password is None and (file := environment.get("AMQPSPEC_PASSWORD_FILE")):
        try:
            password = Path(file).read_text(encoding="utf-8").partition("\n")[0]
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise AddressError(f"AMQPSPEC_PASSWORD_FILE: {file}: {reason}") from None
    user = environment.get("AMQPSPEC_USER", address.user)
    return replace(address, user=user, password=address.password if password is None else password)


def login_in(text: str) -> str:
    """What may be user and password in a text that was meant as an address, however it is written; "": nothing.

    It is all before the last "@" but the scheme. The digest of an image, and a path in whose names an "@" stands, are
    no addresses.
    """
    before, at, behind = text.rpartition("@")
    scheme = _SCHEME.match(before)
    begin = 0 if scheme is None else scheme.end()
    is_address = begin or ":" in before or "//" in before
    return before[begin:] if at and is_address and not _DIGEST.match(behind) else ""


def without_login(text: str) -> str:
    """The text for a message: what may be user and password in it is hidden."""
    login = login_in(text)
    return text.replace(f"{login}@", "***@") if login else text


def _parameters(query: str, scheme: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    known = ("heartbeat", *TLS_FILES) if scheme == "amqps" else ("heartbeat",)
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        if name not in known:
            raise AddressError(f"the address has a query with {name[:40]!r}: {scheme}:// takes {', '.join(known)}")
        found[name] = _seconds(value) if name == "heartbeat" else decoded(value, name)
    if "keyfile" in found and "certfile" not in found:
        raise AddressError("the address names a keyfile and no certfile")
    return found


def _seconds(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else 65536
    if number > 65535:
        raise AddressError("the heartbeat must be a number of seconds from 0 to 65535")
    return number


def host_and_port(place: str, default_port: int) -> tuple[str, int]:
    if place.startswith("["):
        host, bracket, tail = place[1:].partition("]")
        if not bracket or not host:
            raise AddressError('the host begins with "[" but is no bracketed IPv6 address')
        if tail and not tail.startswith(":"):
            raise AddressError('only a ":port" may follow a bracketed host')
        port_text = tail[1:] if tail else None
    else:
        host, colon, port_digits = place.partition(":")
        host = decoded(host, "host")
        port_text = port_digits if colon else None
    if not host:
        raise AddressError("the host is missing")
    if any(character.isspace() or not character.isprintable() for character in host):
        raise AddressError("the host holds a blank or a control character")
    if port_text is None:
        return host, default_port
    number = int(port_text) if port_text.isascii() and port_text.isdigit() and len(port_text) <= 5 else 0
    if not 0 < number < 65536:
        raise AddressError("the port must be a number from 1 to 65535")
    return host, number


def decoded(text: str, part: str) -> str:
    pieces = text.split("%")
    if any(len(piece) < 2 or not set(piece[:2]) <= set(hexdigits) for piece in pieces[1:]):
        raise AddressError(f'the {part} holds a "%" that begins no percent-encoded octet: write it as %25')
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeError:
        raise AddressError(f"the {part} is not UTF-8 once percent-decoded") from None
