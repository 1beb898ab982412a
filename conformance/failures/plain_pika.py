"""A program that shows a failure by the calls of pika that every application makes, for whoever maintains the broker.

It is short, and its exit code says whether the defect shows, for `git bisect`. What these calls cannot do or say is
left to `conformance.failures.reproducer`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from amqpspec.conformance.failures.signs_of_failure import FailureKnownBy, KnownBy, known_by
from amqpspec.conformance.language.command import EXPECT, Command
from amqpspec.conformance.language.command_arguments import LAST_HEADERS
from amqpspec.conformance.language.names import REPLY_ADDRESS, on_the_broker
from amqpspec.model.promises.verdict import Failure
from amqpspec.model.protocol.field_types import Float32, WireInteger, values_within
from amqpspec.model.protocol.methods import OPERATOR, Table

#: Writes a value as Python does; names begin with the prefix.
Literal = Callable[[Any], str]

#: For each method the call of `BlockingChannel`, and the names there of the arguments that it takes.
_CALLS: dict[str, tuple[str, dict[str, str]]] = {
    "queue.declare": ("queue_declare", dict.fromkeys(
        ("queue", "passive", "durable", "exclusive", "auto_delete", "arguments"), "")),
    "queue.bind": ("queue_bind", dict.fromkeys(("queue", "exchange", "routing_key", "arguments"), "")),
    "queue.unbind": ("queue_unbind", dict.fromkeys(("queue", "exchange", "routing_key", "arguments"), "")),
    "queue.purge": ("queue_purge", {"queue": ""}),
    "queue.delete": ("queue_delete", dict.fromkeys(("queue", "if_unused", "if_empty"), "")),
    "exchange.declare": ("exchange_declare", {
        "exchange": "", "type": "exchange_type", "passive": "", "durable": "", "auto_delete": "", "internal": "",
        "arguments": ""}),
    "exchange.delete": ("exchange_delete", dict.fromkeys(("exchange", "if_unused"), "")),
    "exchange.bind": ("exchange_bind", dict.fromkeys(("destination", "source", "routing_key", "arguments"), "")),
    "exchange.unbind": ("exchange_unbind", dict.fromkeys(("destination", "source", "routing_key", "arguments"), "")),
    "basic.qos": ("basic_qos", {"prefetch_size": "", "prefetch_count": "", "global_": "global_qos"}),
    "basic.consume": ("basic_consume", {
        "queue": "", "consumer_tag": "", "no_ack": "auto_ack", "exclusive": "", "arguments": ""}),
    "basic.cancel": ("basic_cancel", {"consumer_tag": ""}),
    "basic.publish": ("basic_publish", dict.fromkeys(("exchange", "routing_key", "mandatory"), "")),
    "basic.get": ("basic_get", {"queue": "", "no_ack": "auto_ack"}),
    "basic.ack": ("basic_ack", dict.fromkeys(("delivery_tag", "multiple"), "")),
    "basic.nack": ("basic_nack", dict.fromkeys(("delivery_tag", "multiple", "requeue"), "")),
    "basic.reject": ("basic_reject", dict.fromkeys(("delivery_tag", "requeue"), "")),
    "basic.recover": ("basic_recover", {"requeue": ""}),
    "tx.select": ("tx_select", {}), "tx.commit": ("tx_commit", {}), "tx.rollback": ("tx_rollback", {}),
}  # fmt: skip
#: What these calls take for something else than the zero that AMQP sends, where nothing is said.
_OTHERWISE: dict[str, Table] = {
    "basic.nack": {"requeue": False}, "basic.reject": {"requeue": False}, "basic.recover": {"requeue": False},
    "exchange.declare": {"type": ""}, "basic.publish": {"exchange": "", "routing_key": ""},
    "queue.bind": {"routing_key": ""}, "exchange.bind": {"routing_key": ""}, "exchange.unbind": {"routing_key": ""},
    "queue.unbind": {"routing_key": ""},
}  # fmt: skip
#: What must be said, as pika has it said or makes something up.
_NEEDED = {
    "queue.declare": ("queue",), "queue.bind": ("queue", "exchange"), "queue.unbind": ("queue",),
    "queue.purge": ("queue",), "queue.delete": ("queue",), "exchange.declare": ("exchange",),
    "exchange.delete": ("exchange",), "exchange.bind": ("destination", "source"),
    "exchange.unbind": ("destination", "source"), "basic.consume": ("queue", "consumer_tag"), "basic.get": ("queue",),
    "basic.cancel": ("consumer_tag",), "basic.ack": ("delivery_tag",), "basic.nack": ("delivery_tag",),
    "basic.reject": ("delivery_tag",),
}  # fmt: skip
#: Frames that such a program hears of: by callbacks, by what a call gives back, and by what is raised.
_CALLED_BACK = ("basic.deliver", "basic.return", "basic.cancel")
_GIVEN_BACK = {
    "basic.get-ok": "basic.get", "basic.get-empty": "basic.get", "queue.declare-ok": "queue.declare",
    "queue.purge-ok": "queue.purge", "queue.delete-ok": "queue.delete",
}  # fmt: skip
_RAISED = ("channel.close", "connection.close")
#: What is compared of them, and how it is read from words.
COMPARED: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("delivery-tag", "message-count", "consumer-count", "reply-code"), int),
    "redelivered": lambda text: text == "true", "body": str.encode, "consumer-tag": str,
}  # fmt: skip
#: After these pika waits for nothing.
_NOT_ANSWERED = ("basic.publish", "basic.ack", "basic.nack", "basic.reject", "basic.consume", "basic.recover")
#: Values that pika sends otherwise, or not at all.
_ONLY_BY_HAND = (WireInteger, Float32, float, Decimal)
#: Seconds: within which what comes is there, and those that a frame may take that is missing.
_SOON, _PATIENCE = 0.5, 5

_BEGINNING = """\
# Exit code:   1: the broker does it; 0: it does not; 2: that cannot be told (for git bisect)

