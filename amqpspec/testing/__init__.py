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

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqpspec.targets.brokers.embedded_broker import EmbeddedBrokerFailure as EmbeddedBrokerFailure
    from amqpspec.testing.broker import FAULTS as FAULTS
    from amqpspec.testing.broker import EmbeddedBroker as EmbeddedBroker
    from amqpspec.testing.views import ConnectionInfo as ConnectionInfo
    from amqpspec.testing.views import Holder as Holder
    from amqpspec.testing.views import MessageInfo as MessageInfo
    from amqpspec.testing.views import Published as Published
    from amqpspec.testing.views import QueueInfo as QueueInfo

#: Where each name is defined. They are imported when they are asked for: who only collects tests loads no broker.
_DEFINED_IN = {
    "ConnectionInfo": "amqpspec.testing.views",
    "FAULTS": "amqpspec.testing.broker",
    "EmbeddedBroker": "amqpspec.testing.broker",
    "EmbeddedBrokerFailure": "amqpspec.targets.brokers.embedded_broker",
    "Holder": "amqpspec.testing.views",
    "MessageInfo": "amqpspec.testing.views",
    "Published": "amqpspec.testing.views",
    "QueueInfo": "amqpspec.testing.views",
}

__all__ = sorted(_DEFINED_IN)


def __getattr__(name: str) -> object:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module 'amqpspec.testing' has no attribute {name!r}")
    return getattr(import_module(_DEFINED_IN[name]), name)
