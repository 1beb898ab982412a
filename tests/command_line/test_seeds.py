"""Which seed a run has: a known gate searches the same every time, everything else by chance; how to repeat it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from amqpspec.command_line import options
from amqpspec.model.promises.versions import VERIFIED_SEED
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from tests.command_line.test_command_line import Amqpspec, amqpspec, broker, commands_of, url

__all__ = ["amqpspec", "broker"]

SMALL = ("--search-only", "--theme", "publishing", "--sequences", 2, "--steps", 6, "--shrinking-time", 0, "--jobs", 1)
BY_CHANCE = 4711


@pytest.fixture(autouse=True)
def chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "random_seed", lambda: BY_CHANCE)


def seed_in(directory: Path) -> int:
    return int(json.loads((directory / "report.json").read_text())["seed"])


@pytest.mark.parametrize(("words", "seed"), [
    (("--gate", "known"), VERIFIED_SEED),
    (("--gate", "known", "--seed", "random"), BY_CHANCE),
    (("--gate", "known", "--seed", 5), 5),
    (("--gate", "promise"), BY_CHANCE),
    ((), BY_CHANCE),
    (("--seed", "random"), BY_CHANCE),
])  # fmt: skip
def test_the_seed_of_a_run(words: tuple[object, ...], seed: int, amqpspec: Amqpspec, tmp_path: Path) -> None:
    assert amqpspec("run", *SMALL, "--out", "o", *words).code == 0
    assert seed_in(tmp_path / "o") == seed


def test_a_known_gate_searches_the_same_every_time(amqpspec: Amqpspec, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert amqpspec("run", *SMALL, "--gate", "known", "--out", name).code == 0
    assert commands_of(tmp_path / "one") == commands_of(tmp_path / "two") != {}


def test_several_targets_have_one(amqpspec: Amqpspec, tmp_path: Path) -> None:
    for words, seed in ((("--gate", "known"), VERIFIED_SEED), ((), BY_CHANCE)):
        assert amqpspec("run", "embedded", "embedded", *SMALL, *words, "--out", "o").code == 0
        assert {seed_in(each.parent) for each in (tmp_path / "o").glob("*/report.json")} == {seed}


def test_a_run_says_how_to_repeat_it(amqpspec: Amqpspec, broker: EmbeddedBroker, tmp_path: Path) -> None:
    target = url(broker)
    outcome = amqpspec("run", target, *SMALL, "--gate", "known", "--seed", "random", "--out", "one")
    found = re.search(r"^run it again: amqpspec (run .*)$", outcome.out, re.MULTILINE)
    assert found, outcome.out
    assert "Sesame" not in outcome.out
    words = shlex.split(found[1])
    assert words[2:4] == ["--seed", str(BY_CHANCE)]
    assert words[words.index("--gate") :][:2] == ["--gate", "known"]
    assert amqpspec("run", target, *words[2:], "--out", "two").code == 0
    assert commands_of(tmp_path / "one") == commands_of(tmp_path / "two") != {}


def test_other_commands_take_random(amqpspec: Amqpspec, tmp_path: Path) -> None:
    assert amqpspec("diff", "embedded", "embedded", "--only", "ACK-003", "--sequences", 0, "--seed", "random").code == 0
    assert seed_in(tmp_path / "amqpspec-diff" / "one") == BY_CHANCE
    outcome = amqpspec(
        "campaign", "embedded", "--store", "s", "--sequences", 1, "--seed", "random", "--theme", "traffic"
    )
    assert f"seed {BY_CHANCE}" in outcome.out


def test_what_is_no_seed(amqpspec: Amqpspec) -> None:
    amqpspec("run", "--seed", "chance").check_error(2, "'chance' is not a seed (0 or more, or random)")