import os
import secrets
import sys
import threading
import time

import pika

URL = pika.URLParameters(sys.argv[1] if len(sys.argv) > 1 else "amqp://guest:guest@localhost:5672/%2F")
P = f"reproducer-{secrets.token_hex(4)}-"  # begins the name of each queue and exchange
sys.excepthook = lambda kind, error, trace: (print("it cannot be told:", repr(error), flush=True), os._exit(2))
threading.Timer(60, os._exit, [2]).start()  # if the broker does not answer
came = []  # since the last command


def heard(on, frame):
    return lambda channel, method, _, body: came.append({"on": on, "frame": frame, **vars(method), "body": body})


def wait(seconds):
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and all(each.is_open for each in connections):
        for each in connections:
            each.process_data_events(left / len(connections))
    for each in channels:
        if each.is_closed and each.connection.is_open:
            raise each._closing_reason  # pika tells of it at the next call, and not before
"""
_ENDING = """\
except (pika.exceptions.ChannelClosedByBroker, pika.exceptions.ConnectionClosedByBroker) as closed:
    if not is_last:
        raise
    what = "channel.close" if isinstance(closed, pika.exceptions.ChannelClosedByBroker) else "connection.close"
    came.append({"frame": what, "reply_code": closed.reply_code})

print(HEARD, *came or ["nothing"], sep="\\n  ")
told = (known for frame in came for known, fields in KNOWN if fields.items() <= frame.items())
code = next(told, OTHERWISE)
print(["NOT SEEN", SEEN, "it cannot be told"][code], flush=True)
try:
    for each in connections:
        if each.is_open:
            each.close()
