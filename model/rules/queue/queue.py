"""Chapter queue: declare, purge, delete (0-9-1 section 1.7; area QUEUE).

Requirements:

* CANCEL-011: Order delete-ok / cancel on one channel. Deleting the queue from the channel that consumes it: DeleteOk
  first, then Basic.Cancel (cancel comes with the asynchronous eol event). From another channel the order relative to
  that channel is open. [rabbit_channel.erl:handle_eol]
* CHAN-017: Empty queue name means last declared. In bind, unbind, consume, get, purge, delete an empty queue name means
  the queue last declared on this channel; none declared gives 404. queue.declare passive with empty name is NOT
  expanded. In amqp-0-9-1: as stated; 404 or 502. [rabbit_channel.erl:expand_shortcuts; AMQP 0-9-1 class channel]
* QUEUE-001: declare-ok content. queue.declare-ok carries the (CR/LF-stripped) queue name, number of READY messages and
  number of consumers. [rabbit_channel.erl:return_queue_declare_ok; AMQP 0-9-1 class queue]
* QUEUE-002: ready count may lag behind publishes. Without confirms the message-count of a following declare may not
  include messages just published on the same channel (stat is prioritised in the queue; quorum answers from a local
  query). [rabbit_amqqueue_process:prioritise_call; rabbit_fifo_client:stat]
* QUEUE-003: Passive declare of a missing queue. Passive declare of a queue that does not exist is a soft 404.
  [rabbit_channel.erl:handle_method queue.declare passive; AMQP 0-9-1 class queue]
* QUEUE-004: Passive declare ignores other fields. passive=true checks only existence, exclusive ownership and (4.3)
  permission; other arguments are not compared. [rabbit_channel.erl; AMQP 0-9-1 class queue]
* QUEUE-005: Reserved prefix. A declare that is not passive of a queue named amq.* is 403, also if it exists
  (amq.gen-...); passive declare of a missing amq.* queue is 404. In amqp-0-9-1: as stated; a queue that exists may be
  declared again. [rabbit_channel.erl:check_name; AMQP 0-9-1 class queue]
* QUEUE-006: Server-named queue. Empty name in a non-passive declare creates amq.gen-<22 base64url chars> and returns
  it; allowed for classic only. In amqp-0-9-1: any name that is unique. [rabbit_channel.erl;
  rabbit_amqqueue:is_server_named_allowed; AMQP 0-9-1 class queue]
* QUEUE-009: Exclusive queue ignores durable. An exclusive queue is always non-durable: redeclaring with durable true or
  false is equivalent. [rabbit_channel.erl: Durable = DurableDeclare andalso not ExclusiveDeclare]
* QUEUE-010: Equivalence: known x-args. The arguments that the existing queue's type knows (x-message-ttl, x-expires,
  x-max-length, x-overflow, x-dead-letter-exchange, x-queue-type, ...) are compared by value, in the order of that type,
  and not checked; received none or a different value is 406. Whole numbers of all sizes are of one kind. Whether ages
  are compared by their text or their length is left open, and whether x-stream-filter-size-bytes is compared. In
  rabbitmq-4.3: as stated; from 4.3.6 on x-max-age is compared by its length: 168h is 7D.
  [rabbit_amqqueue:assert_args_equivalence; rabbit_misc:assert_args_equivalence1]
* QUEUE-011: Equivalence: unknown x-args ignored. Unknown arguments (x-foo) neither fail nor take part in equivalence.
  [rabbit_amqqueue:assert_args_equivalence]
* QUEUE-012: Equivalence: explicit x-queue-type=classic equals default. Declaring without x-queue-type and then with
  classic is equivalent; with quorum it is 406. In rabbitmq-3: text: received the value 'quorum' of type 'longstr' but
  current is none. In rabbitmq-4.0: text: received 'quorum' but current is 'classic'. In rabbitmq-4.3: text: received
  'quorum' but current is 'classic'. [rabbit_amqqueue:augment_declare_args]
* QUEUE-013: Argument validation. Bad argument values are 406 with the fixed prefix "PRECONDITION_FAILED - invalid arg
  '<a>' for queue '<q>' in vhost '/': <reason>". Looked at are x-queue-type, then the arguments that the type knows, in
  a fixed order; the first wrong one is told. x-delivery-limit is never checked. In rabbitmq-3: as stated; broken: 541
  for an x-max-age without a number, and for no name with an unknown type. In rabbitmq-4.0: as stated; broken: 541 for
  an x-max-age without a number (mended in 4.2.7), and for no name with an unknown type. In rabbitmq-4.3: any
  x-queue-mode is refused, in whatever words; broken: it is taken; 541 for an x-max-age without a number (mended in
  4.3.1), and for no name with an x-queue-type that is no text. [rabbit_amqqueue:check_declare_arguments, declare_args]
* QUEUE-016: x-consumer-timeout as classic queue argument. x-consumer-timeout as an argument of a classic queue is
  accepted up to 4.2, rejected from 4.3. In rabbitmq-3: accepted, no effect. In rabbitmq-4.0: accepted and honoured. In
  rabbitmq-4.3: 406. [rabbit_classic_queue:capabilities]
* QUEUE-018: Transient non-exclusive queues. From 4.3 on a queue that is neither durable nor exclusive is made, or its
  declare is refused with a hard 541, as build and configuration have it (feature transient_nonexcl_queues, denied by
  default upstream); the refusal comes after those of arguments, and before those of properties. Older: made. In
  rabbitmq-3: DeclareOk. In rabbitmq-4.0: DeclareOk. In rabbitmq-4.3: denied by default upstream; Debian 4.3.6 reports
  permitted_by_default and answers DeclareOk. [RabbitMQ 4.3.0 release notes; rabbit_amqqueue:declare, deprecated
  feature]
* QUEUE-022: queue.delete of a missing queue. Deleting a queue that does not exist succeeds with message-count 0. In
  amqp-0-9-1: 404. [rabbit_amqqueue:delete_with]
* QUEUE-023: queue.delete if-empty / if-unused. Violated condition is 406 on classic, if-empty before if-unused; quorum
  does not implement the flags: hard 540 even when the condition holds, if-unused first; a stream is deleted whatever
  they say. In amqp-0-9-1: 406 if the condition is violated. [rabbit_amqqueue:delete_with; rabbit_quorum_queue:delete;
  AMQP 0-9-1 class queue]
* QUEUE-024: delete-ok / purge-ok counts. delete-ok and purge-ok return the number of READY messages removed; purge
  leaves unacked messages, which return to the queue when nacked later. In amqp-0-9-1: as stated; delete-ok may count
  the unacknowledged messages as well. [rabbit_amqqueue; AMQP 0-9-1 class queue]
* QUEUE-025: purge errors. queue.purge of a missing queue is a soft 404; on a stream it is a hard error 540. In
  amqp-0-9-1: 404. [rabbit_channel.erl:queue.purge; AMQP 0-9-1 queue.purge]
* QUEUE-026: consumer_count. queue.declare-ok counts the live consumers of the queue, and nothing else. In rabbitmq-3:
  broken for quorum queues: unsettled gets count as well, and cancelled consumers with unsettled deliveries; broken for
  streams: none is counted. In rabbitmq-4.0: broken for quorum queues: unsettled gets count as well, and cancelled
  consumers with unsettled deliveries; broken for streams: none is counted. In rabbitmq-4.3: broken for quorum queues:
  unsettled gets count as well, and cancelled consumers with unsettled deliveries; broken for streams: none is counted.
  [rabbit_fifo:query_stat; AMQP 0-9-1 queue.declare-ok]
* QUEUE-028: CR/LF stripped from names. \\r and \\n are removed from queue/exchange names in declare, delete and bind.
  [rabbit_channel.erl:strip_cr_lf]
* QUEUE-030: x-queue-master-locator. A classic queue may be declared with x-queue-master-locator, whatever its value.
  From 4.3 on that is a deprecated feature: its declare is refused with a hard 541, after all other checks, unless the
  configuration permits it (feature queue_master_locator). A queue that exists is compared as ever. In rabbitmq-3:
  DeclareOk. In rabbitmq-4.0: DeclareOk. In rabbitmq-4.3: 541, unless configured otherwise.
  [rabbit_classic_queue:validate_arguments, rabbit_queue_location (deprecated feature, denied by default from 4.3.0 on)]
* QUORUM-006: consume/cancel are synchronous with the log. basic.consume and basic.cancel on a quorum queue run a raft
  command before the channel handles the next method: what follows on the channel, also when it was sent with it, finds
  the consumer counted, or no longer. [rabbit_fifo_client:checkout]
* QUORUM-007: reject-publish-dlx. Accepted as overflow value by quorum declare on all three versions.
  [rabbit_quorum_queue]
* TIMEOUT-014: A timed-out consumer is gone. The basic.cancel that tells of a timeout says that the consumer is gone: it
  is handed nothing, and not before everything that has timed out is settled in any case; it is not counted, and
  excludes nobody. A broker that announces accept_consumer_cancel_ok may still know it until the client answers with
  basic.cancel-ok, and for a short time without that (TIMEOUT-016, TIMEOUT-030). In rabbitmq-4.3: broken up to 4.3.6:
  counted. [RabbitMQ guide: consumer cancel notification (the consumption has stopped); RabbitMQ guide: consumer
  timeouts (no new messages, and none before all timed-out ones are settled); release notes of RabbitMQ 4.3.7]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker, crossed_by_cancel
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.effects import CountsTold, DeletionAnswered, QueueNamed
from amqpspec.model.broker.nodes import node_of
from amqpspec.model.broker.policies import NO_ARGUMENT
from amqpspec.model.broker.queues import ANY_NUMBER, Queue
from amqpspec.model.broker.survival import EXCLUSIVE, survivor_requirement
from amqpspec.model.broker.time_to_live import missed
from amqpspec.model.broker.timed_out_consumers import lingering
from amqpspec.model.promises.features import means_something
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method, Table
from amqpspec.model.protocol.patterns import UNKNOWN_NAME, Generated, between
from amqpspec.model.rules.common.answer import answer
from amqpspec.model.rules.common.lookup import (
    check_owner,
    check_up,
    find_queue,
    queue_text,
    shortcut,
    vhost_of,
    without_line_breaks,
)
from amqpspec.model.rules.common.permission import check_any, check_configure, check_read
from amqpspec.model.rules.common.steps import Step
from amqpspec.model.rules.queue.queue_arguments import MASTER_LOCATOR, check_arguments
from amqpspec.model.rules.queue.queue_equivalence import check_equivalence

#: The queue has been made.
made: Step[Broker, Queue] = Step()
#: A declare asks for the queue's numbers. The first requirement is broken if no answer comes, all are shown by it.
asked_for_numbers: Step[Broker, Queue, list[str]] = Step()

TYPES = {queue_type.value: queue_type for queue_type in QueueType}


def declare(broker: Broker, channel: Channel, method: Method) -> None:
    """rabbit_channel:handle_method queue.declare; the order of the checks is RabbitMQ's."""
    arguments = method.arguments
    name = without_line_breaks(arguments.get("queue", ""))
    if arguments.get("passive"):
        _declare_passive(broker, channel, name, method)
        return
    if name.startswith("amq.") and not (
        name in broker.queues and broker.dialect.text.reserved_queues_can_be_redeclared
    ):
        # also if it exists: rabbit_channel:check_name
        raise ProtocolError("QUEUE-005", 403, f"queue name '{name}' contains reserved prefix 'amq.*'")
    wanted = _wanted(channel, name, arguments)
    if not broker.dialect.extensions:
        table = wanted.arguments
        wanted.meaningless = frozenset(each for each in table if not means_something(broker.dialect, each, table[each]))
        if "x-queue-type" in wanted.meaningless:
            wanted.type = QueueType.CLASSIC
    if broker.dialect.text.durable_of_exclusive_is_compared:
        wanted.durable = bool(arguments.get("durable"))
    if not name:
        _check_server_names(wanted)
        broker.serial += 1
        wanted.name = f"{UNKNOWN_NAME}{broker.serial}"
    check_configure(broker, channel, wanted.name, "queue")
    queue = broker.queues.get(wanted.name)
    if queue is not None:
        check_up(queue)
        check_equivalence(broker, channel, queue, wanted)
        requirement = _shown_by_redeclare(broker, queue, wanted, bool(arguments.get("durable")))
    else:
        check_arguments(broker, channel, wanted)
        wanted.vhost, wanted.made_at = vhost_of(broker, channel), broker.now
        wanted.least_max_priority = broker.dialect.least_max_priority
        wanted.negative_limit_is_none = broker.dialect.negative_delivery_limit_is_none
        queue = broker.queues[wanted.name] = wanted
        broker.bookkeeping.ended_queues.pop(wanted.name, None)
        made(broker, queue)
        requirement = "QUEUE-001" if name else "QUEUE-006"
        if "x-consumer-timeout" in wanted.arguments and wanted.type is QueueType.CLASSIC:
            requirement = "QUEUE-016"
        elif not wanted.durable and wanted.owner is None and name:
            requirement = "QUEUE-018"
        elif MASTER_LOCATOR in wanted.arguments:
            requirement = "QUEUE-030"
        elif wanted.type is QueueType.QUORUM and wanted.arguments.get("x-overflow") == "reject-publish-dlx":
            requirement = "QUORUM-007"
    if name != arguments.get("queue", ""):
        requirement = "QUEUE-028"
    channel.last_queue = queue.name
    _answer_declare(broker, channel, method, queue, requirement, not name)


