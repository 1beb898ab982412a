"""What a peer can do that no broker should, each as an `Attack` on the relay of `hostile_broker`."""

from __future__ import annotations

from collections.abc import Callable

from amqpspec.targets.codec.methods_codec import HEARTBEAT_OCTETS, PROTOCOL_HEADER
from tests.end_to_end.hostile_broker import Attack, Victim, method
from tests.end_to_end.hostile_octets import BLOCKED, FLOODS, FRAMES, HTTP, TLS_ALERT, deep, long, says, short, start

SHORT = ("--only", "GET-001", "--sequences", "1")
SHORTEST = ("--only", "GET-001", "--sequences", "0")
SEEN = frozenset({1, 3})
LOST = frozenset({3})
HARMLESS = frozenset({0})
UNDECIDED = frozenset({4})
SEEN_OR_NOT = frozenset({1, 4})
#: A reply that every sequence waits for, early.
REPLY = "queue.declare-ok"

# ---- ways to strike


def says_and_is_silent(octets: bytes) -> Callable[[Victim], None]:
    def strike(victim: Victim) -> None:
        victim.send(octets)
        victim.wait()

    return strike


def says_and_ends(octets: bytes) -> Callable[[Victim], None]:
    return lambda victim: victim.send(octets)


def says_and_resets(octets: bytes) -> Callable[[Victim], None]:
    def strike(victim: Victim) -> None:
        victim.send(octets)
        victim.reset()

    return strike


def says_before(octets: bytes) -> Callable[[Victim], None]:
    """The reply comes after all, and the broker is an ordinary one again."""

    def strike(victim: Victim) -> None:
        victim.send(octets + victim.held + victim.content)
        victim.go_on()

    return strike


def says_instead(octets: bytes) -> Callable[[Victim], None]:
    def strike(victim: Victim) -> None:
        victim.send(octets)
        victim.go_on()

    return strike


def floods(octets: bytes, first: bytes = b"") -> Callable[[Victim], None]:
    def strike(victim: Victim) -> None:
        victim.send(first)
        victim.flood(octets)

    return strike


def floods_behind_the_reply(octets: bytes) -> Callable[[Victim], None]:
    def strike(victim: Victim) -> None:
        victim.send(victim.held + victim.content)
        victim.flood(octets)

    return strike


