"""Free choices of what is made of octets: protocol headers, frames, contents, and methods that are none of a client's.

See `model.judging.free_choices`.
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.timed_out_consumers import waits_for_answer
from amqpspec.model.judging.free_choice import FreeChoice
from amqpspec.model.protocol.methods import HeaderEvent, TraceEvent
from amqpspec.model.rules.connection.handshake_content import HEADERS_0_8

_HEADER_FRAME, _BASIC = 2, 60
#: Octets of the largest body that may be announced to those who have such a limit.
_LARGEST = 536_870_912


def _is_any(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    """Always: for a right frame both values give the same state, and few raw frames are right."""
    return True


def _has_other_class(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    if event.name == "frame.other":
        return bool(event.arguments.get("type") == _HEADER_FRAME)
    return bool(event.arguments.get("class_id", _BASIC) != _BASIC)


def _announces_much(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    if event.name == "frame.other":
        return bool(event.arguments.get("type") == _HEADER_FRAME)
    return bool(event.arguments.get("body_size", 0) > _LARGEST)


def _is_header_of_0_8(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    return isinstance(event, HeaderEvent) and event.arguments.get("octets", "").lower() in HEADERS_0_8


def _may_not_be_expected(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    """A broker that announces that it takes such an answer does."""
    return channel is not None and not waits_for_answer(broker, channel.key)


_CONTENT_HEADERS = ("frame.header", "frame.other")

CHOICES_OF_FRAMES: tuple[FreeChoice, ...] = (
    FreeChoice("ends_silently_without_frame_end", (True, False), "CONN-015", ("frame.other",), _is_any),
    FreeChoice("wrong_content_class", (501, 505), "CHAN-014", _CONTENT_HEADERS, _has_other_class),
    FreeChoice("largest_announced_body", (None, _LARGEST), "CHAN-022", _CONTENT_HEADERS, _announces_much),
    FreeChoice("speaks_0_8", (True, False), "CONN-004", ("protocol.header",), _is_header_of_0_8),
    FreeChoice("client_cancel_ok", (True, False), "CANCEL-009", ("basic.cancel-ok",), _may_not_be_expected),
)