"""


def plain_program(
    commands: Sequence[Command], failure: Failure, head: str, literal: Literal, prefix: str
) -> str | None:
    """The text of the program; None: pika's calls cannot do that, or nobody could tell by them what it shows.

    `head`: the remarks that it begins with. `literal`: as Python writes a value, `prefix` being that of names.
    """
    commands = [each for each in commands if each.connection != EXPECT]
    known = known_by(failure)
    if known is None or not commands or str(commands[-1]) != failure.command:
        return None  # it looks at what the last command brings
    return program_known_by(commands, known, head, literal, prefix)


def program_known_by(
    commands: Sequence[Command], known: FailureKnownBy, head: str, literal: Literal, prefix: str,
    seen: str = "SEEN", *, of_all: bool = False,
) -> str | None:  # fmt: skip
    """The same for what shows in another way. `seen`: what it prints then. `of_all`: by what comes at any time, and not
    after the last command alone.
    """
    commands = list(commands)
    if not all(map(_can_be_said, commands)):
        return None
    if not _has_pikas_consumers(commands) or (commands[-1].method == "basic.cancel" and _hears_cancel(known)):
        return None
    if known.counted:
        passive = {"queue": known.counted, "passive": True}
        commands.append(Command(commands[-1].connection, commands[-1].channel, "queue.declare", passive))
    is_missing = known.wrong is None and not known.counted
    frames = [(code, _fields(each)) for code, each in known.told]
    if not all(_is_heard(each, commands[-1], is_missing) for _, each in known.told) or _is_ambiguous(frames):
        return None
    places = dict.fromkeys((each.connection, each.channel) for each in commands)
    names = list(dict.fromkeys(name for name, _ in places))
    lines = [head + _BEGINNING, ""]
    lines.append(f"connections = [pika.BlockingConnection(URL) for _ in range({len(names)})]")
    lines += [f"{name}{channel} = connections[{names.index(name)}].channel({channel})" for name, channel in places]
    lines.append(f"channels = [{', '.join(f'{name}{channel}' for name, channel in places)}]")
    lines += _callbacks({each.method for _, each in known.told}, places)
    lines.append("KNOWN = [" + ", ".join(f"({code}, {literal(fields)})" for code, fields in frames) + "]")
    lines += [f"OTHERWISE = {known.otherwise}", f"SEEN = {literal(seen)}"]
    lines += [f'HEARD = "{"there came" if of_all else "the last command brought"}"', f"is_last = {of_all}", "try:"]
    sent = [on_the_broker(each, prefix) for each in commands]
    lines += [f"    {line}" for line in _calls(sent, literal, _PATIENCE if is_missing else _SOON, of_all)]
    lines += [_ENDING + _deletions(sent, literal)]
    text = "\n".join(lines) + "finally:\n    os._exit(code)\n"
    return text.replace("\nimport os\n", "\nimport datetime\nimport os\n") if "datetime." in text else text


def _can_be_said(command: Command) -> bool:
    call = _CALLS.get(command.method)
    if call is None or command.connection == OPERATOR or "@" in command.connection or not command.channel:
        return False
    if command.as_it_stands or command.in_flight or any(name not in call[1] for name in command.arguments):
        return False
    if any(not command.arguments.get(name) for name in _NEEDED.get(command.method, ()) if name != "delivery_tag"):
        return False
    properties = {} if command.content is None else command.content.properties
    if properties.get("headers") == LAST_HEADERS or (command.method == "basic.publish" and command.content is None):
        return False
    values = [*values_within(command.arguments), *values_within(properties)]
    return not any(isinstance(each, _ONLY_BY_HAND) or each == REPLY_ADDRESS for each in values)


def _is_heard(frame: KnownBy, last: Command, is_missing: bool) -> bool:
    """Does such a program hear of it after its last command? What a call waits for in vain, it does not."""
    if frame.method in _GIVEN_BACK:
        on = f"{last.connection}.{last.channel}"
        return not is_missing and last.method == _GIVEN_BACK[frame.method] and frame.on in ("", on)
    # where a call waits for its answer, nobody sees in which order that and others came
    is_called_back = frame.method in _CALLED_BACK and last.method not in _GIVEN_BACK.values()
    return is_called_back or frame.method in _RAISED


def _hears_cancel(known: FailureKnownBy) -> bool:
    return any(each.method == "basic.cancel" for _, each in known.told)


def _has_pikas_consumers(commands: Sequence[Command]) -> bool:
    """pika sends no cancel of a consumer that it does not know, no second consumer of a tag, and does not tell of a
    cancel by the broker after its own.
    """
    consuming: set[tuple[str, int, str]] = set()
    for each in commands:
        key = (each.connection, each.channel, str(each.arguments.get("consumer_tag")))
        if each.method == "basic.cancel" and key not in consuming:
            return False
        if each.method == "basic.consume" and key in consuming:
            return False
        if each.method == "basic.cancel":
            consuming.discard(key)
        elif each.method == "basic.consume":
            consuming.add(key)
    return True


def _fields(frame: KnownBy) -> Table:
    on = {} if frame.method in _RAISED or not frame.on else {"on": frame.on}
    compared = {name: COMPARED[name](text) for name, text in frame.fields.items() if name in COMPARED}
    return {**on, "frame": frame.method, **{name.replace("-", "_"): value for name, value in compared.items()}}


def _is_ambiguous(frames: Sequence[tuple[int, Table]]) -> bool:
    """Is a frame that is wrong told by the same as one that is right?"""
    wrong = [fields for code, fields in frames if code]
    return any(fields in wrong for code, fields in frames if not code)


def _callbacks(methods: Collection[str], places: Iterable[tuple[str, int]]) -> Iterator[str]:
    for name, channel in places:
        on = f"{name}.{channel}"
        if "basic.return" in methods:
            yield f'{name}{channel}.add_on_return_callback(heard("{on}", "basic.return"))'
        if "basic.cancel" in methods:
            told = f'{{"on": "{on}", "frame": "basic.cancel", **vars(told.method)}}'
            yield f"{name}{channel}.add_on_cancel_callback(lambda told: came.append({told}))"


def _calls(commands: Sequence[Command], literal: Literal, patience: float, of_all: bool) -> Iterator[str]:
    for place, command in enumerate(commands):
        is_last = place == len(commands) - 1
        if is_last:
            if command.method == "queue.declare" and _goes_by_the_clock(commands):
                yield f"wait({_PATIENCE})"
            yield from () if of_all else ("came.clear()", "is_last = True")
        yield from _call(command, literal, is_last)
        after = None if is_last else commands[place + 1]
        is_burst = after is not None and (after.method, after.connection, after.channel) == (
            "basic.publish", command.connection, command.channel
        )  # fmt: skip
        if is_last or (command.method in _NOT_ANSWERED and not (command.method == "basic.publish" and is_burst)):
            yield f"wait({patience if is_last else _SOON})"


def _goes_by_the_clock(commands: Sequence[Command]) -> bool:
    """Does the broker do something by itself, such as to let a message expire?"""
    return any(word in str(each) for each in commands for word in ("expir", "-ttl"))


def _call(command: Command, literal: Literal, is_last: bool) -> Iterator[str]:
    name, spelled = _CALLS[command.method]
    arguments = {**_OTHERWISE.get(command.method, {}), **command.arguments}
    words = [f"{spelled[key] or key}={literal(value)}" for key, value in arguments.items()]
    on = f"{command.connection}.{command.channel}"
    if command.content is not None:
        words.append(f"body={literal(command.content.body)}")
        if command.content.properties:
            properties = ", ".join(f"{key}={literal(value)}" for key, value in command.content.properties.items())
            words.append(f"properties=pika.BasicProperties({properties})")
    if command.method == "basic.consume":
        words.append(f'on_message_callback=heard("{on}", "basic.deliver")')
    call = f"{command.connection}{command.channel}.{name}({', '.join(words)})"
    if is_last and command.method == "basic.get":
        yield f"method, _, body = {call}"
        yield 'got = {"frame": "basic.get-ok", **vars(method), "body": body} if method else None'
        yield f'came.append({{"on": "{on}", **(got or {{"frame": "basic.get-empty"}})}})'
    elif is_last and command.method in _GIVEN_BACK.values():
        yield f'came.append({{"on": "{on}", "frame": "{command.method}-ok", **vars({call}.method)}})'
    else:
        yield call


def _deletions(commands: Sequence[Command], literal: Literal) -> str:
    made = {
        kind: list(dict.fromkeys(each.arguments[kind] for each in commands if each.method == f"{kind}.declare"))
        for kind in ("queue", "exchange")
    }
    lines = ["cleaner = pika.BlockingConnection(URL).channel()"]
    lines += [f"cleaner.{kind}_delete({literal(name)})" for kind, names in made.items() for name in names]
    return "".join(f"    {line}\n" for line in lines) if len(lines) > 1 else ""
