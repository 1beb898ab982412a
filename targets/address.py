"""Where a broker is, and as whom to log in: the `amqp://` and `amqps://` forms of TARGET."""

from __future__ import annotations

from dataclasses import dataclass, field
from string import hexdigits
from urllib.parse import quote, unquote_to_bytes

_PORTS = {"amqp": 5672, "amqps": 5671}


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

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "amqps" if self.tls else "amqp"
        return f"{scheme}://{quote(self.user, safe='')}@{host}:{self.port}/{quote(self.vhost, safe='')}"


def parse_address(text: str) -> Address:
    """`amqp[s]://[user[:password]@]host[:port][/vhost]`, percent-encoded, as in RabbitMQ's URI specification.

    Without a path, or with an empty one, the virtual host is "/". Raises `AddressError`.
    """
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _PORTS:
        raise AddressError("the address must begin with amqp:// or amqps://")
    # The last "@" before the path ends the login. A password that was pasted unencoded may hold one, or a
    # "/": its pieces must never be taken, and printed, for a host.
    authority, _, path = rest.partition("/")
    if "@" not in authority and "@" in path:
        raise AddressError('a "/" in user or password is written %2F, an "@" in the virtual host %40')
    login, at, place = authority.rpartition("@")
    if "?" in place or "#" in place or "?" in path or "#" in path:
        raise AddressError("the address has a query or fragment part, which is not supported")
    user, colon, password = login.partition(":")
    host, port = _host_and_port(place, _PORTS[scheme])
    return Address(
        host=host,
        port=port,
        user=_decoded(user, "user") if at else "guest",
        password=_decoded(password, "password") if colon else "guest",
        vhost=_decoded(path, "virtual host") if path else "/",
        tls=scheme == "amqps",
    )


def _host_and_port(place: str, default_port: int) -> tuple[str, int]:
    if place.startswith("["):
        host, bracket, tail = place[1:].partition("]")
        if not bracket or not host:
            raise AddressError('the host begins with "[" but is no bracketed IPv6 address')
        if tail and not tail.startswith(":"):
            raise AddressError('only a ":port" may follow a bracketed host')
        port_text = tail[1:] if tail else None
    else:
        host, colon, port_digits = place.partition(":")
        host = _decoded(host, "host")
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


def _decoded(text: str, part: str) -> str:
    pieces = text.split("%")
    if any(len(piece) < 2 or not set(piece[:2]) <= set(hexdigits) for piece in pieces[1:]):
        raise AddressError(f'the {part} holds a "%" that begins no percent-encoded octet: write it as %25')
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeError:
        raise AddressError(f"the {part} is not UTF-8 once percent-decoded") from None
