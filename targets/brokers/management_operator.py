"""The operator of a broker that is told by the HTTP API of its management, as RabbitMQ's plugin has it.

It says what the user who logs in there may do, by tags (RabbitMQ guide: management, Permissions). Alarms and settings
are nothing that it can be asked for.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence

from amqpspec.model.broker.administration import POLICY_KEYS, definition_of
from amqpspec.model.protocol.methods import OperatorAction
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.management_address import ManagementAddress
from amqpspec.targets.brokers.management_api import ManagementApi, NotThere
from amqpspec.targets.brokers.operator import PeerOf, asked_of, nobody, not_offered, undoing
from amqpspec.targets.errors import OperatorError, OperatorMissing

_POLICIES = frozenset({"operator.set-policy", "operator.clear-policy"})
#: Each user of the API sees and closes at least its own connections.
_ANYBODY = frozenset({"operator.close-connection"})
_ADMINISTRATORS = frozenset({
    "operator.add-user", "operator.delete-user", "operator.set-permissions", "operator.add-vhost",
    "operator.delete-vhost",
})  # fmt: skip
#: Those users may set policies as well.
_MAY_SET_POLICIES = frozenset({"administrator", "policymaker"})
#: Seconds until the API knows a connection: a node tells it of new ones every five seconds.
_PATIENCE = 30.0
_BETWEEN_LOOKS = 0.2


class ManagementOperator:
    """A `PartialOperator`. Raises `OperatorError` where there is no such API, or it does not let the user in, and
    `AddressError` where a file of the address cannot be used.
    """

    def __init__(self, address: ManagementAddress, broker: Address) -> None:
        """`broker`: what it operates, with whose login it goes there if `address` has none."""
        api = self._api = ManagementApi(address.logged_in(broker))
        try:
            who, overview = api.get("whoami"), api.get("overview")
        except NotThere as error:
            raise OperatorError(f"{error}; there is no management API") from None
        if not isinstance(who, dict) or not isinstance(overview, dict):
            raise OperatorError(f"{address}: its answers are none of a management API")
        #: of the broker that it manages, which its connections are told as well; "": it does not say
        self.cluster_name = str(overview.get("cluster_name", ""))
        self.offered = _offered(who.get("tags", ""))

    def __str__(self) -> str:
        return str(self._api.address)

    def carry_out(self, actions: Sequence[OperatorAction], peer_of: PeerOf) -> None:
        for action in actions:
            if missing := not_offered(self, asked_of(action.name, action.arguments)):
                raise OperatorMissing(f"{self}: {missing} is not offered to this user")
            try:
                self._carry_out(action, peer_of)
            except OperatorError as error:
                raise OperatorError(f"the operator could not do {action.name}: {error}") from error

    def undo(self, actions: Sequence[OperatorAction]) -> None:
        failed: list[OperatorError] = []
        for action in undoing(actions):
            # what is gone already, or cannot be taken away, must not keep the rest
            try:
                self._carry_out(action, nobody)
            except NotThere:
                pass
            except OperatorError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def _carry_out(self, action: OperatorAction, peer_of: PeerOf) -> None:
        api, said = self._api, action.arguments
        user, vhost = said.get("user", ""), said.get("virtual_host", "/")
        match action.name:
            case "operator.add-user":
                api.put("users", user, said={"password": said.get("password", ""), "tags": ""})
            case "operator.delete-user":
                api.delete("users", user)
            case "operator.set-permissions":
                patterns = {name: said.get(name, "") for name in ("configure", "write", "read")}
                api.put("permissions", vhost, user, said=patterns)
            case "operator.add-vhost":
                api.put("vhosts", vhost, said={})
            case "operator.delete-vhost":
                api.delete("vhosts", vhost)
            case "operator.set-policy":
                pattern, priority = f"^{re.escape(said.get('queue', ''))}$", said.get("priority", 0)
                policy = {"pattern": pattern, "definition": definition_of(said), "priority": priority}
                api.put("policies", vhost, said.get("policy", ""), said={**policy, "apply-to": "queues"})
            case "operator.clear-policy":
                api.delete("policies", vhost, said.get("policy", ""))
            case "operator.close-connection":
                name = self._connection(peer_of(said.get("name", "")).connection_name)
                api.delete("connections", name, reason=said.get("reason", ""))
            case _:
                raise OperatorMissing(f"{self}: {action.name} is nothing for a management API")

    def _connection(self, given: str) -> str:
        """What the broker calls the connection to which its client gave that name."""
        until = time.monotonic() + _PATIENCE
        while True:
            found = self._api.get("connections", query="?columns=name,user_provided_name,client_properties")
            for each in found if isinstance(found, list) else ():
                properties = each.get("client_properties") or {}
                if given in (each.get("user_provided_name"), properties.get("connection_name")):
                    return str(each["name"])
            if time.monotonic() > until:
                raise OperatorError(f"{self}: it knows no connection {given!r} after {_PATIENCE:g} s")
            threading.Event().wait(_BETWEEN_LOOKS)


def _offered(tags: object) -> frozenset[str]:
    """`tags`: a list, or before 3.9 a text with commas between."""
    names = {str(tag).strip() for tag in (tags if isinstance(tags, list) else str(tags).split(","))}
    found = set(_ANYBODY)
    if "administrator" in names:
        found |= _ADMINISTRATORS
    if names & _MAY_SET_POLICIES:
        found |= _POLICIES | {f"operator.set-policy {key}" for key in POLICY_KEYS.values()}
    return frozenset(found)
