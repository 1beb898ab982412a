"""Of which broker a recording is."""

from __future__ import annotations

from pathlib import Path

import orjson

from amqpspec.pipeline.application_recordings import dialects_of, read_recordings, recorded_dialect


def recording(path: Path, *brokers: tuple[str, str, str]) -> list[Path]:
    """A connection with each of them, on which nothing was said."""
    rows: list[dict[str, object]] = []
    for number, (product, version, dialect) in enumerate(brokers):
        start = {
            "kind": "start", "sequence": f"connection {number}", "target": "t", "product": product, "version": version,
            "dialect": dialect, "mode": "open", "virtual_host": "/", "user": None, "requirement": None, "seed": None,
            "repeats": None, "planned": None,
        }  # fmt: skip
        end = {
            "kind": "end", "sequence": f"connection {number}", "verdict": "not exercised", "failures": [],
            "exercised": {}, "reason": "recorded, not judged",
        }  # fmt: skip
        rows += [start, end]
    path.mkdir()
    (path / "trace.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return [path]


SILENT, RABBITMQ = ("unknown", "unknown", "amqp-0-9-1"), ("RabbitMQ", "3.10.8", "rabbitmq-3")


def test_a_connection_that_ended_before_the_broker_spoke_is_of_no_other_broker(tmp_path: Path) -> None:
    files = recording(tmp_path / "r", SILENT, RABBITMQ)
    assert recorded_dialect(files) == "rabbitmq-3"
    application = read_recordings(files, "rabbitmq-3", "rabbitmq-4.3")
    assert dialects_of(application) == ["rabbitmq-3"] and application.brokers == {RABBITMQ}


def test_nobody_has_spoken(tmp_path: Path) -> None:
    files = recording(tmp_path / "r", SILENT)
    assert recorded_dialect(files) == "amqp-0-9-1"
    assert dialects_of(read_recordings(files, "amqp-0-9-1", "rabbitmq-4.3")) == ["amqp-0-9-1"]
