"""What a broker says of itself in the handshake: headers, connection.start, connection.tune (CONN-001, 010, 012, 025).

Requirements:

* CONN-001: Protocol header accepted. Sending 8 bytes "AMQP" 0 0 9 1 makes the server answer connection.start with
  version-major 0, version-minor 9, locales "en_US" and a mechanisms list that contains PLAIN and AMQPLAIN (order not
  fixed). In amqp-0-9-1: as stated, with mechanisms and locales of the server's choice. [AMQP 0-9-1 4.2.2;
  rabbit_reader.erl:handshake]
* CONN-010: Tune values. Default connection.tune offers channel-max 2047, frame-max 131072, heartbeat 60.
  [rabbit_reader.erl:start_connection/tune]
* CONN-012: Minimum frame-max. tune-ok with frame-max below the minimum frame size is rejected with a bare socket close.
  In rabbitmq-3: minimum 4096 (4095 refused). In rabbitmq-4.0: minimum 4096 or 8192, as versions differ (8192 from 4.1.0
  on). In rabbitmq-4.3: minimum 8192 (4096 refused, 8192 accepted; since 4.1). In amqp-0-9-1: minimum 4096, in what the
  server offers as well. [rabbit_reader.erl:validate_negotiated_integer_value; FRAME_MIN_SIZE; AMQP 0-9-1 class
  connection]
* CONN-025: Server properties. connection.start server-properties contain product, version, platform, capabilities,
  cluster_name, copyright, information. In amqp-0-9-1: at least host, product, version, platform, copyright and
  information. [rabbit_reader.erl:server_properties; AMQP 0-9-1 class connection]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amqpspec.model.promises.capabilities import required_of
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.credentials import ANONYMOUS
from amqpspec.model.protocol.methods import Table
from amqpspec.model.protocol.patterns import Anything, Pattern

#: Protocol headers: "AMQP" and four octets.
HEADER_0_9_1 = "414d515000000901"
HEADER_0_9 = "414d515001010009"
HEADERS_0_8 = ("414d515001010800", "414d515001010901")
HEADER_1_0 = "414d515003010000"

#: connection.tune of a RabbitMQ that nobody has configured (CONN-010).
TUNE_OFFER: Table = {"channel_max": 2047, "frame_max": 131_072, "heartbeat": 60}

#: Keys of the server properties (CONN-025): RabbitMQ's (rabbit_reader:server_properties), and those of the 0-9-1 text.
_PROPERTIES = ("capabilities", "cluster_name", "copyright", "information", "platform", "product", "version")
_PROPERTIES_OF_THE_TEXT = ("copyright", "host", "information", "platform", "product", "version")

#: Requirement of an argument of connection.start that has one of its own.
START_BLAME = {"server_properties": "CONN-025"}
#: The same of connection.tune, where its numbers are the broker's choice.
TUNE_BLAME = {"frame_max": "CONN-012"}


@dataclass(frozen=True, slots=True)
class Words(Pattern):
    """A text of words that has at least these, in any order."""

    least: tuple[str, ...]
    example: str

    def matches(self, value: Any) -> bool:
        return isinstance(value, str) and bool(value.split()) and set(self.least) <= set(value.split())

    def choose(self) -> str:
        return self.example

    def __str__(self) -> str:
        return f"at least {' '.join(self.least)}" if self.least else "anything"


@dataclass(frozen=True, slots=True)
class Keys(Pattern):
    """A table that has at least these keys; `choose` gives each of them something."""

    least: tuple[str, ...]
    capabilities: tuple[str, ...] = ()

    def matches(self, value: Any) -> bool:
        return isinstance(value, dict) and set(self.least) <= value.keys()

    def choose(self) -> Table:
        return {**dict.fromkeys(self.least, ""), "capabilities": dict.fromkeys(self.capabilities, True)}

    def __str__(self) -> str:
        return f"at least {', '.join(self.least)}"


@dataclass(frozen=True, slots=True)
class FrameMax(Pattern):
    """An offer of frame-max: "the minimum negotiated value for frame-max is also frame-min-size"; 0 is no limit."""

    least: int
    example: int

    def matches(self, value: Any) -> bool:
        return isinstance(value, int) and limit(value) >= self.least

    def choose(self) -> int:
        return self.example

    def __str__(self) -> str:
        return f"at least {self.least}, or 0"


@dataclass(frozen=True, slots=True)
class Header(Pattern):
    """Any protocol header."""

    def matches(self, value: Any) -> bool:
        return isinstance(value, str) and len(value) == 16 and value.startswith("414d5150")

    def choose(self) -> str:
        return HEADER_0_9_1

    def __str__(self) -> str:
        return "any protocol header"


ANY_HEADER = Header()


def start_arguments(dialect: Dialect, version: tuple[int, int]) -> Table:
    """connection.start; 0-8 knows no capabilities."""
    capabilities = required_of(dialect) if version == (0, 9) else ()
    keys = _PROPERTIES if dialect.extensions else _PROPERTIES_OF_THE_TEXT
    mechanisms = [each for each in dialect.mechanisms if each != ANONYMOUS]  # an operator may not want that one
    return {
        "version_major": version[0],
        "version_minor": version[1],
        "server_properties": Keys(keys, capabilities),
        "mechanisms": Words(tuple(mechanisms) if dialect.extensions else (), " ".join(dialect.mechanisms)),
        "locales": Words(("en_US",) if dialect.extensions else (), "en_US"),
    }


def tune_arguments(dialect: Dialect) -> Table:
    """connection.tune: the numbers of a RabbitMQ that nobody has configured, or any that the text allows."""
    if dialect.extensions:
        return TUNE_OFFER.copy()
    open = {name: Anything(value) for name, value in TUNE_OFFER.items()}
    return {**open, "frame_max": FrameMax(dialect.least_frame_max, TUNE_OFFER["frame_max"])}


def limit(number: int) -> float:
    """0 means none."""
    return number or float("inf")
