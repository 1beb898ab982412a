"""What a team's nightly job needs: a gate, one label a broker, pieces of a recording, judging only what is outdated."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from amqpspec import EmbeddedBroker
from amqpspec.command_line import main
from amqpspec.conformance import version
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.command_sequence import CommandSequence, Place
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from amqpspec.pipeline.judging.judged_parts import write_judgements
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.labels import label_in_store
from amqpspec.pipeline.store.store import create_store, open_store
from amqpspec.targets.address import Address
from tests.proxies import recording

LINES = ("a.1 queue.declare q1", "a.1 basic.publish routing-key=q1 body=m1", "a.1 basic.get q1")
FAULT = "get-empty-with-messages"


def recorded(path: Path, fault: str | None = None, label: str = "embedded") -> Path:
    """A trace of a few commands on a broker of which nobody sees whether it is the right one."""
    described = TargetDescription(label, "amqpspec", "1", DEFAULT_DIALECT.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with EmbeddedBroker(fault=fault) as broker, TraceWriter(path) as trace:
        place = Place(TargetUnderTest(broker.address, described, deadline=0.3), trace)
        place.carry_out(CommandSequence("s 1", tuple(map(parse_command, LINES))))
    return path


def test_the_gate_of_judge_accepts_what_the_file_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "store")
    assert main(["pipeline", "import", store, str(recorded(tmp_path / "t.jsonl", FAULT)), "--run", "n"]) == 0
    capsys.readouterr()
    assert main(["pipeline", "judge", store]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("embedded: ") and said[0].endswith("in 's 1' of n: a.1 < basic.get-empty")
    identity = said[0].removeprefix("embedded: ").partition(" in 's 1'")[0]
    accepted = tmp_path / "accepted.toml"
    accepted.write_text(f'[[deviation]]\nidentity = "{identity}"\nreason = "next week"\n')
    assert main(["pipeline", "judge", store, "--again", "--deviations", str(accepted)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "accepted: 1 failure: next week"
    assert "0 failed (1 more as is accepted)" in said[1]
    accepted.write_text(accepted.read_text() + "expires = 2026-01-01\n")
    assert main(["pipeline", "judge", store, "--again", "--deviations", str(accepted)]) == 1
    assert "it expired on 2026-01-01" in capsys.readouterr().err
    assert main(["pipeline", "judge", store, "--again", "--gate", "known"]) == 1, "no known defect of any version"


def test_a_campaign_prints_what_failed_and_has_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    accepted = tmp_path / "accepted.toml"
    accepted.write_text(
        "".join(
            f'[[deviation]]\nidentity = "*|{shape}|*"\nreason = "a broker for tests"\nby-chance = true\n'
            for shape in ("missing frame", "unexpected frame", "wrong content", "wrong value")
        )
    )
    command = ["campaign", f"embedded:{FAULT}", "--store", str(tmp_path / "store"), "--sequences", "30", "--seed", "1",
               "--shrinking-time", "0", "--target", "shop", "--day", "2026-11-01"]  # fmt: skip
    assert main([*command, "--run", "red"]) == 1
    assert "shop: " in capsys.readouterr().out
    assert main([*command, "--run", "green", "--deviations", str(accepted)]) == 0
    assert "more as is accepted" in capsys.readouterr().out
    parts = open_store(tmp_path / "store").contents().parts
    assert {(part.target, part.day) for part in parts} == {("shop", "2026-11-01")}


def test_one_broker_has_one_label() -> None:
    names = ("amqp://guest@localhost:5672/%2F", "amqp://localhost:5672", "amqp://app@localhost/orders?heartbeat=5")
    assert {label_in_store(name) for name in names} == {"amqp://localhost:5672"}
    assert label_in_store("amqps://u@[::1]:5671/ through pika") == "amqps://[::1]:5671 through pika"
    assert label_in_store("docker:rabbitmq:4.3") == "docker:rabbitmq:4.3"
    assert label_in_store("shop") == "shop"


def test_run_and_record_have_the_label_that_target_names(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    assert main(["run", "embedded", "--only", "GET-001", "--sequences", "0", "--target", "shop", "--store", store,
                 "--day", "2026-11-01", "--out", str(tmp_path / "run"), "--quiet"]) == 0  # fmt: skip
    with EmbeddedBroker() as broker:
        upstream = f"amqp://127.0.0.1:{broker.address.port}"
        with recording(upstream, tmp_path / "recorded", "--target", "shop") as proxy:
            address = Address("127.0.0.1", proxy.port)
            with TraceWriter(tmp_path / "unused.jsonl") as trace:
                described = TargetDescription("x", "amqpspec", "1", DEFAULT_DIALECT.name)
                place = Place(TargetUnderTest(address, described, deadline=0.3), trace)
                place.carry_out(CommandSequence("s 1", tuple(map(parse_command, LINES))))
    assert main(["pipeline", "import", store, str(tmp_path / "recorded")]) == 0
    parts = open_store(store).contents().parts
    assert len({part.run for part in parts}) == 2 and {part.target for part in parts} == {"shop"}
    assert "2026-11-01" in {part.day for part in parts}


def test_who_logs_in_is_no_part_of_the_label_in_a_store(tmp_path: Path) -> None:
    store = create_store(tmp_path / "store")
    add_trace(store, recorded(tmp_path / "run.jsonl", label="amqp://guest@localhost:5672/%2F"))
    add_trace(store, recorded(tmp_path / "recording.jsonl", label="amqp://localhost:5672"))
    assert {part.target for part in store.contents().parts} == {"amqp://localhost:5672"}


def test_a_folder_of_rotated_recordings_is_one_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = recorded(tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    folder = tmp_path / "app"
    folder.mkdir()
    for number, at in enumerate(range(0, len(lines), 4), 1):
        (folder / f"trace-{number:06}.jsonl").write_bytes(b"".join(lines[at : at + 4]))
    store = tmp_path / "store"
    assert main(["pipeline", "import", str(store), str(folder)]) == 0
    assert main(["pipeline", "import", str(store), str(tmp_path / "whole.jsonl"), "--run", "whole"]) == 0
    pieces, whole = sorted(open_store(store).contents().parts, key=lambda part: part.run)
    assert pieces.run.startswith("app-") and pieces.rows == whole.rows == len(lines)
    said = capsys.readouterr()
    assert f"the store has the same trace as run {pieces.run}; it is added as whole as well" in said.err
    (folder / "trace-000002.jsonl").unlink()
    assert main(["pipeline", "import", str(store), str(folder)]) == 5
    assert "trace-000002.jsonl is missing, so nothing that comes after it was taken" in capsys.readouterr().err


def test_only_what_is_outdated_is_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = create_store(tmp_path / "store")
    for name in ("old", "new"):
        add_trace(store, recorded(tmp_path / f"{name}.jsonl"), run=name)
    assert main(["pipeline", "judge", str(store.root)]) == 0
    (old,) = (part for part in store.contents().parts if part.run == "old")
    judgements = pq.read_table(store.root / old.judgements, partitioning=None)
    at = judgements.schema.get_field_index("judged_by")
    earlier = judgements.set_column(at, judgements.schema.field(at), [["0.1.0"] * judgements.num_rows])
    store.commit(judgements={old.id: write_judgements(store, old, earlier).judged})
    capsys.readouterr()
    for options, sequences in (
        (["--outdated", "--requirement", "TX-001"], "0 sequences"),
        (["--outdated", "--requirement", "GET-001"], "1 sequence,"),
        (["--outdated"], "0 sequences"),
        (["--requirement", "GET-001"], "2 sequences,"),
    ):
        assert main(["pipeline", "judge", str(store.root), *options]) == 0
        assert capsys.readouterr().out.startswith(sequences), options
    assert main(["pipeline", "judge", str(store.root), "--requirement", "GET-999"]) == 2


def test_rules_that_were_changed_are_another_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between two releases as well: what one file of the model says is a part of it."""
    store = create_store(tmp_path / "store")
    add_trace(store, recorded(tmp_path / "t.jsonl"), run="n")
    assert main(["pipeline", "judge", str(store.root)]) == 0
    package = tmp_path / "package"
    for folder in ("model", "conformance/verdicts", "pipeline/judging"):
        shutil.copytree(Path(str(resources.files("amqpspec"))) / folder, package / folder)
    told = []
    for change in ("", "# a change\n"):
        with (package / "model/rules/basic/recover.py").open("a") as file:
            file.write(change)
        with monkeypatch.context() as patch:
            patch.setattr(version.resources, "files", lambda name: package)
            version.judge_version.cache_clear()
            capsys.readouterr()
            assert main(["pipeline", "judge", str(store.root), "--outdated"]) == 0
            told.append(capsys.readouterr().out.partition(",")[0])
    version.judge_version.cache_clear()
    assert told == ["0 sequences", "1 sequence"]


