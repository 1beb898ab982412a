"""How strong a promise is that a failure breaks: what a broker can be told with it."""

from __future__ import annotations

from enum import StrEnum


class Strength(StrEnum):
    #: a document says so: the text of 0-9-1, a guide or release notes of RabbitMQ
    PROMISED = "promised"
    #: what brokers of the family do and clients rely on, such as 406 for an argument of a wrong type
    CONVENTIONAL = "conventional"
    #: a text can be read otherwise, promises it of another protocol or another release, or says that it is not promised
    ARGUABLE = "arguable"
