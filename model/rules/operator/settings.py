"""What the operator sets for all, and for single queues by policies (areas TIMEOUT and POLICY).

`operator.configure consumer-timeout=MILLISECONDS channel-tick-interval=MILLISECONDS`: holds for what is made from then
on. `operator.reset-configuration` takes that back. `operator.set-policy NAME queue= priority= virtual-host=` and what
it says (`model.broker.administration`), `operator.clear-policy NAME virtual-host=`: the queue need not exist yet.
"""

from __future__ import annotations

from amqpspec.model.broker.administration import Policy, definition_of
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.delivery_timeouts import DEFAULTS
from amqpspec.model.protocol.methods import OperatorAction
from amqpspec.model.rules.common.steps import Step

#: Policies of the queue of that name, in that virtual host, have changed.
policies_changed: Step[Broker, str, str] = Step()


def configure(broker: Broker, action: OperatorAction) -> None:
    broker.settings.update({name: value for name, value in action.arguments.items() if name in DEFAULTS})


def reset_configuration(broker: Broker, action: OperatorAction) -> None:
    broker.settings.clear()


def set_policy(broker: Broker, action: OperatorAction) -> None:
    arguments = action.arguments
    before = broker.policies.get(_key(action))
    policy = broker.policies[_key(action)] = Policy(
        arguments.get("queue", ""),
        arguments.get("virtual_host", "/"),
        arguments.get("priority", 0),
        {f"x-{key}": value for key, value in definition_of(arguments).items()},
    )
    for queue in {policy.queue, policy.queue if before is None else before.queue}:
        policies_changed(broker, queue, policy.virtual_host)


def clear_policy(broker: Broker, action: OperatorAction) -> None:
    policy = broker.policies.pop(_key(action), None)
    if policy is not None:
        policies_changed(broker, policy.queue, policy.virtual_host)


def _key(action: OperatorAction) -> tuple[str, str]:
    """Of the policy: each virtual host has its own."""
    return action.arguments.get("virtual_host", "/"), action.arguments.get("policy", "")
