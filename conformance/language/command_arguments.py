"""What can be said in each line of the command language: arguments, their kinds, and what may stand for them."""

from __future__ import annotations

import re

from amqpspec.model.broker.administration import POLICY_NUMBERS, POLICY_TEXTS

TEXT, NUMBER, BIT, TABLE, OCTETS = "text", "number", "bit", "table", "hexadecimal text"
#: Of milliseconds, of which no more are waited than in a day.
WAIT = "number of milliseconds"
MAX_WAIT = 24 * 3600 * 1000

#: How values look that are not text, where both are possible.
INTEGER = re.compile(r"-?\d{1,30}")
FRACTION = re.compile(r"-?\d{1,30}(\.\d{1,30}([eE][+-]?\d{1,3})?|[eE][+-]?\d{1,3})")
CONSTANTS = {"true": True, "false": False, "null": None}

#: Stands for the headers that the last message came with, which is so sent again.
LAST_HEADERS = "$last"

#: The word for a publish whose content is still to come.
UNFINISHED = "unfinished"

#: Arguments whose names may be left out, in order.
POSITIONAL: dict[str, tuple[str, ...]] = {
    "basic.ack": ("delivery_tag",),
    "basic.cancel": ("consumer_tag",),
    "basic.cancel-ok": ("consumer_tag",),
    "basic.consume": ("queue",),
    "basic.get": ("queue",),
    "basic.nack": ("delivery_tag",),
    "basic.publish": ("routing_key",),
    "basic.qos": ("prefetch_count",),
    "basic.reject": ("delivery_tag",),
    "connection.open": ("virtual_host",),
    "clock.wait": ("milliseconds",),
    "exchange.bind": ("destination", "source"),
    "exchange.declare": ("exchange", "type"),
    "exchange.delete": ("exchange",),
    "exchange.unbind": ("destination", "source"),
    "operator.add-user": ("user",),
    "operator.add-vhost": ("virtual_host",),
    "operator.close-connection": ("name",),
    "operator.delete-user": ("user",),
    "operator.delete-vhost": ("virtual_host",),
    "operator.set-permissions": ("user",),
    "operator.set-policy": ("policy",),
    "operator.clear-policy": ("policy",),
    "queue.transfer-leader": ("queue",),
    "protocol.header": ("octets",),
    "queue.bind": ("queue", "exchange"),
    "queue.declare": ("queue",),
    "queue.delete": ("queue",),
    "queue.purge": ("queue",),
    "queue.unbind": ("queue", "exchange"),
}


#: What a client may say in each method: the argument's name and kind. Other methods are sent without arguments.
ARGUMENTS: dict[str, dict[str, str]] = {
    "channel.flow": {"active": BIT},
    "channel.close": {"reply_code": NUMBER, "reply_text": TEXT, "class_id": NUMBER, "method_id": NUMBER},
    "connection.close": {"reply_code": NUMBER, "reply_text": TEXT, "class_id": NUMBER, "method_id": NUMBER},
    "exchange.declare": {
        "exchange": TEXT, "type": TEXT, "passive": BIT, "durable": BIT, "auto_delete": BIT, "internal": BIT,
        "nowait": BIT,
    },
    "exchange.delete": {"exchange": TEXT, "if_unused": BIT, "nowait": BIT},
    "exchange.bind": {"destination": TEXT, "source": TEXT, "routing_key": TEXT, "nowait": BIT},
    "exchange.unbind": {"destination": TEXT, "source": TEXT, "routing_key": TEXT, "nowait": BIT},
    "queue.declare": {
        "queue": TEXT, "passive": BIT, "durable": BIT, "exclusive": BIT, "auto_delete": BIT, "nowait": BIT,
    },
    "queue.bind": {"queue": TEXT, "exchange": TEXT, "routing_key": TEXT, "nowait": BIT},
    "queue.unbind": {"queue": TEXT, "exchange": TEXT, "routing_key": TEXT},
    "queue.purge": {"queue": TEXT, "nowait": BIT},
    "queue.delete": {"queue": TEXT, "if_unused": BIT, "if_empty": BIT, "nowait": BIT},
    "basic.qos": {"prefetch_size": NUMBER, "prefetch_count": NUMBER, "global_": BIT},
    "basic.consume": {
        "queue": TEXT, "consumer_tag": TEXT, "no_local": BIT, "no_ack": BIT, "exclusive": BIT, "nowait": BIT,
    },
    "basic.cancel": {"consumer_tag": TEXT, "nowait": BIT},
    "basic.cancel-ok": {"consumer_tag": TEXT},
    "basic.publish": {"exchange": TEXT, "routing_key": TEXT, "mandatory": BIT, "immediate": BIT},
    "basic.get": {"queue": TEXT, "no_ack": BIT},
    "basic.ack": {"delivery_tag": NUMBER, "multiple": BIT},
    "basic.nack": {"delivery_tag": NUMBER, "multiple": BIT, "requeue": BIT},
    "basic.reject": {"delivery_tag": NUMBER, "requeue": BIT},
    "basic.recover": {"requeue": BIT},
    "basic.recover-async": {"requeue": BIT},
    "confirm.select": {"nowait": BIT},
    "connection.open": {
        "virtual_host": TEXT, "header": OCTETS, "mechanism": TEXT, "user": TEXT, "password": TEXT, "locale": TEXT,
        "channel_max": NUMBER, "frame_max": NUMBER, "heartbeat": NUMBER,
    },
    "connection.start-ok": {"client_properties": TABLE, "mechanism": TEXT, "response": TEXT, "locale": TEXT},
    "connection.tune-ok": {"channel_max": NUMBER, "frame_max": NUMBER, "heartbeat": NUMBER},
    "connection.update-secret": {"new_secret": TEXT, "reason": TEXT},
    "protocol.header": {"octets": OCTETS},
    "frame.method": {"class_id": NUMBER, "method_id": NUMBER, "payload": OCTETS},
    "frame.header": {"class_id": NUMBER, "weight": NUMBER, "body_size": NUMBER, "payload": OCTETS},
    "frame.body": {},
    "frame.other": {"type": NUMBER, "size": NUMBER, "payload": OCTETS, "end": NUMBER},
    "operator.add-user": {"user": TEXT, "password": TEXT},
    "operator.delete-user": {"user": TEXT},
    "operator.set-permissions": {
        "user": TEXT, "virtual_host": TEXT, "configure": TEXT, "write": TEXT, "read": TEXT,
    },
    "operator.close-connection": {"name": TEXT, "reason": TEXT},
    "operator.add-vhost": {"virtual_host": TEXT},
    "operator.delete-vhost": {"virtual_host": TEXT},
    "operator.configure": {"consumer_timeout": NUMBER, "channel_tick_interval": NUMBER},
    "operator.reset-configuration": {},
    "operator.set-policy": {
        "policy": TEXT, "queue": TEXT, "virtual_host": TEXT, "priority": NUMBER,
        **dict.fromkeys(POLICY_NUMBERS, NUMBER), **dict.fromkeys(POLICY_TEXTS, TEXT),
    },
    "operator.clear-policy": {"policy": TEXT, "virtual_host": TEXT},
    "broker.stop": {"node": NUMBER},
    "broker.kill": {"node": NUMBER},
    "broker.pause": {"node": NUMBER},
    "broker.resume": {"node": NUMBER},
    "broker.restart": {"node": NUMBER},
    "network.cut": {"node": NUMBER, "connection": TEXT},
    "network.slow": {"node": NUMBER, "connection": TEXT, "milliseconds": WAIT},
    "network.heal": {"node": NUMBER, "connection": TEXT},
    "queue.transfer-leader": {"queue": TEXT, "node": NUMBER},
    "clock.wait": {"milliseconds": WAIT},
}  # fmt: skip