def _wanted(channel: Channel, name: str, arguments: Table) -> Queue:
    """The queue that the arguments ask for. An unknown type is refused later, with the other arguments."""
    table: Table = dict(arguments.get("arguments") or {})
    exclusive = bool(arguments.get("exclusive"))
    return Queue(
        name,
        type=TYPES.get(str(table.get("x-queue-type", "")), QueueType.CLASSIC),
        # QUEUE-009: an exclusive queue is never durable
        durable=bool(arguments.get("durable")) and not exclusive,
        owner=channel.connection if exclusive else None,
        node=node_of(channel.connection),
        auto_delete=bool(arguments.get("auto_delete")),
        arguments=table,
    )


def _check_server_names(wanted: Queue) -> None:
    """QUEUE-006: only classic queues may be named by the broker (rabbit_amqqueue:is_server_named_allowed)."""
    if wanted.arguments.get("x-queue-type", "classic") not in list(TYPES):
        # 406 like any other unknown type; only its text is another (rabbit_queue_type:discover)
        raise ProtocolError("QUEUE-013", 406, "unknown queue type", any_text=True)
    if wanted.type is not QueueType.CLASSIC:
        text = f"Cannot declare a server-named queue for type rabbit_{wanted.type.value}_queue"
        raise ProtocolError("QUEUE-006", 406, text)


