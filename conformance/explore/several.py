"""Several worlds, each explored in one process: this one, or as many as there are processors.

The worlds that took longest are begun first. What a world's exploration comes to does not depend on the others.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from amqpspec.conformance.explore.exploration import Bounds, Exploration, Explored, Progress
from amqpspec.conformance.explore.shared import can_be_shared, explore_shared
from amqpspec.conformance.explore.world import World


def explored(
    worlds: Sequence[World], bounds: Bounds, jobs: int = 1, progress: Progress | None = None
) -> Iterator[tuple[World, Explored]]:
    """Each world with what was found in it, as they are done. `progress` is told of worlds explored in this process.
    Raises `SetupFailed`.
    """
    if jobs < 2 or len(worlds) < 2:
        for world in worlds:
            is_shared = jobs > 1 and can_be_shared()
            explore = explore_shared(world, bounds, jobs, progress) if is_shared else None
            yield world, explore or Exploration(world, bounds, progress).explore()
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(worlds)), mp_context=context) as pool:
        begun = {pool.submit(_explore, world, bounds): world for world in sorted(worlds, key=_size, reverse=True)}
        try:
            for done in as_completed(begun):
                yield begun[done], done.result()
        except BaseException:
            for each in begun:
                each.cancel()
            raise


def _explore(world: World, bounds: Bounds) -> Explored:
    return Exploration(world, bounds).explore()


def _size(world: World) -> int:
    """Larger for worlds that take longer."""
    return world.inputs * len(world.commands) * (3 if world.crossing else 1)
