"""Faults in a session: the broker is stopped, killed, paused, started again.

A fault is written to the trace before it is done, as the broker may be down from then on; `broker.restart` once the
broker is back, so that everything before it is of the old life, and everything behind it of the new one. A broker that
is not down is stopped first, which the trace says. The time that all this takes counts for no deadline.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from amqpspec.conformance.session.conversation import Conversation
from amqpspec.conformance.session.nodes import node_of
from amqpspec.model.protocol.methods import OPERATOR, Fault
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.errors import OperatorMissing

#: Seconds for the ends of connections to come, when the broker is down.
ENDS = 5.0

_STOP = "broker.stop"
#: What is done to all nodes is done to one after the other.
_FOR_EACH = ("broker.pause", "broker.resume", "network.cut", "network.heal")


def do_fault(conversation: Conversation, fault: Fault) -> None:
    """Raises `targets.errors.TargetError`."""
    if "connection" in fault.arguments:
        _do_to_connection(conversation, fault)
        return
    injector = conversation.target.faults
    if injector is None or fault.name not in injector.offered:
        raise OperatorMissing(f"{fault}: this target does not offer it")
    nodes = conversation.nodes
    if len(nodes.numbers) == 1:
        fault.arguments.pop("node", None)  # the one that there is: the broker
    concerned = nodes.named_by(fault.arguments.get("node"))
    if fault.name == "broker.restart":
        for node in concerned:
            if node not in nodes.down:
                arguments = {} if len(concerned) == len(nodes.numbers) == 1 else {"node": node}
                _do(conversation, injector, Fault(OPERATOR, 0, _STOP, arguments, sent=True), (node,))
        injector.inject(fault)
        nodes.down.difference_update(concerned)
        conversation.carrier.note(fault)
    elif fault.name in _FOR_EACH and len(concerned) > 1:
        for node in concerned:
            arguments = {**fault.arguments, "node": node}
            _do(conversation, injector, Fault(OPERATOR, 0, fault.name, arguments, sent=True), (node,))
    else:
        _do(conversation, injector, fault, concerned)


def _do(conversation: Conversation, injector: FaultInjector, fault: Fault, concerned: Sequence[int]) -> None:
    conversation.drain()  # what was said before
    conversation.carrier.note(fault)
    nodes = conversation.nodes
    nodes.touched = True
    injector.inject(fault)
    if fault.name in (_STOP, "broker.kill"):
        nodes.down.update(concerned)
        nodes.paused.difference_update(concerned)
        _await_ends(conversation, concerned)
    elif fault.name == "broker.pause":
        nodes.paused.update(node for node in concerned if node not in nodes.down)
    elif fault.name == "broker.resume":
        nodes.paused.difference_update(concerned)
    elif fault.name == "network.cut":
        nodes.cut.update(concerned)
    elif fault.name == "network.heal":
        nodes.cut.difference_update(concerned)


def _do_to_connection(conversation: Conversation, fault: Fault) -> None:
    """By a network of the suite's own (`targets.client.network`)."""
    network, name = conversation.network, fault.arguments["connection"]
    if name not in conversation.through_network:
        raise OperatorMissing(f"{fault}: the connection goes through no network that can fail")
    conversation.drain()
    conversation.carrier.note(fault)
    if fault.name == "network.cut":
        network.cut(name)
        conversation.cut_off.add(name)
    elif fault.name == "network.slow":
        network.slow(name, fault.arguments.get("milliseconds", 0) / 1000)
    else:
        network.heal(name)
        conversation.cut_off.discard(name)


def _await_ends(conversation: Conversation, concerned: Sequence[int]) -> None:
    """Receive until each connection to these nodes is over."""
    until = time.monotonic() + ENDS

    def is_one_left() -> bool:
        return any(node_of(name) in concerned for name in conversation.carrier.open_names())

    while is_one_left() and (left := until - time.monotonic()) > 0 and not conversation.over:
        conversation.receive(left)
    conversation.drain()


def undo_faults(conversation: Conversation) -> None:
    """Resume, heal and start what was left otherwise."""
    for name in conversation.through_network:
        conversation.network.heal(name)
    conversation.cut_off.clear()
    injector = conversation.target.faults
    if conversation.nodes.touched and injector is not None:
        injector.undo()
