"""One world explored by several processes: the same is found as by one."""

from __future__ import annotations

import pytest

from amqpspec.conformance.explore.exploration import MOST_TOLD, Bounds, Exploration, Explored
from amqpspec.conformance.explore.shared import can_be_shared, explore_shared
from amqpspec.conformance.explore.world import World
from tests.conformance.explore.small_worlds import CANCELLED, CONFIRMED, GOT
from tests.conformance.explore.test_planted import PLANTED, Planted

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(not can_be_shared(), reason="a process cannot copy itself here"),
]

_WAYS = Bounds(ways=4)


def shared(world: World, bounds: Bounds = _WAYS, parts: int = 2) -> Explored:
    return explore_shared(world, bounds, parts)


@pytest.mark.parametrize(("small", "parts"), [(CONFIRMED, 2), (GOT, 3)])
def test_several_find_what_one_finds(small: World, parts: int) -> None:
    alone, several = Exploration(small, _WAYS).explore(), shared(small, parts=parts)
    assert not several.violations
    for name in ("states", "variants", "transitions", "depth", "exercised", "kinds", "beyond", "unexplored"):
        assert getattr(several, name) == getattr(alone, name), name


def test_a_world_that_is_too_small_is_not_shared() -> None:
    assert shared(CANCELLED, parts=50).states == Exploration(CANCELLED, _WAYS).explore().states


def test_a_bound_is_told() -> None:
    found = shared(GOT, Bounds(states=150, ways=4))
    assert found.stopped_by == "150 states"
    assert found.unexplored > 0
    assert found.variants >= 150


def test_progress_is_told() -> None:
    told: list[tuple[object, ...]] = []
    explore_shared(GOT, _WAYS, 2, lambda *each: told.append(each))
    states = [each[1] for each in told]
    assert told[0][0] == "small"
    assert states == sorted(states)


@pytest.mark.parametrize(
    "mistake", [each for each in PLANTED if each.property in ("same", "comes to rest", "confirms")],
    ids=lambda each: each.mistake,
)
def test_what_is_planted_is_found(mistake: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equal states with other successors one may be in one part, the other in the other."""
    mistake.plant(monkeypatch)
    monkeypatch.setattr("amqpspec.conformance.explore.shared._WAITING", 2)
    found = [each for each in shared(mistake.world).violations if each.name == mistake.property]
    assert 0 < len(found) <= MOST_TOLD
    alone = Exploration(mistake.world, _WAYS).explore().violations
    assert min(len(each.path) for each in found) == min(
        len(each.path) for each in alone if each.name == mistake.property
    )
