"""The theme topology: random exchanges, bindings and keys, and messages that find their way through them.

Where a message arrives is the model's business: the barrier counts the queues that it should reach, and looks at all
queues come often, so that one which it should not have reached shows as well.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain

from hypothesis import strategies as st

from amqpspec.conformance.language.names import REPLY_ADDRESS
from amqpspec.conformance.search.actions import Actions, Draw, Key, flags, picks, queues, seldom, types
from amqpspec.model.broker.reply_addresses import REPLY_TO
from amqpspec.model.protocol.methods import Table

#: How often each action is tried, in parts of the whole.
TOPOLOGY = {
    "declare_exchange": 10, "bind_queue": 12, "bind_exchange": 7, "unbind": 7, "publish_routed": 20,
    "publish_to_many_keys": 3, "look_everywhere": 6, "delete_exchange": 3, "declare_odd_queue": 3, "delete_queue": 2,
    "redeclare": 3, "consume": 2, "get": 8, "ack": 4, "purge": 1,
    "ask_for_a_reply": 2, "reply": 2, "close_channel": 1, "close_connection": 1,
    "mistake_of_topology": 3,
}  # fmt: skip

EXCHANGES = ("e1", "e2", "e3", "e4")
KINDS = ("direct", "fanout", "topic", "headers")
ODD_QUEUES = ("q3", "q4")

#: Of its own only: the predeclared exchanges belong to everybody who uses the broker.
_exchanges = st.sampled_from(EXCHANGES)
_kinds = st.sampled_from(KINDS)
_some_queue = st.sampled_from(("q1", "q1", "q2", "q2", "q3", "q4"))
_words = ("a", "b", "")
_keys = st.lists(st.sampled_from(_words), max_size=3).map(".".join)
#: What they stand for; `*` not always.
_STAND_FOR = {"*": st.sampled_from((["a"], [""], [], ["a", "b"])), "#": st.sampled_from(([], [], ["a"], ["b", "a"]))}
_patterns = st.lists(st.sampled_from((*_words, "*", "*", "#", "#")), max_size=3).map(".".join)
_header_values = st.sampled_from((1, "1", True, 2, None, datetime(2024, 2, 29, 12, tzinfo=UTC)))
_headers = st.dictionaries(st.sampled_from(("a", "b", "x-c")), _header_values, max_size=3)
_matches = st.sampled_from((None, "all", "any", "all-with-x", "any-with-x"))
_mistakes = st.sampled_from(
    (
        "default exchange", "reserved name", "unknown type", "missing exchange", "missing queue", "bad match",
        "other connection's queue", "in use", "not empty", "alternate is no text", "internal", "immediate",
    )
)  # fmt: skip


class TopologyActions(Actions):
    """Exchanges e1 to e4 of any type and property, queues q1 to q4, and what binds them."""

    def __init__(self) -> None:
        super().__init__()
        #: what was bound so far: (method, arguments), to unbind again
        self.bound: list[tuple[str, Table]] = []

    # -------------------------------------------------------------------------------------- exchanges

    def declare_exchange(self, draw: Draw) -> None:
        self.declare_exchange_named(draw, draw(_exchanges))

    def declare_exchange_named(self, draw: Draw, name: str) -> None:
        arguments: Table = {"exchange": name, "type": draw(_kinds)}
        if draw(flags):
            arguments["durable"] = True
        if draw(flags):
            arguments["auto_delete"] = True
        if draw(seldom) and draw(seldom):
            arguments["internal"] = True
        if self.dialect.has("alternate-exchange") and draw(flags):
            # best one that leads somewhere
            leading = [each.name for each in self.plan.broker.exchanges.values() if each.bindings]
            arguments["arguments"] = {"alternate-exchange": draw(st.sampled_from(leading or EXCHANGES))}
        if draw(seldom):
            arguments["nowait"] = True
        self.issue(self.channel(draw), "exchange.declare", arguments)

    def delete_exchange(self, draw: Draw) -> None:
        arguments: Table = {"exchange": draw(_exchanges)}
        if draw(seldom):
            arguments["if_unused"] = True
        self.issue(self.channel(draw), "exchange.delete", arguments)

    def redeclare(self, draw: Draw) -> None:
        """An exchange as it is, or with one difference; or only whether it is there."""
        name = draw(_exchanges)
        exchange = self.plan.broker.exchanges.get(name)
        if exchange is None or draw(seldom):
            self.issue(self.channel(draw), "exchange.declare", {"exchange": name, "type": "direct", "passive": True})
            return
        arguments: Table = {
            "exchange": name, "type": exchange.type, "durable": exchange.durable,
            "auto_delete": exchange.auto_delete, "internal": exchange.internal,
        }  # fmt: skip
        if exchange.arguments:
            arguments["arguments"] = dict(exchange.arguments)
        pick = draw(picks)
        if pick < 3:
            bit = ("durable", "auto_delete", "internal")[pick]
            arguments[bit] = not arguments[bit]
        elif pick == 3:
            arguments["type"] = draw(_kinds)
        self.issue(self.channel(draw), "exchange.declare", {key: value for key, value in arguments.items() if value})

    # --------------------------------------------------------------------------------------- bindings

    def bind_queue(self, draw: Draw) -> None:
        self.bind(draw, "queue.bind", {"queue": draw(_some_queue), "exchange": draw(_exchanges)})

    def bind_exchange(self, draw: Draw) -> None:
        if self.dialect.has("exchange_exchange_bindings"):
            self.bind(draw, "exchange.bind", {"destination": draw(_exchanges), "source": draw(_exchanges)})
        else:
            self.bind_queue(draw)

    def bind(self, draw: Draw, method: str, arguments: Table) -> None:
        """Bind in the way that the exchange's type heeds."""
        name = arguments.get("source") or arguments["exchange"]
        if name not in self.plan.broker.exchanges and not draw(seldom):
            self.declare_exchange_named(draw, name)  # mistakes are made elsewhere
        source = self.plan.broker.exchanges.get(name)
        for destination, make in (("queue", self.declare_plainly), ("destination", self.declare_fanout)):
            if destination in arguments:
                make(draw, arguments[destination])
        if source is not None and source.type == "headers":
            table: Table = draw(_headers)
            match = draw(_matches)
            if match and (self.dialect.extensions or not match.endswith("-with-x")):
                table = {**table, "x-match": match}
            if table:
                arguments["arguments"] = table
        elif source is not None and source.type == "topic":
            arguments["routing_key"] = draw(_patterns)
        else:
            arguments["routing_key"] = draw(_keys)
        self.bound.append((method, dict(arguments)))
        if draw(seldom):
            arguments["nowait"] = True
        self.issue(self.channel(draw), method, arguments)

    def declare_plainly(self, draw: Draw, queue: str) -> None:
        if self.plan.queue(queue) is None and not draw(seldom):
            self.declare(self.channel(draw), queue, draw(types))

    def declare_fanout(self, draw: Draw, exchange: str) -> None:
        if exchange not in self.plan.broker.exchanges:
            self.issue(self.channel(draw), "exchange.declare", {"exchange": exchange, "type": "fanout"})

    def unbind(self, draw: Draw) -> None:
        """Something that was bound of late, mostly; it may be gone since."""
        if not self.bound:
            self.bind_queue(draw)
            return
        ending = [each for each in self.bound if self._ends_by_itself(each[1])]
        method, arguments = draw(st.sampled_from(ending if ending and draw(flags) else self.bound[-4:]))
        arguments = dict(arguments)
        if draw(seldom):
            arguments["routing_key"] = draw(_keys)
        self.issue(self.channel(draw), method.replace("bind", "unbind"), arguments)

    def _ends_by_itself(self, arguments: Table) -> bool:
        source = self.plan.broker.exchanges.get(arguments.get("source") or arguments["exchange"])
        return source is not None and source.auto_delete and bool(source.bindings)

    # ----------------------------------------------------------------------------------------- queues

    def declare_odd_queue(self, draw: Draw) -> None:
        """Queues that go by themselves, or are one connection's own."""
        arguments: Table = {"queue": draw(st.sampled_from(ODD_QUEUES))}
        for bit in ("exclusive", "auto_delete", "durable"):
            if draw(flags):
                arguments[bit] = True
        self.issue(self.channel(draw), "queue.declare", arguments)

    def delete_queue(self, draw: Draw) -> None:
        arguments: Table = {"queue": draw(_some_queue)}
        for bit in ("if_unused", "if_empty"):
            if draw(seldom):
                arguments[bit] = True
        self.issue(self.channel(draw), "queue.delete", arguments)

    # ----------------------------------------------------------------------------------------- messages

    def publish_routed(self, draw: Draw) -> None:
        """To an exchange that is there, with a key or headers that may match."""
        name = draw(_exchanges)
        if name not in self.plan.broker.exchanges:
            self.declare_exchange(draw)
            return
        self.publish_through(draw, name, {})

    def publish_to_many_keys(self, draw: Draw) -> None:
        """CC and BCC; with the default exchange these are queue names."""
        keys = st.lists(queues, max_size=2) if draw(flags) else st.lists(_keys, max_size=2)
        names = ("CC", "BCC") if draw(flags) else ("CC",)
        self.publish_through(draw, "" if draw(flags) else draw(_exchanges), {name: draw(keys) for name in names})

    def publish_through(self, draw: Draw, exchange: str, headers: Table) -> None:
        if exchange not in self.plan.broker.exchanges:
            return
        channel = self.channel(draw)
        state = self.state(channel)
        if self.dialect.has("publisher_confirms") and draw(flags) and not (state is not None and state.confirming):
            self.issue(channel, "confirm.select", {})
        arguments: Table = {"exchange": exchange, "routing_key": draw(_keys) if exchange else draw(_some_queue)}
        source = self.plan.broker.exchanges[exchange]
        goes_by_pattern = source.type == "topic" and bool(source.bindings) and draw(flags)
        if goes_by_pattern:
            pattern = draw(st.sampled_from([binding.routing_key for binding in source.bindings]))
            arguments["routing_key"] = self._matching(draw, pattern)
        if draw(seldom):
            arguments["mandatory"] = True
        if source.type == "headers":
            headers = {**headers, **draw(_headers)}
        self.issue(channel, "basic.publish", arguments, self.new_content({"headers": headers} if headers else {}))
        if goes_by_pattern and draw(flags):
            self.look_everywhere(draw)

    def _matching(self, draw: Draw, pattern: str) -> str:
        """A key that the pattern stands for, or nearly."""
        words = [draw(_STAND_FOR[word]) if word in _STAND_FOR else [word] for word in pattern.split(".")]
        return ".".join(chain.from_iterable(words))

    def ask_for_a_reply(self, draw: Draw) -> None:
        """A request that carries an address for direct replies, mostly with somebody who awaits them."""
        if not self.dialect.has("direct_reply_to"):
            return
        channel = self.channel(draw)
        state = self.state(channel)
        if not draw(seldom) and (state is None or "replies" not in state.consumers):
            self.issue(
                channel, "basic.consume", {"queue": REPLY_TO, "consumer_tag": "replies", "no_ack": not draw(seldom)}
            )
        self.issue(channel, "basic.publish", {"routing_key": draw(queues)}, self.new_content({"reply_to": REPLY_TO}))

    def reply(self, draw: Draw) -> None:
        if self.plan.reply_address:
            arguments: Table = {"routing_key": REPLY_ADDRESS}
            if draw(seldom):
                arguments["mandatory"] = True
            self.issue(self.channel(draw), "basic.publish", arguments, self.new_content())

    def look_everywhere(self, draw: Draw) -> None:
        """How many messages each queue has: one that should not have been reached shows here."""
        channel = self.channel(draw)
        for name in ("q1", "q2", *ODD_QUEUES):
            queue = self.plan.queue(name)
            if queue is not None and queue.owner in (None, channel[0]):
                self.issue(channel, "queue.declare", {"queue": name, "passive": True})

    # ------------------------------------------------------------------------------- deliberately wrong

    def mistake_of_topology(self, draw: Draw) -> None:
        channel, pick, mistake = self.channel(draw), draw(picks), draw(_mistakes)
        if mistake == "default exchange":
            self._touch_the_default_exchange(channel, pick)
        elif mistake == "reserved name":
            kind, method = (("exchange", "exchange.declare"), ("queue", "queue.declare"))[pick % 2]
            self.issue(channel, method, {kind: "amq.nobody"} | ({"type": "direct"} if kind == "exchange" else {}))
        elif mistake == "unknown type":
            self.issue(channel, "exchange.declare", {"exchange": draw(_exchanges), "type": "unheard-of"})
        elif mistake == "missing exchange":
            method = ("queue.bind", "queue.unbind", "basic.publish")[pick % 3]
            arguments: Table = {"queue": "q1"} if method != "basic.publish" else {}
            content = self.new_content() if method == "basic.publish" else None
            self.issue(channel, method, {**arguments, "exchange": "missing"}, content)
        elif mistake == "missing queue":
            method = ("queue.bind", "queue.unbind", "queue.delete")[pick % 3]
            where = {} if method == "queue.delete" else {"exchange": "amq.direct"}
            self.issue(channel, method, {"queue": "missing", **where})
        elif mistake == "bad match":
            arguments = {"queue": "q1", "exchange": "amq.headers", "arguments": {"x-match": "some"}}
            self.issue(channel, "queue.bind", arguments)
        elif mistake == "other connection's queue":
            method = ("queue.purge", "queue.delete", "basic.get", "basic.consume")[pick % 4]
            self.issue(channel, method, {"queue": ODD_QUEUES[pick % 2]})
        elif mistake == "in use":
            self.issue(channel, "exchange.delete", {"exchange": draw(_exchanges), "if_unused": True})
        elif mistake == "not empty":
            self.issue(channel, "queue.delete", {"queue": draw(queues), "if_empty": True})
        elif mistake == "alternate is no text" and self.dialect.extensions:
            arguments = {"exchange": "e1", "type": "fanout", "arguments": {"alternate-exchange": 1}}
            self.issue(channel, "exchange.declare", arguments)
        elif mistake == "internal":
            internal = [e.name for e in self.plan.broker.exchanges.values() if e.internal]
            if internal:
                self.issue(channel, "basic.publish", {"exchange": internal[pick % len(internal)]}, self.new_content())
        elif mistake == "immediate":
            self.issue(channel, "basic.publish", {"routing_key": "q1", "immediate": True}, self.new_content())

    def _touch_the_default_exchange(self, channel: Key, pick: int) -> None:
        method, arguments = (
            ("exchange.declare", {"type": "direct"}),
            ("exchange.delete", {}),
            ("queue.bind", {"queue": "q1", "routing_key": "k"}),
            ("queue.unbind", {"queue": "q1", "routing_key": "k"}),
        )[pick % 4]
        self.issue(channel, method, {"exchange": "", **arguments})
