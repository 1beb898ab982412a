"""A password on the command line is not shown, however wrong the address is, and whatever it is given for."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.command_line import logins, main
from amqpspec.command_line.logins import remember_logins, without_logins
from tests.patience import patience

pytest_plugins = ["pytester"]
SHORT = "--only GET-001 --sequences 0 --jobs 1"


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(logins, "_logins", set())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.amqp").write_text("a.1 queue.declare q\n")
    (tmp_path / "one.toml").write_text('address = "amqps//u:sekret@h/"\n')
    (tmp_path / "two.toml").write_text('address = "amqp://u:sekret@h/"\n[operator]\nadd-user = "amqp://u:sekret@h/"\n')


@pytest.mark.parametrize(
    "line",
    [
        "run amqps//u:sekret@h/", "run amqp:/u:sekret@h", "run u:sekret@h", "run amqp//u/sekret@h/",
        "run AMQP//u:sekret@h",
        "run ampq://u:sekret@h/", "run docker:amqp://u:sekret@h/", "run process:amqp://u:sekret@h/",
        "run embedded:u:sekret@h", "run u:sekret@h/x.toml", "run amqps//u:sekret@h/ embedded",
        "run amqp//u:se//kret@h/",
        f"run embedded amqps//u:sekret@h/ {SHORT}", "run amqp://u:sekret@127.0.0.1:1/", "run amqp://u:sekret@h/%zz",
        "run one.toml", "run two.toml", "run embedded --dialect amqp://u:sekret@h", "run --seed amqp://u:sekret@h",
        "run --target=amqp://u:sekret@h", "run embedded --deviations amqp://u:sekret@h",
        f"run embedded --out amqp://u:sekret@h/x {SHORT}", f"run embedded --store amqp://u:sekret@h/ {SHORT}",
        f"run embedded --json amqp://u:sekret@h/x {SHORT}", "replay amqp://u:sekret@h/ x.amqp",
        "replay x.amqp amqp//u:sekret@h", "check amqp://u:sekret@h/", "report amqp://u:sekret@h/",
        "diff amqp//u:sekret@h embedded", "diff process:u:sekret@h embedded", "profile amqps//u:sekret@h/",
        "profile embedded --toml amqps://u:sekret@h/", "campaign amqps//u:sekret@h --store s --sequences 1",
        "campaign embedded --store amqps://u:sekret@h/ --sequences 1", "pipeline import amqp//u:sekret@h a",
        "pipeline import s amqp//u:sekret@h", "pipeline status amqp//u:sekret@h", "requirements --show u:sekret@h",
        "faults amqp://u:sekret@h", "serve --host u:sekret@h --port 0", "record --upstream amqp//u:sekret@h",
        "record --listen amqp://u:sekret@h --upstream x",
        "record --upstream amqp://127.0.0.1 --certfile amqp//u:sekret@h",
        "amqp://u:sekret@h", "run amqp://127.0.0.1 --management http//u:sekret@h",
        "run amqp://127.0.0.1 --management=http://u:sekret@h/%zz@x", "run embedded --management http://u:sekret@h",
        "run amqp://127.0.0.1:1 --management http://u:sekret@h",
    ],
)  # fmt: skip
def test_no_command_shows_it(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(line.split())
    except SystemExit as ended:
        code = int(ended.code or 0)
    said = capsys.readouterr()
    assert code in (2, 3, 5), said
    assert "kret" not in (said.out + said.err).lower()
    assert "Traceback" not in said.err and said.err.count("amqpspec: ") >= 1
    assert not [each for each in tmp_path.rglob("*") if "kret" in each.name], "a directory is named after it"


@pytest.mark.parametrize(
    "target", ["amqps//u:se kret@h/", "amqp//u:s'e\"kret@h", "amqp//u:s@e:kret@h", "amqp//u:se\\kret@h"]
)
@pytest.mark.parametrize("line", ["run", "check", "replay", "diff embedded", "requirements --show"])
def test_a_password_may_be_of_any_characters(line: str, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*line.split(), target]) in (2, 5)
    said = capsys.readouterr().err
    assert "kret" not in said.lower() and "***@h" in said.lower()


def test_what_is_wrong_is_still_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "amqps//u:sekret@h/"]) == 2
    assert capsys.readouterr().err.startswith("amqpspec: 'amqps//***@h/' is no target: give amqp://user:password@host")


def test_an_image_is_shown_with_its_digest() -> None:
    remember_logins(["docker:rabbitmq:4@sha256:0a"])
    assert without_logins("no such image: rabbitmq:4@sha256:0a") == "no such image: rabbitmq:4@sha256:0a"


def test_the_plugin_of_pytest_does_not_show_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(): pass")
    for target in ("amqps//u:sekret@h/", "process:u:sekret@h"):
        done = pytester.runpytest_subprocess("--amqp-target", target, timeout=patience(60))
        assert done.ret != 0 and "sekret" not in done.stdout.str() + done.stderr.str()
