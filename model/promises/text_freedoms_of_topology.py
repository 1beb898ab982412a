"""Choices that the text leaves open with exchanges, with bindings, and with where they lead at a commit."""

from __future__ import annotations

from amqpspec.model.promises.text_contradictions import BROKER_J, LAVINMQ, RABBITMQ
from amqpspec.model.promises.text_values import TextChoice, Value

FREEDOMS_OF_TOPOLOGY: tuple[TextChoice, ...] = (
    TextChoice(
        "retyped-exchange",
        "an exchange that is declared again with another type",
        "exchange.declare, typed: a connection exception, 530; equivalent: a channel exception",
        ("EXCHANGE-006",),
        (
            Value("connection", "is an error of the connection", (BROKER_J,)),
            Value("channel", "is an error of the channel", (LAVINMQ,)),
        ),
    ),
    TextChoice(
        "binding-arguments",
        "bindings to exchanges other than headers, equal but for their arguments,",
        'queue.bind: "The syntax and semantics of these arguments depends on the exchange class."',
        ("BIND-003",),
        (
            Value("distinguish", "are two", (RABBITMQ,)),
            Value("ignored", "are one", (LAVINMQ, BROKER_J)),
        ),
    ),
    TextChoice(
        "use-by-exchanges",
        "exchange.delete with if-unused of an exchange that is bound to others, or others to it, and to no queue,",
        'exchange.delete, if-unused: "if it has no queue bindings"; bindings of exchanges are no part of the text',
        ("EXCHANGE-007",),
        (
            Value("source", "is refused where messages go from it to others", (RABBITMQ,)),
            Value("both", "is refused on either side"),
            Value("neither", "deletes it"),
        ),
    ),
    TextChoice(
        "exclusive-unbind",
        "queue.unbind of another connection's exclusive queue, where there is no such binding,",
        'queue.declare, exclusive: "may only be accessed by the current connection"; unbinding is not mentioned',
        ("QUEUE-019",),
        (
            Value("missing-binding", "is as of any other queue", (RABBITMQ,)),
            Value("refused", "is refused as an access", (LAVINMQ,)),
        ),
    ),
    TextChoice(
        "routed-in-transaction",
        "a message in a transaction",
        'class tx: "publish and ack operations" are "batched"; when a message is routed is not said',
        ("TX-002",),
        (
            Value("at-publish", "goes where it led when it was published", (RABBITMQ, BROKER_J)),
            Value("at-commit", "goes where it leads at the commit", (LAVINMQ,)),
        ),
    ),
)  # fmt: skip
