"""Commands as the calls of pika that every application makes. What these cannot do or say: `pika_methods`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

from amqpspec.conformance.failures import by_hand
from amqpspec.conformance.failures.short_program import (
    PATIENCE,
    SOON,
    WHILE,
    Literal,
    Parts,
    at_places,
    by_an_operator,
    clean_up,
    made_by,
    names_of,
)
from amqpspec.conformance.failures.shows_by import Line, ShownBy
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_arguments import LAST_HEADERS
from amqpspec.conformance.language.names import REPLY_ADDRESS, on_the_broker
from amqpspec.model.protocol.field_types import Float32, WireInteger, values_within
from amqpspec.model.protocol.methods import CLOCK_WAIT, FAULTS, OPERATOR, Table

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
#: Of them pika hears by callbacks.
_CALLED_BACK = ("Basic.Deliver", "Basic.Return", "Basic.Cancel")
#: Of them by what a call gives back; and those that mean that a call came back.
_GIVEN_BACK = {
    "Basic.GetOk": "basic.get", "Basic.GetEmpty": "basic.get", "Queue.DeclareOk": "queue.declare",
    "Queue.PurgeOk": "queue.purge", "Queue.DeleteOk": "queue.delete",
}  # fmt: skip
_CAME_BACK = {
    "Basic.ConsumeOk": "basic.consume", "Basic.CancelOk": "basic.cancel", "Tx.CommitOk": "tx.commit",
    "Tx.RollbackOk": "tx.rollback", "Basic.RecoverOk": "basic.recover",
    "Exchange.DeclareOk": "exchange.declare", "Exchange.DeleteOk": "exchange.delete", "Tx.SelectOk": "tx.select",
    "Channel.OpenOk": "channel.open",
}  # fmt: skip
_CLOSES = {"Channel.Close": "ChannelClosedByBroker", "Connection.Close": "ConnectionClosedByBroker"}
#: After these pika waits for nothing.
_NOT_ANSWERED = ("basic.publish", "basic.ack", "basic.nack", "basic.reject")
#: Values that pika sends otherwise, or not at all.
_ONLY_BY_HAND = (WireInteger, Float32, float, Decimal)
#: Not the closes: before these pika cancels its consumers and closes its channels.
_OPENED = ("channel.open", "connection.open")

_NOTE = '''
def note(on, channel, method, properties=None, body=b""):
    came.append(f"{on} {method or '<Basic.GetEmpty>'} {properties or ''} body={body}".replace(P, ""))
'''


def can_be_said(shown: ShownBy) -> bool:
    """Can pika's calls do all of it, and hear all by which it shows?"""
    commands = shown.commands
    if not all(map(_is_a_call, commands)) or not _has_pikas_consumers(commands):
        return False
    if any(_is_in_flight(*pair) for pair in pairwise(commands)) or commands[-1].in_flight:
        return False
    there = {each.method for each in shown.lines if not each.is_absent}
    if there & set(_CALLED_BACK) and there & _CLOSES.keys():
        return False  # what came before a close pika does not hand out any more
    if "Basic.Cancel" in there and (len(shown.lines) > 1 or any(each.method == CLOCK_WAIT for each in commands)):
        return False  # a second one of a tag ends pika's connection
    told = [line.method for _, line in shown.told if line.method in (*_CAME_BACK, *_CALLED_BACK)]
    if len(told) > 1 and not _CAME_BACK.keys().isdisjoint(told):
        return False  # what an answer says, and what came before it, a call does not give back
    if "Basic.Cancel" in there and commands[-1].method == "basic.cancel":
        return False  # after its own pika does not tell of it
    return all(_is_heard(each, commands) for each in shown.lines)


def _is_a_call(command: Command) -> bool:
    if command.connection == OPERATOR or command.method in FAULTS:
        return command.method == CLOCK_WAIT or by_hand.call(command)[0] in ("by_hand", "restarted")
    if command.as_it_stands or "@" in command.connection:
        return False
    if command.method in _OPENED:
        return command.arguments.keys() <= {"capabilities"}
    call = _CALLS.get(command.method)
    if call is None or not command.channel or any(name not in call[1] for name in command.arguments):
        return False
    if any(not command.arguments.get(name) for name in _NEEDED.get(command.method, ()) if name != "delivery_tag"):
        return False
    properties = {} if command.content is None else command.content.properties
    if properties.get("headers") == LAST_HEADERS or (command.method == "basic.publish" and command.content is None):
        return False
    values = [*values_within(command.arguments), *values_within(properties)]
    return not any(isinstance(each, _ONLY_BY_HAND) or each == REPLY_ADDRESS for each in values)


def _is_in_flight(command: Command, after: Command) -> bool:
    """Must the next command be sent before this one is answered?"""
    same = (command.connection, command.channel) == (after.connection, after.channel)
    return command.in_flight and not (command.method in _NOT_ANSWERED and same and after.method in _NOT_ANSWERED)


