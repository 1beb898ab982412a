"""The rules: what a broker does with each method, by the chapters of 0-9-1.

A rule is a function that takes the broker, the channel and the frame, in the order of checks that RabbitMQ makes.
It changes the state through the steps of `model.broker.broker.Broker` and raises `ProtocolError` where the broker owes
a close. The 0-9-1 chapters and RabbitMQ's extensions are kept apart: here is where they meet. An extension has methods
of its own, takes one of 0-9-1 for itself in some cases, or takes part in a step that a chapter offers.

Requirements:

* CHAN-011: Method only valid server-to-client. A client sending a *-ok or other unhandled method gets hard 503. In
  amqp-0-9-1: an error of the connection, its code is not named. [rabbit_channel.erl:handle_method catch-all]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Rule
from amqpspec.model.rules.basic import (
    ack_and_reject,
    cancel,
    consume,
    get,
    publish,
    qos,
    recover,
    requeue,
    settlement,
)
from amqpspec.model.rules.channel import channel
from amqpspec.model.rules.connection import ending
from amqpspec.model.rules.exchange import exchange
from amqpspec.model.rules.extensions import (
    confirm,
    consumer_arguments,
    dead_letter,
    direct_reply,
    exchange_binding,
    late_settlement,
    message_expiry,
    nack,
    policy,
    queue_expiry,
    stream_consuming,
    stream_settlement,
    timeout_cancels_consumer,
)
from amqpspec.model.rules.operator import settings
from amqpspec.model.rules.queue import binding, queue
from amqpspec.model.rules.tx import tx

#: What happens to a method that a client sends on a channel other than 0. Methods that are not here are answered
#: with 503 (CHAN-011).
RULES: dict[str, Rule] = {
    # 0-9-1, in the order of its chapters
    "channel.open": channel.open_channel,
    "channel.close": channel.close,
    "channel.close-ok": channel.close_ok,
    "channel.flow": channel.flow,
    "exchange.declare": exchange.declare,
    "exchange.delete": exchange.delete,
    "queue.declare": queue.declare,
    "queue.bind": binding.bind,
    "queue.unbind": binding.unbind,
    "queue.purge": queue.purge,
    "queue.delete": queue.delete,
    "basic.qos": qos.qos,
    "basic.consume": consume.consume,
    "basic.cancel": cancel.cancel,
    "basic.publish": publish.publish,
    "basic.get": get.get,
    "basic.ack": ack_and_reject.ack,
    "basic.reject": ack_and_reject.reject,
    "basic.recover-async": recover.recover_async,
    "basic.recover": recover.recover,
    "tx.select": tx.select,
    "tx.commit": tx.commit,
    "tx.rollback": tx.rollback,
    # RabbitMQ's extensions
    "basic.cancel-ok": cancel.client_cancel_ok,
    "basic.nack": nack.nack,
    "confirm.select": confirm.select,
    "exchange.bind": exchange_binding.bind,
    "exchange.unbind": exchange_binding.unbind,
}

# RabbitMQ's extensions that take a method of 0-9-1 for themselves, and hand it on to its chapter where it is not theirs
RULES["queue.declare"] = direct_reply.declare
RULES["basic.consume"] = direct_reply.consume

# The steps that the chapters of 0-9-1 offer, and who takes part in each, in this order
queue.made.taken_by(policy.begin, queue_expiry.begin)
queue.asked_for_numbers.taken_by(queue_expiry.note_lifetime, message_expiry.note_expired)

consume.used_again.taken_by(timeout_cancels_consumer.end_timed_out)
consume.asked_for.taken_by(consumer_arguments.check_arguments, stream_consuming.check_stream)
consume.made.taken_by(stream_consuming.begin_reading, timeout_cancels_consumer.begin)

publish.rewritten.taken_by(direct_reply.with_address)
publish.refused.taken_by(dead_letter.refuse_published)
publish.enqueued.taken_by(dead_letter.keep_within_limits)

settlement.settling.taken_by(late_settlement.settle_before)
settlement.discarded.taken_by(dead_letter.discard_message)
settlement.settled_on_stream.taken_by(stream_settlement.return_credit)
settlement.all_settled.taken_by(late_settlement.settle_behind)
requeue.given_back.taken_by(message_expiry.look_at_returned)
requeue.dropped_at_limit.taken_by(dead_letter.dead_letter_at_limit)

dead_letter.letter_came.taken_by(message_expiry.expire_timeless_letters)
tx.published.taken_by(message_expiry.expire_timeless)

ending.unseen_is_back.taken_by(dead_letter.take_back_unseen)

settings.policies_changed.taken_by(policy.change)
