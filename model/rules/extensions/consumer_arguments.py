"""RabbitMQ's arguments of basic.consume: which values they may have, and which queues do not know them (area CONSUME).

rabbit_amqqueue:check_consume_arguments.

Requirements:

* CONSUME-011: Consumer argument validation. x-priority must be an integer; x-consumer-timeout validated from 4.3 on.
  [rabbit_amqqueue/rabbit_queue_type:consume]
* CONSUME-012: Consumer x-consumer-timeout validation (4.3). Negative is 406 value_negative, non-integer 406, on a
  classic queue 406 unsupported; 0 is accepted. Before 4.3 any value is ignored. In rabbitmq-3: ignored. In
  rabbitmq-4.0: ignored. In rabbitmq-4.3: validated. [rabbit_queue_type:consume; rabbit test suite quorum_queue_SUITE
  consume_invalid_consumer_timeout_*]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.erlang_wording import wire_type
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.field_types import is_whole_number
from amqpspec.model.protocol.methods import Table
from amqpspec.model.rules.common.lookup import queue_text
from amqpspec.model.rules.extensions.stream_consuming import check_offset_text

#: Arguments of basic.consume that one queue type does not know and another does (rabbit_*_queue:capabilities).
UNSUPPORTED: dict[QueueType, tuple[str, ...]] = {
    QueueType.CLASSIC: ("x-stream-offset", "x-consumer-timeout"),
    QueueType.QUORUM: ("x-stream-offset",),
    QueueType.STREAM: ("x-priority", "x-consumer-timeout"),
}


def check_arguments(broker: Broker, channel: Channel, queue: Queue, no_ack: bool, table: Table) -> None:
    """CONSUME-011, CONSUME-012: values first, then what is not supported."""
    checked = {name: value for name, value in table.items() if name in ("x-priority", "x-consumer-timeout")}
    if "x-consumer-timeout" in checked and not broker.dialect.consumer_timeout_checked:
        del checked["x-consumer-timeout"]
        broker.fired("CONSUME-012")
    where = queue_text(broker, channel, queue.name)
    unsupported = UNSUPPORTED[queue.type]
    for name in sorted(checked, reverse=True):  # x-priority comes first
        value = checked[name]
        requirement = "CONSUME-012" if name == "x-consumer-timeout" else "CONSUME-011"
        if name in unsupported:
            continue
        if not is_whole_number(value):
            reason = f'"expected integer, got {wire_type(value)}"'
            raise ProtocolError(requirement, 406, f"invalid arg '{name}' for {where}: {reason}")
        if value < 0 and name == "x-consumer-timeout":
            raise ProtocolError(requirement, 406, f"invalid arg '{name}' for {where}: {{value_negative,{value}}}")
    if queue.type is QueueType.STREAM:
        check_offset_text(broker, channel, queue, table)
    # what a queue cannot do is no argument of the text's
    for name in unsupported if broker.dialect.extensions else ():
        if name in checked or (name in table and name == "x-stream-offset"):
            requirement = "CONSUME-012" if name == "x-consumer-timeout" else "CONSUME-011"
            of_type = f"of queue type rabbit_{queue.type.value}_queue"
            raise ProtocolError(requirement, 406, f"invalid arg '{name}' for {where} {of_type}")
