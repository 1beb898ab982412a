"""The example from end to end: an application's load, recorded by the proxy, judged, its tables and its picture."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from amqpspec.command_line import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "recorded_application.py"


def example() -> Any:
    described = importlib.util.spec_from_file_location("recorded_application", EXAMPLE)
    assert described is not None and described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    module.MESSAGES = 300
    return module


def run_on(target: str, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    module = example()
    # in this process: its Spark is there already
    monkeypatch.setattr(module, "amqpspec", lambda *words: main(list(words)))
    assert module.main(target, str(out)) == 0
    told = capsys.readouterr().out
    assert "0 failed, 0 inconclusive" in told
    rows = [line.split("\t") for line in told.splitlines() if line.startswith("CONFIRM-003\t")]
    assert [row[6] for row in rows] == ["pass"]
    page = (out / "page.html").read_text()
    drawings = [f"<svg{each.partition('</svg>')[0]}</svg>" for each in page.split("<svg")[1:]]
    assert len(drawings) == 3, "verdicts, confirms, first deliveries"
    assert all(list(ElementTree.fromstring(each).iter("rect")) for each in drawings)
    assert "password" not in page and "guest" not in (out / "recorded" / "trace.jsonl").read_text()


def test_on_the_embedded_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spark: Any
) -> None:
    run_on("embedded", tmp_path, monkeypatch, capsys)


def test_on_rabbitmq(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spark: Any, rabbitmq_4_3: Any
) -> None:
    address = rabbitmq_4_3.address
    target = f"amqp://{address.user}:{address.password}@{address.host}:{address.port}"
    run_on(target, tmp_path, monkeypatch, capsys)
