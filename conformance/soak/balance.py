"""The end of a soak's account: what was confirmed, and was neither settled nor found when its queue was emptied."""

from __future__ import annotations

from amqpspec.conformance.soak.books import Books
from amqpspec.conformance.soak.columns import Copies, Outcome
from amqpspec.conformance.soak.findings import What
from amqpspec.conformance.soak.message import Identity


def balance(books: Books) -> None:
    """Find what is lost, in queues of which it is known that they were empty."""
    for (_, queue), copies in books.copies.items():
        if queue in books.emptied:
            _balance(books, copies)


def undecided(books: Books) -> dict[str, str]:
    """Queues of which it is not known what was left in them."""
    return {
        queue: "nobody found it empty at the end"
        for queue in books.topology.types
        if queue not in books.emptied and any(name == queue for _, name in books.copies)
    }


def _balance(books: Books, copies: Copies) -> None:
    published, queue, windows = copies.published, copies.queue, books.windows
    is_stream, until = books.is_stream(queue), books.emptied[queue]
    for number, outcome in enumerate(published.outcome):
        if outcome != Outcome.CONFIRMED:
            continue
        told = published.told[number]
        # a stream was read from its beginning then, whoever had read it before
        # what was settled may be read once more, late, by whom it was taken from, and be given back
        if copies.read[number] >= until if is_stream else copies.settled[number]:
            continue
        if told > until or (copies.time[number] > until and not is_stream):
            continue  # it may have come, or have come back, since
        died = windows.came_back_after(published.sent[number], books.topology.homes.get(queue, 0))
        why = ""
        if published.is_transient and books.is_classic(queue) and died:
            why = "transient, and its broker went down"
        elif copies.returns[number] >= books.topology.delivery_limit:
            why = "came back so often that it may be given up"
        counts = books.counts(queue)
        window = windows.to_blame(published.sent[number], max(told, copies.time[number]))
        of_fault = books.tally.of_fault(window.kind.value) if window is not None else books.fault_counts
        if why:
            counts.lost_allowed += 1
            of_fault.lost_allowed += 1
        else:
            counts.lost += 1
            of_fault.lost += 1
        lines = {"last seen": copies.line[number]} if copies.line[number] else {}
        what = What.LOST_IN_RESTART if died else What.LOST
        fault = window.name if window is not None else ""
        books.add(what, queue, Identity(published.name, number), lines, allowed=why, fault=fault)
