"""What a stream makes of properties, and how each known change of it is told."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.defects.changed_properties import (
    Change,
    changes_between,
    with_expiration,
    without_cluster_id,
    without_nested,
)

DIED = {"headers": {"x-death": [{"count": 1, "reason": "expired", "queue": "q", "original-expiration": "800"}]}}
DIED_BY_QUEUE = {"headers": {"x-death": [{"count": 1, "reason": "expired", "queue": "q"}]}}


@pytest.mark.parametrize(
    ("expected", "observed", "changes"),
    [
        (DIED, {**DIED, "expiration": "800"}, (with_expiration,)),
        (DIED, {**DIED, "expiration": "900"}, ()),
        (DIED_BY_QUEUE, {**DIED_BY_QUEUE, "expiration": "800"}, ()),
        ({"headers": {"list": [1]}}, {"headers": {}}, (without_nested,)),
        ({"cluster_id": "z"}, {}, (without_cluster_id,)),
    ],
)
def test_what_explains_other_properties(
    expected: dict[str, Any], observed: dict[str, Any], changes: tuple[Change, ...]
) -> None:
    assert changes_between(expected, observed) == changes
