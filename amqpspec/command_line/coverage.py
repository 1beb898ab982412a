"""`amqpspec coverage`: in which situations the commands of recorded traces were sent."""

from __future__ import annotations

import argparse

from rich.console import Console

from amqpspec.command_line.exit_codes import CONFORMS, TRACE_UNREADABLE
from amqpspec.command_line.logins import complain
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.coverage.reading import read_visits
from amqpspec.conformance.coverage.visits import Visits
from amqpspec.conformance.recording.capture import is_capture
from amqpspec.conformance.traces.trace import TraceError, read_trace
from amqpspec.reports.coverage_report import coverage_as_json, print_coverage


def execute(options: argparse.Namespace, console: Console) -> int:
    visits = Visits()
    unreadable: list[TraceError] = []
    for path in options.traces:
        if is_capture(path):
            raise UsageError(f"{path}: a network capture, of which nobody knows what the queues hold")
        try:
            read_visits(read_trace(path), visits)
        except TraceError as error:
            unreadable.append(error)
    if visits.sequences:
        if options.json:
            console.file.write(coverage_as_json(visits))
        else:
            print_coverage(console, visits)
    elif not unreadable:
        what = "only recordings of applications, of which nobody knows what the queues hold"
        raise TraceError(f"{', '.join(map(str, options.traces))}: {what if visits.left_out else 'no sequence in it'}")
    for each in unreadable:
        complain(str(each))
    return TRACE_UNREADABLE if unreadable else CONFORMS
