"""The acceptor: does what was seen conform to the model? Input-output conformance over first-in-first-out channels.

It is fed a trace frame by frame: `sent` for the client's, `received` for the broker's, `quiescent` where a barrier
showed that nothing more is under way, `overdue` where the time for owed frames ran out.

An *explanation* is a state of the model and the inputs that were sent but need not have been processed yet. A sent
frame is processed at once only where that loses nothing: when there is one explanation and it permits no output (the
broker is quiet), which is the rule in lockstep. Else it waits, per channel in order, and every output is tried at
every point at which the broker may have been. Explanations that an output contradicts are dropped; when none is
left, the trace fails. Their number is bounded: beyond the bound the verdict is inconclusive, never pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.internal_events import lane_of
from amqpspec.model.broker.measurement import Measurement
from amqpspec.model.broker.nodes import is_mute
from amqpspec.model.judging.certain_debts import is_certainly_owed
from amqpspec.model.judging.crossing import Crossing
from amqpspec.model.judging.defects_followed import NO_DEFECTS, DefectsFollowed
from amqpspec.model.judging.doubts import may_be_proven, unproven_queues
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.failing_nodes import at_nodes, go_on_for, stall
from amqpspec.model.judging.failures import failure_of, failure_of_debt
from amqpspec.model.judging.fit import Flawed, fit, least_flawed
from amqpspec.model.judging.going_on_open import go_on_open
from amqpspec.model.judging.known_defect import DefectTransition, KnownDefect
from amqpspec.model.judging.known_outputs import observe_as_known
from amqpspec.model.judging.merging import Seen, least_advanced, merged, merged_seen
from amqpspec.model.judging.narrower import without_narrower
from amqpspec.model.judging.pipelining import note_pipelined
from amqpspec.model.judging.points import TooManyExplanations, may_be_quiet, settled
from amqpspec.model.judging.processing import process_in, processed, processed_at_rest
from amqpspec.model.judging.races import RACES
from amqpspec.model.judging.read_order import EarlyOutputs, may_be_early
from amqpspec.model.judging.refuted import note_refuted
from amqpspec.model.judging.restarts import COMES_BACK, come_back, gone_down
from amqpspec.model.judging.silence import Missed, missed
from amqpspec.model.judging.windows import (
    Armed,
    Difference,
    Race,
    Window,
    Windows,
    difference_of,
    difference_of_debt,
)
from amqpspec.model.outputs.going_on import end_connection_if_clear
from amqpspec.model.outputs.late_counts import is_late_and_empty
from amqpspec.model.outputs.malformed import malformed
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.outputs.turns import turns_come_to_rest
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.model.protocol.methods import OCTETS_BEHIND, ClockWait, Fault, Method, OperatorAction, TraceEvent
from amqpspec.model.rules.connection.blocking import blocked_by_others
from amqpspec.model.rules.extensions.message_expiry import messages_are_at_rest
from amqpspec.model.rules.extensions.queue_expiry import uses_are_over
from amqpspec.model.rules.operator.nodes import is_of_nodes

#: Most explanations kept alive.
DEFAULT_BOUND = 256


class Acceptor:
    """Judges one sequence of frames. `failures` grows; `finished` says that nothing more can be judged."""

    def __init__(
        self,
        dialect: Dialect,
        bound: int = DEFAULT_BOUND,
        virtual_host: str = "/",
        own_user: str = "",
        defects: DefectsFollowed = NO_DEFECTS,
    ) -> None:
        self.dialect = dialect
        self.bound = bound
        self._windows = Windows((*RACES, *defects.windows))
        #: those that were armed until the broker was last at rest
        self._armed_before: frozenset[Armed] = frozenset()
        self.explanations = [Explanation(Broker(dialect, virtual_host, own_user), windows=self._windows)]
        self.failures: list[Failure] = []
        self.finished = False
        self.reason: str | None = None
        #: canonical text of the command that is being carried out, for failures
        self.command = ""
        #: the next input is sent without waiting for what this one brings about: it may be processed after it
        self.overlapping = False
        self._defects = defects
        #: known defects that would have shown, and did not, beside those that explanations know of
        self._refuted: set[str] = set()
        #: queues that did not tell their numbers in time when they were asked last
        self._untold: set[str] = set()
        self._early = EarlyOutputs()
        self._crossing = Crossing(defects)
        self._time = 0.0
        #: the last output left no doubt about what had been processed before it
        self._is_certain = True

    # ------------------------------------------------------------------------------------------ the trace

    def sent(self, event: TraceEvent) -> None:
        """The client sent this frame."""
        if self._early.frames:
            self._judge_early()
        if self.finished:
            return
        if self._crossing.before is not None:
            if self._crossing.takes(self.explanations[0], event):
                self._time = max(self._time, event.time)
                self._send_crossing(event)
                return
            self._end_crossing()
            if self.finished:
                return
        self._time = max(self._time, event.time)
        if isinstance(event, Fault):
            self._go_through(event)
            return
        if is_mute(self.broker.failed, event.connection):
            for explanation in self.explanations:
                explanation.stalled.append(event)
            return
        only = self.explanations[0]
        if len(self.explanations) == 1 and not only.pending and not self.overlapping and only.takes_at_once(event):
            self.explanations += process_in(only, event, self._defects)
            return
        for explanation in self.explanations:
            explanation.time_passes(event.time)
        if isinstance(event, ClockWait):
            for explanation in self.explanations:
                explanation.broker.client_idle_until = event.time
            return  # that time has passed is all
        only = self.explanations[0]
        if len(self.explanations) == 1 and not only.pending and only.is_silent and not self.overlapping:
            self.explanations += process_in(only, event, self._defects)
        elif not self.overlapping and all(each.is_at_rest for each in self.explanations):
            try:
                self.explanations = processed_at_rest(self.explanations, event, self._defects, self.bound)
            except TooManyExplanations:
                self._give_up()
        elif not self.overlapping and self._stands_alone(event):
            self.explanations = processed(self.explanations, event, self._defects)
        elif self._crossing.begins(self.explanations, event):
            self._send_crossing(event)
        else:
            if not only.broker.bookkeeping.counting:
                only.uncounted.append(event)
            for explanation in self.explanations:
                note_pipelined(explanation.broker, explanation.pending_inputs, event)
                explanation.pending.append(event)

    def _send_crossing(self, event: TraceEvent) -> None:
        self._crossing.note(event, self.command, self.overlapping)
        if not self._crossing.send(self.explanations[0], event):
            self._judge_again()

    def _end_crossing(self, quiet: bool = False) -> None:
        """What crossed is over, or is judged again. `quiet`: nothing is under way any more."""
        crossing, only = self._crossing, self.explanations[0]
        if crossing.before is None:
            return
        if (quiet and crossing.is_quiet_behind(only)) or crossing.has_come(only):
            crossing.end()
        else:
            self._judge_again()

    def _judge_again(self) -> None:
        """What has been seen since publishes cross is judged in every order."""
        crossing, command, overlapping = self._crossing, self.command, self.overlapping
        assert crossing.before is not None
        self.explanations, frames = [crossing.before], crossing.frames
        crossing.end()
        crossing.is_again = True
        for each in frames:
            self.command, self.overlapping = each.command, each.overlapping
            if each.event.sent:
                self.sent(each.event)
            else:
                self._judge(each.event)
        crossing.is_again = False
        self.command, self.overlapping = command, overlapping

    def _go_through(self, fault: Fault) -> None:
        """The broker goes down, comes back, or a network fails (`model.judging.restarts`)."""
        for explanation in self.explanations:
            explanation.time_passes(fault.time)
        if is_of_nodes(fault):
            at_nodes(self.explanations, fault)
            return
        if fault.name != COMES_BACK:
            gone_down(self.explanations, fault)
            return
        self._early.take_all()
        self._untold.clear()
        try:
            self.explanations = come_back(self.explanations, fault, self._defects, self.bound)
        except TooManyExplanations:
            self._give_up()

    def _stands_alone(self, event: TraceEvent) -> bool:
        """A step of a handshake has nothing to do with what is under way on other connections."""
        if event.channel or isinstance(event, OperatorAction):
            return False
        if any(lane_of(pending)[0] == event.connection for each in self.explanations for pending in each.pending):
            return False
        connection = self.broker.connections.get(event.connection)
        return event.name == "socket.open" or (connection is not None and connection.state.in_handshake)

    def received(self, event: TraceEvent) -> None:
        """The broker sent this frame."""
        if self.finished:
            return
        if event.name == "connection.blocked" and blocked_by_others(self.broker, event):
            reason = str(event.arguments.get("reason", "")).encode("utf-8", "backslashreplace").decode("utf-8")
            self.reason = f"the broker has an alarm that is none of ours: {reason}"
            self.finished = True
            return
        self._time = max(self._time, event.time)
        is_stalled = is_mute(self.broker.failed, event.connection)
        if is_stalled:
            go_on_for(self.explanations, event)
        self._received(event)
        if is_stalled:
            stall(self.explanations, event)

    def _received(self, event: TraceEvent) -> None:
        if event.name == "queue.declare-ok":
            self._note_untold(event)
        if OCTETS_BEHIND in event.arguments and (wrong := malformed(event)) is not None:
            # no explanation is likelier by that
            self._add(failure_of(self.broker, event, wrong, self.command, ""))
        if not self._early.frames:
            self._judge(event)
        elif self._early.holds_up(event):
            self._early.add(event)
            return
        else:
            self._judge(event)
        if self._early.frames:
            self._early.judge_again(self._judge)

    def _note_untold(self, event: TraceEvent) -> None:
        """Did the queue tell its numbers?"""
        if is_late_and_empty(self.broker, event):
            self._untold.add(event.arguments["queue"])
        else:
            self._untold.discard(event.arguments["queue"])

    def _note_refuted_by(self, event: TraceEvent) -> None:
        """Nothing is wrong with the frame: which known defects of outputs would have shown?"""
        if isinstance(event, Method) and self.broker.bookkeeping.counting:
            for defect in self._defects.of_outputs:
                if defect.is_refuted_by is not None and defect.is_refuted_by(self.broker, event):
                    self._refuted.add(defect.name)

    def _judge_early(self) -> None:
        """Nothing comes before what came too early any more."""
        for event in self._early.take_all():
            self._judge(event, may_wait=False)

    def _judge(self, event: TraceEvent, *, may_wait: bool = True) -> None:
        if self.finished:
            return
        for explanation in self.explanations:
            explanation.note_observation(self._time)
        only = self.explanations[0]
        if self._crossing.before is not None:
            self._crossing.note(event, self.command, self.overlapping)
            behind = self._crossing.receive(only, event)
            if behind is None:
                self._judge_again()
            else:
                self.explanations = [behind]
            return
        # to judge it may change what it is judged by
        waits = may_wait and event.name == "basic.deliver" and may_be_early(only.broker, only.pending, event)
        before = [each.fork() for each in self.explanations] if waits else []
        if len(self.explanations) == 1 and not only.pending:
            mismatches = observe_as_known(only.broker, event, self._defects)
            if before and not all(mismatch.defect for mismatch in mismatches):
                self._wait_with(event, before)
            elif mismatches:
                self._record(only.broker, event, mismatches)
            else:
                self._note_refuted_by(event)
        else:
            try:
                self._received_by_all(event, before)
            except TooManyExplanations:
                self._give_up()
        for explanation in self.explanations:
            if explanation.broker.internal_events:
                explanation.expect_internal_events()
        if self._is_certain and self.explanations[0].pending:
            self._process_what_is_certain()

    def _wait_with(self, event: TraceEvent, before: list[Explanation]) -> None:
        self._early.add(event)
        self.explanations = before

    def barrier(self, begins: bool) -> None:
        """Between these two calls frames are judged as ever, but do not count as exercise of any requirement."""
        self._end_crossing()
        for explanation in self.explanations:
            explanation.broker.bookkeeping.counting = not begins

    def quiescent(self) -> None:
        """Nothing is under way any more: every input has been processed, and nothing may be owed."""
        self._judge_early()
        self._end_crossing(quiet=True)
        if self.broker.down_by:
            return  # nothing can show that it is quiet
        self._close(prove=False)
        for explanation in self.explanations:
            broker = explanation.broker
            for _, queue in broker.touched:
                queue.at_rest = queue.next_position
                queue.handed_out = 0
            broker.come_to_rest()
            explanation.uncounted.clear()
            turns_come_to_rest(broker)
            uses_are_over(broker, self._time)
            messages_are_at_rest(broker, self._time)
        armed = self._armed
        self._refuted |= self._windows.would_have_shown(armed - self._armed_before)
        self._armed_before |= armed
        self._windows.lately.clear()
        is_certain = all(explanation.is_unusual for explanation in self.explanations)
        for explanation in self.explanations:
            explanation.armed = self._windows.left_at_rest(explanation.armed)
            # that is what the broker did: what it does from now on is as usual as ever
            explanation.is_unusual &= not is_certain

    def overdue(self, prove: bool = True, asked: Container[str] | None = None) -> None:
        """The time is up for whatever is owed. `prove`: also for what only numbers can show, of the queues that were
        `asked` for them (None: of all).
        """
        self._judge_early()
        self._end_crossing()
        self._close(prove, asked)

    # ------------------------------------------------------------------------------------------ the verdict

    @property
    def broker(self) -> Broker:
        """The state of the first explanation that is lawful: the state, where there is only one."""
        if len(self.explanations) == 1:
            return self.explanations[0].broker
        return next((each for each in self.explanations if each.defect is None), self.explanations[0]).broker

    @property
    def exercised(self) -> Counter[str]:
        return self.broker.bookkeeping.exercised

    @property
    def refuted(self) -> frozenset[str]:
        """Names of the known defects that would have shown, and did not (`model.judging.refuted`)."""
        refuted = self._refuted | self.broker.bookkeeping.refuted
        return frozenset(refuted).difference(failure.defect for failure in self.failures)

    @property
    def windows(self) -> frozenset[str]:
        """Names of the known defects that may have spoiled something in the sequence (`model.judging.windows`)."""
        known = {window.name for window in self._defects.windows}
        armed = self._armed | self._armed_before | self._windows.lately
        return frozenset(each.name for each in armed if each.name in known)

    @property
    def _armed(self) -> frozenset[Armed]:
        return frozenset[Armed]().union(*(explanation.armed for explanation in self.explanations))

    @property
    def measurements(self) -> list[Measurement]:
        """How late the broker was with what it did by itself."""
        return self.broker.bookkeeping.measurements

    @property
    def verdict(self) -> Verdict:
        if self.failures:
            return Verdict.FAIL
        return Verdict.INCONCLUSIVE if self.why_undecided else Verdict.PASS

    @property
    def why_undecided(self) -> str | None:
        """Why not everything could be judged: what ended the judging, or words that the model does not know, where
        there is no explanation without them.
        """
        lawful = [each for each in self.explanations if each.defect is None] or self.explanations
        undecided = [each.broker.bookkeeping.undecided for each in lawful]
        return self.reason or ("; ".join(undecided[0]) if all(undecided) else None)

    @property
    def patience(self) -> float:
        """Seconds beyond the usual deadline that something may take of what is owed."""
        return max(explanation.patience for explanation in self.explanations)

    def owes(self) -> bool:
        """Is some frame owed, however the inputs that are under way are processed?"""
        if self.finished or self.broker.down_by:
            return False
        try:
            return self._owes()
        except TooManyExplanations:
            self._give_up()
            return False

    def _owes(self) -> bool:
        # what a known defect keeps back is owed all the same
        lawful = [explanation for explanation in self.explanations if explanation.defect is None]
        in_doubt = [explanation for explanation in lawful if not is_certainly_owed(explanation)]
        return not any(may_be_quiet(explanation, self._defects, self.bound) for explanation in in_doubt)

    def unproven_queues(self) -> list[str]:
        """Names of queues of which more must be known, as by no explanation everything has come that should."""
        return unproven_queues(self.explanations, self._defects, self.bound)

    def may_be_proven(self, name: str) -> bool:
        """By some explanation, everything has come to that queue that should."""
        return may_be_proven(name, self.explanations, self._defects, self.bound)

    # ----------------------------------------------------------------------------------- several explanations

    def _process_what_is_certain(self) -> None:
        """Process what the broker must have processed: in a state that is quiet it could have sent nothing."""
        while len(self.explanations) == 1:
            only = self.explanations[0]
            if only.is_settled or not only.is_silent or self.overlapping:
                return
            if len(set(map(lane_of, only.pending))) > 1:
                return
            self.explanations += process_in(only, only.pending.pop(0), self._defects)

    def _received_by_all(self, event: TraceEvent, before: list[Explanation]) -> None:
        """`before`: copies of the explanations, where the frame can wait if none of them fits it."""
        self._is_certain = True
        # else what is alike now is merged when all is at rest
        may_be_more = any(explanation.pending for explanation in self.explanations)
        found = fit(self.explanations, event, self._defects, self.bound)
        survivors, flawed, misfits = found.survivors, found.flawed, found.misfits
        if not survivors and not flawed and not misfits:
            # no point was looked at
            misfits = [(self.explanations[0], observe_as_known(self.broker, event, self._defects))]
        if found.is_lawful:
            self._is_certain = not may_be_more or len(survivors) == 1
            if may_be_more and len(survivors) > 1:
                seen = merged_seen(list(map(Seen, survivors)))
                survivors = without_narrower(least_advanced(seen))
                if len(survivors) > self.bound:
                    raise TooManyExplanations
                self._is_certain = len(seen) == 1
            self.explanations = survivors
            note_refuted(found.contradicted, self.explanations)
        elif survivors:
            if len(survivors) > self.bound:
                survivors = without_narrower(least_advanced(merged_seen(list(map(Seen, survivors)))))
            if len(survivors) > self.bound:
                raise TooManyExplanations
            # only a known defect explains it
            assert misfits or flawed
            defect = survivors[0].defect
            assert defect is not None
            # what is no documented defect is reported as the rules have it
            culprit, mismatches = flawed[0] if flawed and not defect.is_excuse else (misfits or flawed)[0]
            self._record_defect(culprit.broker, event, mismatches, defect)
            self.explanations = merged(survivors)
            self._go_on_from_defect()
        elif before and not found.is_known:
            self._wait_with(event, before)
        elif flawed:
            flawed = least_flawed(flawed)
            culprit, mismatches = self._blamed(event, flawed)
            self.explanations = merged([culprit, *(each for each, _ in flawed if each is not culprit)])
            self._record(culprit.broker, event, mismatches)
        else:
            culprit, mismatches = self._blamed(event, misfits)
            self.explanations = [culprit]
            self._record(culprit.broker, event, mismatches)

    def _blamed(self, event: TraceEvent, flawed: list[Flawed]) -> Flawed:
        """The one to say by what is wrong: the first by which it lies in a window, else the first."""
        for candidate, mismatches in flawed:
            differences = (difference_of(candidate.broker, event, each) for each in mismatches if not each.defect)
            if any(self._window_of(candidate, each) for each in differences):
                return candidate, mismatches
        return flawed[0]

    def _window_of(self, explanation: Explanation, difference: Difference) -> Window | Race | None:
        """The window that the difference lies in, by that explanation."""
        return self._windows.explaining(explanation.broker, difference, self._armed | self._windows.lately)

    def _close(self, prove: bool, asked: Container[str] | None = None) -> None:
        if self.finished or self.broker.down_by:
            return
        only = self.explanations[0]
        if len(self.explanations) > 1 or only.pending:
            try:
                self.explanations = settled(self.explanations, self._defects, self.bound, prove, lazily=not prove)
            except TooManyExplanations:
                self._give_up()
                return
        elif not prove and only.defect is None and only.is_quiet:
            return
        in_time = [explanation for explanation in self.explanations if explanation.broker.not_before <= self._time]
        self.explanations = in_time or self.explanations
        quiet = [explanation for explanation in self.explanations if explanation.is_quiet]
        lawful = [explanation for explanation in quiet if explanation.defect is None]
        proven = [explanation for explanation in lawful if not prove or not _unproven(explanation, asked)]
        if proven:
            note_refuted([each for each in self.explanations if not each.is_quiet], quiet)
            self.explanations = proven
            return
        missing = missed(self.explanations, prove)
        if not missing:
            return
        # what a known defect explains that is followed is its own
        silent = next((each for each in missing if not each.defective and self._explains_silence(each)), missing[0])
        broker, defective = silent.by.broker, silent.defective
        if silent.debt.event is None and (untold := self._untold_queues(broker)):
            self.reason = f"the broker does not tell in time how many messages and consumers {untold[0]} has"
            self.finished = True
            return
        followed = defective[0].defect if defective else None
        defect: KnownDefect | None = followed if followed is not None and followed.is_excuse else None
        if followed is None and self._credit(
            broker, difference_of_debt(broker, silent.debt), failure_of_debt(broker, silent.debt, self.command, None)
        ):
            return
        self._add(failure_of_debt(broker, silent.debt, self.command, defect))
        if defective:
            self.explanations = list(defective)
            self._go_on_from_defect()
        else:
            self.finished = True

    def _explains_silence(self, silent: Missed) -> bool:
        """Does the silence lie in a window, by the explanation that something is missing by?"""
        return self._window_of(silent.by, difference_of_debt(silent.by.broker, silent.debt)) is not None

    def _untold_queues(self, broker: Broker) -> list[str]:
        """Names of queues of which more should be known, and that did not tell it when they were asked last."""
        queues = (broker.queues[name] for name in self._untold if name in broker.queues)
        return [queue.name for queue in queues if queue.unproven or queue.still_counted]

    def _go_on_from_defect(self) -> None:
        """The broker has a known defect of RabbitMQ: so it may have this one too, which is hard to tell by itself."""
        for explanation in self.explanations:
            explanation.defect = explanation.defective_input = None

    def _give_up(self) -> None:
        self.reason = f"more than {self.bound} explanations are possible"
        self.finished = True

    # --------------------------------------------------------------------------------------------- failures

    def _record(self, broker: Broker, event: TraceEvent, mismatches: Mismatches, defect: str = "") -> None:
        for mismatch in mismatches:
            if not (defect or mismatch.defect):
                failure = failure_of(broker, event, mismatch, self.command, "")
                if self._credit(broker, difference_of(broker, event, mismatch), failure):
                    return
            self._add(failure_of(broker, event, mismatch, self.command, defect or mismatch.defect))
            if mismatch.fatal:
                self.finished = not defect and not end_connection_if_clear(broker, event)
                return

    def _credit(self, broker: Broker, difference: Difference, failure: Failure) -> bool:
        """Does the difference lie in a window? What that has touched is open from then on; where this does not make
        the frame right, nothing more can be judged.
        """
        armed = self._armed | self._windows.lately
        window = self._windows.explaining(broker, difference, armed)
        if window is None:
            return False
        if isinstance(window, Race):
            broker.bookkeeping.undecided[window.statement] = None
        else:
            self._add(replace(failure, requirement=window.requirement, defect=window.name))
        by = next((each for each in self.explanations if each.broker is broker), None)
        self.finished = by is None or not go_on_open(by, window, difference, armed)
        self.explanations = self.explanations if by is None else [by]
        return True

    def _record_defect(
        self, broker: Broker, event: TraceEvent, mismatches: Mismatches, defect: DefectTransition
    ) -> None:
        if not defect.is_excuse:
            self._add(failure_of(broker, event, mismatches[0], self.command, ""))
            return
        blamed = Mismatch(defect.requirement, mismatches[0].shape, mismatches[0].detail, True, mismatches[0].allowed)
        self._record(broker, event, (blamed,), defect.name)

    def _add(self, failure: Failure) -> None:
        """Keep one of each: a harmless defect may show at every step of a sequence."""
        if all(failure.identity != other.identity for other in self.failures):
            self.failures.append(failure)


def _unproven(explanation: Explanation, asked: Container[str] | None) -> bool:
    """Has no count shown what should have come, though it was asked for?"""
    return any(asked is None or debt.queue in asked for debt in explanation.unproven())


def lawful_acceptor(
    dialect: Dialect, bound: int = DEFAULT_BOUND, virtual_host: str = "/", own_user: str = "", product: str = ""
) -> Acceptor:
    """An acceptor that knows of no defect, whatever the product is."""
    return Acceptor(dialect, bound, virtual_host, own_user)