def test_a_sequence_of_the_store_is_carried_out_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = create_store(tmp_path / "store")
    add_trace(store, recorded(tmp_path / "t.jsonl", FAULT), run="n")
    one = ["pipeline", "sequence", str(store.root), "s 1", "--run", "n", "--out"]
    assert main([*one, str(tmp_path / "again.amqp")]) == 0
    assert main(["replay", str(tmp_path / "again.amqp"), f"embedded:{FAULT}"]) == 1
    assert main(["replay", str(tmp_path / "again.amqp"), "embedded"]) == 0
    assert main([*one, str(tmp_path / "again.jsonl")]) == 0
    assert main(["check", str(tmp_path / "again.jsonl")]) == 1
    capsys.readouterr()
    assert main(["pipeline", "sequence", str(store.root), "s 2", "--run", "n"]) == 2
    assert "there is no sequence 's 2' in a run 'n'" in capsys.readouterr().err


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "amqpspec", *words], capture_output=True, text=True, check=False)


def test_what_is_judged_live_is_in_the_tables_of_the_store(tmp_path: Path) -> None:
    recorded(tmp_path / "incoming" / "trace-000001.jsonl", FAULT)
    store, accepted = str(tmp_path / "store"), tmp_path / "accepted.toml"
    accepted.write_text('[[deviation]]\nidentity = "PUBLISH-002|*"\nreason = "next week"\n')
    done = command(
        "pipeline", "live", str(tmp_path / "incoming"), "--store", store, "--until-done", "--run", "night",
        "--deviations", str(accepted),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("(accepted: next week)")
    head, row = (line.split("\t") for line in command("pipeline", "table", "failures", store).stdout.splitlines())
    found = dict(zip(head, row, strict=True))
    assert (found["run"], found["target"], found["sequence"]) == ("night", "embedded", "s 1")
