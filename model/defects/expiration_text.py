"""The expiration of a message, which RabbitMQ keeps as a number from 4.0 on, and writes anew (mc_amqpl).

What was 060000 or +60000 comes back as 60000, in the property and in the history of a dead letter. What a stream makes
of a message besides: `model.defects.stream_content`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import HISTORY
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.protocol.methods import Content, Method

EXPIRATION_REWRITTEN = "expiration-is-rewritten"
_ORIGINAL = "original-expiration"
_NUMBER = re.compile(r"[+-]?[0-9]+")


def as_number(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The properties with each expiration as the number that it is."""
    headers = properties.get("headers")
    if headers and isinstance(history := headers.get(HISTORY), list):
        deaths = [_rewritten(death, _ORIGINAL) if isinstance(death, Mapping) else death for death in history]
        properties = {**properties, "headers": {**headers, HISTORY: deaths}}
    return _rewritten(properties, "expiration")


def _rewritten(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    text = table.get(name)
    is_number = isinstance(text, str) and _NUMBER.fullmatch(text) is not None
    return {**table, name: str(int(str(text)))} if is_number else table


def _is_rewritten(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    if method.content is None:
        return None
    right = mismatch.right
    if mismatch.argument == "content" and isinstance(right, Content) and right.body == method.content.body:
        right = right.properties
    elif mismatch.argument != "properties":
        return None
    if not isinstance(right, Mapping) or as_number(right) != method.content.properties:
        return None
    return (replace(mismatch, requirement="PUBLISH-016", defect=EXPIRATION_REWRITTEN),)


EXPIRATION_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name=EXPIRATION_REWRITTEN,
        requirement="PUBLISH-016",
        statement="A message's expiration comes back as the number that it is: 060000 as 60000.",
        source="v4.0.5 mc_amqpl:protocol_state",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        names=_is_rewritten,
    ),
)
