"""The model as a server: takes a client's frame, gives the frames to send, one permitted behaviour of many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from model.alphabet import Frame
from model.dialects import Dialect
from model.inputs import process
from model.observation import observe
from model.permitted import permitted
from targets.fault_hooks import Fault, Proceed
from targets.served_broker import ServedBroker


class ModelDefect(Exception):
    """The model contradicts itself: it does not accept a frame that it permits. `connection`: whose frame."""

    def __init__(self, message: str, connection: str) -> None:
        super().__init__(message)
        self.connection = connection


class Responder:
    """One served virtual host; `fault` is the defect that it has."""

    def __init__(self, dialect: Dialect, fault: Fault | None = None) -> None:
        self._fault = fault
        self._broker = fault.broker_type(dialect) if fault else ServedBroker(dialect)
        self._process: Proceed = partial(process, self._broker)

    def take(self, frame: Frame) -> None:
        """Process a client's frame."""
        fault = self._fault
        if fault is not None and fault.input_hook is not None and frame.method in fault.methods:
            fault.input_hook(self._broker, frame, self._process)
        else:
            self._process(frame)
        self._broker.touched.clear()
        self._broker.teardowns.clear()

    def next_frames(self, congested: Callable[[str], bool]) -> Iterable[Frame] | None:
        """The next frame that the broker sends, as its fault makes it (so perhaps none or several); None: it is quiet.

        Deliveries to connections that are `congested` wait. Raises `ModelDefect`.
        """
        if self._broker.quiet:
            return None
        for frame in permitted(self._broker):
            if frame.method == "basic.deliver" and congested(frame.connection):
                continue
            break
        else:
            return None
        mismatches = observe(self._broker, frame)
        if mismatches:
            details = ", ".join(mismatch.detail for mismatch in mismatches)
            raise ModelDefect(f"the model does not accept its own {frame}: {details}", frame.connection)
        fault = self._fault
        if fault is not None and fault.output_hook is not None and frame.method in fault.methods:
            return fault.output_hook(self._broker, frame)
        return (frame,)

    def end(self, connection: str) -> None:
        """The TCP connection is over: its channels end, and nothing of it is kept."""
        if connection in self._broker.connections:
            self.take(Frame(connection, 0, "socket.abort", {}, sent=True))
            self._broker.forget_connection(connection)
