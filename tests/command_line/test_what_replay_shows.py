"""What `amqpspec replay` prints: no polling, no harm where there is none, the arguments by their names."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest
from rich.console import Console

from amqpspec.command_line.replay import _print, _Shown
from amqpspec.conformance.verdicts.events import CommandIssued, EventObserved
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.model.protocol.methods import Method
from amqpspec.model.protocol.wording import arguments_text

WARNING = Failure("CONN-025", Shape.WRONG_ARGUMENT, "connection.start server-properties", "", "seen", (), ())
LIKE = Failure(
    "QUEUE-022", Shape.UNEXPECTED, "queue.delete-ok in place of channel.close", "", "s", (), (), like="rabbitmq-4.3"
)
WORDS = Failure("CHAN-008", Shape.WRONG_ARGUMENT, "channel.close reply-text", "", "seen", (), ())
LOST = Failure("GET-001", Shape.MISSING, "messages ready", "", "nothing", (), ())


def _console() -> Console:
    return Console(file=io.StringIO(), record=True, width=200)


def _shown(counts: Iterable[int], last: str = "") -> list[str]:
    """What is printed of a queue that is asked until it tells the last of these numbers."""
    console = _console()
    shown = _Shown(console)
    shown(CommandIssued("s", "a.1 basic.ack 1"))
    for count in counts:
        shown(EventObserved("s", Method("a", 1, "queue.declare", {"queue": "q", "passive": True}, sent=True)))
        answer = {"queue": "q", "message_count": count, "consumer_count": 0}
        shown(EventObserved("s", Method("a", 1, "queue.declare-ok", answer, sent=False)))
    if last:
        shown(EventObserved("s", Method("a", 1, last, {"queue": "q", "passive": True}, sent=True)))
    shown.flush()
    return [line.strip() for line in console.export_text().splitlines()]


def test_a_question_that_is_asked_again_and_again_is_shown_once() -> None:
    assert _shown([1] * 40 + [0]) == [
        "a.1 basic.ack 1",
        "a.1 > queue.declare queue=q passive=true",
        "a.1 < queue.declare-ok queue=q message-count=1 consumer-count=0",
        "asked 39 times more, with the same answer",
        "a.1 > queue.declare queue=q passive=true",
        "a.1 < queue.declare-ok queue=q message-count=0 consumer-count=0",
    ]


def test_a_question_without_an_answer_is_shown() -> None:
    assert _shown([1], last="queue.declare")[1:] == [
        "a.1 > queue.declare queue=q passive=true",
        "a.1 < queue.declare-ok queue=q message-count=1 consumer-count=0",
        "a.1 > queue.declare queue=q passive=true",
    ]


@pytest.mark.parametrize(
    ("failures", "verdict"),
    [
        ((WARNING,), "pass, with 1 warning: only recommended"),
        ((LIKE,), "fail, against the text, as RabbitMQ does, which fails nothing"),
        ((WARNING, WORDS), "fail, only arguable or minor"),
        ((WARNING, LOST), "fail"),
    ],
)
def test_a_file_that_is_clean_is_called_so(failures: tuple[Failure, ...], verdict: str) -> None:
    console = _console()
    judged = SequenceJudgement("s", "t", "amqp-0-9-1", None, Verdict.FAIL, failures, {}, None, 1, product="MyBroker")
    _print(judged, None, console)
    assert console.export_text().splitlines()[-1] == verdict


def test_an_argument_whose_name_is_a_word_of_python_has_its_own_name() -> None:
    assert arguments_text({"prefetch_count": 1, "global_": True}) == "prefetch-count=1 global=true"
