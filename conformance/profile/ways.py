"""RabbitMQ's own ways, which are no part of a feature: wording, codes, forms of headers, what is refused.

A product that is not RabbitMQ need not have them, and whoever has applications of RabbitMQ wants to know. The commands
of each (`of_ways/`) are carried out as those of a choice are, and judged by RabbitMQ's newest dialect:
what that finds wrong first is what the product does otherwise. Nothing of it decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amqpspec.conformance.language.names import plain
from amqpspec.conformance.profile.carrying_out import CarryingOut
from amqpspec.conformance.profile.shows import shows_of_ways
from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.conformance.verdicts.as_rabbitmq import RABBITMQS
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import SeenWay
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Verdict


def carry_out_ways(carrying_out: CarryingOut) -> set[str]:
    """Gives the names of those that were carried out to their end."""
    files = shows_of_ways()
    return carrying_out.carry_out(files, dict.fromkeys(files, dialect_named(RABBITMQS[0])))


def seen_ways(names: set[str], rows: Mapping[str, Sequence[TraceRow]]) -> tuple[SeenWay, ...]:
    """What was seen of these; what cannot be judged is left out."""
    found = (_seen_way(name, rows[name]) for name in shows_of_ways() if name in names)
    return tuple(each for each in found if each is not None)


def _seen_way(name: str, rows: Sequence[TraceRow]) -> SeenWay | None:
    judgement = judge(rows)
    about = shows_of_ways()[name].title
    if judgement.verdict is Verdict.PASS:
        return SeenWay(name, about, True)
    if judgement.suite_error is not None or not judgement.failures:
        return None
    failure = judgement.failures[0]
    right = " or ".join(failure.allowed[:2]) or "nothing"
    return SeenWay(name, about, False, plain(right), plain(failure.observed or f"no {failure.detail}"))
