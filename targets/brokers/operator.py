"""What only the operator of a broker can do: make users, grant permissions, close connections, raise alarms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from amqpspec.model.broker.administration import definition_of
from amqpspec.model.protocol.methods import OPERATOR, OperatorAction, Table
from amqpspec.targets.errors import OperatorError, OperatorMissing


class Peer(NamedTuple):
    """The client's end of a connection, as the broker may know it: by the port that it comes from, if nobody stands
    between them who forwards it, and by what the client calls the connection in `connection_name`.
    """

    port: int
    connection_name: str


#: Gives the end of the connection that commands call so.
PeerOf = Callable[[str], Peer]


def nobody(name: str) -> Peer:
    """For actions that name no connection. Raises `OperatorError`."""
    raise OperatorError(f"there is no connection {name}")


class Operator(Protocol):
    """Does what the actions say (`model.protocol.methods`). May be asked by several threads."""

    def carry_out(self, actions: Sequence[OperatorAction], peer_of: PeerOf) -> None:
        """Do all of them, in their order, and come back when it is done. Raises `targets.errors.OperatorError`."""
        ...

    def undo(self, actions: Sequence[OperatorAction]) -> None:
        """Take away everything that these made and that is there still. Raises `targets.errors.OperatorError`."""
        ...


@runtime_checkable
class PartialOperator(Operator, Protocol):
    """One who can do only some of it."""

    @property
    def offered(self) -> frozenset[str]:
        """Names of actions, and what a policy may say: `operator.set-policy max-length`."""
        ...


@runtime_checkable
class CountsConnections(Protocol):
    """An operator who can tell how many connections the broker has open, whoever made them."""

    def connections(self) -> int | None:
        """Their number; None: it cannot be told. Raises `targets.errors.OperatorError`."""
        ...


class FirstOf:
    """A `PartialOperator`: each action is carried out by the first of these that can do it."""

    def __init__(self, *operators: PartialOperator) -> None:
        self.operators = operators

    @property
    def offered(self) -> frozenset[str]:
        return frozenset[str]().union(*(each.offered for each in self.operators))

    def carry_out(self, actions: Sequence[OperatorAction], peer_of: PeerOf) -> None:
        for action in actions:
            asked = asked_of(action.name, action.arguments)
            operator = self._who_can(asked)
            if operator is None:
                raise OperatorMissing(f"this target offers no {' with '.join(asked)}")
            operator.carry_out([action], peer_of)

    def undo(self, actions: Sequence[OperatorAction]) -> None:
        failed: list[OperatorError] = []
        for operator in self.operators:
            try:
                own = [each for each in actions if self._who_can(asked_of(each.name, each.arguments)) is operator]
                operator.undo(own)
            except OperatorError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def connections(self) -> int | None:
        """As `CountsConnections`."""
        counting = [each for each in self.operators if isinstance(each, CountsConnections)]
        return counting[0].connections() if counting else None

    def _who_can(self, asked: Sequence[str]) -> PartialOperator | None:
        return next((each for each in self.operators if not not_offered(each, asked)), None)


def asked_of(action: str, arguments: Table) -> list[str]:
    """What an operator has to be able to do for that."""
    said = definition_of(arguments) if action == "operator.set-policy" else {}
    return [action, *(f"{action} {key}" for key in said)]


def not_offered(operator: Operator, actions: Iterable[str]) -> str:
    """The name of an action that the operator cannot do; "": there is none."""
    if not isinstance(operator, PartialOperator):
        return ""
    return next((action for action in actions if action not in operator.offered), "")


#: What is made or raised: what takes it away, and the arguments that name it.
_UNDONE_BY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "operator.add-user": ("operator.delete-user", ("user",)),
    "operator.add-vhost": ("operator.delete-vhost", ("virtual_host",)),
    "operator.set-alarm": ("operator.clear-alarm", ()),
    "operator.configure": ("operator.reset-configuration", ()),
    "operator.set-policy": ("operator.clear-policy", ("policy", "virtual_host")),
}


#: By the name of an action that of the one without which nobody may carry it out: what it makes must go again.
UNDONE_BY: Mapping[str, str] = {made: taken_away for made, (taken_away, _) in _UNDONE_BY.items()}


def undoing(actions: Iterable[OperatorAction]) -> list[OperatorAction]:
    """What undoes these, alarms first: everything that they made, if it is not gone already."""
    standing: dict[tuple[str, tuple[tuple[str, str], ...]], None] = {}
    for action in actions:
        for made, (taken_away, names) in _UNDONE_BY.items():
            named = tuple((name, str(action.arguments[name])) for name in names if name in action.arguments)
            if action.name == made:
                standing[taken_away, named] = None
            elif action.name == taken_away:
                standing.pop((taken_away, named), None)
    undone = [_action(method, dict(named)) for method, named in standing]
    return sorted(undone, key=lambda action: action.name != "operator.clear-alarm")


def _action(method: str, arguments: Table) -> OperatorAction:
    return OperatorAction(OPERATOR, 0, method, arguments, sent=True)
