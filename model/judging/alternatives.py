"""Alternatives: what a broker may do in place of the usual, as its build or its configuration has it.

Both are right. The acceptor follows an alternative beside the usual behaviour, as another explanation, until what the
broker sends tells which it was. Unlike a known defect it is no failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.internal_events import DeliveryTimeout, Input, InternalEvent, Kind, Teardown, kind_of
from amqpspec.model.broker.limits import counted, room_on
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.ruling import Outcome
from amqpspec.model.broker.time_to_live import time_to_live
from amqpspec.model.broker.transaction import Transaction
from amqpspec.model.judging.alternative import Alternative
from amqpspec.model.judging.alternatives_of_queues import ALTERNATIVES_OF_QUEUES
from amqpspec.model.judging.alternatives_of_the_text import alternatives_of_the_text
from amqpspec.model.judging.alternatives_of_timeouts import ALTERNATIVES_OF_TIMEOUTS
from amqpspec.model.judging.alternatives_of_words import ALTERNATIVES_OF_WORDS
from amqpspec.model.judging.free_choices import choices_of, other_values
from amqpspec.model.promises.choices import DeprecatedFeature
from amqpspec.model.promises.deleted_before_commit import DeletedBeforeCommit
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method, TraceEvent
from amqpspec.model.rules.basic.cancel import crosses_notice, withdraw_notice
from amqpspec.model.rules.connection.ending import is_said_by_queue
from amqpspec.model.rules.extensions.queue_expiry import is_in_use, note_going
from amqpspec.model.rules.extensions.timeout_schedule import MOST_TOGETHER, others_due, process_timeout
from amqpspec.model.rules.inputs import process
from amqpspec.model.rules.other_ways import BY_METHOD
from amqpspec.model.rules.queue.queue_arguments import MASTER_LOCATOR
from amqpspec.model.rules.tx.commit import breaks_connection


def _declares_transient(broker: Broker, method: Method) -> bool:
    arguments = method.arguments
    if broker.dialect.transient_queues is not DeprecatedFeature.EITHER or arguments.get("passive"):
        return False
    channel = broker.open_channel(method)
    if channel is None:
        return False
    return not (arguments.get("durable") or arguments.get("exclusive") or arguments.get("queue") in broker.queues)


def _names_master_locator(broker: Broker, method: Method) -> bool:
    if broker.dialect.master_locators is not DeprecatedFeature.USUALLY_REFUSED:
        return False
    return MASTER_LOCATOR in (method.arguments.get("arguments") or {})


def _permit_master_locator(broker: Broker, method: Method) -> None:
    dialect = broker.dialect
    broker.dialect = replace(dialect, master_locators=DeprecatedFeature.ALLOWED)
    process(broker, method)
    broker.dialect = dialect


def _refuse_transient(broker: Broker, method: Method) -> None:
    dialect = broker.dialect
    broker.dialect = replace(dialect, transient_queues=DeprecatedFeature.REFUSED)
    process(broker, method)
    broker.dialect = dialect


def _cancel_in_time(broker: Broker, method: Method) -> None:
    process(broker, method)
    withdraw_notice(broker, method)


def _closes_before_queues_answer(broker: Broker, method: Method) -> bool:
    channel = broker.open_channel(method)
    return channel is not None and any(map(is_said_by_queue, channel.owed))


def _close_at_once(broker: Broker, method: Method) -> None:
    channel = broker.channels[(method.connection, method.channel)]
    channel.owed = [owed for owed in channel.owed if not is_said_by_queue(owed)]
    process(broker, method)


def _overlooks_deletion(broker: Broker, method: Method) -> bool:
    """Is a queue gone that the commit publishes to, and the channel may still know it from before, or find it still?"""
    channel = broker.open_channel(method)
    if channel is None or channel.transaction is None:
        return False
    return any(
        breaks_connection(broker, queue) and (_may_be_found(broker, queue) or _may_be_known(broker, channel, queue))
        for publication in channel.transaction.publications
        for queue in publication.routes.queues
    )


def _may_be_found(broker: Broker, queue: Queue) -> bool:
    """A stream is there until the last of its members is gone, which delete-ok does not wait for
    (v4.0.5 rabbit_stream_coordinator:delete_stream, register_listener).
    """
    return queue.type is QueueType.STREAM and broker.dialect.deleted_before_commit is DeletedBeforeCommit.KEPT


def _may_be_known(broker: Broker, channel: Channel, queue: Queue) -> bool:
    is_late = queue.type is not QueueType.CLASSIC or queue.name in broker.deleted_of_late
    return is_late and queue.name in channel.known_types


def _overlook_deletion(broker: Broker, method: Method) -> None:
    channel = broker.channels[(method.connection, method.channel)]
    if channel.transaction is not None:
        channel.transaction.overlooks_deletion = True
    process(broker, method)


def _expires_between(broker: Broker, method: Method) -> bool:
    """May something be over as soon as the commit publishes it, and make a dead letter before what it rejects does?"""
    channel = broker.open_channel(method)
    if channel is None or channel.transaction is None:
        return False
    transaction = channel.transaction
    return any(ruling.outcome is Outcome.DISCARDED for ruling, _ in transaction.rulings) and any(
        time_to_live(broker.dialect, queue, publication.pattern) == 0
        for publication in transaction.publications
        for queue in publication.routes.queues
    )


def _expire_between(broker: Broker, method: Method) -> None:
    channel = broker.channels[(method.connection, method.channel)]
    if channel.transaction is not None:
        channel.transaction.expires_between = True
    process(broker, method)


def _times_out_with(number: int) -> Callable[[Broker, DeliveryTimeout], bool]:
    return lambda broker, event: len(others_due(broker, event)) >= number


def _time_out_with(number: int) -> Callable[[Broker, DeliveryTimeout], None]:
    return lambda broker, event: process_timeout(broker, event, others_due(broker, event)[:number])


def _asks_for_expiring(broker: Broker, method: Method) -> bool:
    """Is a quorum queue asked for its numbers that may be expiring at this moment?"""
    arguments = method.arguments
    if not arguments.get("passive") or not broker.expiring:
        return False
    queue = broker.queues.get(arguments.get("queue", ""))
    channel = broker.open_channel(method)
    if queue is None or queue.type is not QueueType.QUORUM or channel is None:
        return False
    return queue.name in broker.expiring and queue.expiring_use == queue.uses and not is_in_use(broker, queue)


def _count_nothing(broker: Broker, method: Method) -> None:
    """Its process is gone already, of which the answer says nothing; the queue is not yet."""
    note_going(broker, broker.queues[method.arguments["queue"]])
    process(broker, method)
    channel = broker.channels[(method.connection, method.channel)]
    answer = channel.owed[-1] if channel.owed else None
    if isinstance(answer, Expected) and answer.method == "queue.declare-ok":
        nothing = {**answer.arguments, "message_count": 0, "consumer_count": 0}
        channel.owed[-1] = replace(answer, arguments=nothing, effect=None)


ALTERNATIVES: tuple[Alternative, ...] = (
    *ALTERNATIVES_OF_TIMEOUTS,
    *(
        Alternative(
            name=f"{number} more timed out before the channel was closed",
            requirement="TIMEOUT-020",
            source="rabbit_fifo:apply {timeout, evaluate_consumer_timeout} releases all that it finds",
            kinds=(DeliveryTimeout,),
            applies=_times_out_with(number),
            process=_time_out_with(number),
        )
        for number in range(1, MOST_TOGETHER + 1)
    ),
    Alternative(
        name="transient queue refused",
        requirement="QUEUE-018",
        source="rabbit_amqqueue:declare, is_queue_args_combination_permitted",
        kinds=("queue.declare",),
        applies=_declares_transient,
        process=_refuse_transient,
    ),
    Alternative(
        name="deprecated argument permitted",
        requirement="QUEUE-030",
        source="rabbit_classic_queue:validate_arguments; deprecated_features.permit.queue_master_locator",
        kinds=("queue.declare",),
        applies=_names_master_locator,
        process=_permit_master_locator,
    ),
    Alternative(
        name="queue counted while it expires",
        requirement="QUEUE-027",
        source="rabbit_quorum_queue:delete (the process first), stat (no process: {ok, 0, 0})",
        kinds=("queue.declare",),
        applies=_asks_for_expiring,
        process=_count_nothing,
    ),
    Alternative(
        name="consumer cancelled before its channel heard of the queue's end",
        requirement="CANCEL-005",
        source="rabbit_channel:handle_method basic.cancel, handle_consuming_queue_down_or_eol",
        kinds=("basic.cancel",),
        applies=crosses_notice,
        process=_cancel_in_time,
    ),
    Alternative(
        name="channel closed before its queues have answered",
        requirement="CHAN-003",
        source="rabbit_channel:handle_cast {command, …} comes behind the client's channel.close; 0-9-1 section 1.5.2.5",
        kinds=("channel.close",),
        applies=_closes_before_queues_answer,
        process=_close_at_once,
    ),
    Alternative(
        name="transaction committed before its channel heard of the queue's end",
        requirement="TX-002",
        source="rabbit_queue_type:deliver, get_ctx_with of a queue that the channel has dealt with;"
        " rabbit_stream_coordinator:delete_stream",
        kinds=("tx.commit",),
        applies=_overlooks_deletion,
        process=_overlook_deletion,
    ),
    Alternative(
        name="what has no time expired before the settlements of its transaction",
        requirement="TTL-004",
        source="rabbit_amqqueue_process:deliver_or_enqueue, drop_expired_msgs; rabbit_channel:handle_method tx.commit",
        kinds=("tx.commit",),
        applies=_expires_between,
        process=_expire_between,
    ),
)


#: Gives alternatives to the usual processing of an input of some kind, in a state.
_Ways = Callable[[Broker, Any], Iterable[Alternative]]


@cache
def _ways(dialect_name: str, has_extensions: bool) -> dict[Kind, tuple[_Ways, ...]]:
    """By the kinds of inputs; those that were not looked up yet are not there."""
    return {}


def _ways_of(kind: Kind, dialect_name: str, has_extensions: bool) -> tuple[_Ways, ...]:
    """What may give alternatives to inputs of that kind, in that dialect."""
    found: list[_Ways] = []
    if fixed := tuple(each for each in ALTERNATIVES if kind in each.kinds):
        found.append(lambda broker, event: [each for each in fixed if each.applies(broker, event)])
    if isinstance(kind, str):
        if choices := choices_of(dialect_name, kind):
            found.append(lambda broker, event: other_values(broker, event, choices))
        if not has_extensions and kind in BY_METHOD:
            found.append(alternatives_of_the_text)
        found.extend(each[kind] for each in (_MADE_FOR, ALTERNATIVES_OF_WORDS) if kind in each)
    return tuple(found)


def alternatives_to(broker: Broker, event: Input) -> Sequence[Alternative]:
    """The alternatives to the usual processing of this input, in this state."""
    dialect, kind = broker.dialect, kind_of(event)
    by_kind = _ways(dialect.name, bool(dialect.extensions))
    ways = by_kind.get(kind)
    if ways is None:
        ways = by_kind[kind] = _ways_of(kind, dialect.name, bool(dialect.extensions))
    if not ways and not broker.debtors:
        return ()
    found = [each for way in ways for each in way(broker, event)]
    if broker.debtors and (not isinstance(event, InternalEvent) or isinstance(event, Teardown)):
        channel = broker.channels.get((event.connection, event.channel))
        if channel is not None and channel.owed:
            found += _before_commit_fails(channel, event)
    return found


def _before_commit_fails(channel: Channel, event: TraceEvent | Teardown) -> Iterator[Alternative]:
    """TX-010: a commit that some queue refuses waits for all others before it says so (TX-008)."""
    if any(map(_tells_of_failed_commit, channel.owed)):
        yield Alternative(
            name="method before a commit fails",
            requirement="TX-010",
            source="rabbit_channel:handle_method, tx = failed",
            kinds=(kind_of(event),),
            applies=lambda broker, event: True,
            process=_come_before_commit_fails,
        )


def _tells_of_failed_commit(owed: Expected | PendingGet) -> bool:
    return isinstance(owed, Expected) and owed.requirements[0] == "TX-008"


def _come_before_commit_fails(broker: Broker, event: TraceEvent | Teardown) -> None:
    channel = broker.channels[(event.connection, event.channel)]
    channel.owed = [owed for owed in channel.owed if not _tells_of_failed_commit(owed)]
    channel.state = ChannelState.OPEN
    channel.transaction = Transaction(is_failing=True)
    process(broker, event)


def _deliveries_under_way(broker: Broker, method: Method) -> Iterator[Alternative]:
    """QOS-011: a limit does not take back what is on its way from the queues to the channel, however much that is."""
    channel = broker.channels.get((method.connection, method.channel))
    limit = method.arguments.get("prefetch_count", 0)
    if channel is None or channel.state is not ChannelState.OPEN or not method.arguments.get("global_") or not limit:
        return
    if not broker.dialect.channel_prefetch or broker.dialect.prefetch_is_shared:
        return
    most = sum(
        min(len(queue.messages), room_on(channel, queue))
        for queue in broker.deliverable
        if queue.type is QueueType.CLASSIC
    )
    for number in range(max(limit - counted(broker, channel), 0) + 1, int(most) + 1):
        yield Alternative(
            name=f"{number} deliveries under way",
            requirement="QOS-011",
            source="rabbit_channel: the limiter is told at once, the queues by activate_limit_all",
            kinds=("basic.qos",),
            applies=lambda broker, method: True,
            process=partial(_limit_behind, number=number),
        )


def _limit_behind(broker: Broker, method: Method, number: int) -> None:
    process(broker, method)
    channel = broker.channels[(method.connection, method.channel)]
    channel.under_way = number
    broker.refresh_sharing(channel)


#: By the name of the method: makes alternatives of which the state says how many there are.
_MADE_FOR: Mapping[str, Callable[[Broker, Method], Iterator[Alternative]]] = {
    "basic.qos": _deliveries_under_way,
    **ALTERNATIVES_OF_QUEUES,
}
