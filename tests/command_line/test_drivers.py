"""`--driver`: client libraries in `replay` and `run`, each a column of one page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amqpspec.command_line.entry import main
from amqpspec.targets.drivers import library


def amqpspec(*words: object) -> int:
    return main([str(word) for word in words])


@pytest.mark.parametrize("driver", sorted(library.DISTRIBUTIONS))
def test_replay_through_a_library(driver: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "one.amqp"
    file.write_text("a.1 queue.declare q\na.1 basic.publish q body=m1\na.1 basic.get q\n")
    assert amqpspec("replay", file, "--driver", driver) == 0
    out = capsys.readouterr().out
    assert "a.1 > basic.get queue=q" in out and "a/application.1 < basic.get-ok" in out


def test_what_it_has_no_words_for_is_not_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "one.amqp"
    file.write_text("a.1 queue.declare q nowait\n")
    assert amqpspec("replay", file, "--driver", "pika") == 4
    assert "not applicable for this driver: pika does not send queue.declare with nowait" in capsys.readouterr().out


def test_a_library_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(library.DISTRIBUTIONS, "pika", "no-such-distribution")
    assert amqpspec("run", "--driver", "pika", "--out", tmp_path / "out") == 2
    needs = "--driver pika needs no-such-distribution, which is not installed: pip install 'amqpspec[drivers]'"
    assert capsys.readouterr().err == f"amqpspec: {needs}\n"


def test_what_is_for_one_driver_or_for_the_wire(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "one.amqp"
    file.write_text("a.1 queue.declare q\n")
    assert amqpspec("replay", file, "--driver", "wire,pika") == 2
    store = tmp_path / "store"
    assert amqpspec("campaign", "embedded", "--driver", "wire,pika", "--store", store, "--sequences", 1) == 2
    assert not store.exists()
    assert capsys.readouterr().err == 2 * "amqpspec: --driver wire,pika: several are for `amqpspec run`\n"
    assert amqpspec("profile", "embedded", "--driver", "pika") == 2
    assert "is measured by wire" in capsys.readouterr().err


@pytest.mark.parametrize("names", ["pika,pika", "wire,", "robust"])
def test_names_of_drivers(names: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        amqpspec("run", "--driver", names)
    err = capsys.readouterr().err
    assert ended.value.code == 2 and err.startswith("amqpspec: argument --driver: ") and err.count("\n") == 1


def test_a_campaign_through_a_library_is_judged_again_in_its_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    asked = ("--driver", "pika-select", "--sequences", 2, "--steps", 8, "--seed", 7, "--shrinking-time", 0)
    assert amqpspec("campaign", "embedded", "--store", store, *asked) == 0
    assert list(store.glob("traces/day=*/target=embedded through pika-select *"))
    assert amqpspec("pipeline", "judge", store) == 0
    assert "2 sequences" in capsys.readouterr().out


def test_a_run_through_a_library_goes_into_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What its application was shown is no connection of its own: it was not asked for twice, nor delivered twice."""
    store = tmp_path / "store"
    small = ("--only", "ACK-001", "--sequences", 0, "--jobs", 1, "--store", store, "--out", tmp_path / "out")
    assert amqpspec("run", "embedded", "--driver", "pika", *small) == 0
    assert amqpspec("pipeline", "judge", store) == 0
    capsys.readouterr()
    assert amqpspec("check", "--open", tmp_path / "out") == 0
    assert " failed" not in capsys.readouterr().out.replace(" 0 failed", "")


def test_drivers_are_columns_of_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ("--only", "PUBLISH-007", "--sequences", 0, "--jobs", 1, "--seed", 1, "--shrinking-time", 2)
    assert amqpspec("run", "embedded", "--driver", "wire,pika,aio-pika", *small, "--out", tmp_path / "runs") == 1
    page = (tmp_path / "runs" / "side-by-side.html").read_text()
    assert 'data-states="ppf"' in page or 'data-states="nnf"' in page
    assert "through pika 1." in page and "through aio-pika " in page
    told = json.loads((tmp_path / "runs" / "embedded-aio-pika" / "report.json").read_text())
    [failure] = told["failures"]
    assert failure["requirement"] == "LIBRARY-RETURN" and not failure["reproducer"]
    assert "--driver aio-pika" in capsys.readouterr().out