def _shown_by_redeclare(broker: Broker, queue: Queue, wanted: Queue, asked_durable: bool) -> str:
    """What it shows that the queue may be declared again: arguments differ only where that makes no difference."""
    names = {*wanted.arguments, *queue.arguments}
    differing = {name for name in names if wanted.arguments.get(name) != queue.arguments.get(name)}
    if "x-queue-type" in differing:
        return "QUEUE-012"
    if differing:
        return "QUEUE-011" if differing.isdisjoint(broker.dialect.queue_arguments.of(queue.type)) else "QUEUE-010"
    if queue.policies and queue.policies.decided_by:
        return NO_ARGUMENT
    return "QUEUE-009" if wanted.owner and asked_durable else "QUEUE-001"


def _declare_passive(broker: Broker, channel: Channel, name: str, method: Method) -> None:
    """QUEUE-003, QUEUE-004. An empty name is not expanded here (CHAN-017)."""
    check_any(broker, channel, name, "queue")
    queue = broker.queues.get(name)
    if queue is None:
        requirement = broker.bookkeeping.ended_queues.get(name, "QUEUE-003") if name else "CHAN-017"
        raise ProtocolError(requirement, 404, f"no {queue_text(broker, channel, name)}")
    check_owner(broker, channel, queue)
    check_up(queue)
    channel.last_queue = queue.name
    differs = False
    if not method.arguments.keys().isdisjoint(("durable", "exclusive", "auto_delete", "arguments")):
        asked = _wanted(channel, name, method.arguments)
        differs = (asked.durable, asked.owner, asked.auto_delete, asked.arguments) != (
            queue.durable, queue.owner, queue.auto_delete, queue.arguments
        )  # fmt: skip
    requirement = "QUEUE-004" if differs else "QUEUE-001"
    if queue.survived:
        requirement = survivor_requirement(queue)
    _answer_declare(broker, channel, method, queue, requirement, False)


