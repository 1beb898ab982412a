"""What the operator sets for all, and for single queues by policies (area TIMEOUT).

`operator.configure consumer-timeout=MILLISECONDS channel-tick-interval=MILLISECONDS`: holds for what is made from then
on. `operator.reset-configuration` takes that back. `operator.set-policy NAME queue= consumer-timeout=MILLISECONDS
priority= virtual-host=`, `operator.clear-policy NAME virtual-host=`: the queue need not exist yet.
"""

from __future__ import annotations

from amqpspec.model.broker.administration import Policy
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.delivery_timeouts import DEFAULTS
from amqpspec.model.protocol.methods import OperatorAction


def configure(broker: Broker, action: OperatorAction) -> None:
    broker.settings.update({name: value for name, value in action.arguments.items() if name in DEFAULTS})


def reset_configuration(broker: Broker, action: OperatorAction) -> None:
    broker.settings.clear()


def set_policy(broker: Broker, action: OperatorAction) -> None:
    arguments = action.arguments
    broker.policies[_key(action)] = Policy(
        arguments.get("queue", ""),
        arguments.get("virtual_host", "/"),
        arguments.get("priority", 0),
        arguments.get("consumer_timeout"),
    )


def clear_policy(broker: Broker, action: OperatorAction) -> None:
    broker.policies.pop(_key(action), None)


def _key(action: OperatorAction) -> tuple[str, str]:
    """Of the policy: each virtual host has its own."""
    return action.arguments.get("virtual_host", "/"), action.arguments.get("policy", "")
