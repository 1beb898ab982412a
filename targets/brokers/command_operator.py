"""The operator of an in-house broker: a command of its own for each action, such as `./ctl add-user NAME PASSWORD`.

The placeholders of an action are its arguments, in braces: `{user}`. Besides, every command may name `{port}`.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from amqpspec.model.broker.administration import POLICY_KEYS, definition_of
from amqpspec.model.protocol.methods import OperatorAction
from amqpspec.targets.brokers.operator import PeerOf, asked_of, nobody, not_offered, undoing
from amqpspec.targets.brokers.single_node import BROKER_FAULTS
from amqpspec.targets.errors import OperatorError, OperatorMissing

_SET_POLICY = "operator.set-policy"
#: Writes a number.
COUNT_CONNECTIONS = "operator.count-connections"
#: All that a policy says, as JSON.
_DEFINITION = "definition"

#: By the name of an action the placeholders of its command.
PLACEHOLDERS: Mapping[str, tuple[str, ...]] = {
    "operator.add-user": ("user", "password"),
    "operator.delete-user": ("user",),
    "operator.set-permissions": ("user", "virtual-host", "configure", "write", "read"),
    "operator.add-vhost": ("virtual-host",),
    "operator.delete-vhost": ("virtual-host",),
    "operator.close-connection": ("connection-name", "client-port", "reason"),
    "operator.set-alarm": (),
    "operator.clear-alarm": (),
    _SET_POLICY: ("policy", "queue", "virtual-host", "priority", _DEFINITION, *POLICY_KEYS.values()),
    "operator.clear-policy": ("policy", "virtual-host"),
    "operator.configure": ("consumer-timeout", "channel-tick-interval"),
    "operator.reset-configuration": (),
    COUNT_CONNECTIONS: (),
    **dict.fromkeys(BROKER_FAULTS, ("pid", "directory")),
}
PLACEHOLDER = re.compile(r"\{([a-z-]+)\}")
#: Seconds for one command.
TIME_LIMIT = 60.0
_DEFAULTS = {"virtual-host": "/", "priority": "0"}


class CommandOperator:
    """`commands`: by the name of an action. They are run in `directory`, with `environment`."""

    def __init__(
        self, commands: Mapping[str, Sequence[str]], port: int, directory: Path, environment: Mapping[str, str]
    ) -> None:
        self._commands = commands
        self._port = port
        self._directory = directory
        self._environment = environment

    @property
    def offered(self) -> frozenset[str]:
        """A policy may say what its command has a placeholder for."""
        found = PLACEHOLDER.findall(" ".join(self._commands.get(_SET_POLICY, ())))
        said = POLICY_KEYS.values() if _DEFINITION in found else found
        return frozenset(self._commands) | {f"{_SET_POLICY} {key}" for key in said}

    def do_fault(self, name: str, pid: int, directory: str) -> None:
        """Run the command of that fault. `pid`, `directory`: of the broker, where the suite has started it.

        Raises `OperatorError`.
        """
        self._run(name, {"pid": str(pid or ""), "directory": directory})

    def carry_out(self, actions: Sequence[OperatorAction], peer_of: PeerOf) -> None:
        for action in actions:
            if missing := not_offered(self, asked_of(action.name, action.arguments)):
                raise OperatorMissing(f"there is no command for {missing}")
            values = {name.replace("_", "-"): str(value) for name, value in action.arguments.items()}
            if action.name == _SET_POLICY:
                values[_DEFINITION] = json.dumps(definition_of(action.arguments))
            if action.name == "operator.close-connection":
                peer = peer_of(action.arguments.get("name", ""))
                values |= {"connection-name": peer.connection_name, "client-port": str(peer.port)}
            self._run(action.name, values)

    def connections(self) -> int | None:
        """What the command for it writes; None: there is none. Raises `OperatorError`."""
        if COUNT_CONNECTIONS not in self._commands:
            return None
        written = self._run(COUNT_CONNECTIONS, {}).strip()
        if not written.isdecimal():
            raise OperatorError(f"{COUNT_CONNECTIONS}: {written[:80]!r} is not a number")
        return int(written)

    def undo(self, actions: Sequence[OperatorAction]) -> None:
        failed: list[OperatorError] = []
        for action in undoing(actions):
            # what is gone already, or cannot be taken away, must not keep the rest
            try:
                self.carry_out([action], nobody)
            except OperatorError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def _run(self, action: str, values: Mapping[str, str]) -> str:
        """Gives what the command has written. Raises `OperatorError`."""
        filled = {name: values.get(name, _DEFAULTS.get(name, "")) for name in PLACEHOLDERS[action]}
        command = [fill(part, {**filled, "port": str(self._port)}) for part in self._commands[action]]
        try:
            done = subprocess.run(
                command,
                cwd=self._directory,
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIME_LIMIT,
            )
        except subprocess.TimeoutExpired:
            raise OperatorError(f"{action}: {command[0]} did not end within {TIME_LIMIT:g} s") from None
        except OSError as error:
            raise OperatorError(f"{action}: cannot start {command[0]}: {error.strerror or error}") from None
        if done.returncode != 0:
            said = " ".join((done.stderr or done.stdout).split())[:300]
            raise OperatorError(f"{action}: {command[0]} ended with exit status {done.returncode}: {said}")
        return done.stdout


def fill(part: str, values: Mapping[str, str]) -> str:
    """Each `{name}` replaced; what is put in is not looked at again."""
    return PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), part)
