"""Commands as methods that leave as they stand, on connections that pika has opened: for what its calls cannot do.

These wait for each answer, and refuse what a broker must be tried with.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from amqpspec.conformance.failures import by_hand
from amqpspec.conformance.failures.short_program import (
    PATIENCE,
    SOON,
    WHILE,
    Literal,
    Parts,
    at_places,
    by_an_operator,
    clean_up,
    made_by,
    names_of,
)
from amqpspec.conformance.failures.shows_by import ShownBy
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_arguments import LAST_HEADERS
from amqpspec.conformance.language.names import REPLY_ADDRESS, on_the_broker
from amqpspec.model.broker.nodes import node_of
from amqpspec.model.protocol.field_types import Float32, WireInteger, values_within
from amqpspec.model.protocol.methods import (
    CLOCK_WAIT,
    FAULTS,
    METHOD_IDS,
    OPERATOR,
    OTHER_EVENTS,
    Method,
    RawFrame,
)
from amqpspec.targets.codec.methods_codec import encode

_CLIENT = '''
def connect(name, url):  # then methods leave as they stand below, and what comes is kept
    connection = pika.BlockingConnection(url)
    connection.name, connection.held = name, []
    connection.emit, connection._impl._adapter_emit_data = connection._impl._adapter_emit_data, connection.held.append
    connection._impl._process_frame = lambda frame: note(connection, frame)
    return connection

def note(connection, frame):
    if isinstance(frame, pika.frame.Method):
        came.append(f"{connection.name}.{frame.channel_number} {frame.method}".replace(P, ""))
    elif frame.channel_number:
        came[-1] += f" body={frame.fragment}" if hasattr(frame, "fragment") else f" {frame.properties}".replace(P, "")
    if isinstance(getattr(frame, "method", None), (Channel.Close, Connection.Close)):
        post(connection, frame.channel_number, (Channel if frame.channel_number else Connection).CloseOk())
        leave(connection)

def post(connection, channel, method, *content):
    connection._impl._send_method(channel, method, content or None)

def leave(connection):  # all that was posted, at once
    octets, connection.held[:] = b"".join(connection.held), []
    if octets and connection.is_open:
        connection.emit(octets)

def send(connection, *what):
    before = len(came)
    post(connection, *what)
    for _ in range(50 if what[1].synchronous else 1):
        wait(0.1, connection) if len(came) == before else None
    wait(QUIET, connection)

def wait(seconds, *connections):
    for each in connections:
        try:
            leave(each)
            each.is_open and each.sleep(seconds)
        except pika.exceptions.AMQPError as error:
            came.append(f"{each.name}.0 <(end of the TCP connection: {error!r}")
'''
#: Seconds in which the broker does what it was sent; less where the broker's clock runs meanwhile.
_QUIET, _LESS_QUIET = "0.3", "0.02"
#: What pika sends for something else than the zero that AMQP sends, where nothing is said; None: it must be said.
_OTHERWISE: dict[str, dict[str, Any]] = {
    "basic.nack": {"requeue": False}, "basic.reject": {"delivery_tag": 0, "requeue": False},
    "exchange.declare": {"exchange": "", "type": ""}, "exchange.delete": {"exchange": ""},
    "exchange.bind": {"destination": "", "source": ""}, "exchange.unbind": {"destination": "", "source": ""},
    "queue.bind": {"exchange": ""}, "queue.unbind": {"exchange": ""}, "basic.cancel": {"consumer_tag": ""},
    "channel.close": {"reply_code": 0, "reply_text": "", "class_id": 0, "method_id": 0},
    "connection.close": {"reply_code": 0, "reply_text": "", "class_id": 0, "method_id": 0},
    "channel.flow": {"active": False}, "basic.cancel-ok": {"consumer_tag": ""},
}  # fmt: skip
_SPELLED = {"global_": "global_qos"}
_ONLY_BY_HAND = (WireInteger, Float32, Decimal, float)


def can_be_said(shown: ShownBy) -> bool:
    """Can it be done on connections that pika has opened in its way?"""
    return all(map(_is_a_method, shown.commands))


def _is_a_method(command: Command) -> bool:
    if command.connection == OPERATOR or command.method in FAULTS:
        return command.method == CLOCK_WAIT or by_hand.call(command)[0] in ("by_hand", "restarted")
    if command.method == "connection.open":
        return not command.as_it_stands and command.arguments.keys() <= {
            "capabilities", "virtual_host", "user", "password"
        }  # fmt: skip
    if OTHER_EVENTS.get(command.method) is RawFrame:
        return True
    if command.method not in METHOD_IDS or (command.method.startswith("connection.") and "close" not in command.method):
        return False
    properties = {} if command.content is None else command.content.properties
    values = [*values_within(command.arguments), *values_within(properties)]
    if properties.get("headers") == LAST_HEADERS or any(each == REPLY_ADDRESS for each in values):
        return False
    return not any(isinstance(each, _ONLY_BY_HAND) for each in values)


class PikaMethods:
    """Writes the commands as methods. `prefix`: what names of the broker begin with in them."""

    def __init__(self, shown: ShownBy, literal: Literal, prefix: str) -> None:
        self._shown, self._literal = shown, literal
        self._sent = [
            each if each.connection == OPERATOR or each.method in FAULTS else on_the_broker(each, prefix)
            for each in shown.commands
        ]
        self._made = made_by(self._sent, prefix)
        taken = [_variable(each.connection) for each in self._sent]
        self.names = names_of([name for names in self._made.values() for name in names], taken)
        self._open: set[str] = set()
        self._channels: set[tuple[str, int]] = set()

    def parts(self) -> Parts:
        """All that the program is made of."""
        steps: list[str] = []
        before = at_places(self._shown)
        for place, command in enumerate(self._sent):
            steps += [*self._opened(command), *before.get(place, ())]
            steps += self._lines(command, None if place == len(self._sent) - 1 else self._sent[place + 1])
        made = {kind: [self.names[each] for each in names] for kind, names in self._made.items()}
        quiet = _LESS_QUIET if any(each.method == CLOCK_WAIT for each in self._sent) else _QUIET
        return Parts(_CLIENT.replace("QUIET", quiet), steps, self.names, clean_up(made))

    def _opened(self, command: Command) -> Iterator[str]:
        name = command.connection
        if name == OPERATOR or command.method in FAULTS:
            return
        if name not in self._open:
            self._open.add(name)
            yield from self._connect(command)
        key = (name, command.channel)
        if command.channel and key not in self._channels and not command.as_it_stands:
            self._channels.add(key)
            if command.method != "channel.open":
                yield f"send({_variable(name)}, {command.channel}, Channel.Open())"

    def _connect(self, command: Command) -> Iterator[str]:
        said = command.arguments if command.method == "connection.open" else {}
        is_cluster = any(node_of(each.connection) > 1 for each in self._sent)
        url = f"URL{node_of(command.connection)}" if is_cluster else "URL"
        if said:
            yield f"own = copy.copy({url})"
            url = "own"
        if "capabilities" in said:
            yield f'own.client_properties = {{"capabilities": {self._literal(said["capabilities"])}}}'
        if "virtual_host" in said:
            yield f"own.virtual_host = {self._literal(said['virtual_host'])}"
        if "user" in said:
            login = f"{self._literal(said['user'])}, {self._literal(said.get('password', ''))}"
            yield f"own.credentials = pika.PlainCredentials({login})"
        yield f'{_variable(command.connection)} = connect("{command.connection}", {url})'

    def _lines(self, command: Command, after: Command | None) -> Iterator[str]:
        name = _variable(command.connection)
        if command.method == CLOCK_WAIT:
            seconds = command.arguments.get("milliseconds", 0) / 1000
            yield self._wait(seconds + (WHILE if after is None else 0))
        elif command.connection == OPERATOR or command.method in FAULTS:
            yield by_an_operator(command)
            if command.method == "broker.restart":
                self._open.clear()
                self._channels.clear()
        elif command.method != "connection.open":
            is_held = command.in_flight and after is not None
            if OTHER_EVENTS.get(command.method) is RawFrame:
                octets = encode(Method("", command.channel, command.method, command.arguments, True, command.content))
                yield f'{name}.held.append(bytes.fromhex("{octets.hex()}"))'
                yield from () if is_held else (f"wait({SOON}, {name})",)
            else:
                yield f"{'post' if is_held else 'send'}({name}, {command.channel}, {self._method(command)})"
            if is_held and after is not None and after.connection != command.connection:
                yield from (f"leave({name})", f"{name}._flush_output()  # before what follows")
        if after is None and command.method != CLOCK_WAIT:
            yield self._wait(PATIENCE if self._shown.waits_for_nothing else WHILE)

    def _wait(self, seconds: float) -> str:
        many = max(1, len(self._open))
        return f"wait({seconds / many:.2g}, {', '.join(map(_variable, sorted(self._open)))})"

    def _method(self, command: Command) -> str:
        arguments = {**_OTHERWISE.get(command.method, {}), **command.arguments}
        words = ", ".join(f"{_SPELLED.get(key, key)}={self._literal(value)}" for key, value in arguments.items())
        kind, _, method = command.method.partition(".")
        text = f"{kind.capitalize()}.{''.join(map(str.capitalize, method.split('-')))}({words})"
        if command.content is None:
            return text
        given = ", ".join(f"{key}={self._literal(value)}" for key, value in command.content.properties.items())
        return f"{text}, pika.BasicProperties({given}), {self._literal(command.content.body)}"


def _variable(connection: str) -> str:
    return connection.replace("@", "")
