"""The types of queues (RabbitMQ: `x-queue-type`); 0-9-1 itself knows one, which is called classic here."""

from __future__ import annotations

from enum import Enum


class QueueType(Enum):
    CLASSIC = "classic"
    QUORUM = "quorum"
    STREAM = "stream"
