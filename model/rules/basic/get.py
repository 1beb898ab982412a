"""Chapter basic, get (0-9-1 section 1.8.3.10; area GET). The reply is matched by `model.outputs.observation`.

Requirements:

* GET-001: get-ok / get-empty. Message-count in get-ok is the number of ready messages left; empty queue gives
  get-empty. [rabbit_channel.erl:basic.get; AMQP 0-9-1 basic.get]
* GET-002: get on missing queue / no read permission. basic.get on a missing queue is a soft 404, without read
  permission a soft 403; class 60, method 70. [rabbit_channel.erl; AMQP 0-9-1 basic.get]
* GET-005: get on SAC quorum queue. basic.get on a quorum queue with x-single-active-consumer is a soft 405. Classic
  queues with it allow get. In rabbitmq-3: 405, the text says: by quorum queues. In rabbitmq-4.0: 405, the text says: by
  quorum queues, or as in 4.3 (from 4.2.0 on). In rabbitmq-4.3: 405.
  [rabbit_channel.erl:unsupported_single_active_consumer_error]
* GET-006: get on a stream. basic.get on a stream is a hard error 540. [rabbit_stream_queue:dequeue]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.common.lookup import find_queue, queue_text, shortcut
from amqpspec.model.rules.common.permission import check_read


def get(broker: Broker, channel: Channel, method: Method) -> None:
    """GET-001: get-ok with the first ready message or get-empty is owed: `model.outputs` says which when it comes."""
    name = shortcut(broker, channel, method.arguments.get("queue", ""))
    check_read(broker, channel, name, "queue")
    queue = find_queue(broker, channel, name, "GET-002")
    if queue.type is QueueType.STREAM:
        raise ProtocolError(
            "GET-006", 540, f"basic.get not supported by stream queues {queue_text(broker, channel, name)}"
        )
    if queue.type is QueueType.QUORUM and queue.single_active_consumer:
        raise ProtocolError(
            "GET-005",
            405,
            f"cannot obtain access to locked {queue_text(broker, channel, name)}. basic.get operations are not"
            f" supported by {broker.dialect.queue_type_in_get_error} queues with single active consumer",
        )
    broker.touch(channel, queue)
    broker.blame(channel, "GET-001")
    broker.owe_get(channel, queue, bool(method.arguments.get("no_ack")))
