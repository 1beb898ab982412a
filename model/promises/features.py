"""Features: what RabbitMQ has beside the text and its server capabilities do not tell of, such as times to live.

A product offers one or not, which is found by trying (`conformance.profile`). The name of what works is part of the
name of its dialect, as that of an announced capability is (`model.promises.dialects.extensions`). Which requirements
come with a feature, and what of them is more than RabbitMQ's own way, is said in the registry (`features`, `neutral`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from amqpspec.model.promises.choices import Dialect


@dataclass(frozen=True, slots=True)
class Feature:
    """`about` is what such a broker has, in words. `needs`: what is there beside it when it is tried."""

    name: str
    about: str
    #: arguments of queue.declare that mean something by it: to the values that do; (): whatever its value
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


def _argument(name: str, about: str, *needs: str) -> Feature:
    """A feature that is an argument of queue.declare."""
    return Feature(name, about, {name: ()}, needs)


#: In the order in which a dialect names them.
FEATURES: Mapping[str, Feature] = MappingProxyType(
    {
        each.name: each
        for each in (
            Feature("expiration", "a message whose expiration is over is not delivered"),
            _argument("x-message-ttl", "a message is not delivered that has been in its queue for so long"),
            _argument("x-expires", "a queue that is not used for so long is deleted"),
            _argument("x-dead-letter-exchange", "what is rejected for good is published to that exchange"),
            _argument(
                "x-dead-letter-routing-key", "dead letters are published with that key", "x-dead-letter-exchange"
            ),
            _argument("x-max-length", "of the messages that are ready at most so many stay, the newest"),
            _argument("x-max-length-bytes", "of the messages that are ready the newest stay, within so many octets"),
            Feature(
                "x-overflow",
                "with reject-publish what is too much is refused, and nacked",
                {"x-overflow": ("drop-head", "reject-publish")},
                ("publisher_confirms", "x-max-length"),
            ),
            _argument("x-max-priority", "messages of a higher priority are delivered first"),
            _argument("x-single-active-consumer", "one consumer is served at a time, and another when it goes"),
            Feature("alternate-exchange", "what an exchange cannot route goes to the one that it names"),
            Feature("CC", "a message goes by the keys in its header CC as well"),
            Feature("BCC", "a message goes by the keys in its header BCC as well, which nobody sees"),
            Feature(
                "streams",
                "a queue of x-queue-type=stream is read again and again, from where x-stream-offset says",
                {"x-queue-type": ("stream",)},
                ("per_consumer_qos", "publisher_confirms"),
            ),
            Feature("direct_reply_to", "a reply to amq.rabbitmq.reply-to reaches who asked, and nobody else"),
            Feature("user-id", "a message may name no other user than that of its connection"),
        )
    }
)

#: What is tried and told, and not judged, as how a broker does it is RabbitMQ's own way: to what such a broker has, and
#: the area of its requirements.
TOLD: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "x-consumer-timeout": ("what nobody acknowledges in so long goes back to its queue", "TIMEOUT"),
        "x-queue-type=quorum": ("a queue takes what failed more often than x-delivery-limit says out", "QUORUM"),
    }
)


def told_of(requirement: str) -> str:
    """What of `TOLD` the requirement is about; "": nothing."""
    area = requirement.rpartition("-")[0]
    return next((name for name, (_, of_area) in TOLD.items() if of_area == area), "")


def means_something(dialect: Dialect, argument: str, value: Any) -> bool:
    """Does that argument of queue.declare mean something to a broker that is held to the text and its features?"""
    for name in dialect.announced:
        values = FEATURES[name].arguments.get(argument) if name in FEATURES else None
        if values is not None and (not values or value in values):
            return True
    return False
