"""The HTML report: one page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from types import MappingProxyType

from jinja2 import Environment, PackageLoader, StrictUndefined

from amqpspec.conformance.profile.profile import choices_in_words
from amqpspec.conformance.verdicts.judgement import Cause, FoundFailure, RunResult
from amqpspec.model.promises.dialect_names import base_of, in_short
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.registry import Requirement
from amqpspec.model.promises.severity import severity_of
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.promises.versions import newer_sentence
from amqpspec.reports.accuracy import accuracy_line, accuracy_rows, seconds_text
from amqpspec.reports.accuracy_plot import accuracy_plot
from amqpspec.reports.as_known import (
    STANDING_SIGNS,
    broker_as_known,
    defect_entries,
    headline_as_known,
    new_as_known,
)
from amqpspec.reports.compatibility import COMPATIBILITY_HEADING, compatibility_line, otherwise
from amqpspec.reports.extent import MOST_RULES, extent_lines
from amqpspec.reports.listing import AS_RABBITMQ_HEADING, AS_RABBITMQ_HINT, Heading, failing, heading_of
from amqpspec.reports.one_cause import in_words, shown_together
from amqpspec.reports.overview import (
    ACCEPTED_SIGN,
    CUT_SIGN,
    SIGNS,
    VERDICTS,
    WARNING_SIGN,
    Entry,
    again,
    areas,
    entries,
    headline,
    notes,
    severity_line,
    whole_lines,
)
from amqpspec.reports.sources import source_parts
from amqpspec.reports.text import plural, visible

#: Longer ladders of frames are folded.
MOST_OPEN = 24


def page_environment() -> Environment:
    """What renders a page: template, style and script are in `reports/templates`."""
    environment = Environment(
        loader=PackageLoader("amqpspec.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Every value that is printed passes here, so that nothing a broker sent can hide itself.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters["css"] = lambda verdict: str(verdict).replace(" ", "-")
    environment.globals.update(plural=plural, in_short=in_short)
    return environment


def look(entry: Entry) -> str:
    """The class of the style sheet: by the verdict against the promise, and whether that fails the run."""
    if entry.is_accepted:
        return "accepted"
    if entry.is_cut_short:
        return "cut-short"
    return "warning" if entry.is_warning else str(entry.verdict).replace(" ", "-")


def render_html(
    result: RunResult,
    registry: Mapping[str, Requirement] | None = None,
    replays: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The report as one HTML page. `replays`: by identity the command that shows a failure again."""
    environment = page_environment()

    def causes_of(found: FoundFailure) -> list[Cause]:
        mine = [cause for cause in result.causes if cause.failure == found.failure.identity]
        return [cause for cause in mine if not cause.is_habit]

    environment.globals.update(
        again=again, notes=notes, seconds_text=seconds_text, source_parts=source_parts, causes_of=causes_of,
        in_words=in_words,
    )  # fmt: skip
    listed = entries(result, registry)
    together = {each.first.failure.identity: each for each in shown_together(result)}
    under = {other.failure.identity for each in together.values() for other in each.others}

    def gravest(entry: Entry) -> FoundFailure | None:
        """Of those that are not shown under another one."""
        return next((each for each in entry.failures if each.failure.identity not in under), None)

    def is_as_rabbitmq(entry: Entry) -> bool:
        """Is all that is wrong there as RabbitMQ does?"""
        return all(heading_of(found, result) is Heading.AS_RABBITMQ for found in entry.failures)

    def heading(entry: Entry) -> str:
        first = shown[entry.id]
        return "not seen again" if first.not_seen_again else severity_of(first.failure)

    is_new = {entry.id: not (entry.differs or entry.is_excused) for entry in listed}
    worst = failing(listed, result)
    shown = {entry.id: first for entry in worst if (first := gravest(entry)) is not None}
    new = [entry for entry in worst if is_new[entry.id] and entry.id in shown]
    new.sort(key=lambda entry: shown[entry.id].order)
    by_severity = [(words, list(some)) for words, some in groupby(new, heading)]
    return environment.get_template("report.html").render(
        result=result,
        target=result.target,
        headline=headline(result),
        headline_as_known=headline_as_known(result),
        new_as_known=new_as_known(result),
        broker_as_known=broker_as_known(result),
        newer=newer_sentence(result.target.judged_version),
        extent=extent_lines(result),
        choices=choices_in_words(result.target.dialect),
        is_set=base_of(result.target.dialect) != AMQP_0_9_1.name,
        defects=defect_entries(result),
        standing_signs=STANDING_SIGNS,
        plot=accuracy_plot(result),
        accuracy_line=accuracy_line(result),
        accuracy_rows=accuracy_rows(result),
        areas=areas(listed),
        entries=listed,
        failing=worst,
        new_by_severity=by_severity,
        accepted=[entry for entry in worst if not (is_new[entry.id] or is_as_rabbitmq(entry))],
        as_rabbitmq=[entry for entry in worst if is_as_rabbitmq(entry)],
        as_rabbitmq_heading=AS_RABBITMQ_HEADING,
        as_rabbitmq_hint=AS_RABBITMQ_HINT,
        compatibility_heading=COMPATIBILITY_HEADING,
        compatibility_line=compatibility_line(result.compatibility) if result.compatibility else "",
        otherwise=otherwise(result.compatibility),
        together=together,
        under=under,
        only_under={entry.id for entry in worst} - shown.keys(),
        title_of={entry.id: entry.title for entry in listed},
        most_open=MOST_OPEN,
        most_rules=MOST_RULES,
        replays={found.failure.identity: replays.get(found.failure.identity, "") for found in result.failures},
        severities=severity_line(result),
        whole=whole_lines(result),
        summary=[(verdict, result.summary[verdict], result.summary_as_known[verdict]) for verdict in VERDICTS],
        signs=SIGNS,
        warning_sign=WARNING_SIGN,
        accepted_sign=ACCEPTED_SIGN,
        cut_sign=CUT_SIGN,
        look=look,
        looks={look(entry) for entry in listed},
        overall={0: Verdict.PASS, 1: Verdict.FAIL, 3: Verdict.INCONCLUSIVE, 4: Verdict.INCONCLUSIVE}[result.exit_code],
    )
