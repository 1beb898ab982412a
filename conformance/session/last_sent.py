"""What each channel was sent last: whether its answer, or its confirm, is a round trip of the channel already."""

from __future__ import annotations

from amqpspec.model.protocol.methods import SYNCHRONOUS_METHODS, ChannelKey, TraceEvent


class LastSent:
    """Of each channel of a sequence, while nothing is owed: every request has been answered then, and every publish
    confirmed that is to be.
    """

    def __init__(self) -> None:
        self._is_answered: dict[ChannelKey, bool] = {}
        self._confirms: set[ChannelKey] = set()
        self._consumes: set[ChannelKey] = set()

    def sent(self, event: TraceEvent) -> None:
        channel = (event.connection, event.channel)
        if event.name == "channel.open":
            self._confirms.discard(channel)
            self._consumes.discard(channel)
        is_request = event.name in SYNCHRONOUS_METHODS and not event.arguments.get("nowait")
        is_confirmed = event.name == "basic.publish" and event.content is not None and channel in self._confirms
        self._is_answered[channel] = is_request or is_confirmed
        if event.name == "confirm.select":
            self._confirms.add(channel)
        elif event.name == "basic.consume":
            self._consumes.add(channel)

    def is_answered(self, channel: ChannelKey) -> bool:
        """What it was sent last was answered, and all that may come on it comes ahead of the answer, or is wrong
        whatever is sent next: there is nothing to flush.

        An answer is not behind a delivery that a queue has sent to the channel (rabbit_channel takes the answer of a
        queue ahead of what else has come to it), and what is one delivery too many now may be right behind the next
        command, so that a channel with consumers is never meant.
        """
        return self._is_answered.get(channel, False) and channel not in self._consumes
