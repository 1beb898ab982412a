"""Conservation: what becomes of a message between the connections of a run in which all clients were recorded.

What the clients do to exchanges and bindings comes first (`topology`). Then the first stage takes the facts of each
connection (`connection_facts`). They are added up by message, queue, form and
kind, and put in the order of the messages; the second stage reads that once. What one message needs stands together, so
it can be spread by message. Of the queues as wholes it has `QueueNotes`. It finds

* a delivery of what nobody had published before (PUBLISH-016), or in another form (PUBLISH-016);
* more deliveries of a message without the flag `redelivered` than it was published times (ACK-015), and the flag where
  no delivery and no end of a channel came before (ACK-015);
* more deliveries than it was published and given back together: it was settled, or is held (ACK-001);
* a message that was confirmed to a queue, and is neither settled nor held, given back or not, though the queue was
  found empty later (CONFIRM-010).

Each is said only where the recording decides it (docs/pipeline.md). Times are on the one clock of the recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import inf
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from amqpspec.conformance.traces.trace import TraceError, read_trace
from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.model.protocol.methods import CONTENT_METHODS
from amqpspec.pipeline.judging.connection_facts import facts_of
from amqpspec.pipeline.judging.message_facts import SCHEMA, What, batches
from amqpspec.pipeline.judging.message_identity import message_of, text_of
from amqpspec.pipeline.judging.queue_notes import ORDER, Added, QueueNotes, notes_of
from amqpspec.pipeline.judging.topology import Topology
from amqpspec.pipeline.judging.topology_changes import Change, changes_in, changes_of
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.store import Store

#: Identifiers of the requirements, and what is wrong.
UNPUBLISHED = ("PUBLISH-016", "delivered, and published by nobody before")
CHANGED = ("PUBLISH-016", "delivered with another exchange, routing key or properties than it was published with")
TWICE = ("ACK-015", "delivered more often without the flag redelivered than it was published")
FLAGGED = ("ACK-015", "its first delivery has the flag redelivered")
AGAIN = ("ACK-001", "delivered more often than it was published and given back")
LOST = ("CONFIRM-010", "confirmed or given back, neither settled nor held, and its queue was empty later")
#: A quorum queue gives up a message that came back so often.
_DELIVERY_LIMIT = 20
#: Violations that are named; more are counted.
MOST_NAMED = 1_000


@dataclass(frozen=True, slots=True)
class Violation:
    """One message of one queue. `body`: its text, shortened, where it was looked up."""

    requirement: str
    what: str
    queue: str
    message: int
    #: when the frame came that shows it, in seconds since the recording began
    time: float
    body: str = ""


@dataclass(slots=True)
class Conservation:
    """What was found. `undecided`: queue (or exchange, or "" for the run) -> why something could not be decided of it.
    `wrong`: how many violations there are; the first `MOST_NAMED` of them are named.
    """

    violations: list[Violation] = field(default_factory=list)
    undecided: dict[str, str] = field(default_factory=dict)
    messages: int = 0
    queues: int = 0
    wrong: int = 0


class Judged(NamedTuple):
    """A violation, or with requirement "" why something of a queue is undecided."""

    requirement: str
    what: str
    queue: str
    message: int
    time: float


def judge_messages(added: Iterable[Added], queues: Mapping[str, QueueNotes]) -> Iterator[Judged]:
    """The second stage; `added` in the order of `ORDER`. An undecided queue is named once."""
    undecided: set[tuple[str, str]] = set()
    if (everywhere := queues.get("")) is not None and everywhere.broke_off:
        yield Judged("", "frames were sent that are no methods, so what was published is not known", "", 0, 0.0)
        return
    for message, facts in groupby(added, key=lambda fact: fact.message):
        published: list[Added] = []
        for queue, of_queue in groupby(facts, key=lambda fact: fact.queue):
            if not queue:
                published = list(of_queue)
                continue
            notes = queues.get(queue) or QueueNotes()
            for rule, time in _of_message(list(of_queue), published, notes):
                if isinstance(rule, tuple):
                    yield Judged(*rule, queue, message, time)
                elif (queue, rule) not in undecided:
                    undecided.add((queue, rule))
                    yield Judged("", rule, queue, message, 0.0)


def _of_message(
    facts: list[Added], published: list[Added], notes: QueueNotes
) -> Iterator[tuple[tuple[str, str] | str, float]]:
    """What is wrong, or why something is not decided; and when."""
    counts, first, last = [0] * 6, [inf] * 6, [-inf] * 6
    for fact in facts:
        counts[fact.what] += fact.times
        first[fact.what] = min(first[fact.what], fact.first)
        last[fact.what] = max(last[fact.what], fact.last)
    copies = sum(fact.times for fact in published)
    fresh, again = counts[What.DELIVERED], counts[What.REDELIVERED]
    deliveries = fresh + again
    if deliveries:
        begun = min(first[What.DELIVERED], first[What.REDELIVERED])
        if not copies or min(fact.first for fact in published) > begun:
            yield notes.unknown or UNPUBLISHED, begun
            return
        if not notes.is_stream and (changed := _changed(facts, published)) is not None:
            yield CHANGED, changed
        if fresh > copies:
            yield notes.unknown or notes.unflagged or TWICE, last[What.DELIVERED]
        latest = max(last[What.DELIVERED], last[What.REDELIVERED])
        returned = [fact for fact in facts if fact.what == What.RETURNED and fact.form <= latest * 1e6]
        if deliveries > copies + sum(fact.times for fact in returned) and fresh <= copies:
            yield notes.unknown or notes.uncounted or AGAIN, latest
        if again and first[What.REDELIVERED] < min(first[What.DELIVERED], notes.ended):
            yield notes.unknown or notes.uncounted or FLAGGED, first[What.REDELIVERED]
    held = deliveries - counts[What.RETURNED] - counts[What.SETTLED]
    if counts[What.CONFIRMED] > counts[What.SETTLED] + max(held, 0):
        back = max(last[What.CONFIRMED], last[What.RETURNED])
        begun = min((fact.first for fact in published), default=-inf)
        why = notes.loses or notes.uncounted or _not_empty(notes, begun, back, counts[What.RETURNED])
        yield why or LOST, back


def _changed(facts: list[Added], published: list[Added]) -> float | None:
    """When it was first delivered in a form in which nobody had published it."""
    forms = {fact.form: fact.first for fact in published}
    return next(
        (
            fact.first
            for fact in facts
            if fact.form and fact.what in (What.DELIVERED, What.REDELIVERED) and forms.get(fact.form, inf) > fact.first
        ),
        None,
    )


def _not_empty(notes: QueueNotes, published: float, since: float, returns: int) -> str | None:
    if notes.met > published:
        return "a message was published to it before anybody asked for it"
    if not since < notes.empty < notes.purged:
        return "nobody found it empty at the end, before it was purged or deleted"
    return "a message came back so often that it may be given up" if returns >= _DELIVERY_LIMIT else None


class Facts:
    """The facts of any number of sequences, in this process. `topology`: what all of them do to it."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._chunks: list[pa.RecordBatch] = []

    def add(self, rows: Iterable[TraceRow]) -> None:
        """Take the rows of one sequence."""
        self._chunks += batches(facts_of(rows, self._topology))

    def added_up(self) -> pa.Table:
        """With the columns of `Added`, in the order of `ORDER`."""
        table = pa.Table.from_batches(self._chunks, SCHEMA)
        grouped = table.group_by(list(ORDER)).aggregate([("time", "count"), ("time", "min"), ("time", "max")])
        new = {"time_count": "times", "time_min": "first", "time_max": "last"}
        grouped = grouped.rename_columns([new.get(name, name) for name in grouped.column_names])
        return grouped.select(Added._fields).sort_by([(name, "ascending") for name in ORDER])


