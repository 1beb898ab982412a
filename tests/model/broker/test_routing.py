"""Routing: which queues a message reaches, each once, and which requirement decided it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from amqpspec.model.broker.queues import Binding, Exchange, Queue
from amqpspec.model.broker.routing import Routes, route
from amqpspec.model.promises.dialects import dialect_named

DIALECT = dialect_named("rabbitmq-4.3")


class Topology:
    """Exchanges and queues by name, and who is bound to whom."""

    def __init__(self, queues: Iterable[str] = "pqrs", **exchanges: str) -> None:
        self.queues = {name: Queue(name) for name in queues}
        self.exchanges = {"": Exchange("", "direct")}
        for name, type in exchanges.items():
            self.exchanges[name] = Exchange(name, type)

    def bind(self, source: str, destination: str, key: str = "", **arguments: Any) -> Topology:
        """To the queue of that name, if there is one, else to the exchange."""
        identity = tuple(sorted((name, repr(value)) for name, value in arguments.items()))
        binding = Binding(destination, key, identity, arguments, to_exchange=destination not in self.queues)
        exchange = self.exchanges[source]
        self.exchanges[source] = replace(exchange, bindings=(*exchange.bindings, binding))
        return self

    def alternate(self, source: str, to: str) -> Topology:
        self.exchanges[source].arguments["alternate-exchange"] = to
        return self

    def routes(self, exchange: str, *keys: str, headers: dict[str, Any] | None = None) -> Routes:
        return route(self.exchanges, self.queues, self.exchanges[exchange], keys, headers or {}, DIALECT)

    def reached(self, exchange: str, *keys: str, headers: dict[str, Any] | None = None) -> dict[str, str]:
        return {queue.name: why for queue, why in self.routes(exchange, *keys, headers=headers).queues.items()}


def test_default_exchange() -> None:
    topology = Topology()
    assert topology.reached("", "q") == {"q": "PUBLISH-002"}
    assert topology.reached("", "nosuch") == {}
    assert topology.reached("", "nosuch", "q", "q", "r") == {"q": "PUBLISH-011", "r": "PUBLISH-011"}
    assert topology.reached("", "q", "q", "r") == {"q": "PUBLISH-002", "r": "PUBLISH-011"}


def test_each_type_by_its_rule() -> None:
    topology = Topology(d="direct", f="fanout", t="topic", h="headers")
    for source in "dfth":
        topology.bind(source, "q", "a.b", k="v").bind(source, "r", "a.*", k="w").bind(source, "s", "A.B")
    assert topology.reached("d", "a.b") == {"q": "PUBLISH-003"}
    assert topology.reached("d", "a.*") == {"r": "PUBLISH-003"}
    assert topology.reached("f", "x") == dict.fromkeys("qrs", "PUBLISH-004")
    assert topology.reached("t", "a.b") == dict.fromkeys("qr", "PUBLISH-005")
    assert topology.reached("h", "a.b", headers={"k": "v"}) == dict.fromkeys("qs", "PUBLISH-006")


def test_several_bindings_give_one_copy() -> None:
    topology = Topology(t="topic").bind("t", "q", "a").bind("t", "q", "#").bind("t", "r", "#").bind("t", "q", "b")
    assert topology.reached("t", "a") == {"q": "BIND-003", "r": "PUBLISH-005"}


def test_exchange_to_exchange() -> None:
    topology = Topology(x="direct", y="topic", z="fanout")
    topology.bind("x", "y", "a.b").bind("y", "z", "a.*").bind("z", "x").bind("z", "q").bind("y", "q", "#")
    topology.bind("x", "r", "a.b").bind("x", "x", "s")
    assert topology.reached("x", "a.b") == {"r": "PUBLISH-003", "q": "BIND-004"}
    assert topology.reached("x", "a.c") == {}
    assert topology.reached("z", "a.b") == {"q": "BIND-004", "r": "BIND-004"}
    assert topology.reached("x", "s") == {}


def test_alternate_exchange_is_asked_when_no_binding_matches() -> None:
    topology = Topology(x="direct", y="direct", z="fanout", dead="direct")
    topology.alternate("x", "y").alternate("y", "z").alternate("z", "x")
    topology.bind("x", "p", "p").bind("y", "q", "q").bind("z", "r").bind("x", "dead", "dead")
    assert topology.reached("x", "p") == {"p": "PUBLISH-003"}
    assert topology.reached("x", "q") == {"q": "PUBLISH-010"}
    assert topology.reached("x", "other") == {"r": "PUBLISH-010"}
    # a binding that matches counts even when it leads nowhere
    assert topology.reached("x", "dead") == {}


def test_alternates_in_a_circle_or_missing() -> None:
    topology = Topology(x="direct", y="direct", z="direct", w="direct")
    topology.alternate("x", "y").alternate("y", "x").alternate("z", "nosuch").alternate("w", "w")
    for name in "xzw":
        routes = topology.routes(name, "k")
        assert not routes.queues and routes.decided_by == "PUBLISH-010"


def test_the_default_exchange_as_an_alternate_has_no_bindings() -> None:
    assert Topology(x="fanout").alternate("x", "").reached("x", "q") == {}


def test_further_keys() -> None:
    topology = Topology(d="direct", t="topic", h="headers")
    topology.bind("d", "q", "a").bind("d", "r", "b").bind("t", "q", "a").bind("t", "q", "b.#").bind("h", "q", k=1)
    assert topology.reached("d", "a", "b", "c") == {"q": "PUBLISH-003", "r": "PUBLISH-011"}
    assert topology.reached("t", "b.c", "a") == {"q": "PUBLISH-011"}
    assert topology.reached("h", "a", "b", headers={"k": 2}) == {}


def test_who_is_passed_over_and_who_decided() -> None:
    topology = Topology(d="direct", t="topic").bind("d", "q", "a").bind("d", "r", "b").bind("d", "t", "c")
    topology.bind("t", "s", "x").bind("t", "r", "c").bind("d", "r", "e")
    routes = topology.routes("d", "a")
    assert {queue.name: why for queue, why in routes.passed_over.items()} == {"r": "PUBLISH-003"}
    routes = topology.routes("d", "c")
    assert {queue.name: why for queue, why in routes.passed_over.items()} == {"q": "PUBLISH-003", "s": "BIND-004"}
    assert topology.routes("d", "z").decided_by == "PUBLISH-003"
    assert topology.routes("t", "z").decided_by == "PUBLISH-005"
    assert topology.routes("", "z").decided_by == "PUBLISH-002"
    assert topology.routes("d", "z", "y").decided_by == "PUBLISH-011"


exchange_names = st.sampled_from("uvwx")
edges = st.lists(
    st.tuples(exchange_names, st.sampled_from("uvwxpqrs"), st.sampled_from(("a", "b", "#"))), max_size=14
)
alternates = st.dictionaries(exchange_names, st.sampled_from(("u", "v", "w", "x", "nosuch")), max_size=4)


@given(edges, alternates, exchange_names, st.sampled_from("ab"))
def test_as_defined(edges: list[tuple[str, str, str]], alternates: dict[str, str], start: str, key: str) -> None:
    """The least set that holds the first exchange, and with each exchange where it sends the message."""
    topology = Topology(u="direct", v="fanout", w="topic", x="direct")
    for source, destination, pattern in edges:
        topology.bind(source, destination, pattern)
    for source, to in alternates.items():
        topology.alternate(source, to)
    reached = {start}
    while True:
        more = set(reached)
        for name in reached & topology.exchanges.keys():
            type = topology.exchanges[name].type
            followed = {
                destination
                for source, destination, pattern in edges
                if source == name and (type == "fanout" or pattern == key or (type == "topic" and pattern == "#"))
            }
            more |= followed or ({alternates[name]} if name in alternates else set())
        if more == reached:
            break
        reached = more
    assert topology.reached(start, key).keys() == reached & topology.queues.keys()


def test_long_chains_and_many_bindings_are_no_trouble() -> None:
    begin = time.process_time()
    names = [f"x{number}" for number in range(3000)]
    topology = Topology(**dict.fromkeys(names, "fanout"))
    for source, destination in pairwise(names):
        topology.bind(source, destination)
    topology.bind(names[-1], "q")
    for number in range(3000):
        topology.bind(names[0], "r", f"k{number}")
    assert topology.reached(names[0], "") == {"r": "BIND-003", "q": "BIND-004"}
    assert time.process_time() - begin < 5
