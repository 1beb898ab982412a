"""The HTML report: one page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping

from jinja2 import Environment, PackageLoader, StrictUndefined

from amqpspec.conformance.profile.profile import choices_in_words
from amqpspec.conformance.verdicts.judgement import RunResult
from amqpspec.model.promises.dialect_names import in_short
from amqpspec.model.promises.registry import Requirement
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
from amqpspec.reports.extent import extent_lines
from amqpspec.reports.overview import (
    SIGNS,
    VERDICTS,
    again,
    areas,
    entries,
    failing,
    headline,
    notes,
    severity_line,
    whole_lines,
)
from amqpspec.reports.text import plural, visible


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


def render_html(result: RunResult, registry: Mapping[str, Requirement] | None = None) -> str:
    """The report as one HTML page."""
    environment = page_environment()
    environment.globals.update(again=again, notes=notes, seconds_text=seconds_text)
    listed = entries(result, registry)
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
        defects=defect_entries(result),
        standing_signs=STANDING_SIGNS,
        plot=accuracy_plot(result),
        accuracy_line=accuracy_line(result),
        accuracy_rows=accuracy_rows(result),
        areas=areas(listed),
        entries=listed,
        failing=failing(listed),
        severities=severity_line(result),
        whole=whole_lines(result),
        summary=[(verdict, result.summary[verdict], result.summary_as_known[verdict]) for verdict in VERDICTS],
        signs=SIGNS,
        overall={0: Verdict.PASS, 1: Verdict.FAIL, 3: Verdict.INCONCLUSIVE, 4: Verdict.INCONCLUSIVE}[result.exit_code],
    )
