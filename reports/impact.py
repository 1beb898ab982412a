"""How bad a failure is for an application, by its shape and by what it is about.

`impact_of` is the only place that decides it. It goes by what a failure looks like, not by what it brought about in a
certain case: who knows that better replaces this function.
"""

from __future__ import annotations

from enum import IntEnum


class Impact(IntEnum):
    """The worst first: reports list failures in this order."""

    MESSAGES = 0
    CONNECTION = 1
    REFUSED = 2
    STATE = 3
    TEXT = 4

    @property
    def title(self) -> str:
        return _TITLES[self]

    @property
    def meaning(self) -> str:
        """What an application notices of it, in a sentence."""
        return _MEANINGS[self]


_TITLES = {
    Impact.MESSAGES: "Messages",
    Impact.CONNECTION: "Connections and channels end",
    Impact.REFUSED: "Refused, or not refused any more",
    Impact.STATE: "State and order",
    Impact.TEXT: "Text and details",
}
_MEANINGS = {
    Impact.MESSAGES: "A delivery, a confirm or a return is missing or too many: messages may be lost or come twice.",
    Impact.CONNECTION: "The broker ends a connection or a channel, or does not where it did.",
    Impact.REFUSED: "A method gets no reply, or another one.",
    Impact.STATE: "What is told of queues, consumers and messages differs, or its order.",
    Impact.TEXT: "Texts of errors, and properties of replies.",
}

_CONTENT = ("basic.deliver", "basic.get-ok", "basic.return", "basic.ack", "basic.nack", "basic.get-empty")
_ENDS = ("connection.close", "channel.close", "socket.")
#: Parts of a detail that only people read.
_TEXTS = ("reply-text", "server-properties")


def impact_of(shape: str, detail: str, observed: str) -> Impact:
    """How bad a failure is; `shape` and `detail` as in `model.promises.verdict`."""
    method, _, _ = detail.partition(" ")
    if any(text in detail for text in _TEXTS):
        return Impact.TEXT
    if shape == "wrong argument":
        return Impact.REFUSED if method.startswith(_ENDS) else Impact.STATE
    if method.startswith(_ENDS) or any(each in observed for each in _ENDS):
        return Impact.CONNECTION
    return Impact.MESSAGES if method in _CONTENT else Impact.REFUSED
