"""Titles and sources of requirements in the text of 0-9-1, where the registry's are those of RabbitMQ."""

from __future__ import annotations

from collections.abc import Mapping

from amqpspec.model.promises.dialect_names import base_of

_TEXT = "amqp-0-9-1"

#: By identifier the title in the text, where RabbitMQ does another thing, and the title says what.
_TITLES: Mapping[str, str] = {
    "BIND-002": "Unbinding",
    "CONN-012": "Minimum frame-max of 4096",
    "CONN-013": "No more channels than channel-max",
    "EXCHANGE-003": "Deleting an exchange that is not there",
    "QUEUE-022": "Deleting a queue that is not there",
    "QUEUE-025": "Purging a queue that is not there",
}


def title_in(id: str, title: str, dialect: str) -> str:
    """The title that the requirement has in the dialect."""
    return _TITLES.get(id, title) if base_of(dialect) == _TEXT else title


def source_in(source: str, dialect: str) -> str:
    """The part of its source that is of the dialect: in the text that which names 0-9-1, where some of it does."""
    if base_of(dialect) != _TEXT:
        return source
    parts = [part.strip() for part in source.split(";")]
    return "; ".join(part for part in parts if "0-9-1" in part and "rabbit" not in part) or source
