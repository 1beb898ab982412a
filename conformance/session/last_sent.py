"""What each channel was sent last: whether its answer is a round trip of the channel already."""

from __future__ import annotations

from amqpspec.model.protocol.methods import SYNCHRONOUS_METHODS, ChannelKey, TraceEvent

#: After these a channel may be told what it has not asked for: deliveries, confirms, a cancel of its consumer.
_HEARS_FROM_THEN_ON = frozenset({"basic.consume", "confirm.select"})


class LastSent:
    """Of each channel of a sequence, while nothing is owed: every request has been answered then."""

    def __init__(self) -> None:
        self._requested: dict[ChannelKey, bool] = {}
        self._hears: set[ChannelKey] = set()

    def sent(self, event: TraceEvent) -> None:
        channel = (event.connection, event.channel)
        is_request = event.name in SYNCHRONOUS_METHODS and not event.arguments.get("nowait")
        self._requested[channel] = is_request
        if event.name in _HEARS_FROM_THEN_ON:
            self._hears.add(channel)

    def is_answered(self, channel: ChannelKey) -> bool:
        """Its last frame was a request, and all that comes on it comes ahead of an answer: there is nothing to flush.

        An answer need not come after a delivery that a queue has sent to the channel (rabbit_channel takes the answer
        of a queue ahead of what else has come to it), so this is never true of a channel with consumers.
        """
        return self._requested.get(channel, False) and channel not in self._hears
