"""What a broker says that it has declared, and which of its own exchanges it has let go.

Declared are names that it made up, and reserved names that it should have refused; the rest of what a sequence makes is
known by the names that its commands give. What it has let go is to be put back: it belongs to everybody.
"""

from __future__ import annotations

from collections import defaultdict, deque

from amqpspec.model.broker.broker_state import PREDECLARED_EXCHANGES
from amqpspec.model.protocol.methods import ChannelKey, TraceEvent

#: What begins the names of exchanges, and of a queue that is none, which RabbitMQ has besides.
_RABBITMQ = "amq.rabbitmq."


class Declared:
    """Is shown what is sent and received on the connections of a sequence."""

    def __init__(self) -> None:
        #: (kind, name), of what was there when the broker had answered
        self.names: dict[tuple[str, str], None] = {}
        #: exchanges of the broker's own that may have been deleted
        self.let_go: dict[str, None] = {}
        #: (kind, name), of what the broker was asked to declare and has not: it refused, or says another name. What
        #: cannot be deleted of these is not left behind
        self.never_made: dict[tuple[str, str], None] = {}
        #: (kind, name), of what the broker said that is there
        self._there: set[tuple[str, str]] = set()
        #: by channel, names whose declaration was not to be answered
        self._unanswered: dict[ChannelKey, list[tuple[str, str]]] = defaultdict(list)
        #: by channel, what was asked for and not answered: kind, name, and whether it may be ours then
        self._asked: dict[ChannelKey, deque[tuple[str, str, bool]]] = defaultdict(deque)

    @property
    def unanswered(self) -> dict[tuple[str, str], None]:
        """(kind, name), of what the broker was asked to declare, and has never said that it is there."""
        asked = [(kind, name) for several in self._asked.values() for kind, name, _ in several]
        return dict.fromkeys(each for each in asked if each not in self._there)

    def sent(self, event: TraceEvent) -> None:
        kind, _, method = event.name.partition(".")
        if method == "declare":
            name = str(event.arguments.get(kind, ""))
            key = event.connection, event.channel
            if event.arguments.get("nowait"):
                self._unanswered[key].append((kind, name))
            else:
                self._asked[key].append((kind, name, not event.arguments.get("passive")))
        elif event.name == "exchange.delete" and event.arguments.get("exchange") in PREDECLARED_EXCHANGES:
            self.let_go[event.arguments["exchange"]] = None

    def received(self, event: TraceEvent) -> None:
        if event.name in ("connection.close", "connection.close-ok", "socket.closed"):
            # the next connection of that name has asked for nothing yet
            for channel in [each for each in self._asked.keys() | self._unanswered if each[0] == event.connection]:
                self._end(channel, is_refusal=event.name != "connection.close-ok")
            return
        kind, _, method = event.name.partition(".")
        asked = self._asked[event.connection, event.channel]
        if event.name == "channel.close":
            self._end((event.connection, event.channel), is_refusal=True)
        elif method == "declare-ok" and asked:
            _, given, is_ours = asked.popleft()
            name = str(event.arguments.get("queue", given))
            self._there.add((kind, name))
            self.never_made.pop((kind, name), None)
            if name != given and (kind, given) not in self._there:
                self.never_made[kind, given] = None
            # those before it on the channel were declared
            self._there.update(self._unanswered.pop((event.connection, event.channel), ()))
            if is_ours and name not in PREDECLARED_EXCHANGES and not name.startswith(_RABBITMQ):
                self.names[kind, name] = None

    def _end(self, channel: ChannelKey, is_refusal: bool) -> None:
        """The channel is over, and what it had asked for is not answered any more."""
        asked = [(kind, name) for kind, name, _ in self._asked.pop(channel, ())]
        open_ones = [*self._unanswered.pop(channel, ()), *asked]
        if is_refusal:
            self.never_made.update(dict.fromkeys(each for each in open_ones if each not in self._there))
