"""A broker that was stopped, or killed, and is started again, as the model has it (`model.rules.operator.faults`)."""

from __future__ import annotations

from amqpspec.model.protocol.methods import OPERATOR, Fault
from amqpspec.model.rules.operator.faults import KILLED, STOPPED
from amqpspec.targets.embedded.hosts_responder import HostsResponder


def restart(hosts: HostsResponder, *, is_killed: bool) -> None:
    """Have it serve what survives. Alarms go on."""
    alarm = hosts.own.broker.alarm
    for name in (KILLED if is_killed else STOPPED, "broker.restart"):
        hosts.take(Fault(OPERATOR, 0, name, {}, sent=True))
    hosts.forget_connections()
    for host in hosts.all():
        host.broker.alarm = alarm
