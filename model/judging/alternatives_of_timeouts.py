"""What a broker may do that announces that it takes a client's answer to its basic.cancel (RabbitMQ from 4.3.7 on).

`model.rules.extensions.timed_out_consumer_still_known` says what that is about. Such a broker also knows the setting
`consumer_timeout_response`, by which it closes the channel whatever the client understands.
"""

from __future__ import annotations

from collections.abc import Callable

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.internal_events import DeliveryTimeout
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.broker.timed_out_consumers import lingers, waits_for_answer
from amqpspec.model.judging.alternative import Alternative
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.extensions.timed_out_consumer_still_known import recovering, resume_until_cleared
from amqpspec.model.rules.extensions.timeout_cancels_consumer import is_told
from amqpspec.model.rules.extensions.timeout_schedule import (
    MOST_TOGETHER,
    doubted_delivery,
    others_due_on,
    process_closing,
)
from amqpspec.model.rules.inputs import process

_SOURCE = "release notes of RabbitMQ 4.3.7; consumer_timeout_SUITE"


def _named(broker: Broker, method: Method) -> Consumer | None:
    channel = broker.open_channel(method)
    return channel.consumers.get(method.arguments.get("consumer_tag", "")) if channel is not None else None


def _coming_back(broker: Broker, method: Method) -> list[Consumer]:
    return [consumer for consumer, _ in recovering(broker, method) if lingers(broker, consumer, method.time)]


def _resume(broker: Broker, method: Method) -> None:
    coming_back = _coming_back(broker, method)
    process(broker, method)
    for consumer in coming_back:
        if consumer.timed_out:
            resume_until_cleared(broker, consumer)


def _uses_tag_of_lingering(broker: Broker, method: Method) -> bool:
    consumer = _named(broker, method)
    return consumer is not None and lingers(broker, consumer, method.time)


def _refuse_tag(broker: Broker, method: Method) -> None:
    consumer = _named(broker, method)
    if consumer is not None:
        consumer.timed_out = 0
    process(broker, method)


def _answers_nothing(broker: Broker, method: Method) -> bool:
    consumer = _named(broker, method)
    return consumer is not None and not consumer.timed_out


def _ignore(broker: Broker, method: Method) -> None:
    broker.fired("CANCEL-009")


def _may_close(number: int) -> Callable[[Broker, DeliveryTimeout], bool]:
    def applies(broker: Broker, event: DeliveryTimeout) -> bool:
        found = doubted_delivery(broker, event)
        if found is None or found[1].consumer is None or not waits_for_answer(broker, event.key):
            return False
        return is_told(broker, found[0]) and len(others_due_on(broker, *found)) >= number

    return applies


def _close_with(number: int) -> Callable[[Broker, DeliveryTimeout], None]:
    return lambda broker, event: process_closing(broker, event, number)


ALTERNATIVES_OF_TIMEOUTS: tuple[Alternative, ...] = (
    Alternative(
        name="cancelled consumer served again before the broker has forgotten it",
        requirement="TIMEOUT-016",
        source=_SOURCE,
        kinds=("basic.ack", "basic.nack", "basic.reject", "basic.recover", "basic.recover-async", "tx.commit"),
        applies=lambda broker, method: bool(_coming_back(broker, method)),
        process=_resume,
    ),
    Alternative(
        name="tag of a cancelled consumer in use before the broker has forgotten it",
        requirement="TIMEOUT-030",
        source=_SOURCE,
        kinds=("basic.consume",),
        applies=_uses_tag_of_lingering,
        process=_refuse_tag,
    ),
    Alternative(
        name="client's cancel-ok that answers nothing ignored",
        requirement="CANCEL-009",
        source=_SOURCE,
        kinds=("basic.cancel-ok",),
        applies=_answers_nothing,
        process=_ignore,
    ),
    *(
        Alternative(
            name=f"channel closed by the operator's setting, {number} more timed out before",
            requirement="TIMEOUT-008",
            source=_SOURCE,
            kinds=(DeliveryTimeout,),
            applies=_may_close(number),
            process=_close_with(number),
        )
        for number in range(MOST_TOGETHER + 1)
    ),
)
