"""What a failure does to an application: the gravest first.

It follows from the rule that is broken and from what was seen: `_TABLE` is the definition. Reports list failures in
this order, and the gravest are shrunk first. It says what such a difference does as a rule, not what it did in one run.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape


class Severity(StrEnum):
    """From the gravest on."""

    LOST = "messages lost"
    REPEATED = "duplicated or out of order"
    ALTERED = "messages altered"
    ERRED = "the broker erred"
    MISDIRECTED = "given to the wrong one"
    STUCK = "stuck"
    WRONG_STATE = "wrong state or counts"
    CLOSED = "connection or channel lost"
    WRONG_CODE = "wrong code"
    WRONG_WORDS = "wrong words"


ORDER: tuple[Severity, ...] = tuple(Severity)


class _Row(NamedTuple):
    """A failure whose requirement begins like that, of that shape, and whose whole detail is that (both patterns)."""

    severity: Severity
    requirement: str
    shape: Shape | None
    detail: str


_ANY = ""
_END = r"(connection\.close|connection\.close-ok|socket\.closed)"
#: What would have told the client that it may not do that; it is missing, or there is another answer in its place.
_NOT_REFUSED = r"(.+ in place of )?(channel\.close|connection\.close|socket\.closed)( for .+)?"
_HANDED_OVER = r"basic\.(deliver|get-ok)( in place of .+)?"

#: The first row that fits counts; what none fits is of the state: `Severity.WRONG_STATE`.
_TABLE = (
    # the broker is gone, for everybody, with what was on no disk
    _Row(Severity.LOST, "SERVER-001", None, ".+"),
    # what it writes cannot be read: a client that minds that cannot go on, even where we can
    _Row(Severity.ERRED, "SERVER-002", None, ".+"),
    # ---- what a frame says is wrong
    _Row(Severity.WRONG_WORDS, _ANY, Shape.WRONG_ARGUMENT, r".+ reply-text|connection\.start server-properties"),
    # a property or a header is gone, or another one: an application goes by it as much as by the body
    _Row(Severity.ALTERED, "PUBLISH-016", Shape.WRONG_ARGUMENT, r"basic\.(deliver|get-ok) .+"),
    _Row(Severity.ALTERED, "PUBLISH-007", Shape.WRONG_ARGUMENT, r"basic\.return content"),
    # the form of a confirm: what it confirms is right
    _Row(Severity.WRONG_WORDS, "CONFIRM-", Shape.WRONG_ARGUMENT, r"basic\.n?ack (multiple|requeue)"),
    # what was made cannot be named by anybody
    _Row(Severity.WRONG_STATE, "QUEUE-006|CONSUME-002", Shape.WRONG_ARGUMENT, r".+ that is empty"),
    # constants, and what generated names look like
    _Row(Severity.WRONG_WORDS, "CONN-010|QUEUE-006|QUEUE-028|CONSUME-002", Shape.WRONG_ARGUMENT, ".+"),
    _Row(Severity.WRONG_CODE, _ANY, Shape.WRONG_ARGUMENT, r".+ (reply-code|class-id|method-id|nowait)"),
    # a settlement is one of another delivery then
    _Row(Severity.MISDIRECTED, _ANY, Shape.WRONG_ARGUMENT, r"basic\.(deliver|get-ok) delivery-tag"),
    # more is purged than is ready: what a client holds, and cannot give back any more
    _Row(Severity.LOST, "QUEUE-024", Shape.WRONG_ARGUMENT, r"queue\.purge-ok message-count"),
    # ---- a connection or channel ends
    # what is durable is gone after a restart, with what was in it
    _Row(Severity.LOST, "DURABLE-", Shape.UNEXPECTED, r"channel\.close( .+)?"),
    # it was to end: only how it does is wrong
    _Row(Severity.WRONG_CODE, _ANY, Shape.UNEXPECTED, rf"{_END} in place of {_END}"),
    _Row(Severity.WRONG_CODE, _ANY, Shape.UNEXPECTED, r"(channel\.close|basic\.return) in place of connection\.close"),
    _Row(Severity.CLOSED, _ANY, Shape.UNEXPECTED, r"(connection\.close|channel\.close|socket\.(closed|garbage))( .+)?"),
    # ---- the publisher is told that all is well, and it is not; or that it is not, and it is
    _Row(Severity.LOST, _ANY, Shape.UNEXPECTED, r"basic\.ack of a message that a queue refused"),
    _Row(Severity.LOST, "CONFIRM-019", Shape.UNEXPECTED, r"basic\.ack of .+"),
    _Row(Severity.LOST, "TX-008|TX-003", Shape.UNEXPECTED, r"tx\.commit-ok( .+)?"),
    _Row(Severity.LOST, _ANY, Shape.MISSING, r"basic\.return"),
    # a corner of matching: it goes where it does not belong, and not where it does
    _Row(Severity.MISDIRECTED, "PUBLISH-00[56]", Shape.UNEXPECTED, r"basic\.return"),
    _Row(Severity.WRONG_STATE, "TX-", Shape.UNEXPECTED, r"basic\.return.*"),
    _Row(Severity.LOST, _ANY, Shape.UNEXPECTED, r"basic\.return"),
    _Row(Severity.REPEATED, _ANY, Shape.UNEXPECTED, r"basic\.nack of a message that no queue refused"),
    _Row(Severity.REPEATED, _ANY, Shape.UNEXPECTED, r"basic\.ack before basic\.return"),
    # ---- what must be refused is not
    # carried out on a channel that the broker has closed: what the client takes for refused is done
    _Row(Severity.LOST, "CHAN-005", Shape.UNEXPECTED, r"a reply( .+)?"),
    _Row(Severity.LOST, "QUEUE-023", Shape.UNEXPECTED, r"queue\.delete-ok in place of .+"),
    # what is another's is used, or what is not permitted
    _Row(
        Severity.MISDIRECTED,
        "QUEUE-(008|019)|CONSUME-00[789]|GET-005|PERMISSION-|CONN-00[5-9]|EXCHANGE-009|PUBLISH-012|CHAN-017|REPLY-005",
        None,
        _NOT_REFUSED,
    ),
    # a delivery that nobody acknowledges in time is to end the channel
    _Row(Severity.STUCK, "TIMEOUT-", Shape.MISSING, ".+"),
    # no application that keeps to the protocol does that
    _Row(
        Severity.WRONG_CODE,
        "CHAN-(002|010|011|012|014|020)|CONN-0(03|1[1-4]|1[6-9]|2[6-9])|QOS-007|PUBLISH-009|PUBLISH-014",
        None,
        _NOT_REFUSED,
    ),
    _Row(Severity.WRONG_STATE, _ANY, None, _NOT_REFUSED),
    # ---- what is owed does not come
    # the others take the place of their messages, or the room that a settlement makes
    _Row(
        Severity.STUCK,
        "QOS-|SAC-|PRIORITY-|CANCEL-|CONSUME-|STREAM-006|ACK-00[1-3]|TX-005",
        Shape.MISSING,
        r"basic\.deliver|messages ready",
    ),
    _Row(Severity.MISDIRECTED, "PUBLISH-00[56]", Shape.MISSING, r"basic\.(deliver|get-ok)|messages ready"),
    _Row(Severity.LOST, _ANY, Shape.MISSING, r"basic\.(deliver|get-ok)|messages ready"),
    _Row(Severity.STUCK, "GET-003", Shape.UNEXPECTED, r"basic\.get-empty although .+"),
    _Row(Severity.LOST, _ANY, Shape.UNEXPECTED, r"basic\.get-empty although .+"),
    # a reply, a confirm, word of a consumer that is gone: somebody waits for it
    _Row(Severity.STUCK, _ANY, Shape.MISSING, ".+"),
    # a consumer is gone that had all right to be there
    _Row(Severity.STUCK, "TIMEOUT-|ACK-", Shape.UNEXPECTED, r"basic\.cancel"),
    # ---- a message is handed over that must not be
    _Row(
        Severity.REPEATED,
        _ANY,
        Shape.UNEXPECTED,
        r"basic\.(deliver|get-ok) (out of the stream's order|of what is not in the stream|ahead of a delivery"
        r"|before consume-ok|before the messages .+)",
    ),
    _Row(
        Severity.MISDIRECTED,
        _ANY,
        Shape.UNEXPECTED,
        r"basic\.deliver (to a consumer of lower priority|to a consumer that is not active"
        r"|by a queue that serves nobody|behind .+)",
    ),
    # somebody who may have it: only the turns are not kept
    _Row(Severity.WRONG_STATE, _ANY, Shape.UNEXPECTED, r"basic\.deliver to the same consumer .+"),
    # another body than was published
    _Row(Severity.LOST, "PUBLISH-016", Shape.UNEXPECTED, _HANDED_OVER),
    # routed to where it does not belong, or to a consumer that is cancelled
    _Row(
        Severity.MISDIRECTED,
        "PUBLISH-0(0[1-8]|1[018])|BIND-(?!003)|EXCHANGE-|CANCEL-00[1-9]|SAC-|REPLY-|CONN-|PERMISSION-|QUEUE-",
        Shape.UNEXPECTED,
        _HANDED_OVER,
    ),
    # it comes though it is over, was refused, or is not committed
    _Row(
        Severity.WRONG_STATE,
        "TTL-|OVERFLOW-|CONFIRM-|TX-00[29]|DLX-008|QUORUM-003",
        Shape.UNEXPECTED,
        _HANDED_OVER,
    ),
    # settled, requeued, or in another place
    _Row(Severity.REPEATED, _ANY, Shape.UNEXPECTED, _HANDED_OVER),
)


#: The broker's own word for an error of its own: whatever was asked, it is at fault.
_ERRED = re.compile(r"\breply-code=541\b|\bINTERNAL_ERROR\b")


def severity_of(failure: Failure) -> Severity:
    """What the failure does to an application."""
    return severity_by(failure.requirement, failure.shape, failure.detail, failure.observed)


def severity_by(requirement: str, shape: str, detail: str, observed: str) -> Severity:
    """The same, by what tells one failure from another, and by what was seen."""
    entry = requirements().get(requirement)
    if entry is not None and entry.severity:
        return Severity(entry.severity)
    severity = _by_table(requirement, shape, detail)
    is_graver = ORDER.index(severity) < ORDER.index(Severity.ERRED)
    return Severity.ERRED if not is_graver and _ERRED.search(observed) else severity


@cache
def _by_table(requirement: str, shape: str, detail: str) -> Severity:
    for row in _TABLE:
        if row.shape not in (None, shape) or not re.match(row.requirement, requirement):
            continue
        if re.fullmatch(row.detail, detail):
            return row.severity
    return Severity.WRONG_STATE


def rank(failure: Failure) -> int:
    """By which failures are sorted, the gravest first."""
    return ORDER.index(severity_of(failure))
