"""What a TARGET on the command line means."""

from __future__ import annotations

import pytest

from amqpspec.targets.brokers.resolve import TargetSyntaxError, is_target, running


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amqp://host", True), ("amqps://host", True), ("embedded", True), ("embedded:no-such-fault", True),
        ("docker:image:4.3", True), ("process:/bin/broker", True), ("none.toml", True), ("folder/b.toml", True),
        ("", False), ("runs/one", False), ("./embedded", False), ("embedded/", False), ("embedded-2", False),
        ("docker", False), ("docker:", False), ("process:", False), ("trace.jsonl", False),
    ],
)  # fmt: skip
def test_what_is_written_as_a_target(text: str, expected: bool) -> None:
    assert is_target(text) is expected
    if not expected:
        with pytest.raises(TargetSyntaxError), running(text):
            pass
