"""The stream of the application that uses a library: the frames that it asks for, and what it is shown.

Such a frame has the name of its connection with `_BEHIND` behind it, which no command can say. A frame that is sent is
what the application asks for; one that is received is what the library shows. `REFUSED` is what the library says
itself, in place of sending what it was asked for.
"""

from __future__ import annotations

from amqpspec.model.protocol.methods import Content, Method, Table

_BEHIND = "/application"
#: The library did not send the method that was asked for last on the channel, and said so. `method` and `reason`.
REFUSED = "library.refused"
#: It did not send it, and came back as if it had. `method`.
UNSENT = "library.unsent"
#: Its function does not come back. `method`.
WAITS = "library.waits"


def asked(connection: str, channel: int, method: str, arguments: Table, content: Content | None) -> Method:
    """The application asks for this method."""
    return Method(connection + _BEHIND, channel, method, arguments, sent=True, content=content)


def shown(connection: str, channel: int, method: str, arguments: Table, content: Content | None = None) -> Method:
    """The application is shown this method."""
    return Method(connection + _BEHIND, channel, method, arguments, sent=False, content=content)


def is_of_application(connection: str) -> bool:
    return connection.endswith(_BEHIND)


def connection_of(connection: str) -> str:
    """The connection whose application that is."""
    return connection.removesuffix(_BEHIND)
