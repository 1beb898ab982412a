"""What one version of RabbitMQ does otherwise than another: of what class each such difference is, and who says so.

That a version was seen doing something makes it no promise. So each difference between the dialects has a class and a
source: each choice (`model.promises.choices`), each record of the arguments of queue.declare
(`model.promises.queue_arguments`), each note of a requirement that says something else of a version, and each
requirement whose source is that it was observed. `docs/versions.md` is the table of them; tests hold both complete.

Sources: "0-9-1" is the text of AMQP 0-9-1, "release notes of V" are rabbitmq-server's `release-notes/V.md`, "guide:
NAME" is rabbitmq-website's `docs/NAME.md`, with a version its `versioned_docs`; `module:function` is RabbitMQ's source.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class DifferenceClass(StrEnum):
    """What a difference is."""

    #: a text says that it is otherwise in that version, or in RabbitMQ
    CHANGE = "documented change"
    #: a text promises one of the two, and the versions that do the other break it
    DEFECT = "known defect"
    #: no text promises either
    FREE = "allowed both ways"


class Difference(NamedTuple):
    """The class of one difference, and who says so."""

    kind: DifferenceClass
    source: str
    #: the requirements whose notes differ between versions because of it
    requirements: tuple[str, ...] = ()
    #: where within a dialect's versions it changed, if not with the first of them
    within: str = ""
    #: the dialects in which the judge takes either as right: the versions differ, or nobody promises it
    either_in: tuple[str, ...] = ()
    #: of a requirement: another one, whose known defect it is
    as_of: str = ""
    #: of what is allowed both ways and is in no `either_in`: what allows each, or who relies on one
    allowed_by: str = ""

    @property
    def held_to(self) -> str:
        """What the model does with it, in a few words."""
        if self.allowed_by:
            return self.allowed_by
        if self.kind is DifferenceClass.DEFECT:
            return "the promise, as a known defect of the version"
        return f"either in {', '.join(self.either_in)}" if self.either_in else "what is documented of the version"
