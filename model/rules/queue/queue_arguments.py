"""Arguments and properties of a queue that is declared anew: what each queue type takes (QUEUE-013 to QUEUE-018).

Requirements:

* QUEUE-013: Argument validation. Bad argument values are 406 with the fixed prefix "PRECONDITION_FAILED - invalid arg
  '<a>' for queue '<q>' in vhost '/': <reason>". Looked at are x-queue-type, then the arguments that the type knows, in
  a fixed order; the first wrong one is told. x-delivery-limit is never checked. In rabbitmq-3: as stated; broken: 541
  for an x-max-age without a number, and for no name with an unknown type. In rabbitmq-4.0: as stated; broken: 541 for
  an x-max-age without a number (mended in 4.2.7), and for no name with an unknown type. In rabbitmq-4.3: any
  x-queue-mode is refused, in whatever words; broken: it is taken; 541 for an x-max-age without a number (mended in
  4.3.1), and for no name with an x-queue-type that is no text. [rabbit_amqqueue:check_declare_arguments, declare_args]
* QUEUE-014: x-dead-letter-exchange of wrong type. Non-string x-dead-letter-exchange gives its own 406 text, before any
  other argument is looked at. [rabbit_channel.erl]
* QUEUE-015: Argument not supported by the queue type. An argument known to another queue type but not to this one is
  406, whatever its value, and after the values of those that this one knows. The first in the table is told; from 4.0
  on the table of a declare without x-queue-type is sorted first. [rabbit_amqqueue:check_arguments_key;
  rabbit_*_queue:capabilities]
* QUEUE-016: x-consumer-timeout as classic queue argument. x-consumer-timeout as an argument of a classic queue is
  accepted up to 4.2, rejected from 4.3. In rabbitmq-3: accepted, no effect. In rabbitmq-4.0: accepted and honoured. In
  rabbitmq-4.3: 406. [rabbit_classic_queue:capabilities]
* QUEUE-017: Quorum/stream must be durable, non-exclusive. durable=false, exclusive=true or auto_delete=true is 406 on
  quorum queues and streams; auto_delete is checked first, then exclusive, then durable. [rabbit_quorum_queue:declare /
  check_non_durable etc]
* QUEUE-018: Transient non-exclusive queues. From 4.3 on a queue that is neither durable nor exclusive is made, or its
  declare is refused with a hard 541, as build and configuration have it (feature transient_nonexcl_queues, denied by
  default upstream); the refusal comes after those of arguments, and before those of properties. Older: made. In
  rabbitmq-3: DeclareOk. In rabbitmq-4.0: DeclareOk. In rabbitmq-4.3: denied by default upstream; Debian 4.3.6 reports
  permitted_by_default and answers DeclareOk. [RabbitMQ 4.3.0 release notes; rabbit_amqqueue:declare, deprecated
  feature]
* QUEUE-030: x-queue-master-locator. A classic queue may be declared with x-queue-master-locator, whatever its value.
  From 4.3 on that is a deprecated feature: its declare is refused with a hard 541, after all other checks, unless the
  configuration permits it (feature queue_master_locator). A queue that exists is compared as ever. In rabbitmq-3:
  DeclareOk. In rabbitmq-4.0: DeclareOk. In rabbitmq-4.3: 541, unless configured otherwise.
  [rabbit_classic_queue:validate_arguments, rabbit_queue_location (deprecated feature, denied by default from 4.3.0 on)]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.erlang_wording import wire_type
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.field_types import is_whole_number
from amqpspec.model.rules.common.lookup import queue_text
from amqpspec.model.rules.common.permission import check_alternative
from amqpspec.model.rules.queue.queue_values import CHECKS, invalid_value

MASTER_LOCATOR = "x-queue-master-locator"
#: Octets of the largest segment that a stream may have (rabbit_stream_queue).
LARGEST_SEGMENT = 3_000_000_000


def check_arguments(broker: Broker, channel: Channel, wanted: Queue) -> None:
    """Refuse what the queue type cannot be; the order is that of rabbit_channel and rabbit_amqqueue:declare."""
    where = queue_text(broker, channel, wanted.name)
    _check_dead_letter_exchange(broker, channel, wanted, where)
    _check_values(broker, wanted, where)
    _check_support(broker, wanted, where)
    if wanted.owner is None and not wanted.durable and broker.dialect.transient_queues.is_refused:
        raise _deprecated("QUEUE-018", "transient_nonexcl_queues")
    if wanted.type is not QueueType.CLASSIC:
        _check_properties(wanted, where)
    if wanted.type is QueueType.STREAM:
        _check_stream_sizes(broker, wanted)
    if MASTER_LOCATOR in wanted.arguments and broker.dialect.master_locators.is_refused:
        raise _deprecated("QUEUE-030", "queue_master_locator")


def _deprecated(requirement: str, feature: str) -> ProtocolError:
    """The text is the broker's own advice, which depends on its configuration."""
    return ProtocolError(requirement, 541, f"Feature `{feature}` is deprecated.", any_text=True)