def _answer_declare(
    broker: Broker, channel: Channel, method: Method, queue: Queue, requirement: str, generated: bool
) -> None:
    requirements = [requirement]
    asked_for_numbers(broker, queue, requirements)
    requirement = requirements[0]
    if queue.type is QueueType.CLASSIC and not method.arguments.get("nowait"):
        # asking for the numbers is a use (rabbit_amqqueue_process:handle_call stat); quorum queues are not asked
        broker.used(queue)
    low, high = broker.ready_range(queue)
    if broker.may_not_be_led(queue):
        low = 0
    if low < high and queue.unproven and queue.type is not QueueType.STREAM:
        requirements.append("QUEUE-002")
    if queue.type is QueueType.STREAM and not queue.open_by:
        # a number that some statistics of old give (rabbit_stream_queue:i, queue_coarse_metrics); 1 seen when new
        low, high = 0, max(len(queue.log), 1)
    present = len(queue.present_consumers)
    most = ANY_NUMBER if queue.open_by else present + queue.still_counted + lingering(broker, queue, method.time)
    arguments = {
        "queue": Generated(_generated(broker), broker.serial) if generated else queue.name,
        "message_count": between(low, high),
        "consumer_count": between(0 if queue.open_by or broker.may_not_be_led(queue) else present, most),
    }
    effect: QueueNamed | CountsTold = QueueNamed(queue) if generated else CountsTold(queue)
    # a wrong number is the doing of whatever changed it last
    changed_by = queue.miscounted or missed(queue, broker.latest) or queue.reason
    blame = {"message_count": changed_by, "consumer_count": "QUEUE-001"}
    if requirement == "QUEUE-028":
        blame["queue"] = requirement
    elif requirement == "QUEUE-018":
        # that there is an answer at all is what shows it
        requirements.append("QUEUE-001")
        blame["queue"] = "QUEUE-001"
    if queue.survived:
        blame["consumer_count"], queue.survived = EXCLUSIVE, False
    elif queue.type is QueueType.QUORUM:
        blame["consumer_count"] = "QUEUE-026" if present == len(queue.consumers) else "TIMEOUT-014"
        if present or broker.holders(queue):
            requirements.append("QUEUE-026")
        if any(consumer.channel == channel.key for consumer in queue.consumers):
            requirements.append("QUORUM-006")
    elif queue.type is QueueType.STREAM and queue.consumers:
        blame["consumer_count"] = "QUEUE-026"
        requirements.append("QUEUE-026")
    answer(broker, channel, method, "queue.declare-ok", arguments, *requirements, blame=blame, effect=effect)


