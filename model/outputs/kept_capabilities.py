"""Is what a broker advertises in connection.start there (CAP-001)?

Requirements:

* ACK-004: nack(0,true) with nothing outstanding. nack(0,true) with nothing outstanding is a no-op, as ack(0,true) is.
  [rabbit_channel.erl]
* BIND-004: Exchange-to-exchange bindings. Messages follow e2e bindings; cycles deliver once per queue;
  basic.deliver.exchange is the exchange originally published to. [rabbit_exchange:route1]
* CAP-001: Server capabilities table. connection.start capabilities: publisher_confirms, exchange_exchange_bindings,
  basic.nack, consumer_cancel_notify, connection.blocked, consumer_priorities, authentication_failure_close,
  per_consumer_qos, direct_reply_to all true. [rabbit_reader.erl:server_capabilities; RabbitMQ guide: consumer cancel
  notification]
* CONFIRM-001: confirm.select. Answered by select-ok unless nowait; repeating it is allowed and does not reset the
  counter. [RabbitMQ guide: consumer acknowledgements and publisher confirms; rabbit_channel.erl:confirm.select]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.outputs.mismatch import Mismatches, unexpected
from amqpspec.model.promises.capabilities import METHODS, advertised
from amqpspec.model.protocol.methods import METHOD_IDS, TraceEvent

#: Who is to blame where a dialect of the text has an extension: what the extension is about.
_ABOUT = {
    "basic.nack": "ACK-004", "publisher_confirms": "CONFIRM-001", "exchange_exchange_bindings": "BIND-004",
}  # fmt: skip

#: Reply codes by which a broker says that it does not know a method; by the text 503 is for one out of its turn.
_NOT_IMPLEMENTED, _IN_THE_TEXT = (503, 540), (540,)
_METHOD_NAMES = {ids: name for name, ids in METHOD_IDS.items()}


def broken_promise(broker: Broker, event: TraceEvent) -> Mismatches:
    """CAP-001: the blame for a close which says that a method of an advertised capability is not implemented.

    Empty for everything else.
    """
    if event.name not in ("connection.close", "channel.close"):
        return ()
    codes = _NOT_IMPLEMENTED if broker.dialect.extensions else _IN_THE_TEXT
    if event.arguments.get("reply_code") not in codes:
        return ()
    ids = (event.arguments.get("class_id", 0), event.arguments.get("method_id", 0))
    method = _METHOD_NAMES.get(ids, "")
    capability = METHODS.get(method)
    connection = broker.connections.get(event.connection)
    if capability is None or connection is None or capability not in advertised(connection.server_properties):
        return ()
    requirement = "CAP-001" if broker.dialect.extensions else _ABOUT[capability]
    return unexpected(requirement, f"{event.name} for {method}: {capability} is advertised and not kept")
