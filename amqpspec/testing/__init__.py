"""RabbitMQ in the tests of an application: a broker in this process, which tests stop, block, restart and look into.

| name | is |
|---|---|
| `EmbeddedBroker` | the broker, as a context manager |
| `FAULTS` | what can be made to go wrong (`EmbeddedBroker.fault`): name to sentence |
| `QueueInfo`, `MessageInfo`, `Holder`, `Published`, `ConnectionInfo` | what it tells of itself |
| `EmbeddedBrokerFailure` | it broke down, by a defect of its own |

pytest has the fixtures `amqp_broker` (a fresh one for each test), `amqp_url` (its address) and `amqp_broker_session`
(one for all tests of a process) wherever this is installed. `docs/testing-with-rabbitmq.md` shows all of it.
"""

from __future__ import annotations

from amqpspec.targets.brokers.embedded_broker import EmbeddedBrokerFailure
from amqpspec.testing.broker import FAULTS, EmbeddedBroker
from amqpspec.testing.views import ConnectionInfo, Holder, MessageInfo, Published, QueueInfo

__all__ = [
    "FAULTS",
    "ConnectionInfo",
    "EmbeddedBroker",
    "EmbeddedBrokerFailure",
    "Holder",
    "MessageInfo",
    "Published",
    "QueueInfo",
]
