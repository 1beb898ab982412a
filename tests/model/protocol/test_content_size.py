"""The model knows how many octets properties take, as the codec writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from amqpspec.model.protocol.content_size import properties_size
from amqpspec.targets.codec.methods import encode_properties

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delivery_mode": 2, "priority": 9},
        {"content_type": "text/plain", "correlation_id": "é", "timestamp": 1_767_312_000, "expiration": "60000"},
        {"headers": {}},
        {"headers": {"truth": True, "none": None, "small": -1, "large": 2**40, "real": 0.5, "time": MOMENT}},
        {"headers": {"text": "äöü", "octets": b"\x00\x01", "money": Decimal("1.5")}},
        {"headers": {"list": [1, "two", [3.0, None]], "table": {"a": {"b": [True]}}}},
    ],
)
def test_it_is_as_long_as_what_is_sent(properties: dict[str, Any]) -> None:
    assert properties_size(properties) == len(encode_properties(properties))
