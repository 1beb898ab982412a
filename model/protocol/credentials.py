"""What a client says in `response` of connection.start-ok: user and password, in the form of a SASL mechanism.

RabbitMQ: rabbit_auth_mechanism_plain, rabbit_auth_mechanism_amqplain, rabbit_auth_mechanism_anonymous. Texts hold
octets that are not UTF-8 as surrogates, as everywhere in the alphabet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: Mechanisms that bring a user and a password.
PLAIN = "PLAIN"
AMQPLAIN = "AMQPLAIN"
#: Brings neither: who says this logs in as the user that the broker has for it, whatever the response.
ANONYMOUS = "ANONYMOUS"
#: Octets of the length of a long and of a short string.
_LENGTH_OCTETS = {"S": 4, "s": 1}


@dataclass(frozen=True, slots=True)
class Credentials:
    user: str
    password: str = field(repr=False)


#: Who that is where nobody has configured another (anonymous_login_user, anonymous_login_pass).
ANONYMOUS_USER = Credentials("guest", "guest")


def credentials_of(mechanism: str, response: str) -> Credentials | None:
    """The user and password in a response; None if it does not have the form of the mechanism."""
    if mechanism == ANONYMOUS:
        return ANONYMOUS_USER
    if mechanism == PLAIN:
        authority, *parts = response.split("\0")
        return Credentials(*parts) if not authority and len(parts) == 2 else None
    if mechanism == AMQPLAIN:
        table = _text_fields(response.encode("utf-8", "surrogateescape"))
        if table is not None and "LOGIN" in table and "PASSWORD" in table:
            return Credentials(table["LOGIN"], table["PASSWORD"])
    return None


def plain_response(credentials: Credentials) -> str:
    return f"\0{credentials.user}\0{credentials.password}"


def amqplain_response(credentials: Credentials) -> str:
    """A field table without its length, of two long strings (rabbit_auth_mechanism_amqplain:handle_response)."""
    octets = b""
    for name, value in (("LOGIN", credentials.user), ("PASSWORD", credentials.password)):
        text = value.encode("utf-8", "surrogateescape")
        octets += bytes([len(name)]) + name.encode() + b"S" + len(text).to_bytes(4, "big") + text
    return octets.decode("utf-8", "surrogateescape")


def _text_fields(octets: bytes) -> dict[str, str] | None:
    """The fields of a table that holds nothing but texts; None for anything else."""
    fields: dict[str, str] = {}
    at = 0
    while at < len(octets):
        name_end = at + 1 + octets[at]
        kind = octets[name_end : name_end + 1].decode("latin-1")
        size = _LENGTH_OCTETS.get(kind)
        if size is None or name_end + 1 + size > len(octets):
            return None
        start = name_end + 1 + size
        end = start + int.from_bytes(octets[name_end + 1 : start], "big")
        if end > len(octets):
            return None
        name = octets[at + 1 : name_end].decode("utf-8", "surrogateescape")
        fields[name] = octets[start:end].decode("utf-8", "surrogateescape")
        at = end
    return fields