def _generated(broker: Broker) -> str:
    """What begins the names that the broker makes up."""
    return "" if broker.dialect.text.any_generated_name else "amq.gen-"


def purge(broker: Broker, channel: Channel, method: Method) -> None:
    """QUEUE-024: ready messages go, unacknowledged ones stay with their holders."""
    name = shortcut(broker, channel, method.arguments.get("queue", ""))
    check_read(broker, channel, name, "queue")
    queue = find_queue(broker, channel, name, "QUEUE-025")
    if queue.type is QueueType.STREAM:
        raise ProtocolError(
            "QUEUE-025", 540, f"queue.purge not supported by stream queues {queue_text(broker, channel, name)}"
        )
    low, high = broker.ready_range(queue)
    broker.remove_ready(queue, "QUEUE-024")
    if queue.type is QueueType.QUORUM:
        queue.handed_out += high  # a deletion under way may have counted them
    queue.held_when_purged += _unacknowledged(broker, queue)
    broker.touch(channel, queue, keeps_state=False)
    blame = {"message_count": queue.miscounted or "QUEUE-024"}
    answer(broker, channel, method, "queue.purge-ok", {"message_count": between(low, high)}, "QUEUE-024", blame=blame)


def delete(broker: Broker, channel: Channel, method: Method) -> None:
    """QUEUE-022, QUEUE-023, QUEUE-024; rabbit_amqqueue:delete_with."""
    name = without_line_breaks(shortcut(broker, channel, method.arguments.get("queue", "")))
    check_configure(broker, channel, name, "queue")
    queue = broker.queues.get(name)
    count: object = 0
    if queue is not None:
        check_owner(broker, channel, queue)
        _check_conditions(broker, channel, queue, method)
        low, high = broker.ready_range(queue)
        if queue.type is QueueType.QUORUM and not broker.is_punctual:
            # it counts first; until it is deleted it hands messages out, is purged and takes new ones
            low = max(low - _come_meanwhile(broker, queue), 0)
            high += queue.handed_out
        if broker.dialect.text.deleted_may_count_unacknowledged:
            high += _unacknowledged(broker, queue)
        count = 0 if queue.type is QueueType.STREAM and not queue.open_by else between(low, high)
    elif broker.dialect.text.missing_is_not_found:
        raise ProtocolError("QUEUE-022", 404, f"no {queue_text(broker, channel, name)}")
    requirement = "QUEUE-022" if queue is None else "QUEUE-024"
    if queue is not None and (method.arguments.get("if_unused") or method.arguments.get("if_empty")):
        requirement = "QUEUE-023"
    # only RabbitMQ promises that delete-ok comes before basic.cancel
    tags = () if queue is None or not broker.dialect.extensions else _told_by(queue, channel)
    effect = None
    if queue is not None and tags:
        effect = DeletionAnswered(channel.key, tags, crossed_by_cancel(queue))
    blame = {"message_count": (queue.miscounted if queue is not None else "") or "QUEUE-024"}
    counted = {"message_count": count}
    answer(broker, channel, method, "queue.delete-ok", counted, requirement, blame=blame, effect=effect)
    if queue is not None:
        # CANCEL-011: consumers on this channel are told after delete-ok, the others at any time from now on
        later = channel.key if effect is not None and not method.arguments.get("nowait") else None
        broker.delete_queue(queue, "QUEUE-024", told_later=later)


