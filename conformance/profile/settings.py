"""Measuring how RabbitMQ is set: like the choices of the text, by commands whose trace is judged under each value.

While they are carried out they are judged by the value under which least is owed: nothing is waited for in vain.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from amqpspec.conformance.profile.carrying_out import CarryingOut
from amqpspec.conformance.profile.measuring import judged_by, rows_by_name, seen_of
from amqpspec.conformance.profile.profile import SeenChoice
from amqpspec.conformance.profile.shows import shows_of_settings
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.conformance.verdicts.judgement import SuiteError
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects.settled import with_settings
from amqpspec.model.promises.settings import SETTINGS
from amqpspec.model.promises.verdict import Verdict


def worth_measuring(dialect: Dialect) -> list[str]:
    """The settings of which a run has to know; a run costs nothing for the others."""
    return [name for name, setting in SETTINGS.items() if setting.is_worth_measuring(dialect.name)]


def measure_settings(
    target: TargetUnderTest,
    dialect: Dialect,
    names: Collection[str] = tuple(SETTINGS),
    start_again: Callable[[], TargetUnderTest] | None = None,
) -> tuple[tuple[SeenChoice, ...], tuple[SuiteError, ...]]:
    """What was seen of these settings on a target of that dialect, and errors of this suite. Raises `TargetError` when
    it is lost.
    """
    files = {name: file for name, file in shows_of_settings().items() if name in names}
    seen: list[SeenChoice] = []
    with tempfile.TemporaryDirectory(prefix="amqpspec-") as directory:
        place = Path(directory) / "settings.jsonl"
        with TraceWriter(place) as trace:
            carrying_out = CarryingOut(target, trace, start_again)
            bases = {name: with_settings(dialect, {name: SETTINGS[name].values[0].name}) for name in files}
            done = carrying_out.carry_out(files, bases)
        rows = rows_by_name(place)
    errors: list[SuiteError] = carrying_out.errors
    for name, setting in SETTINGS.items():
        if name in done:
            own = _as_far_as_waited_for(rows[name])
            judged = {value: judged_by(own, with_settings(dialect, {name: value.name})) for value in setting.values}
            seen.append(seen_of(setting, own, judged, errors, dialect))
    return tuple(seen), tuple(errors)


def _as_far_as_waited_for(rows: Sequence[TraceRow]) -> Sequence[TraceRow]:
    """Without what follows the last frame that came, where the first value did not explain all: nobody has waited for
    more, so that its absence says nothing.
    """
    if rows[-1]["verdict"] != Verdict.FAIL:
        return rows
    received = [place for place, row in enumerate(rows) if row["kind"] == "frame" and row["direction"] == "received"]
    return [*rows[: received[-1] + 1], rows[-1]] if received else rows


def as_seen(dialect: Dialect, seen: Collection[SeenChoice]) -> Dialect:
    """The dialect with the settings that were seen and are not its own."""
    settings = {each.choice.name: each.value.name for each in seen if each.value is not None}
    told = {name: value for name, value in settings.items() if SETTINGS[name].is_told(dialect.name, value)}
    return with_settings(dialect, told)
