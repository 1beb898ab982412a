"""The operator of the embedded broker: what is done there is processed by its model like any other input."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from amqpspec.model.protocol.methods import OperatorAction, TraceEvent
from amqpspec.targets.brokers.operator import PeerOf, undoing
from amqpspec.targets.errors import OperatorError


class EmbeddedOperator:
    """Carries out actions on the broker that takes events by this function, each with the port of the client that it is
    about.
    """

    def __init__(self, give: Callable[[TraceEvent, int | None], None]) -> None:
        self._give = give

    def carry_out(self, actions: Sequence[OperatorAction], peer_of: PeerOf) -> None:
        for action in actions:
            is_about_a_client = action.name == "operator.close-connection"
            port = peer_of(action.arguments.get("name", "")).port if is_about_a_client else None
            # its time is one of a trace, and not one of the broker's clock
            self._give(replace(action, time=0.0), port)

    def undo(self, actions: Sequence[OperatorAction]) -> None:
        for action in undoing(actions):
            with contextlib.suppress(OperatorError):
                self._give(action, None)
