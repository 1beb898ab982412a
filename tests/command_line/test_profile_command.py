"""`amqpspec profile`, the file that it writes, and the start of a run on a product that is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amqpspec.command_line import targets
from amqpspec.command_line.entry import main
from amqpspec.model.promises.dialect_names import choices_of
from amqpspec.targets.variants import OTHERWISE, VARIANTS

#: What is not open, or cannot be seen beside the others.
UNSEEN = {
    # exchanges are bound to exchanges only where a broker says so
    "use-by-exchanges",
    "channel-max", "frame-max-zero", "heartbeat-with-payload", "channel-flow", "default-exchange-bindings",
    "missing-deleted", "durable-exclusive", "meaningless-arguments",
}  # fmt: skip


def test_a_profile_as_table_as_json_and_as_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "d.toml"
    assert main(["profile", f"embedded:{OTHERWISE}", "--json", "--toml", str(file)]) == 0
    told = json.loads(capsys.readouterr().out)
    chosen = dict(VARIANTS[OTHERWISE].choices)
    seen = {each["name"]: each["value"] for each in told["choices"] if each["value"] is not None}
    as_usual = {"heartbeat-with-payload": "501"}
    as_usual |= {"round-trip": "there", "queue-counts": "told", "basic-get": "answered"}
    as_usual |= {"channel-max": "highest-number"}
    assert seen == {name: value for name, value in chosen.items() if name in seen} | as_usual
    assert set(chosen) - set(seen) == {"meaningless-arguments", "use-by-exchanges"}
    assert all(each["right"] for each in told["choices"])
    settled = {name: value for name, value in chosen.items() if name not in UNSEEN}
    assert choices_of(told["dialect"]) == settled | {"channel-max": "highest-number"}
    # the file is a dialect, by which the broker is right, and its trace can be judged again
    out = tmp_path / "out"
    words = ["--dialect", str(file), "--only", "QUEUE", "--sequences", "0", "--seed", "1", "--out", str(out)]
    assert main(["run", f"embedded:{OTHERWISE}", *words]) == 0
    assert "Judged by" in capsys.readouterr().out
    report = json.loads((out / "report.json").read_text())
    assert report["target"]["dialect"] == told["dialect"]
    refused = "basic.get beside an exclusive consumer is refused, and the connection is closed"
    assert refused in report["target"]["choices"]
    assert main(["check", str(out)]) == 0


def test_what_the_text_forbids_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "d.toml"
    assert main(["profile", "embedded", "--toml", str(file)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "against the text" in told and "RabbitMQ" in told and "announced, and works" in told
    assert 'base = "rabbitmq-4.3"' in file.read_text() and "[choices]" not in file.read_text()


def test_quiet_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "embedded", "--quiet"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert " choices that the text leaves open were seen" in told and "RabbitMQ" not in told


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_run_on_an_unknown_product_judges_by_its_profile(
    is_asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says of its dialect is not looked at."""
    monkeypatch.setattr(targets, "is_known", lambda properties: False)
    words = ["--only", "GET-001", "--sequences", "0", "--seed", "1", "--out", str(tmp_path)]
    words += [] if is_asked else ["--no-profile"]
    assert main(["run", "embedded:get-beside-exclusive=refused-on-channel", *words]) == 0
    choices = choices_of(json.loads((tmp_path / "report.json").read_text())["target"]["dialect"])
    assert choices["get-beside-exclusive"] == "refused-on-channel"
    # what a broker may not survive is not asked
    assert ("ack-of-zero" in choices) is is_asked and "deleted-count" not in choices
    assert (tmp_path / "profile.jsonl").exists() is is_asked


def test_a_mistake_in_a_dialect_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "d.toml"
    file.write_text('[choices]\nimmediate = "lost"\n')
    with pytest.raises(SystemExit) as ended:
        main(["run", "--dialect", str(file)])
    assert ended.value.code == 2
    assert f"{file}:2: immediate is never 'lost', but returned, refused" in capsys.readouterr().err
