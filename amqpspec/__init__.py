"""amqpspec: a conformance suite for AMQP 0-9-1 brokers. This page is the public interface.

| name | is |
|---|---|
| `EmbeddedBroker` | the reference model behind a TCP port, as a context manager; with `fault=`, one that goes wrong |
| `Acceptor`, `acceptor_for` | judges the frames of one sequence; the second follows known defects of brokers as well |
| `Method`, `Content` | one method on the wire, and what it carries |
| `Dialect`, `dialect_named` | what differs between brokers and their versions |
| `requirements` | the registry of requirements |
| `Failure`, `Verdict` | what judging ends in |
| `main` | the command line: arguments to an exit code |

`amqpspec.testing` has a page of its own: a RabbitMQ for the tests of applications.

What is not listed here may change with any version. The folders `model`, `targets`, `conformance`, `pipeline` and
`reports` of the repository are packages within this one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqpspec.command_line import main as main
    from amqpspec.model.defects.known_defects import acceptor_for as acceptor_for
    from amqpspec.model.judging.acceptor import Acceptor as Acceptor
    from amqpspec.model.promises.choices import Dialect as Dialect
    from amqpspec.model.promises.dialects import dialect_named as dialect_named
    from amqpspec.model.promises.registry import requirements as requirements
    from amqpspec.model.promises.verdict import Failure as Failure
    from amqpspec.model.promises.verdict import Verdict as Verdict
    from amqpspec.model.protocol.methods import Content as Content
    from amqpspec.model.protocol.methods import Method as Method
    from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker as EmbeddedBroker

#: Where each name is defined. They are imported when they are asked for: the model needs nothing of the rest.
_DEFINED_IN = {
    "Acceptor": "amqpspec.model.judging.acceptor",
    "Content": "amqpspec.model.protocol.methods",
    "Dialect": "amqpspec.model.promises.choices",
    "EmbeddedBroker": "amqpspec.targets.brokers.embedded_broker",
    "Failure": "amqpspec.model.promises.verdict",
    "Method": "amqpspec.model.protocol.methods",
    "Verdict": "amqpspec.model.promises.verdict",
    "acceptor_for": "amqpspec.model.defects.known_defects",
    "dialect_named": "amqpspec.model.promises.dialects",
    "main": "amqpspec.command_line",
    "requirements": "amqpspec.model.promises.registry",
}

__all__ = sorted(_DEFINED_IN)


def __getattr__(name: str) -> object:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module 'amqpspec' has no attribute {name!r}")
    return getattr(import_module(_DEFINED_IN[name]), name)
