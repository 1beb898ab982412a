"""What belongs to nobody any more is known by its owner, a process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from amqpspec.targets.brokers.owner import OWNER, is_gone, labels, owner


def _owner_elsewhere(more: str = "") -> subprocess.Popen[str]:
    program = f"from amqpspec.targets.brokers.owner import owner; print(owner(), flush=True); {more}"
    return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_who_lives_owns() -> None:
    assert labels()[OWNER] == owner() != "" and not is_gone(owner())
    with _owner_elsewhere("input()") as process:
        assert process.stdout is not None
        assert not is_gone(process.stdout.readline().strip())
        process.communicate("\n")


def test_who_has_ended_owns_nothing() -> None:
    with _owner_elsewhere() as process:
        said = process.communicate()[0].strip()
    assert is_gone(said)


@pytest.mark.parametrize("place", [0, 1, 3])
def test_the_same_number_elsewhere_is_another_process(place: int) -> None:
    words = owner().split()
    words[place] = "9"
    assert is_gone(" ".join(words)) is (place == 3)


@pytest.mark.parametrize("text", ["", "1", "a b c d"])
def test_what_cannot_be_read_is_left_alone(text: str) -> None:
    assert not is_gone(text)
