"""`amqpspec explore`: every state of small worlds of the model, and whether its properties hold there."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from amqpspec.command_line.exit_codes import CONFORMS, DEVIATES, INCONCLUSIVE
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.explore.counterexample import command_file, file_name
from amqpspec.conformance.explore.exploration import Bounds, Explored, Violation
from amqpspec.conformance.explore.properties import sentence_of, sentences
from amqpspec.conformance.explore.requirements import asleep
from amqpspec.conformance.explore.scenario_worlds import scenario_worlds
from amqpspec.conformance.explore.several import explored
from amqpspec.conformance.explore.steps import SetupFailed
from amqpspec.conformance.explore.world import World, read_world, worlds
from amqpspec.reports.text import plural, visible

#: Most states of a scenario that is explored as a world.
STATES_OF_SCENARIO = 200


def execute(options: argparse.Namespace, console: Console) -> int:
    if options.properties:
        width = max(map(len, sentences()))
        console.file.writelines(f"{name:<{width}}  {sentence}\n" for name, sentence in sentences().items())
        return CONFORMS
    chosen = _chosen(options.world)
    if options.scenarios:
        chosen += scenario_worlds(STATES_OF_SCENARIO)
    if options.list:
        width = max(len(world.name) for world in chosen)
        console.file.writelines(f"{world.name:<{width}}  {world.title}\n" for world in chosen)
        return CONFORMS
    bounds = Bounds(options.states, options.seconds or 0.0, options.memory)
    began = time.monotonic()
    found: list[tuple[World, Explored]] = []
    progress = None if options.quiet else _Progress(console)
    try:
        for world, result in explored(chosen, bounds, options.jobs, progress):
            found.append((world, result))
            _tell(result, console, options.quiet)
    except SetupFailed as error:
        raise UsageError(str(error)) from None
    violations = [(world, each) for world, result in found for each in result.violations]
    _tell_violations(violations, options.out, console)
    _sum_up([result for _, result in found], time.monotonic() - began, console)
    if options.requirements:
        _tell_requirements([result for _, result in found], {world.dialect for world in chosen}, console)
    if violations:
        return DEVIATES
    return INCONCLUSIVE if any(result.transitions == 0 for _, result in found) else CONFORMS


def _chosen(names: Sequence[str]) -> list[World]:
    """The worlds of those files and names; all that come with the project if there are none. Raises `UsageError`."""
    if not names:
        return worlds()
    chosen: list[World] = []
    for name in names:
        if name.endswith(".toml"):
            chosen += read_world(Path(name))
            continue
        named = [world for world in worlds() if world.name == name or world.name.split(" ", 1)[0] == name]
        if not named:
            raise UsageError(f"{name}: no such world; amqpspec explore --list shows those that there are")
        chosen += named
    return chosen


class _Progress:
    """Tells how far a world is, a line at a time, where somebody looks."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told = 0.0

    def __call__(self, world: str, states: int, waiting: int, transitions: int, depth: int) -> None:
        if self._console.is_terminal and time.monotonic() - self._told > 1:
            self._told = time.monotonic()
            text = f"{world}: {states:,} states, {waiting:,} wait, {transitions:,} transitions, depth {depth}"
            self._console.print(Text(text, style="dim"))


def _tell(result: Explored, console: Console, is_quiet: bool) -> None:
    if is_quiet and not result.violations:
        return
    parts = [
        f"{plural(result.states, 'state')}", f"{plural(result.transitions, 'transition')}", f"depth {result.depth}",
        f"{result.seconds:.1f} s",
    ]  # fmt: skip
    if result.unexplored:
        parts.append(f"stopped at {result.stopped_by}: {plural(result.unexplored, 'state')} not gone on from")
    broken = sorted({each.name for each in result.violations})
    parts.append(f"violated: {', '.join(broken)}" if broken else "all properties hold")
    console.print(Text(f"{result.world}: {', '.join(parts)}", style="red" if broken else ""), soft_wrap=True)


def _tell_violations(violations: Sequence[tuple[World, Violation]], out: Path | None, console: Console) -> None:
    numbers: Counter[tuple[str, str]] = Counter()
    for world, violation in violations:
        numbers[(violation.world, violation.name)] += 1
        text = command_file(world, violation)
        said = f"{violation.name} in {violation.world}: {sentence_of(violation.name)}"
        console.print(Text(visible(said), style="red"))
        console.print(Text(visible(f"    {violation.what.splitlines()[0]}")), soft_wrap=True)
        if out is None:
            console.print(Text("".join(f"    {visible(line)}\n" for line in text.splitlines())), soft_wrap=True)
            continue
        path = out / file_name(violation, numbers[(violation.world, violation.name)])
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        console.print(Text(visible(f"    amqpspec replay {path}")), soft_wrap=True)


def _sum_up(results: Sequence[Explored], seconds: float, console: Console) -> None:
    states, transitions = sum(each.states for each in results), sum(each.transitions for each in results)
    ways, left = sum(each.ways for each in results), [each for each in results if each.unexplored]
    text = f"{plural(len(results), 'world')}: {states:,} states, {transitions:,} transitions in {seconds:.0f} s"
    console.print(Text(f"{text}; {ways:,} ways were judged and gone again without copies"), soft_wrap=True)
    if left:
        names = ", ".join(each.world for each in left)
        console.print(Text(f"not to their end: {names}", style="yellow"), soft_wrap=True)
    broken = sorted({each.name for result in results for each in result.violations})
    if broken:
        console.print(Text(f"violated: {', '.join(broken)}", style="red"))
    else:
        console.print(Text(f"all {len(sentences())} properties hold in every state that was explored"))


def _tell_requirements(results: Sequence[Explored], dialects: Collection[str], console: Console) -> None:
    """Which made no difference in any world."""
    exercised = {name for result in results for name in result.exercised}
    silent = asleep(exercised, dialects)
    console.print(Text(f"{plural(len(exercised), 'requirement')} made a difference, these in no world:"))
    console.print(Text(", ".join(silent) or "none"), soft_wrap=True)
