"""Violations that are planted in recordings: one frame of a broker is changed, left out, or said twice.

A kind is a change of a frame. It is planted in the first sequence that passes without it and fails with it: which of
them do is found out by the plain judge.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from amqpspec.conformance.traces.trace import TraceRow
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.model.promises.verdict import Verdict

#: What comes in the place of a row; None: this row cannot be changed in that way.
Change = Callable[[TraceRow], list[TraceRow] | None]
#: Frames of one method that are tried in one sequence.
_TRIED = 3


def _argument(name: str, change: Callable[[Any], Any]) -> Change:
    def changed(row: TraceRow) -> list[TraceRow] | None:
        row["arguments"][name] = change(row["arguments"].get(name))
        return [row]

    return changed


def _left_out(row: TraceRow) -> list[TraceRow]:
    return []


def _twice(row: TraceRow) -> list[TraceRow]:
    return [row, copy.deepcopy(row)]


def _other_body(row: TraceRow) -> list[TraceRow] | None:
    if not row.get("body"):
        return None
    row["body"] = "z" + row["body"][1:]
    return [row]


def _other_property(row: TraceRow) -> list[TraceRow]:
    row.setdefault("properties", {})["app_id"] = "planted"
    return [row]


def _method(name: str) -> Change:
    def changed(row: TraceRow) -> list[TraceRow]:
        row["method"] = name
        return [row]

    return changed


def _more(number: int | None) -> int:
    return (number or 0) + 1


def _longer(text: str | None) -> str:
    return (text or "") + "z"


#: By name: the method of the frame that is changed, and how.
KINDS: Mapping[str, tuple[str, Change]] = MappingProxyType(
    {
        "a delivery tag is skipped": ("basic.deliver", _argument("delivery_tag", _more)),
        "a delivery says redelivered": ("basic.deliver", _argument("redelivered", lambda flag: not flag)),
        "a delivery has another body": ("basic.deliver", _other_body),
        "a delivery has another property": ("basic.deliver", _other_property),
        "a delivery has another routing key": ("basic.deliver", _argument("routing_key", _longer)),
        "a delivery has another exchange": ("basic.deliver", _argument("exchange", _longer)),
        "a delivery has another consumer tag": ("basic.deliver", _argument("consumer_tag", _longer)),
        "a delivery comes twice": ("basic.deliver", _twice),
        "a delivery is lost": ("basic.deliver", _left_out),
        "a confirm is lost": ("basic.ack", _left_out),
        "a confirm comes twice": ("basic.ack", _twice),
        "a confirm has another tag": ("basic.ack", _argument("delivery_tag", _more)),
        "a confirm is negative": ("basic.ack", _method("basic.nack")),
        "a count of messages is wrong": ("queue.declare-ok", _argument("message_count", _more)),
        "a count of consumers is wrong": ("queue.declare-ok", _argument("consumer_count", _more)),
        "a declaration names another queue": ("queue.declare-ok", _argument("queue", _longer)),
        "a reply is lost": ("queue.bind-ok", _left_out),
        "a reply comes twice": ("basic.qos-ok", _twice),
        "a got message has another count": ("basic.get-ok", _argument("message_count", _more)),
        "a got message has another tag": ("basic.get-ok", _argument("delivery_tag", _more)),
        "a returned message is lost": ("basic.return", _left_out),
        "a returned message has another code": ("basic.return", _argument("reply_code", _more)),
        "an error has another code": ("channel.close", _argument("reply_code", _more)),
    }
)


#: Those that show on one connection, whatever other ones did: in recordings of applications.
OPEN_KINDS: Mapping[str, tuple[str, Change]] = MappingProxyType(
    {
        name: KINDS[name]
        for name in (
            "a delivery tag is skipped", "a delivery has another consumer tag", "a delivery comes twice",
            "a delivery is lost", "a confirm comes twice", "a confirm has another tag", "a confirm is negative",
            "a declaration names another queue", "a reply is lost", "a reply comes twice",
            "a got message has another tag", "a returned message has another code", "an error has another code",
        )
    }
    | {
        "a consumer is told two times that it is there": ("basic.consume-ok", _twice),
        "another consumer is cancelled": ("basic.cancel-ok", _argument("consumer_tag", _longer)),
        "a returned message has another body": ("basic.return", _other_body),
        "a returned message has another property": ("basic.return", _other_property),
        "a queue is declared two times": ("queue.declare-ok", _twice),
        "a message is got two times": ("basic.get-ok", _twice),
        "a transaction is committed two times": ("tx.commit-ok", _twice),
        "a channel is opened two times": ("channel.open-ok", _twice),
        "an error names another method": ("channel.close", _argument("method_id", _more)),
        "a notice wants an answer": ("basic.cancel", _argument("nowait", lambda flag: False)),
        "a confirm is of several": ("basic.ack", _argument("multiple", lambda flag: True)),
    }
)  # fmt: skip


def planted_sequences(
    passing: Iterable[list[TraceRow]], kinds: Mapping[str, tuple[str, Change]] = KINDS
) -> dict[str, list[TraceRow]]:
    """A sequence for each kind, which has its name and fails; a kind that no sequence shows is missing."""
    wanted = list(kinds)
    found: dict[str, list[TraceRow]] = {}
    for rows in passing:
        for kind in [kind for kind in wanted if kind not in found]:
            failing = _planted(rows, kind, *kinds[kind])
            if failing is not None:
                found[kind] = failing
        if len(found) == len(wanted):
            break
    return found


def _planted(rows: list[TraceRow], kind: str, method: str, change: Change) -> list[TraceRow] | None:
    places = [
        number
        for number, row in enumerate(rows)
        if row["kind"] == "frame" and row["method"] == method and row["direction"] == "received"
    ]
    for place in places[:_TRIED]:
        changed = change(copy.deepcopy(rows[place]))
        if changed is None:
            continue
        made = [copy.copy(row) for row in [*rows[:place], *changed, *rows[place + 1 :]]]
        for row in made:
            row["sequence"] = f"planted: {kind}"
        if judge(made).verdict is Verdict.FAIL:
            return made
    return None