def _is_heard(line: Line, commands: Sequence[Command]) -> bool:
    last = commands[-1]
    if line.method in _CLOSES:
        return line.on in ("", f"{last.connection}.0", f"{last.connection}.{last.channel}")
    if line.method in _CALLED_BACK:
        # where a call waits for its answer, nobody sees in which order that and others came
        return last.method not in _GIVEN_BACK.values() or line.is_absent
    asked = {**_GIVEN_BACK, **_CAME_BACK}.get(line.method)
    if line.is_absent:
        return line.method in ("Basic.GetOk", "Queue.DeclareOk") and len(line.words) > 1
    return any(each.method == asked for each in commands)


def _has_pikas_consumers(commands: Sequence[Command]) -> bool:
    """pika sends no cancel of a consumer that it does not know, or that the broker has ended with its queue, and no
    second consumer of a tag.
    """
    consuming: set[tuple[str, int, str]] = set()
    may_be_gone = False
    for each in commands:
        key = (each.connection, each.channel, str(each.arguments.get("consumer_tag")))
        if each.method == "basic.cancel" and (key not in consuming or may_be_gone):
            return False
        may_be_gone |= each.method == "queue.delete" and bool(consuming)
        if each.method == "basic.consume" and key in consuming:
            return False
        if each.method == "basic.cancel":
            consuming.discard(key)
        elif each.method == "basic.consume":
            consuming.add(key)
    return True