def rows_of(table: pa.Table | pa.RecordBatch) -> Iterator[Added]:
    """Of a table with the columns of `Added`."""
    columns = [table.column(name).to_pylist() for name in Added._fields]
    return map(Added._make, zip(*columns, strict=True))


def conservation(facts: Facts) -> Conservation:
    """Both stages, in this process."""
    table = facts.added_up()
    is_note = pc.greater(table.column("what"), What.SETTLED.value)
    notes, messages = table.filter(is_note), table.filter(pc.invert(is_note))
    queues = notes_of(rows_of(notes))
    found = beginning(queues)
    found.messages = pc.count_distinct(
        messages.filter(pc.equal(messages.column("what"), What.PUBLISHED.value)).column("message")
    ).as_py()
    everything = (row for batch in messages.to_batches(max_chunksize=10_000) for row in rows_of(batch))
    return add_judged(found, judge_messages(everything, queues))


def conservation_of(sequences: Sequence[Sequence[TraceRow]]) -> Conservation:
    """Both stages for the rows of all sequences of a run."""
    facts = Facts(Topology(change for rows in sequences for change in changes_of(rows)))
    for rows in sequences:
        facts.add(rows)
    return conservation(facts)


def beginning(queues: Mapping[str, QueueNotes]) -> Conservation:
    """What is found before any message is looked at: where it is not known what went there."""
    untold = {name: notes.untold for name, notes in queues.items() if notes.untold}
    return Conservation(undecided=untold, queues=sum(not notes.is_exchange for notes in queues.values()))


