"""Where the HTTP API of a broker's management is: `http[s]://[user:password@]host[:port][/prefix]`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from amqpspec.targets.address import Address, AddressError, decoded, host_and_port

#: RabbitMQ's, by the scheme.
_PORTS = {"http": 15672, "https": 15671}


@dataclass(frozen=True, slots=True)
class ManagementAddress:
    """Neither `str` nor `repr` shows user and password."""

    host: str
    port: int
    tls: bool = False
    #: what stands before `/api`, as RabbitMQ's `management.path_prefix`
    prefix: str = ""
    #: "": none was given
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    #: a PEM file of who signs the certificate; "": the system's
    cacertfile: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls else ''}://{host}:{self.port}{self.prefix}"

    def logged_in(self, broker: Address) -> ManagementAddress:
        """With the login of the broker's address where it has none."""
        return self if self.user else replace(self, user=broker.user, password=broker.password)


def parse_management_address(text: str) -> ManagementAddress:
    """Percent-encoded; `https://` takes `?cacertfile=FILE`. Raises `AddressError`, which never has the password."""
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _PORTS:
        raise AddressError("the management address must begin with http:// or https://")
    begin = rest.find("?", rest.rfind("@") + 1)
    rest, query = (rest, "") if begin < 0 else (rest[:begin], rest[begin + 1 :])
    authority, slash, path = rest.partition("/")
    if "@" in path:
        raise AddressError('a "/" in user or password of the management address is written %2F')
    login, at, place = authority.rpartition("@")
    user, colon, password = login.partition(":")
    if at and not (user and colon):
        raise AddressError("the management address has a login that is not user:password")
    if "#" in place or "#" in path or "#" in query:
        raise AddressError("the management address has a fragment part, which is not supported")
    key, _, file = query.partition("=")
    if query and (key != "cacertfile" or scheme != "https" or not file):
        takes = "takes cacertfile=FILE" if scheme == "https" else "takes none"
        raise AddressError(f"the management address has a query with {key[:40]!r}: {scheme}:// {takes}")
    host, port = host_and_port(place, _PORTS[scheme])
    return ManagementAddress(
        host, port, scheme == "https", f"{slash}{path}".rstrip("/"), decoded(user, "user"),
        decoded(password, "password"), decoded(file, "cacertfile"),
    )  # fmt: skip
