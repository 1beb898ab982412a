"""The operator of a RabbitMQ: Erlang expressions that its node evaluates, one call for any number of things.

`rabbitmqctl eval` takes a second of the processor, for a virtual machine to start, so what the commands of rabbitmqctl
do one by one is said in one expression; in a container an `ErlangShell` stays and takes milliseconds. `by_hand` says it
for people, in commands of rabbitmqctl.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress

from amqpspec.model.broker.administration import definition_of
from amqpspec.model.protocol.methods import OperatorAction
from amqpspec.targets.brokers.operator import Operator, PeerOf, nobody, undoing
from amqpspec.targets.errors import OperatorError, TargetError

#: Has the broker's node evaluate Erlang expressions, gives what was printed of the value, and raises `TargetError` if
#: that cannot be had.
Evaluate = Callable[[str], str]

_ALARM = "{resource_limit, memory, node()}"
_ACTOR = '<<"amqpspec">>'
_DONE = "amqpspec_done"
#: Sets back what `operator.configure` has set.
_RESET = (
    "[begin {ok, Before} = application:get_env(rabbit, Kept),"
    " case Before of {ok, Value} -> application:set_env(rabbit, Name, Value);"
    " undefined -> application:unset_env(rabbit, Name) end, application:unset_env(rabbit, Kept) end"
    " || {Name, Kept} <- [{consumer_timeout, amqpspec_consumer_timeout},"
    " {channel_tick_interval, amqpspec_channel_tick_interval}],"
    " application:get_env(rabbit, Kept) =/= undefined]"
)
#: Milliseconds for a connection that a client has open to be known to its node, and for one to be closed.
_PATIENCE = 5000


class RabbitmqctlOperator:
    """Carries out actions as rabbitmqctl would, wherever the expressions are evaluated."""

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate

    def carry_out(self, actions: Sequence[OperatorAction], peer_of: PeerOf) -> None:
        self._say([expression(action, peer_of) for action in actions], actions)

    def undo(self, actions: Sequence[OperatorAction]) -> None:
        # what is gone already, or cannot be taken away, must not keep the rest
        left = undoing(actions)
        if left:
            self._say([f"(catch begin {expression(action, nobody)} end)" for action in left], left)

    def connections(self) -> int | None:
        """Of AMQP, on all nodes. Raises `OperatorError`."""
        try:
            answer = self._evaluate("{amqpspec_connections, length(rabbit_networking:connections())}.")
        except TargetError as error:
            raise OperatorError(f"the operator could not count connections: {error}") from error
        found = re.search(r"amqpspec_connections,\s*(\d+)", answer)
        return int(found[1]) if found else None

    def _say(self, expressions: Sequence[str], actions: Sequence[OperatorAction]) -> None:
        said = "".join(f"{each}, " for each in expressions)
        try:
            answer = self._evaluate(f"{said}{_DONE}.")
        except OperatorError:
            raise
        except TargetError as error:
            raise OperatorError(f"the operator could not do {_names(actions)}: {error}") from error
        if _DONE not in answer:
            raise OperatorError(f"the operator could not do {_names(actions)}: {' '.join(answer.split())[:300]}")


def operator_by(*ways: Evaluate) -> Operator | None:
    """An operator, by the first of the ways that reaches the node."""
    for evaluate in ways:
        with suppress(TargetError):
            if "42" in evaluate("6 * 7."):
                return RabbitmqctlOperator(evaluate)
    return None


def expression(action: OperatorAction, peer_of: PeerOf) -> str:
    """The action in Erlang; it fails where the action cannot be carried out."""
    arguments = action.arguments
    user = _binary(arguments.get("user", ""))
    vhost = _binary(arguments.get("virtual_host", "/"))
    match action.name:
        case "operator.add-user":
            password = _binary(arguments.get("password", ""))
            return f"ok = rabbit_auth_backend_internal:add_user({user}, {password}, {_ACTOR})"
        case "operator.set-permissions":
            patterns = ", ".join(_binary(arguments.get(name, "")) for name in ("configure", "write", "read"))
            return f"ok = rabbit_auth_backend_internal:set_permissions({user}, {vhost}, {patterns}, {_ACTOR})"
        case "operator.delete-user":
            return f"ok = rabbit_auth_backend_internal:delete_user({user}, {_ACTOR})"
        case "operator.add-vhost":
            return f"ok = rabbit_vhost:add({vhost}, {_ACTOR})"
        case "operator.delete-vhost":
            return f"ok = rabbit_vhost:delete({vhost}, {_ACTOR})"
        case "operator.close-connection":
            return _closing(peer_of(arguments.get("name", "")).connection_name, arguments.get("reason", ""))
        case "operator.set-alarm":
            # get_alarms waits until the connections have been told
            return f"ok = rabbit_alarm:set_alarm({{{_ALARM}, []}}), [_ | _] = rabbit_alarm:get_alarms()"
        case "operator.clear-alarm":
            return f"ok = rabbit_alarm:clear_alarm({_ALARM}), [] = rabbit_alarm:get_alarms()"
        case "operator.configure":
            return ", ".join(_setting(name, value) for name, value in arguments.items()) or "ok"
        case "operator.reset-configuration":
            return _RESET
        case "operator.set-policy":
            return _policy(action, vhost)
        case "operator.clear-policy":
            return f"ok = rabbit_policy:delete({vhost}, {_binary(arguments.get('policy', ''))}, {_ACTOR})"
    raise OperatorError(f"there is no {action.name}")


def _setting(name: str, value: int) -> str:
    """What was there before is kept beside, for `_RESET`."""
    return (
        f"(case application:get_env(rabbit, amqpspec_{name}) of undefined ->"
        f" application:set_env(rabbit, amqpspec_{name}, application:get_env(rabbit, {name})); _ -> ok end),"
        f" ok = application:set_env(rabbit, {name}, {value})"
    )


def _policy(action: OperatorAction, vhost: str) -> str:
    arguments = action.arguments
    name, pattern = _binary(arguments.get("policy", "")), _binary(f"^{re.escape(arguments.get('queue', ''))}$")
    said = definition_of(arguments).items()
    definition = ", ".join(
        f"{{{_binary(key)}, {_binary(value) if isinstance(value, str) else value}}}" for key, value in said
    )
    priority = arguments.get("priority", 0)
    return f'ok = rabbit_policy:set({vhost}, {name}, {pattern}, [{definition}], {priority}, <<"queues">>, {_ACTOR})'


def _closing(connection_name: str, reason: str) -> str:
    """The connection is found by the name that the client gave it, which a node knows a little after it has opened it.

    Not by the client's port: that is another one for a broker in a container, where somebody forwards it. In the table
    of what is known of connections (rabbit_core_metrics), as asking each may take seconds: some are being refused.
    """
    return (
        f"(fun Closing(0) -> exit(no_such_connection);"
        f" Closing(Left) -> case [Pid || {{Pid, Known}} <- ets:tab2list(connection_created),"
        f" lists:member({{user_provided_name, {_binary(connection_name)}}}, Known)] of"
        f" [Found | _] -> rabbit_networking:close_connection(Found, {_string(reason)});"
        f" [] -> timer:sleep(10), Closing(Left - 1) end end)({_PATIENCE // 10})"
    )


def by_hand(action: OperatorAction, connection_name: str = "") -> list[str]:
    """The commands that a person types for the action; `connection_name`: of the connection that is closed."""
    arguments = {name: _shell(str(value)) for name, value in action.arguments.items()}
    user, vhost = arguments.get("user", "''"), arguments.get("virtual_host", "/")
    match action.name:
        case "operator.add-user":
            return [f"rabbitmqctl add_user {user} {arguments.get('password', _shell(''))}"]
        case "operator.set-permissions":
            patterns = " ".join(arguments.get(name, "''") for name in ("configure", "write", "read"))
            return [f"rabbitmqctl set_permissions -p {vhost} {user} {patterns}"]
        case "operator.delete-user":
            return [f"rabbitmqctl delete_user {user}"]
        case "operator.add-vhost":
            return [f"rabbitmqctl add_vhost {vhost}"]
        case "operator.delete-vhost":
            return [f"rabbitmqctl delete_vhost {vhost}"]
        case "operator.close-connection":
            return [
                f"rabbitmqctl -q list_connections pid user_provided_name   # the pid of {connection_name}",
                f"rabbitmqctl close_connection PID {arguments.get('reason', _shell(''))}",
            ]
        case "operator.set-alarm":
            return [f"rabbitmqctl eval 'rabbit_alarm:set_alarm({{{_ALARM}, []}}).'"]
        case "operator.clear-alarm":
            return [f"rabbitmqctl eval 'rabbit_alarm:clear_alarm({_ALARM}).'"]
        case "operator.configure":
            return [
                f"rabbitmqctl eval 'application:set_env(rabbit, {name}, {value}).'" for name, value in arguments.items()
            ]
        case "operator.set-policy":
            pattern = _shell(f"^{re.escape(str(action.arguments.get('queue', '')))}$")
            definition = _shell(json.dumps(definition_of(action.arguments)))
            said = f"--priority {arguments.get('priority', 0)} --apply-to queues"
            return [f"rabbitmqctl set_policy -p {vhost} {said} {arguments.get('policy')} {pattern} {definition}"]
        case "operator.clear-policy":
            return [f"rabbitmqctl clear_policy -p {vhost} {arguments.get('policy')}"]
    return []


def _shell(text: str) -> str:
    return text if re.fullmatch(r"[\w@%+=:,./-]+", text) else "'" + text.replace("'", "'\\''") + "'"


def _binary(text: str) -> str:
    return f"<<{_string(text)}/utf8>>" if text else "<<>>"


def _string(text: str) -> str:
    """An Erlang string, in characters that every shell and every node reads alike."""
    plain = (c.isascii() and c.isprintable() and c not in '"\\' for c in text)
    return '"' + "".join(c if is_plain else f"\\x{{{ord(c):x}}}" for c, is_plain in zip(text, plain, strict=True)) + '"'


def _names(actions: Sequence[OperatorAction]) -> str:
    return ", ".join(action.name for action in actions)
