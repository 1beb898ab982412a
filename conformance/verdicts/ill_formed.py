"""Telling a recorded frame that is none, such as one that somebody wrote, from one that the suite cannot judge."""

from __future__ import annotations

from amqpspec.conformance.traces.trace_row import TraceError
from amqpspec.model.protocol.methods import Method, RawFrame, TraceEvent
from amqpspec.targets.codec.field_values import EncodingError
from amqpspec.targets.codec.methods import decode_method_payload, encode_method_payload
from amqpspec.targets.codec.methods_codec import encode


def raise_if_ill_formed(sequence: str, event: TraceEvent, error: Exception) -> None:
    """`error` was raised over the event. Raises `TraceError` where no octets on a wire can mean that event."""
    if isinstance(event, (Method, RawFrame)) and not _is_frame(event):
        why = f"{type(error).__name__}: {error}"
        raise TraceError(f"the sequence {sequence!r} cannot be judged at its row {event.name}: {why}") from error


def _is_frame(event: Method | RawFrame) -> bool:
    try:
        encode(event)
        if event.sent or isinstance(event, RawFrame):
            return True  # what is sent may leave arguments out
        _, arguments = decode_method_payload(encode_method_payload(event.name, event.arguments))
        return event.arguments.keys() >= arguments.keys()
    except (EncodingError, LookupError, TypeError, ValueError, AttributeError):
        return False
