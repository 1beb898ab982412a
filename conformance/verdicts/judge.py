"""Judging one sequence: the same code live, offline and in bulk.

`SequenceJudge` is fed what goes into the trace, in its order; `judge` feeds it the rows of a recorded sequence. What is
raised in rules or acceptor ends the judging of that sequence, which is undecided, and goes no further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from amqpspec.conformance.language.names import plain, plain_failure
from amqpspec.conformance.traces.trace_row import OPEN, TraceError, TraceRow, row_event
from amqpspec.conformance.verdicts.as_rabbitmq import Steps, is_asked, marked
from amqpspec.conformance.verdicts.blame import blamed, why_not_followed
from amqpspec.conformance.verdicts.consequences import as_reported
from amqpspec.conformance.verdicts.every_connection import is_judged_elsewhere
from amqpspec.conformance.verdicts.expectations import Expectations, is_expectation
from amqpspec.conformance.verdicts.ill_formed import raise_if_ill_formed
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, undecided
from amqpspec.conformance.verdicts.library import LibraryJudge
from amqpspec.conformance.verdicts.minor import is_harmless
from amqpspec.conformance.verdicts.open_judge import OpenSequenceJudge
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.judging.acceptor import Acceptor, lawful_acceptor
from amqpspec.model.judging.acceptor_questions import AcceptorQuestions
from amqpspec.model.judging.questions import Questions
from amqpspec.model.promises.dialects import UnknownDialect, dialect_named
from amqpspec.model.promises.registry import suite_requirements
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.model.promises.versions import RABBITMQ, judged_version
from amqpspec.model.protocol.methods import HeaderEvent, SocketEvent, TraceEvent
from amqpspec.model.rules.connection.handshake_content import HEADER_0_9_1
from amqpspec.targets.drivers.application import is_of_application
from amqpspec.targets.drivers.library import is_robust
from amqpspec.targets.suite_error import line_of, suite_error_in

#: `acceptor_for`, or what makes others in its place.
MakesAcceptor = Callable[..., Acceptor]


class SequenceJudge:
    """The judge of the sequence that `start` (a row of kind "start") begins.

    `acceptor`: makes what judges the frames. `expected`: how many lines that expect something are to come, as far as is
    known. Raises `TraceError` for a dialect that does not exist.
    """

    def __init__(self, start: TraceRow, acceptor: MakesAcceptor = acceptor_for, expected: int = 0) -> None:
        try:
            dialect = dialect_named(start["dialect"])
            self.acceptor = acceptor(
                dialect,
                virtual_host=start.get("virtual_host", "/"),
                own_user=start.get("user") or "",
                product=start.get("product") or RABBITMQ,
            )
        except UnknownDialect as error:
            raise TraceError(f"the sequence {start['sequence']!r}: {error}") from None
        self.questions: Questions = AcceptorQuestions(self.acceptor)
        self._start = start
        self._frames = 0
        self._in_flight: str | None = None
        #: the client's last frame on a channel asks for the numbers of a queue
        self._asks_for_numbers = False
        #: queues whose numbers were asked for since the command: of others silence says nothing, as where a session has
        #: waited for what another dialect owes
        self._asked: set[str] = set()
        #: how often requirements had made a difference before the command that is being carried out
        self._before: Mapping[str, int] = {}
        #: connections whose beginning was recorded
        self._begun: set[str] = set()
        #: why the sequence could not be judged to its end, as its end row says; the other rows do not show that
        self._undecided: str | None = None
        #: judges the client library that carried the commands; None: the suite's own client did
        self._library = LibraryJudge(is_robust(start["driver"])) if start.get("driver") else None
        #: what lines of its own expect; None: none has come yet
        self.expectations: Expectations | None = None
        self._expected = expected
        #: frames since the last command as long as there is no such line, each with what the model had against it
        self._lately: list[tuple[TraceEvent | None, Sequence[Failure]]] = []
        self._is_of_own_rule = start.get("requirement") not in (None, *suite_requirements())
        #: what was done, to ask what RabbitMQ does there; None: nobody asks
        is_text = is_asked(dialect, start.get("product") or "")
        self._steps: Steps[SequenceJudge] | None = Steps() if is_text else None

    @property
    def failures(self) -> Sequence[Failure]:
        """What was found so far, with the names that the broker knows."""
        told = as_reported(self.acceptor.failures, self.acceptor.dialect)
        found = [
            reported for each, reported in told if reported is not None and not is_judged_elsewhere(self._start, each)
        ]
        if self._library is not None:
            found += self._library.failures
        if self.expectations is not None:
            found = [each for each in found if each.identity not in self.expectations.overruled]
            found += self.expectations.failures
        return list({each.identity: each for each in reversed(found)}.values())[::-1]

    def broke(self, error: Exception) -> None:
        """An error of this suite: what was found till then stays, and nothing more is judged."""
        self.acceptor.reason = line_of(error)
        self.acceptor.finished = True

    def command(self, text: str) -> None:
        self._command(text)
        self._note_step(lambda judge: judge._command(text))

    def _note_step(self, step: Callable[[SequenceJudge], None]) -> None:
        if self._steps is not None:
            self._steps.note(step, len(self.acceptor.failures))

    def _command(self, text: str) -> None:
        if is_expectation(text) and self.expectations is None:
            self.expectations = Expectations(self._start.get("requirement"))
            self.expectations.command(self.acceptor.command)
            for event, against in self._lately:
                self.expectations.take(event, against)
        self._lately.clear()
        if self.expectations is not None:
            self.expectations.command(text)
        if is_expectation(text):
            return
        if not self.acceptor.finished:
            self._before = dict(self.acceptor.exercised)
        self._asked.clear()
        self.acceptor.command = text
        if self._library is not None:
            self._library.command(text)
        # `a.1 basic.ack 1 &`: the frame of that method is not waited for
        self._in_flight = text.split(" ", 2)[1] if text.endswith(" &") else None

    def event(self, event: TraceEvent) -> None:
        try:
            self._take(event)
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this sequence only
            self.broke(error)

    def _take(self, event: TraceEvent) -> None:
        self._event(event)
        self._note_step(lambda judge: judge._event(event))

    def _event(self, event: TraceEvent) -> None:
        if self._library is not None:
            self._library.event(event)
        if is_of_application(event.connection):
            return
        self._frames += 1
        if event.channel == 0:
            self._note_beginning(event)
        failed = len(self.acceptor.failures)
        if event.sent:
            if event.channel:
                self._asks_for_numbers = event.name == "queue.declare"
                if event.name in ("queue.declare", "basic.get"):
                    self._asked.add(event.arguments.get("queue", ""))
            self.acceptor.overlapping = event.name == self._in_flight
            self.acceptor.sent(event)
        else:
            self.acceptor.received(event)
        self._note(event, failed)

    def _note(self, event: TraceEvent | None, failed: int) -> None:
        """A frame, or silence. The model had found so many failures before."""
        against = self.acceptor.failures[failed:]
        if self.expectations is not None:
            self.expectations.take(event, against)
        elif event is not None or against:
            self._lately.append((event, against))

    def _note_beginning(self, event: TraceEvent) -> None:
        """Traces of the first version begin a connection with connection.start, and know no credentials."""
        name = event.connection
        if event.name == "socket.open":
            self._begun.add(name)
        elif event.name == "connection.start" and name not in self._begun:
            header = {"octets": HEADER_0_9_1}
            self.acceptor.sent(SocketEvent(name, 0, "socket.open", {"assumed": True}, sent=True, time=event.time))
            self.acceptor.sent(HeaderEvent(name, 0, "protocol.header", header, sent=True, time=event.time))

    def mark(self, mark: str) -> None:
        try:
            self._mark(mark)
            self._note_step(lambda judge: judge._mark(mark))
        except Exception as error:  # noqa: BLE001 - as above
            self.broke(error)

    def _mark(self, mark: str) -> None:
        failed = len(self.acceptor.failures)
        self._mark_on_acceptor(mark)
        self._note(None, failed)

    def _mark_on_acceptor(self, mark: str) -> None:
        if mark == "barrier":
            self.acceptor.barrier(True)
        elif mark == "quiescent":
            self.acceptor.quiescent()
            self.acceptor.barrier(False)
            if self._library is not None:
                self._library.quiescent()
        else:
            # who waited for a frame that is not owed, by what is known today, has asked for no numbers
            self.acceptor.overdue(self._asks_for_numbers, self._asked)

    def judgement(self, complete: bool = True) -> SequenceJudgement:
        """What was found so far; inconclusive at best when the sequence is not `complete`."""
        try:
            return self._judgement(complete)
        except Exception as error:  # noqa: BLE001 - as above
            return undecided(self._start, line_of(error), self._frames)

    def _judgement(self, complete: bool) -> SequenceJudgement:
        acceptor = self.acceptor
        if self.expectations is not None:
            self.expectations.decide()
        verdict, reason, failures = acceptor.verdict, acceptor.why_undecided, self.failures
        reason = None if reason is None else plain(reason)
        elsewhere = {each.requirement for each in acceptor.failures}.difference(each.requirement for each in failures)
        dialect = acceptor.dialect
        wrongly = [each for each, reported in as_reported(acceptor.failures, dialect) if reported is None]
        if wrongly:
            reason = reason or plain(why_not_followed(wrongly[0]))
        product = self._start.get("product") or ""
        failures = self._as_rabbitmq(failures)
        harmless_only = all(is_harmless(each, product, dialect.name) for each in failures)
        if any(each is not None and each.failures for each in (self._library, self.expectations)):
            verdict = Verdict.FAIL
        if verdict is Verdict.FAIL and (not failures or (reason and harmless_only)):
            # what fails nothing must not hide that the rest is not known
            verdict = Verdict.INCONCLUSIVE if reason else Verdict.PASS
        if not complete and verdict is Verdict.PASS:
            verdict, reason = Verdict.INCONCLUSIVE, "the trace ends in the middle of the sequence"
        elif verdict is Verdict.PASS and (unread := self._unread()):
            verdict, reason = Verdict.INCONCLUSIVE, unread
        elif verdict is Verdict.PASS and self._undecided is not None:
            verdict, reason = Verdict.INCONCLUSIVE, self._undecided
        return SequenceJudgement(
            sequence=self._start["sequence"],
            target=self._start["target"],
            dialect=self._start["dialect"],
            requirement=self._start.get("requirement"),
            verdict=verdict,
            failures=tuple(map(plain_failure, failures)),
            exercised={id: times for id, times in sorted(self._exercised.items()) if id not in elsewhere},
            reason=reason,
            frames=self._frames,
            refuted=tuple(sorted(acceptor.refuted)),
            windows=tuple(sorted(acceptor.windows)),
            measurements=tuple(acceptor.measurements),
            repeats=self._start.get("repeats"),
            version=judged_version(product, self._start.get("version") or "", self._start["dialect"]),
            product=product,
            ended_by=self._ended_by(failures),
        )

    def _as_rabbitmq(self, failures: Sequence[Failure]) -> Sequence[Failure]:
        """The failures, those marked that are against the text as RabbitMQ is."""
        if self._steps is None or not failures:
            return failures
        by_acceptor = self.acceptor.failures
        like = self._steps.told_apart(by_acceptor, self._judge_by)
        told = as_reported(by_acceptor, self.acceptor.dialect)
        names = {reported.identity: like.get(each.identity, "") for each, reported in told if reported is not None}
        return marked(failures, names)

    def _judge_by(self, dialect: str) -> SequenceJudge:
        """A judge of the same sequence by what that dialect promises."""
        return SequenceJudge(TraceRow(**{**self._start, "dialect": dialect, "product": ""}), lawful_acceptor)

    @property
    def _exercised(self) -> Mapping[str, int]:
        """Where a failure ends the judging, what its command was to bring about was not seen."""
        acceptor = self.acceptor
        exercised = self._before if acceptor.finished and acceptor.failures else acceptor.exercised
        if not self._is_of_own_rule:
            return exercised
        # a rule of one's own without lines that expect is what the model says of its commands
        held = not self._expected and not acceptor.finished if self.expectations is None else self.expectations.held
        return {**exercised, str(self._start["requirement"]): int(held)}

    def _unread(self) -> str:
        """Why not all lines that expect something were put to the test; "": they were."""
        left = self._expected - (0 if self.expectations is None else self.expectations.read)
        if left <= 0:
            return ""
        return f"judging ended before the last {left} of {self._expected} lines that expect something"

    def _ended_by(self, failures: Sequence[Failure]) -> str | None:
        """What ended the judging before the sequence was over; None if nothing did."""
        acceptor = self.acceptor
        if not acceptor.finished:
            return None
        if suite_error_in(acceptor.reason):
            return acceptor.reason
        last = acceptor.failures[-1] if acceptor.failures else None
        if last is not None and blamed(last, acceptor.dialect) is None:
            return f"what cannot be followed, {plain_failure(last).identity}"
        if not failures and last is not None:
            return f"what a line expects against the model, {plain_failure(last).identity}"
        return plain_failure(failures[-1]).identity if failures else acceptor.reason or "a failure"

    def row(self, row: TraceRow) -> bool:
        """Take one row of the sequence after its start row; is it complete with that?"""
        kind = row["kind"]
        if kind == "frame":
            event = row_event(row)
            try:
                self._take(event)
            except Exception as error:  # noqa: BLE001 - as above
                raise_if_ill_formed(row["sequence"], event, error)
                self.broke(error)
        elif kind == "command":
            self.command(row["text"])
        elif kind == "mark":
            self.mark(row["mark"])
        elif kind == "end" and row["verdict"] == Verdict.INCONCLUSIVE:
            self._undecided = row["reason"] or "no reason was recorded"
        return kind == "end"


def judge_of(start: TraceRow, acceptor: MakesAcceptor = acceptor_for) -> SequenceJudge | OpenSequenceJudge:
    """The judge that the start row asks for; `acceptor` as for `SequenceJudge`."""
    return OpenSequenceJudge(start) if start["mode"] == OPEN else SequenceJudge(start, acceptor)


def opened(rows: Iterable[TraceRow]) -> Iterator[TraceRow]:
    """The same rows, to be judged in the open world."""
    for row in rows:
        yield TraceRow(**{**row, "mode": OPEN}) if row["kind"] == "start" else row


def of_dialect(rows: Iterable[TraceRow], dialect: str) -> Iterator[TraceRow]:
    """The same rows, to be judged by the dialect of that name."""
    for row in rows:
        yield TraceRow(**{**row, "dialect": dialect}) if row["kind"] == "start" else row


def judge_as(dialect: str, is_open: bool, rows: Iterable[TraceRow]) -> SequenceJudgement:
    """`judge` by the dialect of that name, and with `is_open` in the open world, whatever the start row says."""
    rows = of_dialect(rows, dialect)
    return judge(opened(rows) if is_open else rows)


def judge_open(rows: Iterable[TraceRow]) -> SequenceJudgement:
    """`judge` in the open world, whatever the start row says."""
    return judge(opened(rows))


def judge(rows: Iterable[TraceRow]) -> SequenceJudgement:
    """Judge the rows of one sequence, its start row first. Raises `TraceError` if they are not a sequence."""
    iterator = iter(rows)
    start = next(iterator, None)
    if start is None or start["kind"] != "start":
        raise TraceError("a sequence does not begin with a start row")
    sequence = judge_of(start)
    complete = False
    for row in iterator:
        complete = _takes(sequence, row)
    return sequence.judgement(complete)


def _takes(sequence: SequenceJudge | OpenSequenceJudge, row: TraceRow) -> bool:
    """`SequenceJudge.row`. Raises `TraceError` for a row that cannot be judged, such as one that somebody wrote."""
    try:
        return sequence.row(row)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = row.get("method") or row["kind"]
        why = f"{type(error).__name__}: {error}"
        raise TraceError(f"the sequence {row['sequence']!r} cannot be judged at its row {what}: {why}") from error


def judge_all(rows: Iterable[TraceRow], acceptor: MakesAcceptor = acceptor_for) -> Iterator[SequenceJudgement]:
    """Judge all sequences of a trace, whose rows may be mixed, each as soon as it is complete.

    Memory holds the state of the sequences that are open at a time, however long they are. Those without an end
    come last. `acceptor` as for `SequenceJudge`. Raises `TraceError` for a row outside any sequence.
    """
    open_ones: dict[str, SequenceJudge | OpenSequenceJudge] = {}
    for row in rows:
        name = row["sequence"]
        sequence = open_ones.get(name)
        if sequence is None:
            if row["kind"] != "start":
                raise TraceError(f"a row of kind {row['kind']!r} of the sequence {name!r} comes before its start row")
            open_ones[name] = judge_of(row, acceptor)
        elif row["kind"] == "start":
            raise TraceError(f"the sequence {name!r} starts again before its end row")
        elif _takes(sequence, row):
            yield sequence.judgement()
            del open_ones[name]
    for sequence in open_ones.values():
        yield sequence.judgement(complete=False)