def add_judged(found: Conservation, judged: Iterable[Judged]) -> Conservation:
    for each in judged:
        if not each.requirement:
            found.undecided.setdefault(each.queue, each.what)
            continue
        found.wrong += 1
        if len(found.violations) < MOST_NAMED:
            found.violations.append(Violation(*each))
    found.violations.sort(key=lambda each: (each.time, each.queue, each.message))
    if not (found.messages or found.wrong or found.undecided):
        found.undecided[""] = "no message was published or delivered in it"
    return found


def sequences_of(file: Path) -> Iterator[Iterator[TraceRow]]:
    """Those of a part, which holds whole sequences, one after the other."""
    for _, rows in groupby(read_trace(file), key=lambda row: row["sequence"]):
        yield rows


def files_of(store: Store, run: str) -> list[str]:
    """The traces of a run, from the root of the store. Raises `StoreError` where there is none, `TraceError` where it
    is not known whether these are all.
    """
    contents = store.contents()
    if contents.broken:
        raise TraceError(f"{contents.broken[0]}, so it is not known what belongs to the run")
    files = [part.trace for part in contents.parts if part.run == run]
    if not files:
        raise StoreError(f"{store}: the store has no run {run!r}")
    return files


def conservation_of_run(store: Store, run: str) -> Conservation:
    """Both stages for a run of the store. Raises `StoreError` where it has no such run, `TraceError`."""
    files = files_of(store, run)
    changes: list[Change] = []
    for file in files:
        with store.files.reading(file) as whole:
            changes += changes_in(whole)
    facts = Facts(Topology(changes))
    for file in files:
        with store.files.reading(file) as whole:
            for rows in sequences_of(whole):
                facts.add(rows)
    return with_bodies(only_certain(conservation(facts), store, run), store, files)


def only_certain(found: Conservation, store: Store, run: str) -> Conservation:
    """Where something of the run could not be imported, what seems to be wrong may only be lacking."""
    contents = store.contents()
    flaw = next(
        (contents.flaws[part.id] for part in contents.parts if part.run == run and part.id in contents.flaws), None
    )
    if flaw is not None:
        found.undecided.setdefault("", f"not all of it was imported: {flaw}")
        found.violations, found.wrong = [], 0
    return found


def with_bodies(found: Conservation, store: Store, files: Iterable[str]) -> Conservation:
    """With the bodies of what is wrong, which takes a look at the traces again; nothing where nothing is wrong."""
    wanted = {each.message for each in found.violations}
    bodies: dict[int, str] = {}
    for row in (row for file in files if wanted for row in _rows_in(store, file)):
        if row["kind"] == "frame" and row["method"] in CONTENT_METHODS and len(bodies) < len(wanted):
            message = message_of(row)
            if message in wanted:
                bodies.setdefault(message, text_of(row)[:80])
    found.violations = [
        Violation(each.requirement, each.what, each.queue, each.message, each.time, bodies.get(each.message, ""))
        for each in found.violations
    ]
    return found


def _rows_in(store: Store, file: str) -> Iterator[TraceRow]:
    with store.files.reading(file) as whole:
        yield from read_trace(whole)
