"""Which requirement a failure blames: one that the dialect has, where there is one.

Where the text of 0-9-1 has the same under another identifier, that one is blamed. Else the failure is reported as it
is: the broker did what the model of that dialect does not allow, by whatever name. What the suite is known not to
follow is no failure, and leaves the sequence undecided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape

#: What the text says where RabbitMQ has a rule of its own, or says it in more words.
IN_THE_TEXT: Mapping[str, str] = {
    # "discarded or dead-lettered"
    "DLX-005": "ACK-013",
    # basic.ack `exists`, whatever the tag is, and with multiple as well
    "ACK-008": "ACK-006",
    "RECOVER-004": "ACK-006",
    # a queue that is deleted has no consumers any more
    "CANCEL-013": "CONSUME-003",
    "CONSUME-016": "CONSUME-003",
    # consume-ok is the answer, and the consumer is there
    "CONSUME-001": "CONSUME-002",
    # bind-ok is the answer, and the binding is there
    "BIND-006": "BIND-001",
    # a channel that is closed is opened again after its close-ok
    "CHAN-006": "CHAN-002",
    # who has cancelled by itself, or has not consumed, is told of nothing
    "CANCEL-002": "CANCEL-007",
    # basic.return is for what is mandatory and no queue takes
    "PUBLISH-008": "PUBLISH-007",
    # domain message-count, whatever changed it last
    "CHAN-016": "QUEUE-001",
    "GET-004": "QUEUE-001",
    # what is there is handed out
    "GET-003": "GET-001",
    # an exclusive queue goes with its connection, in whatever way that ends
    "CONN-021": "QUEUE-020",
    # methods for clients only
    "CANCEL-009": "CHAN-011",
    # each publish is confirmed once, in one frame with others or alone
    "CONFIRM-005": "CONFIRM-003",
    # arguments are compared, as the other fields are
    "QUEUE-010": "QUEUE-007",
    # a publish is confirmed by number where that was asked for
    "TX-004": "CONFIRM-002",
    # what was not committed does not happen, whatever ends the transaction
    "TX-009": "TX-002",
    # the same over a restart: what was delivered is redelivered
    "DURABLE-003": "ACK-015",
    "DURABLE-020": "ACK-015",
    # a confirm of what is persistent says that it is on disk
    "DURABLE-004": "CONFIRM-016",
    # no connection survives a restart
    "DURABLE-006": "QUEUE-020",
    "DURABLE-007": "TX-002",
    "DURABLE-008": "STREAM-003",
    "DURABLE-011": "TTL-002",
    # what is acknowledged is gone
    "DURABLE-012": "ACK-001",
    "DURABLE-014": "SERVER-001",
    "DURABLE-015": "QUEUE-021",
    "DURABLE-016": "DLX-001",
    "DURABLE-018": "QUEUE-027",
}


def said_by(requirement: str, dialect: Dialect) -> str | None:
    """The requirement itself, or the one that has the same in the text or a feature of the dialect; None: nothing."""
    return next((each for each in (requirement, IN_THE_TEXT.get(requirement)) if each and _is_in(each, dialect)), None)


#: The rule of a frame in the text: what a broker breaks that does not send it where it is due, or sends it unasked,
#: whatever RabbitMQ's own rule says why.
OF_FRAMES: Mapping[str, str] = {
    # a method of clients, where nothing was announced
    "basic.cancel": "CANCEL-001",
    "basic.cancel-ok": "CANCEL-001",
    "basic.consume-ok": "CONSUME-002",
    "basic.get-empty": "GET-001",
    "basic.get-ok": "GET-001",
    "basic.recover-ok": "RECOVER-001",
    "channel.close": "CHAN-007",
    "channel.close-ok": "CHAN-003",
    "connection.close": "CHAN-007",
    "connection.close-ok": "CONN-020",
    # the opening of a connection, whatever is agreed in it
    "connection.open-ok": "CONN-001",
    "connection.tune": "CONN-001",
    "queue.bind-ok": "BIND-001",
    "queue.declare-ok": "QUEUE-001",
    "queue.delete-ok": "QUEUE-024",
    "queue.purge-ok": "QUEUE-024",
    "queue.unbind-ok": "BIND-002",
    "socket.closed": "CONN-020",
    "tx.commit-ok": "TX-001",
    "tx.rollback-ok": "TX-001",
    "tx.select-ok": "TX-001",
}
_REPLIES = frozenset(name for name in OF_FRAMES if not name.endswith((".cancel", ".close", ".closed")))
_ENDS = OF_FRAMES.keys() - _REPLIES


def blamed(failure: Failure, dialect: Dialect) -> Failure | None:
    """The failure as it is reported; None: it is none, as nobody can follow what the broker may do.

    RabbitMQ's dialects share their rules, and each says in its notes what a version does otherwise.
    """
    if dialect.extensions or _is_in(failure.requirement, dialect):
        return failure
    other = IN_THE_TEXT.get(failure.requirement) or _of_frame(failure)
    if other and _is_in(other, dialect):
        return replace(failure, requirement=other)
    return None if failure.requirement in NOT_FOLLOWED and not _is_without_number(failure) else failure


def _of_frame(failure: Failure) -> str:
    """The rule of the reply that did not come, of the end that nothing called for, or of one that is no such end as it
    has to be; "": it is about none of these.
    """
    seen, _, due = failure.detail.partition(" in place of ")
    if failure.shape is Shape.MISSING and seen == "socket.closed":
        return "CONN-028"  # after the close-ok of a client the broker ends the TCP connection
    if failure.shape is Shape.MISSING and seen in _REPLIES:
        return OF_FRAMES[seen]
    if failure.shape is Shape.UNEXPECTED and due in _REPLIES:
        return OF_FRAMES[due]
    if failure.shape is Shape.UNEXPECTED and seen in _ENDS and due in _ENDS:
        return "CHAN-007"  # an error ends more than it may, or less
    return OF_FRAMES[seen] if failure.shape is Shape.UNEXPECTED and seen in _ENDS and not due else ""


#: What RabbitMQ promises, a dialect without that rule leaves open, and this suite can follow in RabbitMQ's way only.
NOT_FOLLOWED: Mapping[str, str] = {
    "CONSUME-014": "the broker numbers deliveries in another order than it sends them, which cannot be followed",
    "BIND-005": "the broker binds to the default exchange, or unbinds from it, which cannot be followed",
}


def _is_without_number(failure: Failure) -> bool:
    """Is it about a delivery whose tag is 0 (which is not printed)? Domain delivery-tag, non-zero: "The server MUST NOT
    use a zero value for delivery tags."
    """
    return failure.detail.endswith(" delivery-tag") and " delivery-tag=" not in failure.observed


def why_not_followed(failure: Failure) -> str:
    """Why a sequence with a failure that is none is inconclusive."""
    return f"{NOT_FOLLOWED[failure.requirement]}: {failure.observed}"


def _is_in(requirement: str, dialect: Dialect) -> bool:
    entry = requirements().get(requirement)
    return entry is None or entry.note_in(dialect.name) is not None
