"""Other ways that the text of 0-9-1 leaves open: what a broker does with a method in place of the rule.

Which choice and value each is: `model.promises.text_freedoms` and `text_contradictions`, with the sentences. A broker
whose dialect has settled that value goes that way; where the choice is open, the judge tries it as an alternative
(`model.judging.alternatives_of_the_text`). A refusal may have any code that closes the same.

Requirements:

* GET-001: get-ok / get-empty. Message-count in get-ok is the number of ready messages left; empty queue gives
  get-empty. [rabbit_channel.erl:basic.get; AMQP 0-9-1 basic.get]
* PUBLISH-009: immediate. immediate=true is hard error 540. [rabbit_channel.erl]
* QOS-007: prefetch_size. Non-zero prefetch_size is hard 540. [rabbit_channel.erl]
* QUEUE-001: declare-ok content. queue.declare-ok carries the (CR/LF-stripped) queue name, number of READY messages and
  number of consumers. [rabbit_channel.erl:return_queue_declare_ok; AMQP 0-9-1 class queue]
* QUEUE-023: queue.delete if-empty / if-unused. Violated condition is 406 on classic, if-empty before if-unused; quorum
  does not implement the flags: hard 540 even when the condition holds, if-unused first; a stream is deleted whatever
  they say. In amqp-0-9-1: 406 if the condition is violated. [rabbit_amqqueue:delete_with; rabbit_quorum_queue:delete;
  AMQP 0-9-1 class queue]
* RECOVER-002: basic.recover-async(true). basic.recover-async(true) does the same as basic.recover(true), without a
  reply. [rabbit_channel.erl; AMQP 0-9-1 basic.recover-async]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from amqpspec.model.broker.broker import Broker, Rule
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.headers_matching import asks_for_nothing
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.features import means_something
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.publish import return_at_once
from amqpspec.model.rules.other_way import Applies, OtherWay, Way, refuse
from amqpspec.model.rules.other_ways_of_topology import WAYS_OF_TOPOLOGY
from amqpspec.model.rules.queue.binding import lacks_only_the_binding


def in_settled_way(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
    """Process the method as the dialect has settled it: by the rule, or in another way."""
    settled = broker.dialect.text.settled
    for each in BY_METHOD.get(method.name, ()):
        if (each.choice, each.value) in settled and each.applies(broker, channel, method):
            rule = partial(_process, each.process, rule)
    rule(broker, channel, method)


def _process(way: Way, rule: Rule, broker: Broker, channel: Channel, method: Method) -> None:
    way(broker, channel, method, rule)


#: Methods and their arguments that mean something by an extension.
_EXTENSIONS_OF = {
    ("basic.consume", "x-priority"): "consumer_priorities",
    ("basic.consume", "x-stream-offset"): "streams",
    ("exchange.declare", "alternate-exchange"): "alternate-exchange",
}

# -------------------------------------------------------------------------------------------- the ways


def _as_settled(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
    """The rule asks the dialect."""
    rule(broker, channel, method)


def _ignore(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
    """Nothing comes of it."""


def _ignore_auto_delete(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
    queue = broker.queues[method.arguments["queue"]]
    rule(broker, channel, replace(method, arguments={**method.arguments, "auto_delete": queue.auto_delete}))


def _reject_at_once(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
    transaction, channel.transaction = channel.transaction, None
    rule(broker, channel, method)
    channel.transaction = transaction


def _credit_at_once(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
    transaction = channel.transaction
    rule(broker, channel, method)
    if transaction is not None and transaction is channel.transaction:
        transaction.credited = transaction.reserved
        broker.refresh_sharing(channel)


def _return_at_once(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
    _drop_mandatory(broker, channel, method, rule)
    if channel.transaction is not None and not channel.transaction.publications[-1].routes.queues:
        return_at_once(broker, channel, channel.transaction.publications[-1])


def _drop_mandatory(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
    """What has a queue is published as ever: that it would come back at the commit is nothing to the others."""
    rule(broker, channel, method)
    if channel.transaction is not None:
        publications = channel.transaction.publications
        publications[-1] = replace(publications[-1], mandatory=False)


def _without(exchange: str) -> Way:
    def process(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
        broker.exchanges.pop(exchange, None)
        rule(broker, channel, method)

    return process


# ------------------------------------------------------------------------------------- what comes under them


def _has_arguments(broker: Broker, channel: Channel, method: Method) -> bool:
    """Has it arguments that mean nothing by what the broker has?"""
    table = method.arguments.get("arguments") or {}
    known = (_has_meaning(broker.dialect, method.name, name, value) for name, value in table.items())
    return not all(known) and not method.arguments.get("passive")


def _has_meaning(dialect: Dialect, method: str, name: str, value: object) -> bool:
    """Does the argument mean something by an extension that is there?"""
    if method == "queue.declare":
        return means_something(dialect, name, value)
    return dialect.has(_EXTENSIONS_OF.get((method, name), "none"))


def _always(broker: Broker, channel: Channel, method: Method) -> bool:
    return True


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
    return bool(method.arguments.get("auto_delete")) != queue.auto_delete


def _has_unacknowledged(broker: Broker, channel: Channel, method: Method) -> bool:
    queue = broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")
    if queue is None or not method.arguments.get("if_empty") or queue.messages:
        return False
    return any(each.queue is queue for held in broker.channels.values() for each in held.unacknowledged.values())


def _is_in_transaction(broker: Broker, channel: Channel, method: Method) -> bool:
    tag = method.arguments.get("delivery_tag", 0)
    transaction = channel.transaction
    return transaction is not None and tag in channel.unacknowledged and tag not in transaction.reserved


def _waits_for_commit(broker: Broker, channel: Channel, method: Method) -> bool:
    """Is there a limit that makes a difference?"""
    if channel.transaction is None or not broker.dialect.prefetch_is_shared:
        return False
    return bool(channel.channel_prefetch or broker.connections[channel.connection].prefetch)


def _is_mandatory_in_transaction(broker: Broker, channel: Channel, method: Method) -> bool:
    return channel.transaction is not None and bool(method.arguments.get("mandatory"))


def _names_nothing(broker: Broker, channel: Channel, method: Method) -> bool:
    return not method.arguments.get("queue") and not method.arguments.get("routing_key")


def _may_ask_for_nothing(broker: Broker, channel: Channel, method: Method) -> bool:
    return any(
        asks_for_nothing(binding.arguments)
        for exchange in broker.exchanges.values()
        if exchange.type == "headers"
        for binding in exchange.bindings
    )


def _names(exchange: str, other: str) -> Applies:
    def applies(broker: Broker, channel: Channel, method: Method) -> bool:
        return method.arguments.get("exchange") == exchange and other in broker.exchanges

    return applies


_SOFT, _HARD = "refused-on-channel", "refused-on-connection"
_NAMING = ("exchange.declare", "exchange.delete", "queue.bind", "queue.unbind", "basic.publish")

OTHER_WAYS: tuple[OtherWay, ...] = (
    *(
        OtherWay(f"{what}-arguments", value, (method,), _has_arguments, refuse("QUEUE-001", code))
        for value, code in ((_SOFT, 406), (_HARD, 540))
        for what, method in (
            ("queue", "queue.declare"), ("exchange", "exchange.declare"), ("consumer", "basic.consume")
        )
    ),
    *(
        OtherWay(
            "get-beside-exclusive", value, ("basic.get",), _is_beside_exclusive_consumer, refuse("GET-001", code)
        )
        for value, code in ((_SOFT, 403), (_HARD, 530))
    ),
    OtherWay("missing-unbound", "ok", ("queue.unbind",), lacks_only_the_binding, _as_settled),
    OtherWay("immediate", "refused", ("basic.publish",), _is_immediate, refuse("PUBLISH-009", 540)),
    OtherWay("prefetch-size", "refused", ("basic.qos",), _has_size, refuse("QOS-007", 540)),
    OtherWay(
        "ack-of-zero", "ignored", ("basic.ack", "basic.reject", "basic.nack"), _acknowledges_nothing, _ignore
    ),
    OtherWay("close-ok-of-channel", "ignored", ("channel.close-ok",), _is_out_of_turn, _ignore),
    OtherWay("auto-delete", "ignored", ("queue.declare",), _differs_in_auto_delete, _ignore_auto_delete),
    OtherWay("if-empty", "refused", ("queue.delete",), _has_unacknowledged, refuse("QUEUE-023", 406)),
    OtherWay("reject-in-transaction", "at-once", ("basic.reject",), _is_in_transaction, _reject_at_once),
    OtherWay(
        "credit-in-transaction", "at-acknowledgement", ("basic.ack", "basic.reject"), _waits_for_commit,
        _credit_at_once,
    ),
    OtherWay(
        "mandatory-in-transaction", "at-once", ("basic.publish",), _is_mandatory_in_transaction, _return_at_once
    ),
    OtherWay(
        "mandatory-in-transaction", "dropped", ("basic.publish",), _is_mandatory_in_transaction, _drop_mandatory
    ),
    OtherWay("unbind-without-names", "empty-key", ("queue.unbind",), _names_nothing, _as_settled),
    OtherWay("any-without-fields", "everything", ("basic.publish",), _may_ask_for_nothing, _as_settled),
    OtherWay(
        "headers-exchange", "amq.match", _NAMING, _names("amq.headers", "amq.match"), _without("amq.headers")
    ),
    OtherWay(
        "headers-exchange", "amq.headers", _NAMING, _names("amq.match", "amq.headers"), _without("amq.match")
    ),
    OtherWay("recover-async", "refused", ("basic.recover-async",), _always, refuse("RECOVER-002", 540)),
    *WAYS_OF_TOPOLOGY,
)  # fmt: skip

BY_METHOD: Mapping[str, tuple[OtherWay, ...]] = {
    name: tuple(each for each in OTHER_WAYS if name in each.methods)
    for name in dict.fromkeys(name for each in OTHER_WAYS for name in each.methods)
}
