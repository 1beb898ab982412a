"""What only the operator of a broker can do: make users, grant permissions, close connections, raise alarms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from amqpspec.model.protocol.methods import OPERATOR, OperatorAction, Table


@dataclass(frozen=True, slots=True)
class Peer:
    """The client's end of a connection, as the broker may know it: by the port that it comes from, if nobody stands
    between them who forwards it, and by what the client calls the connection in `connection_name`.
    """

    port: int
    connection_name: str


#: Gives the end of the connection that commands call so.
PeerOf = Callable[[str], Peer]


class Operator(Protocol):
    """Does what the actions say (`model.protocol.methods`). May be asked by several threads."""

    def carry_out(self, actions: Sequence[OperatorAction], peer_of: PeerOf) -> None:
        """Do all of them, in their order, and come back when it is done. Raises `targets.errors.OperatorError`."""
        ...

    def undo(self, actions: Sequence[OperatorAction]) -> None:
        """Take away everything that these made and that is there still. Raises `targets.errors.OperatorError`."""
        ...


#: What is made or raised: what takes it away, and the argument that names it.
_UNDONE_BY = {
    "operator.add-user": ("operator.delete-user", "user"),
    "operator.add-vhost": ("operator.delete-vhost", "virtual_host"),
    "operator.set-alarm": ("operator.clear-alarm", ""),
    "operator.configure": ("operator.reset-configuration", ""),
    "operator.set-policy": ("operator.clear-policy", "policy"),
}


def undoing(actions: Iterable[OperatorAction]) -> list[OperatorAction]:
    """What undoes these, alarms first: everything that they made, if it is not gone already."""
    standing: dict[tuple[str, str], None] = {}
    for action in actions:
        for made, (taken_away, argument) in _UNDONE_BY.items():
            key = (taken_away, str(action.arguments.get(argument, "")))
            if action.name == made:
                standing[key] = None
            elif action.name == taken_away:
                standing.pop(key, None)
    names = dict(_UNDONE_BY.values())
    undone = [_action(method, {names[method]: name} if names[method] else {}) for method, name in standing]
    return sorted(undone, key=lambda action: action.name != "operator.clear-alarm")


def _action(method: str, arguments: Table) -> OperatorAction:
    return OperatorAction(OPERATOR, 0, method, arguments, sent=True)
