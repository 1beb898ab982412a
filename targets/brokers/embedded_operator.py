"""The operator of the embedded broker: what is done there is processed by its model like any other input."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from amqpspec.model.protocol.methods import Frame
from amqpspec.targets.brokers.operator import PeerOf, undoing
from amqpspec.targets.embedded.orders import Orders
from amqpspec.targets.errors import OperatorError


class EmbeddedOperator:
    """Carries out frames on the broker whose loop takes these orders."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders

    def carry_out(self, frames: Sequence[Frame], peer_of: PeerOf) -> None:
        for frame in frames:
            is_about_a_client = frame.method == "operator.close-connection"
            self._orders.give(frame, peer_of(frame.arguments.get("name", "")).port if is_about_a_client else None)

    def undo(self, frames: Sequence[Frame]) -> None:
        for frame in undoing(frames):
            with contextlib.suppress(OperatorError):
                self._orders.give(frame)
