"""What the operator of the broker does in a session, and the passing of time."""

from __future__ import annotations

import threading

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session.conversation import Conversation
from amqpspec.conformance.session.faults import do_fault, undo_faults
from amqpspec.model.protocol.methods import CLOCK_WAIT, FAULTS, OPERATOR, ClockWait, Fault, OperatorAction
from amqpspec.targets.brokers.operator import Peer, nobody
from amqpspec.targets.errors import OperatorMissing

#: What holds in one virtual host: where none is named, in that of the target.
_OF_VHOST = frozenset({"operator.set-permissions", "operator.set-policy", "operator.clear-policy"})


def operate(conversation: Conversation, command: Command) -> None:
    """Carry out a command on the connection `broker`. Raises `OperatorError` (a `TargetError`)."""
    arguments = dict(command.arguments)
    if command.method == CLOCK_WAIT:
        _wait(conversation, arguments.get("milliseconds", 0) / 1000)
        conversation.carrier.note(ClockWait(OPERATOR, 0, CLOCK_WAIT, arguments, sent=True))
        return
    if command.method in FAULTS:
        do_fault(conversation, Fault(OPERATOR, 0, command.method, arguments, sent=True))
        return
    action = OperatorAction(OPERATOR, 0, command.method, arguments, sent=True)
    operator, carrier = conversation.target.operator, conversation.carrier
    if operator is None:
        raise OperatorMissing(f"{command}: this target has no operator")
    if command.method in _OF_VHOST:
        arguments.setdefault("virtual_host", conversation.target.address.vhost)
    carrier.note(action)
    conversation.operated.append(action)
    operator.carry_out([action], lambda name: _peer(conversation, name))


def _peer(conversation: Conversation, name: str) -> Peer:
    try:
        return Peer(conversation.port_of(name), conversation.known_as(name))
    except ValueError:  # it was never opened
        return nobody(name)


def _wait(conversation: Conversation, seconds: float) -> None:
    """Let time pass, and receive what comes meanwhile."""
    clock = conversation.target.clock
    until = clock.now() + seconds
    while (left := until - clock.now()) > 0:
        if conversation.receive(left) is None and not conversation.carrier.open_names():
            threading.Event().wait(until - clock.now())  # nobody is there who could send anything
    conversation.drain()  # what has come by now is not late, however late it is read


def undo(conversation: Conversation) -> None:
    """Take away what the operator made, first of all alarms, which keep everything else from being answered. Before
    that, have the broker be there again.
    """
    undo_faults(conversation)
    if conversation.operated and conversation.target.operator is not None:
        conversation.target.operator.undo(conversation.operated)
