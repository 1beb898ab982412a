"""Against the text, as RabbitMQ does: a broker breaks the letter of 0-9-1, and does what RabbitMQ does there.

Whoever builds a compatible broker does so with intent: it deletes what is not there, or binds to the default exchange.
So such a failure is told under a heading of its own, with the sentence of the text, and fails nothing.

Nobody lists them. What was seen till a failure showed is judged again by what RabbitMQ promises, version by version.
Where one of them finds the frame right, or the silence, and had nothing to say against what came before, the failure is
of this class. Known defects of RabbitMQ are none of its promises, and excuse nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from amqpspec.model.judging.acceptor import Acceptor
from amqpspec.model.outputs.confirms import REFUSED_BY_NOBODY
from amqpspec.model.outputs.replies import WITH_UNACKNOWLEDGED
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import EMBEDDED_PRODUCT
from amqpspec.model.promises.severity import Severity, severity_of
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.promises.versions import RABBITMQ

#: The dialects of RabbitMQ, the newest first.
RABBITMQS = ("rabbitmq-4.3", "rabbitmq-4.0", "rabbitmq-3")
#: Steps of a sequence that are remembered. Of what shows behind them nobody asks what RabbitMQ does.
MOST_STEPS = 20_000

#: What RabbitMQ's dialect finds wrong as well, and may have come before: the broker's state is known all the same.
_HARMLESS = (Severity.WRONG_CODE, Severity.WRONG_WORDS)


class Judge(Protocol):
    """What the steps of a sequence are repeated for (`conformance.verdicts.judge.SequenceJudge`)."""

    @property
    def acceptor(self) -> Acceptor: ...


J = TypeVar("J", bound=Judge)


def is_asked(dialect: Dialect, product: str) -> bool:
    """Is a broker of that product, judged by that dialect, asked for what RabbitMQ does?"""
    return not dialect.extensions and product not in (RABBITMQ, EMBEDDED_PRODUCT, "")


class Steps(Generic[J]):
    """The steps of a sequence, as they are done to a judge, and at which of them its failures showed."""

    def __init__(self) -> None:
        self._steps: list[Callable[[J], None]] = []
        #: by the position of a failure: how many steps there were till it showed
        self._shown_at: list[int] = []
        self._is_whole = True

    def note(self, step: Callable[[J], None], failures: int) -> None:
        """A step was done; so many failures had shown after it."""
        if len(self._steps) >= MOST_STEPS:
            self._is_whole = False
        if not self._is_whole:
            return
        self._steps.append(step)
        self._shown_at += [len(self._steps)] * (failures - len(self._shown_at))

    def told_apart(self, failures: Sequence[Failure], judge_by: Callable[[str], J]) -> dict[str, str]:
        """By identity of those that are as RabbitMQ does: the dialect by which they are. `judge_by` makes a judge by
        the dialect of that name. `failures`: all that the acceptor found, in its order.
        """
        found: dict[str, str] = {}
        counts_more = any(each.detail.endswith(WITH_UNACKNOWLEDGED) for each in failures)
        open_ones = {
            position: failure
            for position, failure in enumerate(failures[: len(self._shown_at)])
            if not failure.defect and not (counts_more and _is_count(failure))
        }
        for dialect in RABBITMQS:
            if open_ones:
                right = self._right_by(judge_by(dialect), open_ones, counts_more)
                found |= {open_ones.pop(position).identity: dialect for position in right}
        return found

    def _right_by(self, judge: J, failures: dict[int, Failure], counts_more: bool) -> list[int]:
        """Positions of the failures that are none by that judge. `counts_more`: it is a habit of the broker to count
        what is not acknowledged, so that a number which is wrong says nothing of its state.
        """
        acceptor = judge.acceptor
        right: list[int] = []
        for number, step in enumerate(self._steps[: max(self._shown_at)], 1):
            before = list(acceptor.failures)
            step(judge)
            new = acceptor.failures[len(before) :]
            if acceptor.finished or acceptor.why_undecided or not _is_harmless(before, counts_more):
                break
            shown = [position for position in failures if self._shown_at[position] == number]
            if shown and not new:
                right += [each for each in shown if _is_right(failures[each], acceptor)]
        return right


def _is_right(failure: Failure, acceptor: Acceptor) -> bool:
    """Is the failure none by that acceptor, which has nothing to say against what was seen? What it still waits for, or
    has to be shown by a count, may be what the failure is about; so may what it has found wrong before.
    """
    is_awaited = failure.shape is Shape.MISSING and acceptor.owes()
    is_known = any(each.identity == failure.identity for each in acceptor.failures)
    return not (is_awaited or is_known or acceptor.unproven_queues())


def _is_harmless(failures: Iterable[Failure], counts_more: bool) -> bool:
    return all(
        severity_of(each) in _HARMLESS
        or _is_of_handshake(each)
        or each.detail == REFUSED_BY_NOBODY
        or (counts_more and _is_count(each))
        for each in failures
    )


def _is_count(failure: Failure) -> bool:
    return failure.shape is Shape.WRONG_ARGUMENT and failure.detail.endswith("-ok message-count")


def _is_of_handshake(failure: Failure) -> bool:
    """Does it only say of the broker what it offers and what it calls itself?"""
    return failure.shape is Shape.WRONG_ARGUMENT and failure.requirement.startswith(("CONN-", "CAP-"))


def marked(failures: Iterable[Failure], like: dict[str, str]) -> list[Failure]:
    """The failures, each with the dialect of RabbitMQ by which it is none. `like`: by identity."""
    return [replace(each, like=like.get(each.identity, "")) for each in failures]
