"""What RabbitMQ looks at in a message before it routes it (rabbit_channel:handle_method basic.publish).

Requirements:

* PUBLISH-011: CC/BCC headers. CC and BCC (arrays of strings) add routing keys; BCC is removed before delivery, CC is
  kept; each queue gets one copy; delivered routing_key is the primary one. Wrong type is 406. [mc:routing_keys; up to
  3.12 rabbit_basic:header_routes]
* PUBLISH-012: user-id. user_id property must equal the connection user, else 406. A user with the tag impersonator may
  name any. [rabbit_access_control:check_user_id]
* PUBLISH-013: Max message size. Body larger than max_message_size is 406 after the content was received. In rabbitmq-3:
  default limit 128 MiB (16 MiB+1 accepted). In rabbitmq-4.0: default 16 MiB. In rabbitmq-4.3: default 16 MiB.
  [rabbit_channel.erl:check_msg_size]
* PUBLISH-014: Invalid expiration. expiration must be a decimal non-negative integer string of at most 315360000000 (ten
  years in milliseconds); a sign is allowed. [rabbit_channel.erl:check_expiration_header]
"""

from __future__ import annotations

import re

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.protocol.erlang_wording import wire_type
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Content, Table

#: Headers whose arrays of texts are further routing keys, in the order in which they are looked at.
KEY_HEADERS = ("CC", "BCC")
#: A body of more octets is one that some dialect refuses.
LARGEST_EVERYWHERE = 16_777_216
#: What a message's expiration may be, in milliseconds: ten years (rabbit_misc:check_expiry).
LONGEST_EXPIRATION = 315_360_000_000

_INTEGER = re.compile(r"[+-]?[0-9]+")
_PRINTED_AS_IT_IS = re.compile(r"[ !#-\[\]-~]*")


def check_size(broker: Broker, content: Content) -> None:
    """PUBLISH-013; rabbit_channel:check_msg_size. Before anything is looked up."""
    size, limit = len(content.body), broker.dialect.max_message_size
    if size > limit:
        raise ProtocolError("PUBLISH-013", 406, f"message size {size} is larger than configured max size {limit}")
    if size >= LARGEST_EVERYWHERE:
        broker.fired("PUBLISH-013")


def check_properties(broker: Broker, channel: Channel, content: Content) -> None:
    """Everything that the properties can be refused for, in the order of the dialect."""
    if not content.properties:
        return
    if not broker.dialect.extensions:
        if broker.dialect.has("user-id"):
            check_user_id(broker, channel, content)
        return
    if broker.dialect.user_id_checked_first:
        check_user_id(broker, channel, content)
    check_expiration(content)
    check_key_headers(content)
    if not broker.dialect.user_id_checked_first:
        check_user_id(broker, channel, content)


def check_key_headers(content: Content) -> None:
    """PUBLISH-011; rabbit_basic:header_routes."""
    headers = content.properties.get("headers") or {}
    for name in KEY_HEADERS:
        if name in headers and not isinstance(headers[name], list | tuple):
            reason = f'{{unacceptable_type_in_header,"{name}",{wire_type(headers[name])}}}'
            raise ProtocolError("PUBLISH-011", 406, f"invalid message: {reason}")


def further_keys(broker: Broker, content: Content, among: tuple[str, ...] = KEY_HEADERS) -> tuple[str, ...]:
    """The routing keys in CC and BCC; what is not text there does not count."""
    headers = content.properties.get("headers")
    if not headers:
        return ()
    known = (name for name in among if broker.dialect.has(name))
    lists = (headers[name] for name in known if isinstance(headers.get(name), list | tuple))
    return tuple(key for keys in lists for key in keys if isinstance(key, str))


def check_user_id(broker: Broker, channel: Channel, content: Content) -> None:
    """PUBLISH-012; rabbit_access_control:check_user_id. Not checked where the user of the connection is not known."""
    claimed = content.properties.get("user_id")
    actual = broker.connections[channel.connection].user
    if claimed is None or not actual:
        return
    if claimed != actual:
        raise ProtocolError(
            "PUBLISH-012", 406, f"user_id property set to '{claimed}' but authenticated user was '{actual}'"
        )
    broker.fired("PUBLISH-012")


def check_expiration(content: Content) -> None:
    """PUBLISH-014; rabbit_basic:parse_expiration."""
    expiration = content.properties.get("expiration")
    if expiration is None:
        return
    number = _INTEGER.match(expiration)
    left_over = expiration[number.end() :] if number else ""
    if number is None:
        reason = "no_integer"
    elif left_over:
        reason = f'{{leftover_string,"{left_over}"}}'
    elif (value := int(number[0])) < 0:
        reason = f"{{value_negative,{value}}}"
    elif value > LONGEST_EXPIRATION:
        reason = f"{{value_too_large,{value}}}"
    else:
        return
    raise ProtocolError(
        "PUBLISH-014",
        406,
        f"invalid expiration '{expiration}': {reason}",
        # what Erlang does with other characters is nobody's contract
        any_text=not _PRINTED_AS_IT_IS.fullmatch(expiration),
    )


def as_delivered(broker: Broker, content: Content) -> Content:
    """The message as it is delivered and returned: without the BCC header, which nobody is to see (PUBLISH-011).

    To be called when the properties are known to be right.
    """
    properties = content.properties
    if not properties or not broker.dialect.has("BCC"):
        return content
    headers = properties.get("headers")
    if not headers or "BCC" not in headers:
        return content
    shown: Table = {name: value for name, value in headers.items() if name != "BCC"}
    return Content({**properties, "headers": shown}, content.body)
