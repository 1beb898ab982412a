"""`amqpspec replay`: a command file on a target, with its frames and the verdict."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from amqpspec.command_line.exit_codes import CONFORMS, DEVIATES, INCONCLUSIVE
from amqpspec.command_line.output_files import require_place_of_trace
from amqpspec.command_line.run_directory import held, make_directory, not_left_empty
from amqpspec.command_line.suite_errors import kept, tell_errors
from amqpspec.command_line.targets import StartedTarget
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.failures.ladder import HANDSHAKE
from amqpspec.conformance.language.command import EXPECT, Command
from amqpspec.conformance.language.command_file import CommandFile, read_command_file
from amqpspec.conformance.language.faults import breaks_broker
from amqpspec.conformance.language.names import plain
from amqpspec.conformance.losses import Losses, given_up
from amqpspec.conformance.scenarios.applicability import no_faults, not_said
from amqpspec.conformance.scenarios.scenario_files import all_scenarios, own_scenarios, rule_of
from amqpspec.conformance.session.command_sequence import CommandSequence
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.events import CommandIssued, Event, EventObserved
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, SuiteError, is_harmless_only
from amqpspec.conformance.verdicts.minor import AS_RABBITMQ, RECOMMENDED, what_it_is, why_minor
from amqpspec.model.defects.known_defects import is_as_known, strength_of
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.registry import IDENTIFIER, requirement, requirements, with_own
from amqpspec.model.promises.verdict import Verdict, worst
from amqpspec.model.promises.versions import newer_sentence
from amqpspec.model.protocol.methods import OPERATOR
from amqpspec.reports.stored_run import REPORT
from amqpspec.reports.text import plural, visible
from amqpspec.targets.brokers.health import check_alive
from amqpspec.targets.errors import TargetError, TargetUnreachable


def execute(options: argparse.Namespace, console: Console) -> int:
    with own_scenarios(options.scenarios), not_left_empty(options.out) if options.out else nullcontext():
        return _execute(options, console)


def _execute(options: argparse.Namespace, console: Console) -> int:
    files = _files(options.file)
    rules = [rule_of(each) for each in files if each.severity and each.requirement not in requirements()]
    with with_own(rules[:1]):
        return _replayed(files, options, console)


def _files(named: Path) -> list[CommandFile]:
    """Those of a file, or of a requirement by its identifier where there is no such file. Raises `CommandFileError`."""
    id = str(named).upper()
    if named.exists() or not IDENTIFIER.fullmatch(id):
        return read_command_file(named)
    found = [each for each in all_scenarios() if each.requirement == id]
    if not found:
        requirement(id)
        raise UsageError(f"{id} has no scenario: the search and other scenarios exercise it")
    return found


def _replayed(files: Sequence[CommandFile], options: argparse.Namespace, console: Console) -> int:
    if options.out:
        make_directory(options.out)
        require_place_of_trace(options.out / "trace.jsonl")
        if (options.out / REPORT).exists():
            raise UsageError(f"{options.out}: holds a run, whose trace would be lost; give replay another directory")
    shown = _Shown(None if options.quiet else console)

    judgements: list[SequenceJudgement] = []
    lost: str | None = None
    served: bool | None = None
    with ExitStack() as stack:
        directory = options.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="amqpspec-")))
        if options.out:
            stack.enter_context(held(options.out))
        keeps_data = any(breaks_broker(each.commands) for each in files)
        started = stack.enter_context(StartedTarget(options, keeps_data=keeps_data, judged_by=files[0].judged_by))
        trace = stack.enter_context(TraceWriter(directory / "trace.jsonl"))
        with suppress(TargetError):  # the sequence finds out what it is that does not work
            served = check_alive(started.target.address)
        for file in files:
            if why := not_said(file, started.target) or no_faults(file, started.target):
                console.print(Text(f"{file.name or options.file}: {why}", style="yellow"), soft_wrap=True)
                continue
            try:
                judgement = _carried_out(file, started, trace, shown, served)
            except _Lost as error:
                lost = str(error)
                judgement = error.judgement
            judgements.append(judgement)
            shown.flush()
            _print(judgement, file.queue_type, console)
            if judgement.suite_error is not None:
                to_send = [options.file, trace.path if options.out else kept(trace.path)]
                suite_error = SuiteError(judgement.sequence, judgement.suite_error, tuple(map(str, file.commands)))
                tell_errors([suite_error], to_send, None if options.quiet else console)
            if lost is not None:
                break
    if lost is not None:
        left = len(files) - len(judgements)
        raise TargetUnreachable(lost + (f"; {plural(left, 'sequence')} not carried out" if left else ""))
    if not judgements:
        return INCONCLUSIVE
    # what is only arguable or minor is told, and fails nothing, as in `amqpspec run`
    verdict = worst(Verdict.PASS if is_harmless_only(each) else each.verdict for each in judgements)
    return {Verdict.FAIL: DEVIATES, Verdict.INCONCLUSIVE: INCONCLUSIVE}.get(verdict, CONFORMS)


class _Lost(Exception):
    """The target ended, or answers nobody any more; one line. `judgement` says so as a failure."""

    def __init__(self, reason: str, judgement: SequenceJudgement) -> None:
        super().__init__(reason)
        self.judgement = judgement


def _carried_out(
    file: CommandFile, started: StartedTarget, trace: TraceWriter, shown: _Shown, served: bool | None
) -> SequenceJudgement:
    """What was found. `served`: was a fresh connection served at the beginning? None: there was no answer.

    Raises `_Lost`: then what was seen while the target ended is no other failure.
    """
    target = started.target
    name = " ".join(filter(None, ("replay", file.name, file.queue_type)))
    begun: list[Command] = []
    judgement: SequenceJudgement | None = None
    try:
        with Session(
            target, trace, name, requirement=file.requirement, planned=file.commands, listeners=(shown,)
        ) as session:
            for command in file.commands:
                sent = shown.sent
                if not session.over:
                    begun.append(command)
                session.run(command)
                if command.connection not in (OPERATOR, EXPECT) and shown.sent == sent:
                    shown.note_unsent(command, is_over=session.over)
            judgement = session.finish()
        judgement = session.finish()  # what was raised when it ended is in it
        if served is not None:
            check_alive(target.present_address, has_served=served)
    except TargetError as error:
        reason = str(error)
        try:
            check_alive(target.present_address, has_served=bool(served))
        except TargetError as still:
            reason = str(still)
        else:
            if judgement is not None:
                return judgement  # it was slow
            raise  # the operator, or one connection
        sequence = CommandSequence(name, tuple(file.commands), requirement=file.requirement)
        # it was served after all commands, and no more once connections were closed
        is_ended = judgement is not None and judgement.verdict is Verdict.PASS
        failure = Losses().note(reason, started.last_lines(), sequence, begun, is_ended=is_ended)
        lost = replace(given_up(sequence, failure, target), failures=(failure,), verdict=Verdict.FAIL)
        raise _Lost(f"the target was lost in {name}: {reason}", lost) from error
    return judgement


class _Shown:
    """Prints commands and frames as they come, unless there is no console."""

    def __init__(self, console: Console | None) -> None:
        self._console = console
        #: frames, those of the suite's own among them
        self.sent = 0
        self._issued = ""
        #: the last question and its answer, and how often the same came again since; what may be the next time of it
        self._asked, self._answered, self._again, self._held = "", "", 0, False

    def __call__(self, event: Event) -> None:
        if isinstance(event, CommandIssued):
            self.flush()
            self._issued = event.text
            self._say(event.text, "bold")
        elif isinstance(event, EventObserved):
            self.sent += event.event.sent
            if event.event.name not in HANDSHAKE:
                self._frame(visible("    " + plain(str(event.event))), event.event.sent)

    def _frame(self, text: str, is_sent: bool) -> None:
        """A question that is asked again and again until another answer comes is shown once."""
        if is_sent and self._answered and text == self._asked and not self._held:
            self._held = True
            return
        if not is_sent and self._held and text == self._answered:
            self._held = False
            self._again += 1
            return
        asked = self._asked
        self.flush()
        self._say(text, "" if is_sent else "cyan")
        self._asked, self._answered = (text, "") if is_sent else (asked, text)

    def flush(self) -> None:
        """Say what was kept back."""
        if self._again:
            self._say(f"    asked {plural(self._again, 'time')} more, with the same answer", "dim")
        if self._held:
            self._say(self._asked, "")
        self._asked, self._answered, self._again, self._held = "", "", 0, False

    def note_unsent(self, command: Command, is_over: bool) -> None:
        """Nothing was sent for the command."""
        self.flush()
        if is_over and self._issued != str(command):
            self._say(str(command), "bold")
        ended = "nothing more is judged in this sequence"
        why = ended if is_over else "its connection is closed, open already, or cut off"
        self._say(f"    was not sent: {why}", "yellow")

    def _say(self, text: str, style: str) -> None:
        if self._console is not None:
            self._console.print(Text(text, style=style))


def _without_harm(judgement: SequenceJudgement, what: str) -> str:
    """What is said of a sequence that fails nothing. One in which all is done that must be done has passed."""
    minor = {why_minor(failure, judgement.product, judgement.dialect) for failure in judgement.failures}
    if minor == {RECOMMENDED}:
        return f"{Verdict.PASS}, with {plural(len(judgement.failures), 'warning')}: only recommended"
    if minor == {AS_RABBITMQ}:
        return f"{what}, {AS_RABBITMQ}, which fails nothing"
    return f"{what}, only arguable or minor"


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
        what = _without_harm(judgement, what)
    if newer := newer_sentence(judgement.version):
        console.print(Text(newer, style="yellow"))
    console.print(Text(what + (f" ({queue_type})" if queue_type else ""), style="bold"))
