"""The model as a server: takes a client's frame, gives the frames to send, one permitted behaviour of many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.internal_events import DeliveryTimeout
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.methods import SocketEvent, TraceEvent
from amqpspec.model.rules.extensions.queue_expiry import expire_punctually, next_expiry
from amqpspec.model.rules.extensions.timeout_schedule import due_by, time_out_now
from amqpspec.model.rules.inputs import process
from amqpspec.model.rules.internal_events import all_come_about
from amqpspec.targets.clock import COMMON, Clock, SteppedClock
from amqpspec.targets.embedded.handshake import DEFAULT_ACCESS, Access
from amqpspec.targets.embedded.hooks import Fault, Proceed, ProceedTimeout
from amqpspec.targets.embedded.served_broker import ServedBroker
from amqpspec.targets.suite_error import WORDS, line_of

_NEVER = float("inf")


class ModelDefect(Exception):
    """The model contradicts itself: it does not accept a frame that it permits. `connection`: whose frame."""

    def __init__(self, message: str, connection: str) -> None:
        super().__init__(message)
        self.connection = connection


class Responder:
    """One served virtual host; `fault` is the defect that it has."""

    def __init__(
        self, dialect: Dialect, fault: Fault | None = None, access: Access = DEFAULT_ACCESS, clock: Clock = COMMON
    ) -> None:
        self._fault = fault
        self._clock = clock
        self._dialect, self._access = dialect, access
        self.begin_anew()

    def begin_anew(self) -> None:
        """As when the broker was started: nothing is there."""
        self.begin_with(self.fresh())

    def fresh(self) -> ServedBroker:
        """A broker in which nothing is."""
        made = self._fault.broker_type if self._fault else ServedBroker
        return made(self._dialect, self._access.vhost, self._access.user)

    @property
    def broker(self) -> ServedBroker:
        """What it serves: whoever changes it says so (`has_changed`)."""
        return self._broker

    def begin_with(self, broker: ServedBroker) -> None:
        """Serve this one from now on."""
        self._broker = broker
        broker.ahead = self._ahead
        self._process: Proceed = partial(process, self._broker)
        #: when `tick` has something to do; None: that may have changed
        self._due: float | None = None

    def take(self, event: TraceEvent) -> None:
        """Process a client's frame."""
        now = self._clock.now()
        self.tick(now)
        self._broker.now = self._broker.latest = self._broker.last_at_rest = now
        self._due = None
        self._take_in(event, self._process)
        all_come_about(self._broker)
        self.tick(self._broker.now)
        self._broker.touched.clear()
        self._broker.teardowns.clear()

    def _take_in(self, event: TraceEvent, proceed: Proceed) -> None:
        """Process an input as the fault does it, if it looks at these."""
        fault = self._fault
        if fault is not None and fault.input_hook is not None and event.name in fault.methods:
            fault.input_hook(self._broker, event, proceed)
        else:
            proceed(event)

    def _time_out(self, timeout: DeliveryTimeout) -> None:
        """The delivery times out as the fault does it, if it looks at that."""
        proceed: ProceedTimeout = partial(time_out_now, self._broker)
        if self._fault is not None and self._fault.timeout_hook is not None:
            self._fault.timeout_hook(self._broker, timeout, proceed)
        else:
            proceed(timeout)

    def has_changed(self) -> None:
        self._due = None

    def _ahead(self) -> float:
        """Seconds by which its clock is ahead."""
        return self._clock.ahead if isinstance(self._clock, SteppedClock) else 0.0

    def wait(self) -> float:
        """Seconds until `tick` has something to do."""
        due = self.due()
        return due if due == _NEVER else due - self._clock.now()

    def tick_now(self) -> None:
        self.tick(self._clock.now())

    def due(self) -> float:
        """When (by its clock) `tick` has something to do."""
        if self._due is None:
            self._due = next_expiry(self._broker)
        return self._due

    def tick(self, now: float) -> None:
        """What the passing of time brings about: deliveries time out (area TIMEOUT), queues expire (QUEUE-027), and
        messages (area TTL).
        """
        self._broker.now = self._broker.latest = max(now, self._broker.latest)
        if now < self.due():
            return
        self._due = None
        for timeout in due_by(self._broker, now):
            self._time_out(timeout)
        expire_punctually(self._broker, now)

    def next_outputs(
        self,
        congested: Callable[[str], bool],
        busy: Callable[[str], bool],
        held: Callable[[TraceEvent], bool] = lambda _: False,
    ) -> Iterable[TraceEvent] | None:
        """The next frame that the broker sends, as its fault makes it (so perhaps none or several); None: it is quiet.

        Deliveries to connections that are `congested` wait; and so do confirms of what queues have taken to those that
        are `busy`, of which more is to be read: so they come together, and after what is confirmed at once, as from a
        broker whose queues take their time. So does what is `held`. Raises `ModelDefect`.
        """
        if self._broker.quiet:
            return None
        self._due = None
        for event in permitted(self._broker, busy):
            if event.name == "basic.deliver" and congested(event.connection):
                continue
            if held(event):
                continue
            break
        else:
            return None
        try:
            return self._sent(event)
        except ModelDefect:
            raise
        except Exception as error:
            what = f"the model broke down over its own {event.name}: {line_of(error).removeprefix(WORDS)}"
            raise ModelDefect(what, event.connection) from error

    def _sent(self, event: TraceEvent) -> Iterable[TraceEvent]:
        """Raises `ModelDefect`."""
        mismatches = observe(self._broker, event)
        if mismatches:
            details = ", ".join(mismatch.detail for mismatch in mismatches)
            raise ModelDefect(f"the model does not accept its own {event}: {details}", event.connection)
        fault = self._fault
        if fault is not None and fault.output_hook is not None and event.name in fault.methods:
            return list(fault.output_hook(self._broker, event))
        return (event,)

    def is_foreign(self, connection: str) -> bool:
        """Does the client want another protocol, which the dialect's broker would speak?"""
        return self._broker.connections[connection].state is ConnectionState.FOREIGN

    def end(self, connection: str) -> None:
        """The TCP connection is over: its channels end, and nothing of it is kept."""
        if connection in self._broker.connections:
            try:
                self.take(SocketEvent(connection, 0, "socket.abort", {}, sent=True))
            finally:
                self._broker.forget_connection(connection)