def _come_meanwhile(broker: Broker, queue: Queue) -> int:
    """How many of those that are there need not have come when the deletion was sent."""
    known = broker.known_before_deletion.get(queue.name)
    if known is None:
        return 0
    return sum(each.position >= known and each not in queue.unproven for each in queue.messages)


def _unacknowledged(broker: Broker, queue: Queue) -> int:
    held = (each for channel in broker.channels.values() for each in channel.unacknowledged.values())
    return sum(each.queue is queue for each in held)


def _check_conditions(broker: Broker, channel: Channel, queue: Queue, method: Method) -> None:
    """QUEUE-023: each type has its own idea of the flags (rabbit_classic_queue, rabbit_quorum_queue: delete).

    A stream is deleted whatever they say.
    """
    where = queue_text(broker, channel, queue.name)
    if queue.type is QueueType.CLASSIC:
        conditions = (("if_empty", queue.messages, "not empty"), ("if_unused", queue.consumers, "in use"))
        for flag, violated, words in conditions:
            if method.arguments.get(flag) and violated:
                raise ProtocolError("QUEUE-023", 406, f"{where} {words}")
    elif queue.type is QueueType.QUORUM:
        for flag in ("if_unused", "if_empty"):
            if method.arguments.get(flag):
                text = f"operations with {flag.replace('_', '-')} flag set are not supported by quorum queues"
                raise ProtocolError("QUEUE-023", 540, f"cannot delete {where}. queue.delete {text}")


def _told_by(queue: Queue, channel: Channel) -> tuple[str, ...]:
    """The tags of the channel's consumers that are told of the queue's end: those that time has cancelled were told."""
    return tuple(sorted(c.tag for c in queue.consumers if c.channel == channel.key and not c.timed_out))