class PlainPika:
    """Writes the commands as calls. `prefix`: what names of the broker begin with in them."""

    def __init__(self, shown: ShownBy, literal: Literal, prefix: str) -> None:
        self._shown, self._literal = shown, literal
        self._sent = [
            each if each.connection == OPERATOR or each.method in FAULTS else on_the_broker(each, prefix)
            for each in shown.commands
        ]
        self._made = made_by(self._sent, prefix)
        connections = list(dict.fromkeys(each.connection for each in self._sent if not _is_for_a_person(each)))
        channels = [f"{each.connection}{each.channel}" for each in self._sent if each.channel]
        self.names = names_of([name for names in self._made.values() for name in names], [*connections, *channels])
        self._connections = connections
        self._open: set[str] = set()
        self._consumers: set[str] = set()
        # what a program does besides must take little time where the broker's clock is waited for
        self._soon = SOON / 10 if any(each.method == CLOCK_WAIT for each in shown.commands) else SOON
        self._heard = {each.method for each in shown.lines}

    def parts(self) -> Parts:
        """All that the program is made of."""
        steps: list[str] = []
        before = at_places(self._shown)
        for place, command in enumerate(self._sent):
            steps += self._opened(command)
            if place in before:
                steps += [*(self._sleeps(self._soon, self._listening()) if place else ()), *before[place]]
            if place < len(self._sent) - 1:
                steps += [*self._lines(command), *self._pause(command, self._sent[place + 1])]
        steps += self._last(self._sent[-1])
        made = {kind: [self.names[each] for each in names] for kind, names in self._made.items()}
        return Parts(_NOTE if "note" in "\n".join(steps) else "", steps, self.names, clean_up(made))

    def _opened(self, command: Command) -> Iterator[str]:
        """The connection and the channel of the command, at their first use."""
        name = command.connection
        if name == OPERATOR or command.method in FAULTS:
            return
        if name not in self._open:
            self._open.add(name)
            capabilities = command.arguments.get("capabilities")
            if capabilities:
                yield "own = copy.copy(URL)"
                yield f'own.client_properties = {{"capabilities": {self._literal(capabilities)}}}'
            yield f"{name} = pika.BlockingConnection({'own' if capabilities else 'URL'})"
        channel = f"{name}{command.channel}"
        if command.channel and channel not in self._open:
            self._open.add(channel)
            yield f"{channel} = {name}.channel({command.channel})"
            on = f"{name}.{command.channel}"
            if "Basic.Return" in self._heard:
                yield f'{channel}.add_on_return_callback(functools.partial(note, "{on}"))'
            if "Basic.Cancel" in self._heard:
                yield f'{channel}.add_on_cancel_callback(lambda frame: note("{on}", None, frame.method))'

    def _lines(self, command: Command) -> Iterator[str]:
        if command.method == CLOCK_WAIT:
            yield from self._sleeps(command.arguments.get("milliseconds", 0) / 1000, self._listening())
        elif _is_for_a_person(command):
            yield by_an_operator(command)
            if command.method == "broker.restart":
                self._open.clear()
        elif command.method not in _OPENED:
            yield from self._call(command)

    def _call(self, command: Command) -> Iterator[str]:
        name, spelled = _CALLS[command.method]
        arguments = {**_OTHERWISE.get(command.method, {}), **command.arguments}
        words = [f"{spelled[key] or key}={self._literal(value)}" for key, value in arguments.items()]
        on = f"{command.connection}.{command.channel}"
        if command.content is not None:
            words.append(f"body={self._literal(command.content.body)}")
            if command.content.properties:
                given = (f"{key}={self._literal(value)}" for key, value in command.content.properties.items())
                words.append(f"properties=pika.BasicProperties({', '.join(given)})")
        if command.method == "basic.consume":
            hears = "Basic.Deliver" in self._heard
            words.append("on_message_callback=" + (f'functools.partial(note, "{on}")' if hears else "lambda *_: None"))
        call = f"{command.connection}{command.channel}.{name}({', '.join(words)})"
        given_back = {text for text, asked in _GIVEN_BACK.items() if asked == command.method}
        if not given_back & self._heard:
            yield call
            yield from self._came_back(command)
        elif command.method == "basic.get":
            yield f'note("{on}", None, *{call})'
        else:
            yield f'note("{on}", None, {call}.method)'

    def _listening(self) -> list[str]:
        """Connections on which something shows, or does not; all, where that may be on any."""
        named = [each.on.partition(".")[0] for each in self._shown.lines if each.method in _CALLED_BACK]
        return named if all(named) else sorted(each for each in self._open if not each[-1].isdigit())

    def _came_back(self, command: Command) -> Iterator[str]:
        """It has, as the line after a call is reached."""
        on, said = f"{command.connection}.{command.channel}", set(map(str, command.arguments.values()))
        for line in self._shown.lines:
            words = [word.replace("'", "") for word in line.words[1:]]
            is_it = _CAME_BACK.get(line.method) == command.method and line.on in ("", on)
            if is_it and said.issuperset(word.partition("=")[2] for word in words):
                yield f'came.append("{on} <{" ".join([line.method, *words])}>")'
                return

    def _sleeps(self, seconds: float, names: Iterable[str]) -> Iterator[str]:
        """Time for the broker, in which these connections hear what comes."""
        open_ones = [name for name in dict.fromkeys(names) if name in self._open] or sorted(
            {each.rstrip("0123456789") for each in self._open}
        )[:1]
        for name in open_ones:
            yield f"{name}.sleep({seconds / len(open_ones):.2g})"

    def _pause(self, command: Command, after: Command) -> Iterator[str]:
        """Until it has been carried out, where the next one does not wait behind it."""
        if command.method not in (*_NOT_ANSWERED, "basic.consume", "basic.recover") or after.method == CLOCK_WAIT:
            return
        same = (command.connection, command.channel) == (after.connection, after.channel)
        if not command.in_flight and not (same and command.method == after.method == "basic.publish"):
            # pika gives back what it has not yet handed to a consumer that it cancels
            cancelled = [after.connection] if after.method == "basic.cancel" else []
            yield from self._sleeps(self._soon, [command.connection, *cancelled])

    def _last(self, command: Command) -> Iterator[str]:
        """What the last command does, and what it brings."""
        lines = [*self._lines(command)]
        pushed = [each for each in self._shown.lines if each.method in (*_CALLED_BACK, *_CLOSES.values())]
        if pushed or command.method in _NOT_ANSWERED:
            seconds = PATIENCE if self._shown.waits_for_nothing and command.method != CLOCK_WAIT else WHILE
            lines += self._sleeps(seconds, [command.connection, *self._listening()])
            if command.channel and any(each.method == "ChannelClosedByBroker" for each in self._shown.lines):
                channel = f"{command.connection}{command.channel}"
                lines += [f"if {channel}.is_closed:", f"    raise {channel}._closing_reason"]
        closed = "(pika.exceptions.ChannelClosedByBroker, pika.exceptions.ConnectionClosedByBroker)"
        return iter(["try:", *(f"    {each}" for each in lines), f"except {closed} as closed:",
                     '    came.append(f"<{closed!r}>")'])  # fmt: skip


def _is_for_a_person(command: Command) -> bool:
    return (command.connection == OPERATOR or command.method in FAULTS) and command.method != CLOCK_WAIT


def as_heard(shown: ShownBy) -> ShownBy:
    """As a program by these calls keeps it: of a close pika raises an exception."""
    ways = [
        replace(way, stages=tuple(replace(each, lines=tuple(map(_heard, each.lines))) for each in way.stages))
        for way in shown.ways
    ]
    return replace(shown, ways=tuple(ways), told=tuple((code, _heard(each)) for code, each in shown.told))


def _heard(line: Line) -> Line:
    if line.method not in _CLOSES:
        return line
    said = [word for word in line.words[1:] if not word.startswith(("class_id=", "method_id="))]  # pika does not tell
    return Line("", (_CLOSES[line.method], *(word.removeprefix("reply_code=") for word in said)), line.is_absent)
