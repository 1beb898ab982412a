"""The frames that show a failure, one under the other, as far as the one that is wrong.

They are those of the trace: of the sequence that was carried out with just the commands that the failure is reported
with. Handshakes and the round trips of barriers are left out, unless one of them is what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from amqpspec.conformance.language.names import plain
from amqpspec.conformance.traces.trace import TraceRow, sequences
from amqpspec.conformance.traces.trace_row import row_event
from amqpspec.conformance.verdicts.judge import SequenceJudge
from amqpspec.conformance.verdicts.judgement import SERVES_ON, FoundFailure, RunResult
from amqpspec.conformance.verdicts.rung import Kind, Rung
from amqpspec.model.promises.verdict import Failure, Shape

#: Frames that every connection begins with.
HANDSHAKE = frozenset(
    {
        "socket.open", "protocol.header", "connection.start", "connection.start-ok", "connection.tune",
        "connection.tune-ok", "connection.open", "connection.open-ok",
    }
)  # fmt: skip
#: Rungs of a ladder: the last ones are kept, and some of the first. Characters of one.
MOST_RUNGS, FIRST_RUNGS, LONGEST = 40, 8, 240


def with_ladders(result: RunResult, rows: Iterable[TraceRow]) -> RunResult:
    """The result with the frames of each failure, where the rows (of its trace) have them. Raises `TraceError`."""
    wanted: dict[str, list[FoundFailure]] = {}
    for found in result.failures:
        wanted.setdefault(found.sequence, []).append(found)
    ladders: dict[str, tuple[Rung, ...]] = {}
    for recorded in sequences(rows):
        start = recorded[0]
        for found in wanted.get(start.get("repeats") or start["sequence"], ()):
            identity = found.failure.identity
            if _commands(recorded)[: len(found.commands)] == list(found.commands) and (
                rungs := _ladder(recorded, found.failure)
            ):
                ladders[identity] = rungs
    failures = (replace(each, ladder=ladders.get(each.failure.identity, ())) for each in result.failures)
    return replace(result, failures=tuple(failures))


def _commands(rows: Sequence[TraceRow]) -> list[str]:
    return [row["text"] for row in rows if row["kind"] == "command"]


def _ladder(rows: Sequence[TraceRow], failure: Failure) -> tuple[Rung, ...]:
    """As far as that failure; (): the rows do not show it."""
    judge = SequenceJudge(rows[0])
    of_handshakes = ".open" in failure.command.partition(" ")[2] or "connection." in failure.detail
    in_barrier = opens = False
    asked: set[str] = set()
    rungs: list[Rung] = []
    for row in rows[1:]:
        judge.row(row)
        is_shown = any(each.identity == failure.identity for each in judge.failures)
        rung: Rung | None = None
        match row["kind"]:
            case "command":
                rung = Rung(Kind.COMMAND, "", _cut(row["text"]))
                opens = " channel.open" in row["text"]
            case "mark":
                in_barrier = row["mark"] == "barrier"
                asked.clear()
            case "frame":
                method, is_sent = row["method"], row["direction"] == "sent"
                if in_barrier and is_sent:
                    asked |= {f"{method}-ok", "basic.get-empty" if method == "basic.get" else ""}
                is_of_barrier = in_barrier and (is_sent or method in asked)
                # what the suite does by itself before the first command on a connection or channel
                is_opening = method in HANDSHAKE or (method.startswith("channel.open") and not opens)
                if is_shown or not (is_of_barrier or (is_opening and not of_handshakes)):
                    rung = _frame(row, failure, is_shown)
        if rung is not None:
            rungs.append(rung)
        if is_shown:
            if not rungs or rungs[-1].kind is not Kind.WRONG:
                rungs.append(_missing(failure))
            return _shortened(rungs)
    # a target that was lost owes what no frame of the sequence shows
    return _shortened([*rungs, _missing(failure)]) if rungs and failure.requirement == SERVES_ON else ()


def _missing(failure: Failure) -> Rung:
    owed = failure.allowed[0] if failure.allowed else failure.detail
    place, _, text = owed.partition(" < ")
    return Rung(Kind.MISSING, place if text else "", _cut(text or owed))


def _frame(row: TraceRow, failure: Failure, is_shown: bool) -> Rung:
    text = plain(str(row_event(row)))
    place, _, said = text.partition(" > " if row["direction"] == "sent" else " < ")
    if row["direction"] == "sent":
        return Rung(Kind.SENT, place, _cut(said))
    is_wrong = is_shown and failure.shape is not Shape.MISSING
    return Rung(Kind.WRONG if is_wrong else Kind.RECEIVED, place, _cut(said))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _shortened(rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    left_out = len(rungs) - MOST_RUNGS
    if left_out <= 1:
        return tuple(rungs)
    gap = Rung(Kind.GAP, "", f"{left_out} more")
    return (*rungs[:FIRST_RUNGS], gap, *rungs[FIRST_RUNGS + left_out :])
