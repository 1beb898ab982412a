"""Handshakes in reproducers: `conformance.session.handshake_steps` for a program that has nothing but pika's codec.

`CLIENT_PART` goes into programs that need it, after `conformance.failures.standalone_client`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session.handshake_steps import NO_PASSWORD, STEPS
from amqpspec.model.rules.connection.handshake_content import TUNE_OFFER

CLIENT_PART = '''

STEPS = {"socket.open": None, "protocol.header": None, "connection.start-ok": spec.Connection.StartOk,
         "connection.tune-ok": spec.Connection.TuneOk, "connection.open": spec.Connection.Open}


class Stepwise(Connection):
    """Leaves its handshake to those who make its steps."""

    def __init__(self, name: str) -> None:
        super().__init__(name, CAPABLE, SERVER.virtual_host, header="")
        self.state, self.offer = "beginning", spec.Connection.Tune(channel_max=2047, frame_max=131072)

    def take(self, item: Any) -> None:
        super().take(item)
        if isinstance(item, frame.ProtocolHeader):
            self.say(0, f"(protocol header {self.latest_octets.hex()})")

    def received(self, channel: int, method: Any, content: str) -> None:
        super().received(channel, method, content)
        if isinstance(method, spec.Connection.Tune):
            self.offer = method
        elif isinstance(method, spec.Connection.OpenOk):
            self.state = "open"

    def make(self, step: str, said: Any) -> None:
        """A step: what is said, and for the rest what a client says who wants to be let in."""
        if step == "protocol.header":
            self.write(bytes.fromhex(said.get("octets", "414d515000000901")))
        elif STEPS[step]:
            login = [("LOGIN", self.login[0]), ("PASSWORD", self.login[1])]
            pieces: list[bytes] = []
            pika.data.encode_table(pieces, dict(login))
            plain, amqplain = "\\0" + "\\0".join(self.login), b"".join(pieces)[4:].decode("latin1")
            usual = {"connection.start-ok": {
                         "client_properties": {"product": "reproducer", "capabilities": CAPABLE}, "locale": "en_US",
                         "mechanism": "PLAIN", "response": amqplain if said.get("mechanism") == "AMQPLAIN" else plain},
                     "connection.tune-ok": {"channel_max": self.offer.channel_max, "frame_max": self.offer.frame_max},
                     "connection.open": {"virtual_host": self.virtual_host}}[step]
            if step == "connection.tune-ok":
                self.frame_max, self.beat = said.get("frame_max", self.frame_max), said.get("heartbeat", 0) / 2
            self.send(0, STEPS[step], hide=False, **{**usual, **said})
        wait(lambda: self.state in ("open", "gone"), QUIET)


def steps(text: str, quiet: float = QUIET, **said: Any) -> None:
    """Make the steps of a handshake that are given, each with what it says; in place of a connection that is over."""
    tell(f"> {text}")
    name = text.split()[0].rstrip("!")
    if name not in CONNECTIONS or CONNECTIONS[name].state in ("gone", "closed"):
        try:
            CONNECTIONS[name] = Stepwise(name)
        except OSError as error:
            give_up(error)
    connection: Any = CONNECTIONS[name]
    connection.login = (said.pop("user", connection.login[0]), said.pop("password", connection.login[1]))
    for step, words in said.items():
        if connection.state != "gone":
            connection.make(step.replace("__", ".").replace("_", "-"), words)
    wait(lambda: connection.state in ("open", "gone"), quiet)
'''

#: What a step says, as a program's text, that comes on a connection which was opened in the usual way.
USUAL = {
    "connection.start-ok": {
        "mechanism": '"PLAIN"',
        "response": '"\\0".join(["", SERVER.credentials.username, SERVER.credentials.password])',
        "locale": '"en_US"',
    },
    "connection.tune-ok": {name: str(TUNE_OFFER[name]) for name in ("channel_max", "frame_max")},
    "connection.open": {"virtual_host": "SERVER.virtual_host"},
}

#: Wishes of `connection.open` for which the client part needs no steps.
_SIMPLE = frozenset({"capabilities", "virtual_host", "channel_max", "frame_max", "heartbeat"})
_WISHES = {
    "mechanism": "connection.start-ok",
    "locale": "connection.start-ok",
    "channel_max": "connection.tune-ok",
    "frame_max": "connection.tune-ok",
    "heartbeat": "connection.tune-ok",
    "virtual_host": "connection.open",
}


def stepwise(commands: Sequence[Command]) -> list[bool]:
    """For each command: is it a step of a handshake, or a handshake that is not as any other?

    On a connection that was opened in the usual way a step is a method like others.
    """
    kinds: list[bool] = []
    made_by_steps: dict[str, bool] = {}
    for command in commands:
        is_step = _is_step(command) and made_by_steps.get(command.connection, True)
        if _is_unusual_opening(command):
            is_step = True
        kinds.append(is_step)
        if is_step or command.connection not in made_by_steps or command.method == STEPS[-1]:
            made_by_steps[command.connection] = is_step
    return kinds


def _is_step(command: Command) -> bool:
    if command.method not in STEPS or command.channel:
        return False
    return command.method != STEPS[-1] or command.as_it_stands


def _is_unusual_opening(command: Command) -> bool:
    """A new TCP connection, or all of a handshake with wishes that the client part does not know."""
    if command.channel or command.method not in (STEPS[0], STEPS[-1]) or _is_step(command):
        return command.method == STEPS[0]
    simple = _SIMPLE | {"user", "password"} if "user" in command.arguments else _SIMPLE
    return not command.arguments.keys() <= simple


def words_of(command: Command, earlier: Sequence[Command]) -> dict[str, Any]:
    """The arguments of `steps` for the command, after those earlier ones."""
    if command.method == STEPS[-1] and not command.as_it_stands:
        return _whole(dict(command.arguments))
    begun = any(other.connection == command.connection for other in earlier)
    place = STEPS.index(command.method)
    before = () if begun else STEPS[1:place]
    return {_name(step): {} for step in before} | {_name(command.method): dict(command.arguments)}


def _whole(wishes: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, dict[str, Any]] = {step: {} for step in STEPS[1:]}
    if "header" in wishes:
        said["protocol.header"]["octets"] = wishes["header"]
    if "capabilities" in wishes:
        said["connection.start-ok"]["client_properties"] = {
            "product": "reproducer",
            "capabilities": wishes["capabilities"],
        }
    for wish, step in _WISHES.items():
        if wish in wishes:
            said[step][wish] = wishes[wish]
    login = {name: wishes[name] for name in ("user", "password") if name in wishes}
    if "user" in login:
        login.setdefault("password", NO_PASSWORD)
    return login | {_name(step): words for step, words in said.items()}


def _name(step: str) -> str:
    """As a name of Python's."""
    return step.replace(".", "__").replace("-", "_")
