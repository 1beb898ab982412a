"""Reply codes, and the error that a rule raises when the broker owes a close (AMQP 0-9-1 section 1.1)."""

from __future__ import annotations

from amqpspec.model.protocol.patterns import UNKNOWN_NAME, Pattern

#: reply code: (constant's name, whether it closes the connection; the others close the channel)
REPLY_CODES: dict[int, tuple[str, bool]] = {
    311: ("CONTENT_TOO_LARGE", False),
    312: ("NO_ROUTE", False),
    313: ("NO_CONSUMERS", False),
    320: ("CONNECTION_FORCED", True),
    402: ("INVALID_PATH", True),
    403: ("ACCESS_REFUSED", False),
    404: ("NOT_FOUND", False),
    405: ("RESOURCE_LOCKED", False),
    406: ("PRECONDITION_FAILED", False),
    501: ("FRAME_ERROR", True),
    502: ("SYNTAX_ERROR", True),
    503: ("COMMAND_INVALID", True),
    504: ("CHANNEL_ERROR", True),
    505: ("UNEXPECTED_FRAME", True),
    506: ("RESOURCE_ERROR", True),
    530: ("NOT_ALLOWED", True),
    540: ("NOT_IMPLEMENTED", True),
    541: ("INTERNAL_ERROR", True),
}


class ProtocolError(Exception):
    """The input breaks `requirement`: the broker owes a close with this code and text.

    Raised by rules, turned into an obligation by `model.rules.inputs.process`. It never leaves the model.
    """

    def __init__(
        self,
        requirement: str,
        code: int,
        explanation: str,
        *,
        any_text: bool = False,
        any_code: bool = False,
        named_code: bool = False,
        unsettled_code: bool = False,
        identifiers: tuple[int, int] | None = None,
        pattern: Pattern | None = None,
    ) -> None:
        super().__init__(explanation)
        self.requirement = requirement
        self.code = code
        name, self.closes_connection = REPLY_CODES[code]
        whole = f"{name} - {explanation}" if explanation else name
        self.text = shortened(whole)
        self.is_cut = self.text != whole
        #: the text is the broker's own choice, or holds a name that it chose and nobody has been told
        self.any_text = any_text or UNKNOWN_NAME in explanation
        #: any code that closes the same will do
        self.any_code = any_code
        #: the text names this one, though it leaves open those of other errors by the same requirement
        self.named_code = named_code
        #: the text leaves it open, and what a broker was seen to choose is about another method
        self.unsettled_code = unsettled_code
        #: class and method that the close names, if not those of the frame that it is about
        self.identifiers = identifiers
        #: right texts, where more than `text` is right
        self.pattern = pattern


class FrameError(ProtocolError):
    """The frame is wrong where it stands: the connection closes, whatever the channel is in the middle of.

    Raised where RabbitMQ's reader finds the error itself, and not the process of a channel. `fatal`: nothing that
    follows can be understood, and none of it is read.
    """

    def __init__(
        self,
        requirement: str,
        code: int,
        explanation: str,
        *,
        identifiers: tuple[int, int] = (0, 0),
        pattern: Pattern | None = None,
        fatal: bool = False,
    ) -> None:
        super().__init__(requirement, code, explanation, identifiers=identifiers, pattern=pattern)
        self.fatal = fatal


class SilentEnd(Exception):
    """The frame breaks `requirement`: the broker owes the end of the TCP connection, and no close."""

    def __init__(self, requirement: str) -> None:
        super().__init__(requirement)
        self.requirement = requirement


def shortened(text: str) -> str:
    """A reply text is a short string: at most 255 octets, the last three of them dots where it was cut (CHAN-008)."""
    octets = text.encode("utf-8", "surrogateescape")
    return text if len(octets) <= 255 else octets[:252].decode("utf-8", "ignore") + "..."