_CLOSE = {"reply_code": NUMBER, "reply_text": TEXT, "class_id": NUMBER, "method_id": NUMBER}
_TAKEN = {"delivery_tag": NUMBER, "redelivered": BIT, "exchange": TEXT, "routing_key": TEXT}

#: What a line may expect of a frame that a broker sends: the argument's name and kind. Others have no arguments.
EXPECTED: dict[str, dict[str, str]] = {
    "channel.close": _CLOSE,
    "connection.close": _CLOSE,
    "basic.deliver": {"consumer_tag": TEXT, **_TAKEN},
    "basic.get-ok": {**_TAKEN, "message_count": NUMBER},
    "basic.return": {"reply_code": NUMBER, "reply_text": TEXT, "exchange": TEXT, "routing_key": TEXT},
    "basic.ack": {"delivery_tag": NUMBER, "multiple": BIT},
    "basic.nack": {"delivery_tag": NUMBER, "multiple": BIT, "requeue": BIT},
    "basic.consume-ok": {"consumer_tag": TEXT},
    "basic.cancel-ok": {"consumer_tag": TEXT},
    "basic.cancel": {"consumer_tag": TEXT},
    "channel.flow": {"active": BIT},
    "connection.blocked": {"reason": TEXT},
    "connection.tune": {"channel_max": NUMBER, "frame_max": NUMBER, "heartbeat": NUMBER},
    "queue.declare-ok": {"queue": TEXT, "message_count": NUMBER, "consumer_count": NUMBER},
    "queue.delete-ok": {"message_count": NUMBER},
    "queue.purge-ok": {"message_count": NUMBER},
}
#: Methods that carry a message, whose body and properties a line may expect.
CARRY_MESSAGES = frozenset({"basic.deliver", "basic.get-ok", "basic.return"})

#: Methods with an argument table, into which `x-…` names go.
TABLE_METHODS = frozenset(
    {"exchange.declare", "exchange.bind", "exchange.unbind", "queue.declare", "queue.bind", "queue.unbind",
     "basic.consume"}
)  # fmt: skip

#: Names in argument tables that need no `x-` to be known as such; all others go by `arguments={…}`.
TABLE_NAMES = frozenset({"alternate-exchange"})

#: Methods whose line may have a body.
BODY_METHODS = frozenset({"basic.publish", "frame.body"})

#: Basic properties that a publish may set, and their kinds.
PROPERTIES = {
    "content_type": TEXT, "content_encoding": TEXT, "headers": TABLE, "delivery_mode": NUMBER,
    "priority": NUMBER, "correlation_id": TEXT, "reply_to": TEXT, "expiration": TEXT, "message_id": TEXT,
    "timestamp": NUMBER, "type": TEXT, "user_id": TEXT, "app_id": TEXT, "cluster_id": TEXT,
}  # fmt: skip

#: Shorter names that people use.
ALIASES = {
    "basic.ack": {"tag": "delivery_tag"},
    "basic.nack": {"tag": "delivery_tag"},
    "basic.reject": {"tag": "delivery_tag"},
    "basic.consume": {"tag": "consumer_tag"},
    "basic.cancel": {"tag": "consumer_tag"},
    "basic.cancel-ok": {"tag": "consumer_tag"},
    "basic.qos": {"prefetch": "prefetch_count", "global": "global_"},
}

#: Client capabilities that `connection.open` may set.
CAPABILITIES = (
    "publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify", "connection.blocked",
    "authentication_failure_close", "per_consumer_qos", "consumer_priorities", "direct_reply_to",
)  # fmt: skip


def hyphened(name: str) -> str:
    """An argument's name as the AMQP text, and so a line, has it."""
    return name.rstrip("_").replace("_", "-")
