"""Choices that the text leaves open, in the order of the text: either value is right, and RabbitMQ has one of them."""

from __future__ import annotations

from amqpspec.model.promises.text_contradictions import BROKER_J, LAVINMQ, RABBITMQ
from amqpspec.model.promises.text_freedoms_of_topology import FREEDOMS_OF_TOPOLOGY
from amqpspec.model.promises.text_values import TextChoice, Value

_SOFT, _HARD = "refused-on-channel", "refused-on-connection"

FREEDOMS: tuple[TextChoice, ...] = (
    TextChoice(
        "second-open",
        "connection.open on a connection that is open",
        '503: "an invalid sequence of frames", 504: "a channel that had not been correctly opened"; no sentence',
        ("CONN-019",),
        (
            Value("504", "is answered with 504", (RABBITMQ,), code=504),
            Value("503", "is answered with 503", (BROKER_J,), code=503),
            Value("505", "is answered with 505", code=505),
            Value("501", "is answered with 501", code=501),
            Value("540", "is answered with 540", (LAVINMQ,), code=540),
        ),
    ),
    TextChoice(
        "ok-of-client",
        "a method that only servers send",
        "section 2.3.6: a connection exception, without a code",
        ("CHAN-011",),
        (
            Value("503", "is answered with 503", (RABBITMQ,), code=503),
            Value("505", "is answered with 505", code=505),
            Value("501", "is answered with 501", code=501),
            Value("540", "is answered with 540", code=540),
        ),
    ),
    TextChoice(
        "close-ok-of-channel",
        "channel.close-ok for a channel that nobody closes",
        "no sentence; section 2.3.6 for the error",
        ("CHAN-011",),
        (
            Value("error", "is an error of the connection", (RABBITMQ,)),
            Value("ignored", "is ignored", (BROKER_J,)),
        ),
    ),
    TextChoice(
        "content-without-method",
        "a content header that follows no method",
        '505: a frame that was not expected; 503: "an invalid sequence of frames"',
        ("CHAN-012",),
        (
            Value("505", "is answered with 505", (RABBITMQ,), code=505),
            Value("503", "is answered with 503", code=503),
            Value("504", "is answered with 504", code=504),
        ),
    ),
    TextChoice(
        "content-of-other-class",
        "a content header of another class than its method's",
        "section 4.2.6.1: 501; section 4.2.6: 505",
        ("CHAN-014",),
        (
            Value("501", "is answered with 501", dialect={"wrong_content_class": 501}, code=501),
            Value("505", "is answered with 505", (RABBITMQ,), dialect={"wrong_content_class": 505}, code=505),
            Value("503", "is answered with 503", code=503),
        ),
    ),
    *(
        TextChoice(
            f"{what}-arguments",
            f"arguments of {method} that the broker does not know",
            f'{method}: "The syntax and semantics of these arguments depends on the server implementation."',
            (requirement,),
            (
                Value("taken", "are taken", (RABBITMQ,)),
                Value(_SOFT, "are refused, and the channel is closed"),
                Value(_HARD, "are refused, and the connection is closed", (BROKER_J,) if what != "consumer" else ()),
            ),
        )
        for what, method, requirement in (
            ("exchange", "exchange.declare", "EXCHANGE-006"),
            ("queue", "queue.declare", "QUEUE-001"),
            ("consumer", "basic.consume", "CONSUME-001"),
        )
    ),
    TextChoice(
        "default-exchange-code",
        "exchange.declare of the default exchange",
        "class exchange, default-access; no code is named",
        ("EXCHANGE-001",),
        (
            Value("403", "is refused with 403", (RABBITMQ,), code=403),
            Value("404", "is refused with 404", code=404),
            Value("405", "is refused with 405", code=405),
            Value("406", "is refused with 406", code=406),
            Value("530", "is refused with 530", code=530),
        ),
    ),
    TextChoice(
        "predeclared-deleted",
        "exchange.delete of amq.fanout",
        "no sentence",
        ("EXCHANGE-003",),
        (
            Value("403", "is refused with 403", (RABBITMQ,), code=403),
            Value("405", "is refused with 405", code=405),
            Value("406", "is refused with 406", code=406),
            Value("530", "is refused with 530", (BROKER_J,), code=530),
        ),
    ),
    TextChoice(
        "unequal-exchange",
        "an exchange that is declared again with other properties",
        'exchange.declare, equivalent: "MUST raise a channel exception", without a code',
        ("EXCHANGE-006",),
        (
            Value("406", "is refused with 406", (RABBITMQ,), code=406),
            Value("403", "is refused with 403", code=403),
            Value("404", "is refused with 404", code=404),
            Value("405", "is refused with 405", code=405),
        ),
    ),
    TextChoice(
        "unequal-queue",
        "a queue that is declared again with other properties",
        'queue.declare, equivalent: "MUST raise a channel exception if not", without a code',
        ("QUEUE-007",),
        (
            Value("406", "is refused with 406", (RABBITMQ,), code=406),
            Value("405", "is refused with 405", (BROKER_J,), code=405),
            Value("403", "is refused with 403", code=403),
            Value("404", "is refused with 404", code=404),
        ),
    ),
    TextChoice(
        "auto-delete",
        "auto-delete of a queue that is declared again",
        'queue.declare: "MUST ignore the auto-delete field if the queue already exists", against `equivalent`',
        ("QUEUE-007",),
        (
            Value("compared", "is compared", (RABBITMQ, BROKER_J)),
            Value("ignored", "is ignored"),
        ),
    ),
    TextChoice(
        "queue-names",
        "names that the broker makes for queues",
        'queue.declare, default-name: "a unique generated name"',
        ("QUEUE-006",),
        (
            Value("any", "begin with anything", (BROKER_J,), is_rest=True),
            Value("amq.gen", "begin with amq.gen-", (RABBITMQ,), text={"any_generated_name": False}),
        ),
    ),
    TextChoice(
        "no-queue-name",
        "a method without a queue's name where none was declared",
        'domain queue-name: "a 502 (syntax error) channel exception", against queue-known, not-found',
        ("CHAN-017",),
        (
            Value("404", "is answered with 404", (RABBITMQ,), code=404),
            Value("502", "is answered with 502", code=502),
        ),
    ),
    TextChoice(
        "unbind-without-names",
        "queue.unbind without queue and key",
        "the sentence that the key is the queue's name then stands at queue.bind only",
        ("BIND-006",),
        (
            Value("queue-name", "means the key that is the queue's name", (RABBITMQ,)),
            Value("empty-key", "means the empty key", (BROKER_J,), text={"unbind_names_key": False}),
        ),
    ),
    TextChoice(
        "deleted-count",
        "the number in queue.delete-ok",
        'queue.delete-ok: "Reports the number of messages deleted."; domain message-count',
        ("QUEUE-024",),
        (
            Value("all", "counts what was not acknowledged", (BROKER_J,), is_rest=True),
            Value(
                "ready", "leaves out what was not acknowledged", (RABBITMQ,),
                text={"deleted_may_count_unacknowledged": False},
            ),
        ),
    ),
    TextChoice(
        "if-empty",
        "queue.delete with if-empty, while messages wait for an acknowledgement",
        'queue.delete, if-empty: "a queue that has messages on it"',
        ("QUEUE-023",),
        (
            Value("deletes", "deletes the queue", (RABBITMQ,)),
            Value("refused", "is refused", (BROKER_J,)),
        ),
    ),
    TextChoice(
        "consumer-tags",
        "tags that the broker makes for consumers",
        'basic.consume: "the server will generate a unique tag"',
        ("CONSUME-002",),
        (
            Value("any", "begin with anything", (BROKER_J,), is_rest=True),
            Value("amq.ctag", "begin with amq.ctag-", (RABBITMQ,), text={"any_generated_tag": False}),
        ),
    ),
    TextChoice(
        "get-beside-exclusive",
        "basic.get beside an exclusive consumer",
        'basic.consume, exclusive: "only this consumer can access the queue"',
        ("GET-001",),
        (
            Value("served", "is served", (RABBITMQ,)),
            Value(_SOFT, "is refused, and the channel is closed"),
            Value(_HARD, "is refused, and the connection is closed", (BROKER_J,)),
        ),
    ),
    TextChoice(
        "return-text",
        "the text of basic.return",
        'domain reply-text: "This text can be logged as an aid to resolving issues."',
        ("PUBLISH-007",),
        (
            Value("NO_ROUTE", "is NO_ROUTE", (RABBITMQ,), text={"returns_are_in_any_words": False}),
            Value("any", "is another one", (BROKER_J,), text={"return_text": "Nobody takes it"}, is_rest=True),
        ),
    ),
    TextChoice(
        "any-without-fields",
        "a headers binding `any` without fields",
        'section 3.1.3.4: "if any of the fields … match"; no sentence for none',
        ("PUBLISH-006",),
        (
            Value("nothing", "matches nothing", (RABBITMQ,)),
            Value("everything", "matches everything", (BROKER_J,), text={"any_of_nothing_matches": True}),
        ),
    ),
    TextChoice(
        "headers-exchange",
        "the exchange of type headers that is there from the beginning",
        "section 3.1.3.4 calls it amq.match, exchange.declare, required-instances, amq.headers",
        ("EXCHANGE-002",),
        (
            Value("both", "has both names", (RABBITMQ,)),
            Value("amq.match", "is amq.match alone", (BROKER_J,)),
            Value("amq.headers", "is amq.headers alone"),
        ),
    ),
    TextChoice(
        "ack-of-zero",
        "basic.ack and basic.reject of tag 0 without multiple",
        'basic.ack, exists: "a non-zero delivery-tag" is validated',
        ("ACK-005",),
        (
            Value("refused", "are refused with 406", (RABBITMQ,)),
            Value("ignored", "are ignored", (BROKER_J,)),
        ),
    ),
    TextChoice(
        "reject-in-transaction",
        "basic.reject in a transaction",
        'tx.commit: "commits all message publications and acknowledgments"; nothing is said of basic.reject',
        ("TX-005",),
        (
            Value("at-commit", "takes effect at the commit", (RABBITMQ,)),
            Value("at-once", "takes effect at once", (BROKER_J,)),
        ),
    ),
    TextChoice(
        "credit-in-transaction",
        "room for further deliveries, where one is acknowledged in a transaction",
        'tx.commit: "commits all message publications and acknowledgments"; nothing is said of credit',
        ("TX-005",),
        (
            Value("at-commit", "comes with the commit", (RABBITMQ,)),
            Value("at-acknowledgement", "comes with the acknowledgement", (BROKER_J,)),
        ),
    ),
    TextChoice(
        "mandatory-in-transaction",
        "a mandatory message without a queue in a transaction",
        'class tx: the behaviour with respect to the mandatory flag "is not defined"',
        ("PUBLISH-007",),
        (
            Value("at-commit", "comes back at the commit", (RABBITMQ,)),
            Value("at-once", "comes back at once"),
            Value("dropped", "does not come back"),
        ),
    ),
    TextChoice(
        "recover-async",
        "basic.recover-async",
        "basic.recover-async is deprecated, and a server MAY implement it",
        ("RECOVER-002",),
        (
            Value("redelivers", "redelivers what is not acknowledged", (RABBITMQ, BROKER_J)),
            Value("refused", "is refused with 540", (LAVINMQ,)),
        ),
    ),
    *FREEDOMS_OF_TOPOLOGY,
)  # fmt: skip
