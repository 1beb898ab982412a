"""What only the operator of a broker can do: make users, grant permissions, close connections, raise alarms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from amqpspec.model.protocol.methods import OPERATOR, Frame, Table


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
    """Does what frames of the class `operator` say (`model.protocol.methods`). May be asked by several threads."""

    def carry_out(self, frames: Sequence[Frame], peer_of: PeerOf) -> None:
        """Do all of them, in their order, and come back when it is done. Raises `targets.errors.OperatorError`."""
        ...

    def undo(self, frames: Sequence[Frame]) -> None:
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


def undoing(frames: Iterable[Frame]) -> list[Frame]:
    """What undoes these, alarms first: everything that they made, if it is not gone already."""
    standing: dict[tuple[str, str], None] = {}
    for frame in frames:
        for made, (taken_away, argument) in _UNDONE_BY.items():
            key = (taken_away, str(frame.arguments.get(argument, "")))
            if frame.method == made:
                standing[key] = None
            elif frame.method == taken_away:
                standing.pop(key, None)
    names = dict(_UNDONE_BY.values())
    undone = [_frame(method, {names[method]: name} if names[method] else {}) for method, name in standing]
    return sorted(undone, key=lambda frame: frame.method != "operator.clear-alarm")


def _frame(method: str, arguments: Table) -> Frame:
    return Frame(OPERATOR, 0, method, arguments, sent=True)