def _check_dead_letter_exchange(broker: Broker, channel: Channel, wanted: Queue, where: str) -> None:
    """rabbit_misc:r_arg, which comes before all other checks."""
    name = "x-dead-letter-exchange"
    if name in wanted.arguments and not isinstance(wanted.arguments[name], str):
        text = f"invalid type '{wire_type(wanted.arguments[name])}' for arg '{name}' in {where}"
        raise ProtocolError("QUEUE-014", 406, text)
    if name in wanted.arguments:
        check_alternative(broker, channel, wanted.name, "queue", wanted.arguments[name])


def _check_values(broker: Broker, wanted: Queue, where: str) -> None:
    """rabbit_amqqueue:check_arguments_type_and_value: the type first, then what it knows, in the order of `CHECKS`."""
    known = broker.dialect.queue_arguments
    own = known.of(wanted.type)
    for argument in ("x-queue-type", *(name for name in CHECKS if name in own)):
        if argument not in wanted.arguments:
            continue
        reason = invalid_value(argument, wanted.arguments[argument], wanted.arguments, known)
        if reason is not None:
            # that it fails is promised, and no text
            any_text = argument == "x-queue-mode" and not known.queue_modes
            text = f"invalid arg '{argument}' for {where}: {reason}"
            raise ProtocolError("QUEUE-013", 406, text, any_text=any_text)


def _check_support(broker: Broker, wanted: Queue, where: str) -> None:
    """rabbit_amqqueue:check_arguments_key, in the order of the table.

    Where the broker puts a missing x-queue-type into the table, it sorts the table (rabbit_misc:set_table_value).
    """
    unsupported = broker.dialect.queue_arguments.unsupported(wanted.type)
    is_sorted = broker.dialect.default_queue_type_in_errors is not None and "x-queue-type" not in wanted.arguments
    for argument in sorted(wanted.arguments, key=str.encode) if is_sorted else wanted.arguments:
        if argument in unsupported:
            of_classic_timeout = argument == "x-consumer-timeout" and wanted.type is QueueType.CLASSIC
            raise ProtocolError(
                "QUEUE-016" if of_classic_timeout else "QUEUE-015",
                406,
                f"invalid arg '{argument}' for {where} of queue type rabbit_{wanted.type.value}_queue",
            )


def _check_properties(wanted: Queue, where: str) -> None:
    """QUEUE-017; rabbit_quorum_queue:declare, rabbit_stream_queue:declare."""
    for property_, is_wrong in (
        ("auto-delete", wanted.auto_delete),
        ("exclusive-owner", wanted.owner is not None),
        ("non-durable", not wanted.durable),
    ):
        if is_wrong:
            raise ProtocolError("QUEUE-017", 406, f"invalid property '{property_}' for {where}")


def _check_stream_sizes(broker: Broker, wanted: Queue) -> None:
    """rabbit_stream_queue:check_max_segment_size_bytes, check_filter_size."""
    if wanted.arguments.get("x-stream-max-segment-size-bytes", 0) > LARGEST_SEGMENT:
        raise ProtocolError("QUEUE-013", 406, "Exceeded max value for x-stream-max-segment-size-bytes")
    text = broker.dialect.queue_arguments.filter_size_text
    size = wanted.arguments.get("x-stream-filter-size-bytes", 16)
    if text is not None and not (is_whole_number(size) and 16 <= size <= 255):
        raise ProtocolError("QUEUE-013", 406, text)
