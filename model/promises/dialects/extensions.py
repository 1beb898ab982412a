"""The text of 0-9-1 with the extensions that a broker announces or shows: what a product is held to that is not known.

The name of such a dialect says all: `amqp-0-9-1+basic.nack+publisher_confirms`. An extension is what RabbitMQ's guide
says of it, without RabbitMQ's own ways: its numbers of confirms in one frame, its texts, its types of queues.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialect_names import SEPARATOR, base_of, capabilities_of
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.features import FEATURES

#: What can be held to beside the text: capabilities, and features that no capability tells of.
EXTENSIONS = (
    "authentication_failure_close",
    "basic.nack",
    "connection.blocked",
    "consumer_cancel_notify",
    "consumer_priorities",
    "exchange_exchange_bindings",
    "per_consumer_qos",
    "publisher_confirms",
    *FEATURES,
)


def text_with(capabilities: Collection[str]) -> Dialect:
    """The text with those of the capabilities that can be held to; none of them: the bare text."""
    announced = tuple(each for each in EXTENSIONS if each in capabilities)
    if not announced:
        return AMQP_0_9_1
    return replace(
        AMQP_0_9_1,
        name=SEPARATOR.join((AMQP_0_9_1.name, *announced)),
        title=f"the AMQP 0-9-1 text with {', '.join(announced)}",
        announced=frozenset(announced),
        # guide: consumer-prefetch, the table of meanings
        prefetch_is_shared="per_consumer_qos" not in announced,
    )


def text_named(name: str) -> Dialect | None:
    """The dialect of such a name; None: it is no such name, or names an extension that cannot be held to."""
    capabilities = capabilities_of(name)
    of_the_text = base_of(name) == AMQP_0_9_1.name and set(capabilities) <= set(EXTENSIONS)
    return text_with(capabilities) if of_the_text else None