def half_and_is_silent(victim: Victim) -> None:
    octets = victim.held + victim.content
    victim.send(octets[: len(octets) // 2])
    victim.wait()


def half_and_ends(victim: Victim) -> None:
    octets = victim.held + victim.content
    victim.send(octets[: len(octets) // 2])


def half_and_resets(victim: Victim) -> None:
    half_and_ends(victim)
    victim.reset()


def method_alone(victim: Victim) -> None:
    victim.send(victim.held)
    victim.wait()


def drips(victim: Victim) -> None:
    victim.drip((victim.held + victim.content) * 1000, 0.1)


def is_health_check(octets: bytes) -> bool:
    return b"-alive" in octets


def floods_the_health_check(victim: Victim) -> None:
    if is_health_check(victim.held):
        victim.flood(method("basic.ack", delivery_tag=1))
    victim.wait()


def dies(victim: Victim) -> None:
    victim.die()


def stops_accepting(victim: Victim) -> None:
    victim.stop_accepting()
    victim.wait()


# ---- the handshake. The first connection asks what the broker is; what comes at it ends the run before it begins.

_POINTS = {
    "connect": "connect", "header": "connection.start", "start-ok": "connection.tune", "open": "connection.open-ok"
}  # fmt: skip

HANDSHAKE = [
    *[
        Attack(f"silence after {after}, connection {skip + 1}", at, skip=skip, codes=LOST if skip == 0 else SEEN)
        for after, at in _POINTS.items()
        for skip in (0, 1)
    ],
    *[Attack(f"end after {after}", at, says_and_ends(b""), 1) for after, at in _POINTS.items()],
    # a reset may come so early that there is no connection yet, and nothing to judge
    *[Attack(f"reset after {after}", at, Victim.reset, 1, checked=SEEN_OR_NOT) for after, at in _POINTS.items()],
    *[Attack(f"half a frame after {after}", at, half_and_is_silent, 1) for after, at in list(_POINTS.items())[1:]],
    *[
        Attack(f"{what} after {after}", at, says_and_is_silent(octets), 1)
        for after, at in (("header", "connection.start"), ("open", "connection.open-ok"))
        for what, octets in (
            ("HTTP", HTTP),
            ("TLS alert", TLS_ALERT),
            ("protocol header", b"AMQP\x01\x01\x00\x0a"),
            ("close", method("connection.close", 0, reply_code=320, reply_text="go away")),
            ("close not in UTF-8", method("connection.close", 0, reply_code=65535, reply_text="\udcff\udcfe" * 40)),
        )
    ],
    Attack("flood of protocol headers in the handshake", "connection.start", floods(PROTOCOL_HEADER), 1),
    Attack("flood of heartbeats in the handshake", "connection.tune", floods(HEARTBEAT_OCTETS), 1),
    Attack("one octet at a time in the handshake", "connection.tune", drips, 1),
    Attack("mechanisms of 10 MB", instead={"connection.start": start(mechanisms=b"P" * 10_000_000)}, codes=LOST),
    Attack("mechanisms of 100 KB", instead={"connection.start": start(mechanisms=b"PL " * 33_000)}, codes=LOST),
    Attack("mechanisms not in UTF-8", instead={"connection.start": start(mechanisms=b"\xff\xfe")}, codes=LOST),
    Attack("server properties 5000 deep", instead={"connection.start": start(deep(5000))}, codes=LOST),
    Attack("server properties lie", instead={"connection.start": start(b"\xff\xff\xff\xff")}, codes=LOST),
    Attack("tune of size 1", instead={
        "connection.tune": method("connection.tune", 0, channel_max=1, frame_max=1, heartbeat=0),
        "> connection.tune-ok": method("connection.tune-ok", 0, channel_max=2047, frame_max=131_072),
    }),
    Attack("tune of the greatest numbers", instead={
        "connection.tune": method("connection.tune", 0, channel_max=65535, frame_max=2**32 - 1, heartbeat=65535),
    }, codes=LOST),
    Attack("second start", "connection.open-ok", says_and_is_silent(start()), 1),
    Attack("tune again and again", "connection.open-ok", floods(method("connection.tune", 0)), 1, arguments=SHORT),
]  # fmt: skip

#: With the scenarios about what a broker says of itself: no other judges that.
EVERY_CONNECTION = (
    "--only", "GET-001", "--only", "CAP-001", "--only", "CONN-001", "--only", "CONN-010", "--only", "CONN-025",
    "--sequences", "3",
)  # fmt: skip

#: What such a broker says of itself goes into every report.
ODD = [
    Attack("product not in UTF-8", instead={"connection.start": start(says(product=b"\xff<b>", version=b"\xfe"))},
        arguments=EVERY_CONNECTION),
    Attack("product of 100 KB", instead={"connection.start": start(says(product=b"x" * 100_000, version=b"1"))},
        arguments=EVERY_CONNECTION),
    Attack("version of 5000 digits", instead={
        "connection.start": start(says(product=b"RabbitMQ", version=b"4" * 5000 + b".1"))
    }, arguments=EVERY_CONNECTION),
    Attack("version of other digits", instead={
        "connection.start": start(says(product=b"RabbitMQ", version="٤.³".encode()))
    }, arguments=EVERY_CONNECTION),
    Attack("product is a table", instead={"connection.start": start(long(short(b"product") + b"F" + deep(50)))},
        arguments=EVERY_CONNECTION),
    Attack("product with markup", instead={
        "connection.start": start(says(product=b"[/red][bold\x1b[2J\0\r\n", version=b"</td>"))
    }, arguments=EVERY_CONNECTION),
    Attack("no limits", instead={
        "connection.tune": method("connection.tune", 0, channel_max=0, frame_max=0, heartbeat=0),
        "> connection.tune-ok": method("connection.tune-ok", 0, channel_max=2047, frame_max=131_072),
    }, arguments=EVERY_CONNECTION),
    Attack("blocked and unblocked, in moderation", REPLY, says_before(
        (method("connection.blocked", 0, reason="low on \udcff") + method("connection.unblocked", 0)) * 20
    ), codes=UNDECIDED, checked=UNDECIDED, arguments=("--only", "GET-001", "--sequences", "3", "--deadline", "5")),
    Attack("heartbeats nobody asked for", REPLY, says_before(HEARTBEAT_OCTETS * 20), codes=HARMLESS, checked=HARMLESS,
        arguments=("--only", "GET-001", "--sequences", "3", "--deadline", "5")),
]  # fmt: skip

# ---- in the middle of a sequence: instead of a reply, or before it

MIDDLE = [
    *[Attack(name, REPLY, says_before(octets), arguments=SHORTEST) for name, octets in FRAMES.items()],
    *[
        Attack(f"flood of {name}", REPLY, floods(octets, first), arguments=SHORT)
        for name, (first, octets) in FLOODS.items()
    ],
    # an alarm that nobody of ours has raised is no fault of the broker's
    Attack("flood of blocked and unblocked", REPLY, floods(BLOCKED), arguments=SHORT, codes=UNDECIDED | LOST,
        checked=UNDECIDED),
    Attack("flood of blocked and unblocked behind the reply", REPLY, floods_behind_the_reply(BLOCKED), arguments=SHORT,
        codes=UNDECIDED | LOST, checked=UNDECIDED),
    *[
        Attack(f"flood of {name} behind the reply", REPLY, floods_behind_the_reply(FLOODS[name][1]), arguments=SHORT)
        for name in ("heartbeats", "channel.close", "protocol headers")
    ],
    *[
        Attack(f"{name} at {at}", at, strike)
        for at in ("channel.open-ok", REPLY, "basic.deliver")
        for name, strike in (
            ("silence", Victim.wait),
            ("half a frame, then silence", half_and_is_silent),
            ("half a frame, then the end", half_and_ends),
            ("half a frame, then a reset", half_and_resets),
        )
    ],
    Attack("one octet at a time", REPLY, drips),
    Attack("delivery without content", "basic.deliver", method_alone),
    Attack("only the health check is answered", REPLY, spares=is_health_check),
    Attack("flood at the health check", REPLY, floods_the_health_check),
    Attack("garbage for the first delivery only", "basic.deliver", says_and_is_silent(bytes(range(256)))),
    Attack("reads one octet at a time", REPLY, lambda victim: victim.read_slowly(1.0)),
    Attack("reads nothing", REPLY, Victim.be_deaf),
    Attack("dies", REPLY, dies, 4),
    # the first sequence may not be over when it is noticed
    Attack("dies at once", REPLY, dies, checked=SEEN_OR_NOT),
    Attack("stops accepting", REPLY, stops_accepting, 4),
    Attack("close, and the socket stays open", REPLY,
        says_and_is_silent(method("connection.close", 0, reply_code=320, reply_text="CONNECTION_FORCED"))),
]  # fmt: skip

_LARGE = ("--only", "PUBLISH-013", "--sequences", "0")
_WAITING = ("--only", "CONN-011", "--only", "GET-001", "--sequences", "0")

#: A message of 16 MiB is under way; the broker dies beside scenarios that wait.
ELSEWHERE = [
    Attack("end while we write", "> basic.publish", says_and_ends(b""), arguments=_LARGE),
    Attack("reset while we write", "> basic.publish", Victim.reset, arguments=_LARGE),
    Attack("deaf while we write", "> basic.publish", Victim.be_deaf, arguments=_LARGE),
    Attack("flood while we write", "> basic.publish", floods(method("basic.ack", delivery_tag=1)), arguments=_LARGE),
    Attack("dies between two sequences", "> connection.close", dies, 1, codes=LOST, checked=UNDECIDED,
        arguments=(*SHORT, "--deadline", "5")),
    Attack("dies while others wait", "basic.get-empty", dies, arguments=_WAITING),
    Attack("silence while others wait", "basic.get-empty", arguments=_WAITING),
]

ATTACKS = HANDSHAKE + ODD + MIDDLE + ELSEWHERE
