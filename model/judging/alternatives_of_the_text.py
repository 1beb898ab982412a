"""What the text of 0-9-1 leaves open: a broker may refuse what is usually done, or do what is usually refused.

The usual way is that of `model.promises.text_choices`. Each alternative names the sentence that leaves it open. A
refusal may have any code, and may end the connection: what is refused is not done either way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.judging.alternative import Alternative
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.protocol.patterns import Anything
from amqpspec.model.rules.connection.closing import fail
from amqpspec.model.rules.inputs import process


def _channel(broker: Broker, method: Method) -> Channel | None:
    channel = broker.channels.get((method.connection, method.channel))
    return channel if channel is not None and channel.state is ChannelState.OPEN else None


def _refuse(broker: Broker, method: Method, requirement: str, code: int) -> None:
    """Refuse it with a soft or a hard error, as the code is; any code of that kind will do."""
    channel = broker.channels[(method.connection, method.channel)]
    fail(broker, channel, method, ProtocolError(requirement, code, "refused", any_text=True))
    holder = broker.connections[method.connection] if code > 500 else channel
    for owed in holder.owed:
        if isinstance(owed, Expected) and owed.method.endswith(".close"):
            owed.arguments["reply_code"] = Anything(code)


def _has_arguments(broker: Broker, channel: Channel, method: Method) -> bool:
    return bool(method.arguments.get("arguments")) and not method.arguments.get("passive")


def _is_immediate(broker: Broker, channel: Channel, method: Method) -> bool:
    return bool(method.arguments.get("immediate"))


def _has_size(broker: Broker, channel: Channel, method: Method) -> bool:
    return bool(method.arguments.get("prefetch_size"))


def _is_beside_exclusive_consumer(broker: Broker, channel: Channel, method: Method) -> bool:
    queue = broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")
    return queue is not None and any(consumer.exclusive for consumer in queue.consumers)


def _acknowledges_nothing(broker: Broker, channel: Channel, method: Method) -> bool:
    return not method.arguments.get("delivery_tag") and not method.arguments.get("multiple")


def _is_out_of_turn(broker: Broker, channel: Channel, method: Method) -> bool:
    return channel.state is ChannelState.OPEN


def _differs_in_auto_delete(broker: Broker, channel: Channel, method: Method) -> bool:
    queue = broker.queues.get(method.arguments.get("queue", ""))
    if queue is None or method.arguments.get("passive"):
        return False
    return queue.auto_delete != bool(method.arguments.get("auto_delete"))


def _ignore_auto_delete(broker: Broker, method: Method) -> None:
    queue = broker.queues[method.arguments["queue"]]
    as_it_is = {**method.arguments, "auto_delete": queue.auto_delete}
    process(broker, Method(method.connection, method.channel, method.name, as_it_is, sent=True, time=method.time))


def _has_unacknowledged(broker: Broker, channel: Channel, method: Method) -> bool:
    queue = broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")
    if queue is None or not method.arguments.get("if_empty") or queue.messages:
        return False
    return any(each.queue is queue for held in broker.channels.values() for each in held.unacknowledged.values())


def _unbinds_unnamed(broker: Broker, channel: Channel, method: Method) -> bool:
    return not method.arguments.get("queue") and not method.arguments.get("routing_key")


def _is_in_transaction(broker: Broker, channel: Channel, method: Method) -> bool:
    tag = method.arguments.get("delivery_tag", 0)
    transaction = channel.transaction
    return transaction is not None and tag in channel.unacknowledged and tag not in transaction.reserved


def _reject_at_once(broker: Broker, method: Method) -> None:
    channel = broker.channels[(method.connection, method.channel)]
    transaction, channel.transaction = channel.transaction, None
    process(broker, method)
    channel.transaction = transaction


def _ignore(broker: Broker, method: Method) -> None:
    """Nothing comes of it."""


def _refused(
    name: str,
    requirement: str,
    source: str,
    kinds: tuple[str, ...],
    applies: Callable[[Broker, Channel, Method], bool],
) -> tuple[tuple[Callable[[Broker, Channel, Method], bool], Alternative], ...]:
    """Two alternatives: a soft error, and a hard one."""
    return tuple(
        _other(
            f"{name}, {what} error", requirement, source, kinds, applies,
            partial(_refuse, requirement=requirement, code=code),
        )
        for what, code in (("soft", 406), ("hard", 540))
    )  # fmt: skip


def _other(
    name: str,
    requirement: str,
    source: str,
    kinds: tuple[str, ...],
    applies: Callable[[Broker, Channel, Method], bool],
    process_otherwise: Callable[[Broker, Method], None],
) -> tuple[Callable[[Broker, Channel, Method], bool], Alternative]:
    made = Alternative(name, requirement, source, kinds, lambda broker, event: True, process_otherwise)
    return applies, made


_ALL = (
    *_refused(
        "unknown arguments refused", "QUEUE-001",
        "queue.declare, arguments: their syntax and semantics depend on the server implementation",
        ("queue.declare", "exchange.declare", "basic.consume"), _has_arguments,
    ),
    *_refused(
        "immediate refused", "PUBLISH-009", "basic.publish: the server SHOULD implement the immediate flag",
        ("basic.publish",), _is_immediate,
    ),
    *_refused(
        "prefetch-size refused", "QOS-007", "basic.qos: no sentence says that the server MUST implement prefetch-size",
        ("basic.qos",), _has_size,
    ),
    *_refused(
        "get beside an exclusive consumer refused", "GET-001",
        "basic.consume, exclusive: only this consumer can access the queue",
        ("basic.get",), _is_beside_exclusive_consumer,
    ),
    _other(
        "acknowledgement of 0 ignored", "ACK-005", "basic.ack, exists: a non-zero delivery-tag is validated",
        ("basic.ack", "basic.reject"), _acknowledges_nothing, _ignore,
    ),
    _other(
        "channel.close-ok out of turn ignored", "CHAN-011", "no sentence; section 2.3.6 for the error",
        ("channel.close-ok",), _is_out_of_turn, _ignore,
    ),
    _other(
        "auto-delete not compared", "QUEUE-007",
        "queue.declare: the server MUST ignore the auto-delete field if the queue already exists",
        ("queue.declare",), _differs_in_auto_delete, _ignore_auto_delete,
    ),
    _other(
        "queue with unacknowledged messages not empty", "QUEUE-023",
        "queue.delete, if-empty: a queue that has messages on it", ("queue.delete",), _has_unacknowledged,
        partial(_refuse, requirement="QUEUE-023", code=406),
    ),
    _other(
        "queue's name not the key of an unbind", "BIND-002",
        "queue.unbind: only queue.bind says that the name of the queue is the routing key where both are left out",
        ("queue.unbind",), _unbinds_unnamed, partial(_refuse, requirement="BIND-002", code=404),
    ),
    _other(
        "reject not part of the transaction", "TX-005",
        "tx.commit: commits all message publications and acknowledgments; nothing is said of basic.reject",
        ("basic.reject",), _is_in_transaction, _reject_at_once,
    ),
)  # fmt: skip

_BY_KIND: Mapping[str, tuple[tuple[Callable[[Broker, Channel, Method], bool], Alternative], ...]] = {
    kind: tuple(each for each in _ALL if kind in each[1].kinds)
    for kind in dict.fromkeys(str(kind) for _, other in _ALL for kind in other.kinds)
}


def alternatives_of_the_text(broker: Broker, method: Method) -> list[Alternative]:
    """Those to the usual processing of this method, in the dialect that is the text."""
    if broker.dialect.extensions or method.name not in _BY_KIND:
        return []
    channel = _channel(broker, method)
    if channel is None:
        return []
    return [other for applies, other in _BY_KIND[method.name] if applies(broker, channel, method)]
