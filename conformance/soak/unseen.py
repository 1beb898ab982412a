"""How many messages of a queue can have been handed to clients that never saw them: no more than their limits allow.

What was sent to a client, and had not come when its channel ended, comes again with the flag `redelivered`, and nobody
knows which messages these are. Nobody can have settled them, so they counted towards the limit of the channel: they are
as many at most as that, less what the client had seen and not settled.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from math import inf

from amqpspec.conformance.soak.channel_account import ChannelAccount

#: Seconds after the end of a connection in which its broker may still hand out messages to it.
_NOTICED = 5.0


class Unseen:
    def __init__(self) -> None:
        #: by queue, of each channel that ended, the latest last: until when it may have been served, and its room
        self._ended: dict[str, dict[int, tuple[float, float]]] = {}
        #: by queue: when what was flagged was published, in order
        self._flagged: dict[str, list[float]] = {}

    def left_by(self, channel: ChannelAccount, time: float) -> None:
        """A channel that takes messages is closed by its client, and over later; or lost."""
        for queue in channel.sources:
            ended = self._ended.setdefault(queue, {})
            _, room = ended.pop(channel.number, (0.0, _room(channel)))
            ended[channel.number] = time + _NOTICED, room

    def may_be(self, queue: str, published: float) -> bool:
        """A message that was published then comes with the flag, and nobody was seen to have it: can somebody have had
        it? Of those that were published at some time or later, no more can than channels had room for that ended later.
        """
        flagged = self._flagged.setdefault(queue, [])
        insort(flagged, published)
        room = 0.0
        for until, its_room in reversed(self._ended.get(queue, {}).values()):
            if until < published and len(flagged) - bisect_right(flagged, until) > room:
                return False
            room += its_room
        return len(flagged) <= room


def _room(channel: ChannelAccount) -> float:
    """basic.get is not limited; an answer may be on its way to each that was asked."""
    of_consumers = (channel.limit or inf) * len(channel.consumers) if channel.consumers else 0.0
    return max(of_consumers - len(channel.held), 0.0) + len(channel.gets)
