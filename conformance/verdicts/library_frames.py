"""Frames that a client library was asked for and has sent, or that have come and were shown: is it the same?

A library may choose what was not said, such as the type of a number in a table, or an identity for a message.
"""

from __future__ import annotations

from amqpspec.model.protocol.methods import Content, TraceEvent

#: What tells two frames of one kind apart.
_COMPARED = (
    "delivery_tag", "consumer_tag", "redelivered", "exchange", "routing_key", "message_count", "reply_code",
)  # fmt: skip


def is_as_asked(sent: TraceEvent, asked: TraceEvent) -> bool:
    """An argument or property that was not given, or is empty, is for the library to choose."""
    arguments = asked.arguments.items()
    given = [(name, value) for name, value in arguments if name != "arguments" and (value or isinstance(value, bool))]
    if not all(sent.arguments.get(name, value) == value for name, value in given):
        return False
    if asked.content is None or sent.content is None:
        return True
    return asked.content.body == sent.content.body and _set_in(asked.content) <= _set_in(sent.content)


def confirms(event: TraceEvent, number: int) -> bool:
    """Does the acknowledgement of the broker settle the publish of that number?"""
    tag = int(event.arguments.get("delivery_tag", 0))
    return number == tag or (bool(event.arguments.get("multiple")) and (number <= tag or not tag))


def is_returned(published: TraceEvent, returned: TraceEvent) -> bool:
    """Is it the message that comes back?"""
    if published.content is None or returned.content is None or not published.arguments.get("mandatory"):
        return False
    place = ("exchange", "routing_key")
    is_there = all(published.arguments.get(name) == returned.arguments.get(name) for name in place)
    return is_there and published.content.body == returned.content.body


def confirm(event: TraceEvent, number: int) -> TraceEvent:
    """What it says of the publish of that number alone."""
    return type(event)(event.connection, event.channel, event.name, {"delivery_tag": number}, sent=False)


def is_same(came: TraceEvent, shown: TraceEvent) -> bool:
    """Is it the same frame? Values of header tables have other types in libraries, so they are not compared."""
    if came.name != shown.name:
        return False
    for name in _COMPARED:
        if name in shown.arguments and shown.arguments[name] != came.arguments.get(name):
            return False
    if shown.content is None or came.content is None:
        return shown.content is came.content
    return shown.content.body == came.content.body and _set_in(shown.content) == _set_in(came.content)


#: What a property that is not there means: a library may show that.
_MEANT = {"delivery_mode": 1, "priority": 0}


def _set_in(content: Content) -> set[str]:
    """Properties that say something: for an empty one a library may have none."""
    return {
        name for name, value in content.properties.items() if value not in (None, "", {}) and value != _MEANT.get(name)
    }
