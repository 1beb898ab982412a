"""What a stream makes of properties, and how each known change of it is told."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.defects.changed_properties import changes_between

DIED = {"headers": {"x-death": [{"count": 1, "reason": "expired", "queue": "q", "original-expiration": "800"}]}}
DIED_BY_QUEUE = {"headers": {"x-death": [{"count": 1, "reason": "expired", "queue": "q"}]}}


@pytest.mark.parametrize(
    ("expected", "observed", "defects"),
    [
        (DIED, {**DIED, "expiration": "800"}, ("stream-keeps-expiration-of-dead-letter",)),
        (DIED, {**DIED, "expiration": "900"}, ()),
        (DIED_BY_QUEUE, {**DIED_BY_QUEUE, "expiration": "800"}, ()),
        ({"headers": {"list": [1]}}, {"headers": {}}, ("stream-drops-nested-headers",)),
        ({"cluster_id": "z"}, {}, ("stream-drops-cluster-id",)),
    ],
)
def test_what_explains_other_properties(
    expected: dict[str, Any], observed: dict[str, Any], defects: tuple[str, ...]
) -> None:
    assert changes_between(expected, observed) == defects
