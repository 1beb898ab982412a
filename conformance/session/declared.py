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
        #: by channel, what was asked for and not answered: kind, name, and whether it may be ours then
        self._asked: dict[ChannelKey, deque[tuple[str, str, bool]]] = defaultdict(deque)

    def sent(self, event: TraceEvent) -> None:
        kind, _, method = event.name.partition(".")
        if method == "declare" and not event.arguments.get("nowait"):
            name = str(event.arguments.get(kind, ""))
            self._asked[event.connection, event.channel].append((kind, name, not event.arguments.get("passive")))
        elif event.name == "exchange.delete" and event.arguments.get("exchange") in PREDECLARED_EXCHANGES:
            self.let_go[event.arguments["exchange"]] = None

    def received(self, event: TraceEvent) -> None:
        if event.name in ("connection.close", "connection.close-ok", "socket.closed"):
            # the next connection of that name has asked for nothing yet
            for channel in [each for each in self._asked if each[0] == event.connection]:
                del self._asked[channel]
            return
        kind, _, method = event.name.partition(".")
        asked = self._asked[event.connection, event.channel]
        if event.name == "channel.close":
            asked.clear()
        elif method == "declare-ok" and asked:
            _, name, is_ours = asked.popleft()
            name = str(event.arguments.get("queue", name))
            if is_ours and name not in PREDECLARED_EXCHANGES and not name.startswith(_RABBITMQ):
                self.names[kind, name] = None
