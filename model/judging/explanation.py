"""An explanation: one way in which a broker may have come to what was seen, and what is under way by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.internal_events import (
    ConnectionCleanup,
    Input,
    PossibleEvent,
    Teardown,
    lane_of,
)
from amqpspec.model.broker.nodes import is_mute
from amqpspec.model.broker.openness import may_speak
from amqpspec.model.broker.owed import Expected
from amqpspec.model.judging.alternative import Alternative
from amqpspec.model.judging.alternatives import alternatives_to
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.judging.windows import Armed, Windows
from amqpspec.model.outputs.debts import Debt, unproven
from amqpspec.model.protocol.methods import ClockWait, TraceEvent
from amqpspec.model.rules.extensions.message_expiry import (
    AHEAD,
    message_expiries,
    should_have_expired,
    tell_of_expiries,
)
from amqpspec.model.rules.extensions.queue_expiry import expiries
from amqpspec.model.rules.extensions.timeout_schedule import tell_of_timeouts, timeouts
from amqpspec.model.rules.inputs import process
from amqpspec.model.rules.internal_events import can_come_about

#: Seconds that more may pass once something was done to a node: until the others see that it is gone, and agree who
#: leads, and until the broker gives up those who were connected to it.
UNSTEADY = 20.0
#: The same while a queue's node is down: a broker may ask for it again and again (rabbit_amqqueue:retry_wait, which
#: takes 2,000 times 30 ms, and each time a question to a node that is not there: two minutes were seen).
UNTIL_NOT_FOUND = 240.0


@dataclass(slots=True)
class Explanation:
    """One way in which the broker may have come to what was seen."""

    broker: Broker
    #: sent, not processed; in the order of sending, which is that of processing within a channel
    pending: list[Input] = field(default_factory=list)
    #: a known defect that this explanation follows, and the pending input that comes under it
    defect: DefectTransition | None = None
    defective_input: Input | None = None
    #: inputs of barriers: judged, but no exercise of anything; shared by all explanations
    uncounted: list[Input] = field(default_factory=list)
    #: what known defects may spoil, shared by all explanations, and what they may have spoiled by this one
    windows: Windows = field(default_factory=Windows)
    armed: frozenset[Armed] = frozenset()
    #: some input was processed in another way than the usual one (`model.judging.alternatives`): not the one to blame
    #: by
    is_unusual: bool = False
    #: the point that this one is the same as, but that one more message has expired, which may as well happen later;
    #: whether that point explains what came, so that this one need not be followed
    behind: Explanation | None = None
    is_kept: bool = False
    #: sent to nodes of a cluster that need not process it for now (model.broker.nodes), in the order of sending
    stalled: list[Input] = field(default_factory=list)

    def keep(self) -> bool:
        """It explains what came: is it to be followed? Not if it is reached from another one that is kept."""
        self.is_kept = True
        before, self.behind = self.behind, None
        return before is None or not before.is_kept

    def begin_anew(self) -> None:
        """The next output is judged: it is reached from nowhere, and not kept yet."""
        self.behind, self.is_kept = None, False

    def fork(self) -> Explanation:
        return Explanation(
            copy_broker(self.broker), list(self.pending), self.defect, self.defective_input, self.uncounted,
            self.windows, self.armed, self.is_unusual, stalled=list(self.stalled),
        )  # fmt: skip

    def alternatives(self, event: Input) -> list[Explanation]:
        """Copies in which the input, pending or new, has been processed in another way that is right as well."""
        others = alternatives_to(self.broker, event)
        return [self._processed_as(alternative, event) for alternative in others] if others else []

    def _processed_as(self, alternative: Alternative, event: Input) -> Explanation:
        other = self.fork()
        other.is_unusual = True
        other.pending = [pending for pending in self.pending if pending is not event]
        other.arm(event)
        other._step(event, partial(alternative.process, other.broker, event))
        return other

    def process_pending(self, index: int) -> None:
        """Process one of the pending inputs; the one that comes under the known defect as the known defect says."""
        event = self.pending.pop(index)
        self._step(event, partial(self.process, event))

    def _step(self, event: Input, step: Callable[[], None]) -> None:
        """Make the step in which the input is processed, and note what may come about after it."""
        counting = self.broker.bookkeeping.counting
        self.broker.bookkeeping.counting = not any(event is other for other in self.uncounted)
        step()
        self.broker.bookkeeping.counting = counting
        if self.broker.ageing:
            tell_of_expiries(self.broker)
        if self.broker.next_timeout <= self.broker.looked_ahead_until:
            tell_of_timeouts(self.broker)
        self.expect_internal_events()

    def process(self, event: Input) -> None:
        """Process an input as the broker does that this explanation supposes: a defect that it has it always has."""
        defect = self.defect
        if defect is None or not (event is self.defective_input or self._is_defective_again(defect, event)):
            self.arm(event)
            process(self.broker, event)
        else:
            defect.process(self.broker, event)

    def arm(self, event: Input) -> None:
        """The input is about to be processed: which known defects may come in by it?"""
        if armed := self.windows.armed_by(self.broker, event):
            self.armed |= frozenset(armed)

    def _is_defective_again(self, defect: DefectTransition, event: Input) -> bool:
        return self.defect_took_place and defect.comes_under(self.broker, event)

    def may_be_defective(self, defect: DefectTransition, event: Input) -> bool:
        """May the broker process the input as that known defect says, for all that it has done so far?"""
        return self.defect is None and defect.applies(self.broker, event)

    @property
    def defect_is_ahead(self) -> bool:
        """The input that comes under the known defect is not processed yet."""
        return any(event is self.defective_input for event in self.pending)

    @property
    def defect_took_place(self) -> bool:
        """The known defect has taken place."""
        return self.defect is not None and not self.defect_is_ahead

    def takes_at_once(self, event: TraceEvent) -> bool:
        """Is the input, which comes now, the next thing that the broker does, as nothing is owed or comes about by the
        time? Nothing must be under way.
        """
        broker = self.broker
        if broker.debtors or broker.deliverable or broker.expiring or broker.ageing or may_speak(broker):
            return False
        return broker.next_timeout > event.time + AHEAD and not isinstance(event, ClockWait)

    def time_passes(self, now: float) -> None:
        """It is `now`: what that brings about comes about, or may (`queue_expiry`, `message_expiry`)."""
        if self.broker.expiring or self.broker.ageing:
            expiries(self.broker, now, is_certain=self.is_settled, ahead=AHEAD)
            message_expiries(self.broker, now, is_certain=self.is_settled and self.is_quiet, ahead=AHEAD)
            self.expect_internal_events()
        if self.broker.next_timeout <= now + AHEAD:
            timeouts(self.broker, now, is_certain=self.is_settled and self.is_quiet, ahead=AHEAD)
            self.expect_internal_events()
        if self.pending:
            # what came about in another way, or not at all, is no longer expected
            self.pending = [
                event
                for event in self.pending
                if not isinstance(event, PossibleEvent) or can_come_about(self.broker, event)
            ]

    def note_observation(self, now: float) -> None:
        """Something came `now`: messages may have expired before it that could not when the last input was sent."""
        broker = self.broker
        broker.looked_ahead_until = now
        if broker.ageing:
            message_expiries(broker, now, is_certain=False)
            self.expect_internal_events()
        if broker.next_timeout <= now:
            timeouts(broker, now, is_certain=False)
            self.expect_internal_events()

    def is_at_no_time(self, event: TraceEvent) -> bool:
        """Would something have come about too early, or too late, if the frame were sent at this point?"""
        broker = self.broker
        if broker.not_before > event.time or self.is_tearing_down(event):
            return True
        return bool(broker.ageing) and should_have_expired(broker)

    def is_tearing_down(self, event: TraceEvent) -> bool:
        """Does the frame close a connection whose channels have to end before (rabbit_reader:terminate_channels)?"""
        if event.name != "connection.close" or not self.pending:
            return False
        ending = any(isinstance(each, Teardown) and each.connection == event.connection for each in self.pending)
        return ending and self.broker.connections[event.connection].state is ConnectionState.OPEN

    @property
    def pending_inputs(self) -> list[TraceEvent]:
        """What was sent and is not processed."""
        return [event for event in self.pending if isinstance(event, TraceEvent)]

    @property
    def is_quiet(self) -> bool:
        """A broker that is silent now is right to be silent."""
        return self.broker.quiet

    @property
    def is_silent(self) -> bool:
        """A broker that says something now is wrong, whatever it says."""
        return self.is_quiet and not may_speak(self.broker)

    def unproven(self) -> Iterable[Debt]:
        """What should have come, and no count has shown. A broker that tells no counts shows nothing by them."""
        return unproven(self.broker) if self.broker.dialect.text.counts_are_told else ()

    @property
    def is_settled(self) -> bool:
        """No input is pending; what the broker may do by itself does not count as one."""
        return not self.pending or all(isinstance(event, PossibleEvent) for event in self.pending)

    @property
    def is_at_rest(self) -> bool:
        """Nothing is under way, and the broker may send nothing: the next input is processed when it is sent."""
        return self.is_settled and self.defect is None and self.is_silent

    @property
    def patience(self) -> float:
        """Seconds beyond the usual deadline that something may take of what is owed on connections."""
        connections = (self.broker.connections[name] for name, channel in self.broker.debtors if not channel)
        owed = (owed for connection in connections for owed in connection.owed if isinstance(owed, Expected))
        unsteady = 0.0
        if self.broker.is_unsteady:
            is_down = any(queue.is_down for queue in self.broker.queues.values())
            unsteady = UNTIL_NOT_FOUND if is_down else UNSTEADY
        return max((each.patience for each in owed), default=0.0) + unsteady

    def stall(self) -> None:
        """What was sent to nodes that need not process it waits."""
        waiting = [each for each in self.pending if self._may_wait(each)]
        if waiting:
            self.stalled = waiting + self.stalled
            self.pending = [each for each in self.pending if not self._may_wait(each)]

    def go_on(self, connection: str = "") -> None:
        """What has waited is pending where it need not wait any longer; all that was sent on the connection, too."""
        going = [each for each in self.stalled if lane_of(each)[0] == connection or not self._may_wait(each)]
        self.pending += going
        self.stalled = [each for each in self.stalled if each not in going]

    def _may_wait(self, event: Input) -> bool:
        return isinstance(event, TraceEvent) and is_mute(self.broker.failed, event.connection)

    @property
    def has_to_clean_up(self) -> bool:
        """The broker still has to clean up after a client that is gone (CONN-021)."""
        return any(isinstance(event, ConnectionCleanup) for event in self.pending)

    def expect_internal_events(self) -> None:
        """What the broker does by itself, at a moment of its choice, is pending like an input."""
        self.pending += self.broker.teardowns
        self.broker.teardowns.clear()
        for event in self.broker.internal_events:
            if event not in self.pending and can_come_about(self.broker, event):
                self.pending.append(event)
        self.broker.internal_events.clear()
