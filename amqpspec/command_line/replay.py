"""`amqpspec replay`: a command file on a target, with its frames and the verdict."""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.text import Text

from amqpspec.command_line.exit_codes import CONFORMS, DEVIATES, INCONCLUSIVE
from amqpspec.command_line.output_files import require_place_of_trace
from amqpspec.command_line.run_directory import held, make_directory
from amqpspec.command_line.targets import target_under_test
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.failures.ladder import HANDSHAKE
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_file import read_command_file
from amqpspec.conformance.language.names import plain
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.events import CommandIssued, Event, EventObserved
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, is_harmless_only
from amqpspec.conformance.verdicts.minor import what_it_is, why_minor
from amqpspec.model.defects.known_defects import is_as_known, strength_of
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Verdict, worst
from amqpspec.model.promises.versions import newer_sentence
from amqpspec.model.protocol.methods import OPERATOR
from amqpspec.reports.stored_run import REPORT
from amqpspec.reports.text import visible


def execute(options: argparse.Namespace, console: Console) -> int:
    files = read_command_file(options.file)
    if options.out:
        make_directory(options.out)
        require_place_of_trace(options.out / "trace.jsonl")
        if (options.out / REPORT).exists():
            raise UsageError(f"{options.out}: holds a run, whose trace would be lost; give replay another directory")
    shown = _Shown(None if options.quiet else console)

    judgements = []
    with ExitStack() as stack:
        directory = options.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="amqpspec-")))
        if options.out:
            stack.enter_context(held(options.out))
        target = stack.enter_context(target_under_test(options))
        trace = stack.enter_context(TraceWriter(directory / "trace.jsonl"))
        for file in files:
            name = " ".join(filter(None, ("replay", file.name, file.queue_type)))
            with Session(target, trace, name, requirement=file.requirement, listeners=(shown,)) as session:
                for command in file.commands:
                    sent = shown.sent
                    session.run(command)
                    if command.connection != OPERATOR and shown.sent == sent:
                        shown.note_unsent(command, is_over=session.over)
                judgement = session.finish()
            judgements.append(judgement)
            _print(judgement, file.queue_type, console)
    # what is only arguable or minor is told, and fails nothing, as in `amqpspec run`
    verdict = worst(Verdict.PASS if is_harmless_only(each) else each.verdict for each in judgements)
    return {Verdict.FAIL: DEVIATES, Verdict.INCONCLUSIVE: INCONCLUSIVE}.get(verdict, CONFORMS)


class _Shown:
    """Prints commands and frames as they come, unless there is no console."""

    def __init__(self, console: Console | None) -> None:
        self._console = console
        #: frames, those of the suite's own among them
        self.sent = 0
        self._issued = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, CommandIssued):
            self._issued = event.text
            self._say(event.text, "bold")
        elif isinstance(event, EventObserved):
            self.sent += event.event.sent
            if event.event.name not in HANDSHAKE:
                self._say(visible("    " + plain(str(event.event))), "" if event.event.sent else "cyan")

    def note_unsent(self, command: Command, is_over: bool) -> None:
        """Nothing was sent for the command."""
        if is_over and self._issued != str(command):
            self._say(str(command), "bold")
        why = "nothing more is judged in this sequence" if is_over else "its connection is closed, or open already"
        self._say(f"    was not sent: {why}", "yellow")

    def _say(self, text: str, style: str) -> None:
        if self._console is not None:
            self._console.print(Text(text, style=style))


def _print(judgement: SequenceJudgement, queue_type: str | None, console: Console) -> None:
    registry = requirements()
    for failure in judgement.failures:
        entry = registry.get(failure.requirement)
        console.print(Text(f"{failure.requirement}: {entry.statement if entry else ''}", style="bold red"))
        console.print(Text(visible(f"    after     {failure.command}")))
        console.print(Text(visible(f"    observed  {failure.observed} ({failure.shape}: {failure.detail})")))
        for allowed in failure.allowed:
            console.print(Text(visible(f"    allowed   {allowed}")))
        for line in failure.state:
            console.print(Text(visible(f"    state     {line}")))
        if failure.defect:
            known = is_as_known(failure, judgement.dialect, judgement.version)
            here = judgement.version or judgement.dialect
            who = dialect_named(judgement.dialect).title if known else f"not known of {here}"
            console.print(Text(f"    known as  {failure.defect} ({who})"))
        minor = why_minor(failure, judgement.product, judgement.dialect)
        why = f", {what_it_is(minor)}: {minor}" if minor else ""
        console.print(Text(f"    strength  {strength_of(failure)}{why}"))
    what = f"{judgement.verdict}" + (f": {judgement.reason}" if judgement.reason else "")
    if judgement.failures and all(
        is_as_known(failure, judgement.dialect, judgement.version) for failure in judgement.failures
    ):
        what += ", as known"
    if is_harmless_only(judgement):
        what += ", only arguable or minor"
    if newer := newer_sentence(judgement.version):
        console.print(Text(newer, style="yellow"))
    console.print(Text(what + (f" ({queue_type})" if queue_type else ""), style="bold"))
