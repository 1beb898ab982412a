"""What the suite looks at a broker by, as choices of the text: where a broker lacks one, others have to do.

The text demands both. A broker that lacks one has failed its requirement, and is not blamed for anything else that only
this would show: a number that is never told is no message that is lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from amqpspec.model.promises.text_contradictions import BROKER_J, LAVINMQ, RABBITMQ
from amqpspec.model.promises.text_values import TextChoice, Value

ROUND_TRIP, COUNTS, GET = "round-trip", "queue-counts", "basic-get"

#: The first value is the one that the text allows, the second one that of a broker that lacks it.
MEANS: tuple[TextChoice, ...] = (
    TextChoice(
        ROUND_TRIP,
        "the exchange amq.direct",
        'class exchange: "The server MUST, in each virtual host, pre-declare at least two direct exchange instances: '
        'one named "amq.direct", …"',
        ("EXCHANGE-002",),
        (
            Value("there", "is there from the beginning", (RABBITMQ, BROKER_J, LAVINMQ)),
            Value("missing", "is not there", right=False, text={"predeclared_are_there": False}),
        ),
    ),
    TextChoice(
        COUNTS,
        "the number of messages in queue.declare-ok",
        'domain message-count: "The number of messages in the queue, which will be zero for newly-declared queues."',
        ("QUEUE-001",),
        (
            Value("told", "is that of the queue", (RABBITMQ, BROKER_J, LAVINMQ)),
            Value("untold", "says nothing of the queue", right=False, text={"counts_are_told": False}),
        ),
    ),
    TextChoice(
        GET,
        "basic.get",
        "class basic: S:GET, to which get-ok or get-empty is the answer",
        ("GET-001",),
        (
            Value("answered", "is answered", (RABBITMQ, BROKER_J, LAVINMQ)),
            Value("unknown", "is not known to it", right=False, text={"get_is_known": False}),
        ),
    ),
)  # fmt: skip


def lacking_in_words(choices: Mapping[str, str]) -> list[str]:
    """One line for each that a broker lacks. `choices`: choice to value."""
    return [
        f"{each.about} {value.does}"
        for each in MEANS
        for value in each.values
        if not value.right and choices.get(each.name) == value.name
    ]
