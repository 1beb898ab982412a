"""What a user may do (area PERMISSION): one check for each use of a queue or an exchange.

`rabbit_access_control:check_resource_access`: a permission is a pattern of names, for each of configure, write and
read; rules call these checks where rabbit_channel does. Users whom the operator did not make may do everything.

Requirements:

* PERMISSION-001: Refusal text. An operation without the permission is refused with a soft 403, whether what it names
  exists or not; the text of 4.x names the permission that is missing. The default exchange is called amq.default. In
  rabbitmq-3: with or without the permission word, as versions differ (with from 3.12.0 on). In rabbitmq-4.0: with. In
  rabbitmq-4.3: with. [rabbit_access_control:check_resource_access]
* PERMISSION-002: Which permission. declare/delete: configure; bind/unbind: write on the destination and read on the
  source; publish: write on the exchange (the default exchange as amq.default); consume/get/purge: read. A new queue
  with x-dead-letter-exchange, or exchange with alternate-exchange: also read on itself and write on what the argument
  names. A permission is a pattern that is looked for in the name. [rabbit_channel:handle_method;
  rabbit_auth_backend_internal:check_resource_access]
* PERMISSION-003: Passive declare. Passive declare needs no permission up to 4.2.5, configure in 4.2.6 and 4.3.0, and
  any one of read/write/configure from 4.2.7 and 4.3.1 on. In rabbitmq-3: none. In rabbitmq-4.0: none, configure or any,
  as versions differ (configure in 4.2.6, any from 4.2.7 on). In rabbitmq-4.3: any, or configure (4.3.0). [RabbitMQ
  release notes of 4.2.6, 4.2.7, 4.3.0, 4.3.1; rabbit_channel.erl:check_any_resource_access_permitted]
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from amqpspec.model.broker.administration import User
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.promises.passive_declare_permission import PassiveDeclarePermission
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.patterns import UNKNOWN_NAME
from amqpspec.model.rules.common.lookup import vhost_of

Kind = Literal["queue", "exchange"]
Permission = Literal["configure", "write", "read"]

#: The places of the patterns in `User.permissions`.
_PLACES: dict[str, int] = {"configure": 0, "write": 1, "read": 2}
#: The name by which permissions know the default exchange.
DEFAULT_EXCHANGE = "amq.default"


def check_configure(broker: Broker, channel: Channel, name: str, kind: Kind) -> None:
    """Declaring and deleting need the permission to configure."""
    _check(broker, channel, name, kind, "configure")


def check_write(broker: Broker, channel: Channel, name: str, kind: Kind) -> None:
    """Publishing to an exchange, and binding something to another one, need the permission to write."""
    _check(broker, channel, name, kind, "write")


def check_read(broker: Broker, channel: Channel, name: str, kind: Kind) -> None:
    """Consuming, getting, purging, and binding from an exchange need the permission to read."""
    _check(broker, channel, name, kind, "read")


def may_read(broker: Broker, channel: Channel, name: str) -> bool:
    """May the channel's user consume from the queue?"""
    user = _restricted(broker, channel)
    return user is None or _permits(user, vhost_of(broker, channel), name, "read")


def check_any(broker: Broker, channel: Channel, name: str, kind: Kind) -> None:
    """PERMISSION-003: a passive declare needs any permission, or none at all.

    rabbit_channel:check_any_resource_access_permitted; what is refused last, and told, is configure.
    """
    user = _restricted(broker, channel)
    if user is None:
        return
    needed = broker.dialect.passive_declare_permission
    permitted = [_permits(user, vhost_of(broker, channel), name, permission) for permission in _PLACES]
    if permitted[_PLACES["configure"]]:
        return
    if needed is PassiveDeclarePermission.NONE or (needed is PassiveDeclarePermission.ANY and any(permitted)):
        broker.bookkeeping.credit = "PERMISSION-003"
    else:
        raise _refusal(broker, channel, name, kind, "configure", "PERMISSION-003")


def check_alternative(broker: Broker, channel: Channel, name: str, kind: Kind, target: str) -> None:
    """Naming the exchange `target` as where a queue's dead letters, or an exchange's strays, go."""
    check_read(broker, channel, name, kind)
    check_write(broker, channel, target, "exchange")


def _restricted(broker: Broker, channel: Channel) -> User | None:
    """The user of the channel, if that user may not do everything."""
    return broker.users.get(broker.connections[channel.connection].user) if broker.users else None


def _check(broker: Broker, channel: Channel, name: str, kind: Kind, permission: Permission) -> None:
    user = _restricted(broker, channel)
    if user is None:
        return
    vhost = vhost_of(broker, channel)
    others = [other for other in _PLACES if other != permission]
    if _permits(user, vhost, name, permission):
        if not all(_permits(user, vhost, name, other) for other in others):
            broker.fired("PERMISSION-002")
            broker.bookkeeping.credit = "PERMISSION-002"
        return
    # whoever may do something else with it shows which permission it is that is needed
    requirement = "PERMISSION-002" if any(_permits(user, vhost, name, other) for other in others) else "PERMISSION-001"
    raise _refusal(broker, channel, name, kind, permission, requirement)


def _refusal(
    broker: Broker, channel: Channel, name: str, kind: Kind, permission: Permission, requirement: str
) -> ProtocolError:
    what = "access" if not broker.dialect.refusals_name_permission else f"{permission} access"
    user = broker.connections[channel.connection].user
    where = f"{kind} '{name or DEFAULT_EXCHANGE}' in vhost '{vhost_of(broker, channel)}'"
    return ProtocolError(requirement, 403, f"{what} to {where} refused for user '{user}'")


def _permits(user: User, vhost: str, name: str, permission: str) -> bool:
    """rabbit_auth_backend_internal:check_resource_access: the pattern is looked for anywhere in the name."""
    patterns = user.permissions.get(vhost)
    if patterns is None:
        return False
    pattern = patterns[_PLACES[permission]]
    # the name that a broker makes up begins like ours for it, which is all that a sensible pattern looks at
    shown = name.replace(UNKNOWN_NAME, "amq.gen-") if name else DEFAULT_EXCHANGE
    return bool(pattern) and _compiled(pattern).search(shown) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
