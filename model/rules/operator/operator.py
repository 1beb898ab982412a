"""What the operator of a broker does (areas PERMISSION, CONN-009, CONN-023, CAP-003, CAP-004): no AMQP, but inputs.

`operator.add-user USER password=`, `operator.set-permissions USER virtual-host= configure= write= read=` (replaces what
was granted there before), `operator.delete-user USER`, `operator.add-vhost V` (to which nobody has access yet),
`operator.delete-vhost V`, `operator.close-connection NAME reason=`, `operator.set-alarm`, `operator.clear-alarm` (of
memory). Settings and policies: `model.rules.operator.settings`.

Requirements:

* CANCEL-015: Queue expiry / vhost deletion. x-expires deletion cannot hit a queue with consumers; vhost deletion sends
  basic.cancel to each consumer, then connection.close 320. [rabbit_channel.erl; rabbit_reader.erl]
* CAP-003: connection.blocked with capability. When a memory/disk alarm is set, a connection that publishes gets
  connection.blocked(reason) if it announced connection.blocked, and connection.unblocked when the alarm is over; a
  connection that only consumes gets none until it publishes. From the content header of that publish on nothing is read
  until then. [rabbit_reader.erl:publish_received, maybe_send_blocked_or_unblocked]
* CAP-004: connection.blocked without capability. Without the capability nothing is sent; the socket is simply not read,
  so even unrelated methods on that connection wait until the alarm clears. [rabbit_reader.erl:control_throttle]
* CONN-009: No access to vhost. connection.open by a user with no permission entry in the vhost is refused with 530.
  [rabbit_reader.erl / rabbit_access_control:check_vhost_access]
* CONN-023: Operator close. rabbitmqctl close_connection/close_all_connections, node stop, and deletion of the vhost or
  the user close with hard code 320, also a connection that an alarm has blocked. In amqp-0-9-1: code 320, with a text
  of the server's choice. [rabbit_reader.erl:handle_other {shutdown,..}; AMQP 0-9-1 class connection]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from amqpspec.model.broker.administration import User
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.internal_events import ConnectionTeardown
from amqpspec.model.broker.owed import Expected
from amqpspec.model.protocol.errors import shortened
from amqpspec.model.protocol.methods import OperatorAction
from amqpspec.model.protocol.patterns import Anything, OneOf
from amqpspec.model.rules.connection.blocking import clear_alarm, set_alarm
from amqpspec.model.rules.connection.ending import end_connection
from amqpspec.model.rules.connection.handshake import owe
from amqpspec.model.rules.operator.faults import FAULT_RULES, no_change
from amqpspec.model.rules.operator.nodes import at_nodes, is_of_nodes
from amqpspec.model.rules.operator.settings import clear_policy, configure, reset_configuration, set_policy

#: Where permissions hold, and connections go, that name no virtual host.
DEFAULT_VHOST = "/"


def operate(broker: Broker, action: OperatorAction) -> None:
    """Process what the operator does, and faults."""
    if is_of_nodes(action):
        at_nodes(broker, action)
        return
    rule = _RULES.get(action.name, FAULT_RULES.get(action.name, no_change))
    rule(broker, action)


def force_close(broker: Broker, connection: Connection, *explanations: str) -> None:
    """CONN-023: code 320, and one of the explanations.

    The channels end at some moment before the close is sent (rabbit_reader:terminate_channels).
    """
    if connection.state is ConnectionState.OPEN:
        _owe_close(broker, connection, explanations)
        broker.teardowns.append(ConnectionTeardown(connection.name))


def _owe_close(broker: Broker, connection: Connection, explanations: tuple[str, ...]) -> None:
    texts = tuple(shortened(f"CONNECTION_FORCED - {explanation}") for explanation in explanations)
    arguments = {
        "reply_code": 320,
        "reply_text": OneOf(texts) if broker.dialect.fixed_reply_texts else Anything(texts[0]),
        "class_id": 0,
        "method_id": 0,
    }
    # what was not read from the client never will be
    connection.blocked = False
    connection.held.clear()
    blame = {"reply_text": "CONN-023"}
    owe(broker, connection, "connection.close", arguments, ("CONN-023",), blame)


def _add_user(broker: Broker, action: OperatorAction) -> None:
    name = action.arguments.get("user", "")
    broker.users[name] = User(name, action.arguments.get("password", ""))


def _set_permissions(broker: Broker, action: OperatorAction) -> None:
    arguments = action.arguments
    user = broker.users.get(arguments.get("user", ""))
    if user is None:
        return
    granted = (arguments.get("configure", ""), arguments.get("write", ""), arguments.get("read", ""))
    vhost = arguments.get("virtual_host", DEFAULT_VHOST)
    broker.users[user.name] = replace(user, permissions={**user.permissions, vhost: granted})


def _delete_user(broker: Broker, action: OperatorAction) -> None:
    """The connections of the user are closed (rabbit_connection_tracking: user_deleted)."""
    name = action.arguments.get("user", "")
    if broker.users.pop(name, None) is None:
        return
    for connection in list(broker.connections.values()):
        if connection.user == name:
            force_close(broker, connection, f"user '{name}' is deleted")


def _add_vhost(broker: Broker, action: OperatorAction) -> None:
    broker.vhosts[action.arguments.get("virtual_host", "")] = True


def _delete_vhost(broker: Broker, action: OperatorAction) -> None:
    """Its queues go first, then the connections to it are closed (rabbit_vhost:delete, rabbit_connection_tracking)."""
    name = action.arguments.get("virtual_host", "")
    broker.vhosts[name] = False
    for user in list(broker.users.values()):
        if name in user.permissions:
            left = {vhost: granted for vhost, granted in user.permissions.items() if vhost != name}
            broker.users[user.name] = replace(user, permissions=left)
    # what consumers are told of it
    broker.bookkeeping.credit = "CANCEL-015"
    for queue in list(broker.queues.values()):
        if queue.vhost == name:
            broker.delete_queue(queue, "CONN-023")
    broker.bookkeeping.credit = ""
    for connection in list(broker.connections.values()):
        if connection.vhost == name:
            # two processes hear of it, in any order (rabbit_connection_tracking: vhost_deleted, vhost_down)
            explanations = (f"vhost '{name}' is deleted", f"vhost '{name}' is down")
            _end_with_notices(broker, connection, explanations)


def _end_with_notices(broker: Broker, connection: Connection, explanations: tuple[str, ...]) -> None:
    """The channels end now: no queue is left that could give them anything. Notices of consumers are owed still."""
    if connection.state is not ConnectionState.OPEN:
        return
    owed = {key: channel.owed for key, channel in broker.channels.items() if key[0] == connection.name}
    end_connection(broker, connection)
    for key, expected in owed.items():
        channel = broker.channels[key]
        channel.owed = [e for e in expected if isinstance(e, Expected) and e.method == "basic.cancel"]
        broker.settle_debts(channel)
    connection.state = ConnectionState.CLOSING
    connection.may_end = True
    _owe_close(broker, connection, explanations)


def _close_connection(broker: Broker, action: OperatorAction) -> None:
    connection = broker.connections.get(action.arguments.get("name", ""))
    if connection is not None:
        force_close(broker, connection, action.arguments.get("reason", ""))


_RULES: dict[str, Callable[[Broker, OperatorAction], None]] = {
    "operator.add-user": _add_user,
    "operator.set-permissions": _set_permissions,
    "operator.delete-user": _delete_user,
    "operator.add-vhost": _add_vhost,
    "operator.delete-vhost": _delete_vhost,
    "operator.close-connection": _close_connection,
    "operator.set-alarm": lambda broker, action: set_alarm(broker),
    "operator.clear-alarm": lambda broker, action: clear_alarm(broker),
    "operator.configure": configure,
    "operator.reset-configuration": reset_configuration,
    "operator.set-policy": set_policy,
    "operator.clear-policy": clear_policy,
}
