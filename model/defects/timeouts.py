"""Consumer timeouts, nearly all of them of quorum queues from 4.3 on (area TIMEOUT).

The client is told that the consumer is cancelled; its queue and its channel have kept it (rabbit_fifo, in state
timeout; consumer_mapping of rabbit_channel), and may serve it again, or take it for another one of its tag.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState, TimedOut, Unacknowledged
from amqpspec.model.broker.internal_events import DeliveryTimeout
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.ruling import Outcome
from amqpspec.model.defects.situations import SETTLING, named_consumer
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.judging.windows import SERVICE, Difference, Part, Scope, Window, of_any, of_channel, of_queues
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.extensions.timed_out_consumer_still_known import recovering, settled_late
from amqpspec.model.rules.extensions.timeout_cancels_consumer import close_text
from amqpspec.model.rules.extensions.timeout_schedule import doubted_delivery

_of_quorum_queues = partial(Window, dialects=("rabbitmq-4.3",))
#: What the release notes of 4.3.7 say was mended: a consumer stayed, of which the client was told that it is cancelled.
_mended = partial(_of_quorum_queues, versions=(versions("4.3.0", "4.3.6"),))
#: It is served again, when what has timed out is settled.
_resuming = partial(_mended, by_chance=True, kinds=SETTLING)


def _recovers(outcome: Outcome) -> Callable[[Broker, Method], Scope | None]:
    """The input settles in that way the last of what has timed out of a consumer."""

    def arms(broker: Broker, method: Method) -> Scope | None:
        consumers = [consumer for consumer, by in recovering(broker, method) if by is outcome]
        return of_any(broker, (each.queue for each in consumers), *(each.channel for each in consumers))

    return arms


def _times_out(broker: Broker, event: DeliveryTimeout) -> Scope | None:
    found = doubted_delivery(broker, event)
    return None if found is None else of_queues(broker, [found[1].queue], found[0].key)


def _times_out_of_cancelled(broker: Broker, event: DeliveryTimeout) -> Scope | None:
    """The consumer was cancelled by the client, or is one that the broker may have forgotten."""
    found = doubted_delivery(broker, event)
    if found is None or (consumer := found[1].consumer) is None:
        return None
    is_present = found[0].consumers.get(consumer.tag) is consumer
    return _times_out(broker, event) if not is_present or consumer.timed_out else None


def _settles_late_beside(broker: Broker, method: Method) -> Scope | None:
    """Something that timed out is settled, and the channel has, or had, another consumer of the tag that it went to."""
    channel = broker.open_channel(method)
    if channel is None or not channel.timed_out:
        return None
    late = [channel.timed_out[tag] for _, tags in settled_late(channel, method) for tag in tags]
    held: list[Unacknowledged | TimedOut] = [*channel.unacknowledged.values(), *channel.timed_out.values()]
    known = {*channel.consumers.values(), *(each.consumer for each in held if each.consumer is not None)}
    tags = [consumer.tag for consumer in known]
    doubled = (each for each in late if each.consumer is not None and tags.count(each.consumer.tag) > 1)
    return of_any(broker, (each.queue for each in doubled), channel.key)


def _may_be_forgotten(broker: Broker, difference: Difference) -> bool:
    """Does something not come about of a queue that has several deadlines, or had, or comes after all?"""
    is_of_time = difference.part in (Part.CANCEL, Part.CHANNEL_CLOSE) or difference.requirement.startswith("TIMEOUT")
    if difference.shape is not Shape.MISSING:
        # by the law it was over long ago, and what the client has done since then has come to nothing
        return is_of_time and any("next-deadline-forgotten" in queue.open_by for queue in broker.queues.values())
    of_several = [queue for queue in broker.queues.values() if queue.deadlines > 1]
    return is_of_time and any(difference.queue in (None, queue.name) for queue in of_several)


def _is_told_again(broker: Broker, difference: Difference) -> bool:
    """Is the client told that a consumer is cancelled which has timed out, or is gone?"""
    channel = broker.channels.get(difference.channel)
    if difference.event is None or difference.shape is not Shape.UNEXPECTED or channel is None:
        return False
    consumer = channel.consumers.get(difference.event.arguments["consumer_tag"])
    return consumer is None or consumer.timed_out > 0


def _is_closed_again(broker: Broker, difference: Difference) -> bool:
    channel = broker.channels.get(difference.channel)
    is_closed = channel is not None and channel.state is not ChannelState.OPEN
    return is_closed and difference.shape is Shape.UNEXPECTED


def _names_no_value(broker: Broker, method: Method, mismatch: Mismatch) -> bool:
    owed = mismatch.about
    if mismatch.argument != "reply_text" or not isinstance(owed, Expected) or owed.due is None:
        return False
    text = ProtocolError("TIMEOUT-009", 406, close_text(method.channel, -1)).text
    return method.name == "channel.close" and method.arguments.get("reply_text") == text


TIMEOUT_TEXT = OutputDefect(
    name="timeout-text-without-value",
    requirement="TIMEOUT-009",
    strength=Strength.CONVENTIONAL,
    statement="The text of the close names -1 ms, and not the time that was up.",
    source="rabbit_channel:handle_queue_actions released, handle_consumer_timed_out(-1, ...)",
    dialects=("rabbitmq-4.3",),
    explains=_names_no_value,
)

TIMEOUTS: tuple[Window, ...] = (
    _resuming(
        name="two-active-consumers-after-timeout",
        requirement="SAC-001",
        statement="A single active consumer that timed out while it held another message, which has not, and whose"
        " client then settles what timed out, is served beside the one that has followed it.",
        source="rabbit_fifo:apply {timeout, evaluate_consumer_timeout} leaves it among the consumers while it holds"
        " something, and activates the next one; complete_and_checkout, maybe_untimeout have it be up again there",
        arms=lambda broker, it: of_any(
            broker, (each.queue for each, _ in recovering(broker, it) if each.queue.single_active_consumer)
        ),
    ),
    *(
        _resuming(
            name=name,
            requirement=requirement,
            statement="A consumer of which the client was told by basic.cancel that it is gone is handed messages"
            f" again, under its tag, when the client has {how} all that timed out.",
            source="rabbit_fifo:complete_and_checkout, maybe_untimeout; rabbit_channel:handle_queue_actions released,"
            " which leaves the consumer at its queue",
            arms=_recovers(outcome),
            explains=lambda broker, it: it.shape is not Shape.MISSING,
        )
        for name, requirement, how, outcome in (
            ("late-ack-resumes-consumer", "TIMEOUT-016", "acknowledged", Outcome.ACKNOWLEDGED),
            ("late-reject-resumes-consumer", "TIMEOUT-017", "rejected", Outcome.DISCARDED),
            ("late-requeue-resumes-consumer", "TIMEOUT-018", "given back", Outcome.REQUEUED),
        )
    ),
    _resuming(
        name="late-requeue-resumes-consumer-later",
        requirement="TIMEOUT-018",
        statement="A consumer of which the client was told by basic.cancel that it is gone, and whose client has given"
        " back all that timed out, is handed messages again when it settles something else that it still holds.",
        source="rabbit_fifo:return, return_multiple pass over messages that are not checked out, and do not put the"
        " consumer among those to be served again (as complete does)",
        arms=_recovers(Outcome.REQUEUED),
    ),
    _of_quorum_queues(
        name="next-deadline-forgotten",
        requirement="TIMEOUT-021",
        statement="When a deadline is over, whether its delivery was settled or not, the next one of the queue may be"
        " forgotten: nothing happens when it has passed, until something else happens to the queue.",
        source="rabbit_fifo:handle_aux eval: no timer is set if the last one was for this very millisecond"
        " (LastConTimeout0 < Ts), and the next deadline is not earlier",
        by_chance=True,
        spoils=SERVICE | {Part.CANCEL, Part.CHANNEL_CLOSE},
        explains=_may_be_forgotten,
    ),
    _mended(
        name="timeout-told-again",
        requirement="TIMEOUT-008",
        statement="A client that was told that its consumer is cancelled is told so once more when another delivery of"
        " the consumer times out, and when its queue is deleted.",
        source="rabbit_channel:handle_queue_actions released, handle_eol: the tag is still in consumer_mapping",
        spoils=frozenset({Part.CANCEL}),
        kinds=(DeliveryTimeout,),
        arms=_times_out,
        explains=_is_told_again,
    ),
    _of_quorum_queues(
        name="late-settlement-settles-for-next-consumer",
        requirement="TIMEOUT-019",
        statement="When a consumer has timed out and was cancelled, and another one was made with its tag, to settle a"
        " delivery of the first settles the delivery of the second that has the same number: the message is lost.",
        source="rabbit_channel settles by queue name, consumer tag and number; rabbit_fifo_client:settle looks up the"
        " consumer's key by the tag; rabbit_fifo counts anew for each consumer (next_msg_id)",
        by_chance=True,
        kinds=SETTLING,
        arms=_settles_late_beside,
    ),
    _of_quorum_queues(
        name="timeout-after-cancel-closes-channel",
        requirement="TIMEOUT-011",
        statement="When the client has cancelled its consumer, or the broker has forgotten one whose time was up, and"
        " the client holds a delivery of it until its time is up, its channel is closed, with the capability"
        " consumer_cancel_notify as without.",
        source="rabbit_channel:handle_queue_actions released, where the tag is none of consumer_mapping",
        spoils=frozenset({Part.CHANNEL_CLOSE}),
        kinds=(DeliveryTimeout,),
        arms=_times_out_of_cancelled,
    ),
    _mended(
        name="timed-out-tag-stays-in-use",
        requirement="TIMEOUT-030",
        strength=Strength.CONVENTIONAL,
        statement="The tag of a consumer whose client was told by basic.cancel that it has timed out is still in use:"
        " to consume with it again closes the connection (530).",
        source="rabbit_channel:handle_queue_actions released, which leaves consumer_mapping as it is",
        spoils=frozenset({Part.CONNECTION_CLOSE}),
        kinds=("basic.consume",),
        arms=lambda broker, it: of_channel(it) if (tag := named_consumer(broker, it)) and tag.timed_out else None,
        is_brief=True,
        shows_at_once=True,
    ),
    Window(
        name="timed-out-channel-closed-again",
        requirement="CHAN-005",
        statement="A channel that is closed because a delivery was not settled in time is closed again until the client"
        " has answered: with every tick, and from 4.3 on whenever something further of it times out.",
        source="rabbit_channel:handle_info tick, and handle_queue_actions released, which do not ask whether the"
        " channel is closing",
        by_chance=True,
        spoils=frozenset({Part.CHANNEL_CLOSE}),
        kinds=(DeliveryTimeout,),
        arms=_times_out,
        explains=_is_closed_again,
    ),
)
