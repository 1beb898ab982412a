"""What the operator of the broker does in a session, and the passing of time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from amqpspec.model.protocol.methods import OPERATOR, Frame
from amqpspec.targets.brokers.operator import Peer
from amqpspec.targets.errors import OperatorMissing

if TYPE_CHECKING:
    from amqpspec.conformance.language.command import Command
    from amqpspec.conformance.session.session import Session


def operate(session: Session, command: Command) -> None:
    """Carry out a command on the connection `broker`. Raises `OperatorError` (a `TargetError`)."""
    frame = Frame(OPERATOR, 0, command.method, dict(command.arguments), sent=True)
    if command.method == "clock.wait":
        _wait(session, command.arguments.get("milliseconds", 0) / 1000)
        session.client.note(frame)
        return
    operator, client = session.target.operator, session.client
    if operator is None:
        raise OperatorMissing(f"{command}: this target has no operator")
    if command.method == "operator.set-permissions":
        frame.arguments.setdefault("virtual_host", session.target.address.vhost)
    client.note(frame)
    session.operated.append(frame)
    operator.carry_out([frame], lambda name: Peer(client.local_port(name), session.known_as(name)))


def _wait(session: Session, seconds: float) -> None:
    """Let time pass, and receive what comes meanwhile."""
    clock = session.target.clock
    until = clock.now() + seconds
    while (left := until - clock.now()) > 0:
        if session.receive(left) is None and not session.client.open_names():
            threading.Event().wait(until - clock.now())  # nobody is there who could send anything
    session.drain()  # what has come by now is not late, however late it is read


def undo(session: Session) -> None:
    """Take away what the operator made, first of all alarms, which keep everything else from being answered."""
    if session.operated and session.target.operator is not None:
        session.target.operator.undo(session.operated)
