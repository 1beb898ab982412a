"""Choices in which RabbitMQ goes against a sentence of the text: a broker that keeps the sentence is right."""

from __future__ import annotations

from amqpspec.model.promises.text_values import TextChoice, Value

RABBITMQ = "RabbitMQ"
BROKER_J = "Broker-J"
LAVINMQ = "LavinMQ"

#: In the order of the text.
CONTRADICTIONS: tuple[TextChoice, ...] = (
    TextChoice(
        "channel-max",
        "channel numbers above channel-max",
        'connection.tune: "Usable channel numbers are in the range 1..channel-max."; connection.tune-ok: "The maximum'
        ' total number of channels that the client will use per connection."',
        ("CONN-013",),
        (
            Value("highest-number", "are refused", (BROKER_J,)),
            Value(
                "count", "are taken: open channels are counted", (RABBITMQ,), text={"channel_max_is_a_number": False}
            ),
        ),
    ),
    TextChoice(
        "frame-max-zero",
        "frame-max 0 in connection.tune-ok",
        'connection.tune-ok: "Zero means that the client does not impose any specific limit"',
        ("CONN-011",),
        (
            Value("no-limit", "means that the server's limit is kept", (BROKER_J,)),
            Value(
                "refused", "ends the connection", (RABBITMQ,), right=False, text={"frame_max_can_be_left_open": False}
            ),
        ),
    ),
    TextChoice(
        "heartbeat-with-payload",
        "a heartbeat with a payload",
        'section 4.2.7: "MUST raise a connection exception with reply code 501 (frame error)"',
        ("CONN-016",),
        (
            Value("501", "is answered with 501"),
            Value(
                "silence", "ends the TCP connection without a close", right=False,
                text={"wrong_heartbeat_is_told": False}, is_rest=True,
            ),
        ),
    ),
    TextChoice(
        "heartbeat-on-channel",
        "a heartbeat on a channel other than 0",
        "sections 4.2.3 (503) and 4.2.7 (501)",
        ("CHAN-020",),
        (
            Value("503", "is answered with 503", code=503),
            Value("501", "is answered with 501", code=501),
            Value(
                "505", "is answered with 505", (RABBITMQ,), right=False,
                text={"heartbeat_of_channel_is_invalid": False}, code=505,
            ),
        ),
    ),
    TextChoice(
        "channel-flow",
        "channel.flow with active=false",
        'channel.flow: "If 0, the peer stops sending content frames."',
        ("CHAN-010",),
        (
            Value("stops", "stops deliveries", (BROKER_J,)),
            Value(
                "refused", "is refused with 540", (RABBITMQ,), right=False, text={"flow_can_be_stopped": False}
            ),
        ),
    ),
    TextChoice(
        "default-exchange-bindings",
        "queue.bind and queue.unbind on the default exchange",
        'queue.bind, queue.unbind: "The server MUST accept a blank exchange name to mean the default exchange."',
        ("BIND-001",),
        (
            Value("accepted", "are accepted"),
            Value(
                "refused", "are refused", (RABBITMQ,), right=False, text={"default_exchange_can_be_bound": False}
            ),
        ),
    ),
    TextChoice(
        "missing-deleted",
        "queue.delete and exchange.delete of what is missing",
        "queue.delete and exchange.delete, must-exist: on-failure not-found",
        ("QUEUE-022", "EXCHANGE-003"),
        (
            Value("not-found", "are 404", (BROKER_J,)),
            Value("ok", "are answered with ok", (RABBITMQ,), right=False, text={"missing_is_not_found": False}),
        ),
    ),
    TextChoice(
        "missing-unbound",
        "queue.unbind of a binding that is missing",
        'queue.unbind: "If a unbind fails, the server MUST raise a connection exception."; when it does is open',
        ("BIND-002",),
        (
            Value("not-found", "is 404, on the channel or the connection", (BROKER_J,)),
            Value("ok", "is answered with ok", (RABBITMQ,), text={"missing_binding_is_not_found": False}),
        ),
    ),
    TextChoice(
        "durable-exclusive",
        "durable of an exclusive queue that is declared again",
        'queue.declare, equivalent: "MUST check that the existing queue has the same values for durable, exclusive, …"',
        ("QUEUE-007",),
        (
            Value("compared", "is compared", (BROKER_J,)),
            Value(
                "ignored", "is ignored", (RABBITMQ,), right=False, text={"durable_of_exclusive_is_compared": False}
            ),
        ),
    ),
    TextChoice(
        "meaningless-arguments",
        "arguments without a meaning of a queue that is declared again",
        'queue.declare, equivalent: "… auto-delete, and arguments fields"',
        ("QUEUE-007",),
        (
            Value("compared", "are compared"),
            Value(
                "ignored", "are ignored", (RABBITMQ,), right=False, text={"all_arguments_are_compared": False}
            ),
        ),
    ),
    TextChoice(
        "prefetch-size",
        "basic.qos with a prefetch-size",
        'basic.qos: "This field specifies the prefetch window size in octets."; no MUST',
        ("QOS-007",),
        (
            Value("taken", "is taken, and the window is not kept"),
            Value("refused", "is refused", (RABBITMQ,)),
        ),
    ),
    TextChoice(
        "immediate",
        "basic.publish with immediate",
        'basic.publish: "The server SHOULD implement the immediate flag."',
        ("PUBLISH-009",),
        (
            Value("returned", "comes back where nobody consumes", (BROKER_J,)),
            Value("refused", "is refused", (RABBITMQ,)),
        ),
    ),
)  # fmt: skip
