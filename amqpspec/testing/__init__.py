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


def __getattr__(name: str) -> object:
    """They are imported when one is asked for: who only collects tests loads no broker."""
    if name not in __all__:
        raise AttributeError(f"module 'amqpspec.testing' has no attribute {name!r}")
    from amqpspec.testing import broker, views

    return getattr(views if hasattr(views, name) else broker, name)
