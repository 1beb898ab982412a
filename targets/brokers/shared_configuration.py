"""An operator for sequences that run side by side and configure the broker alike."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from amqpspec.model.protocol.methods import OperatorAction
from amqpspec.targets.brokers.operator import Operator, PeerOf


class SharedConfiguration:
    """What a sequence has configured stays when it ends: others may be in need of it. Use as a context manager; at its
    end the configuration is taken back.
    """

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._configured: list[OperatorAction] = []

    def carry_out(self, actions: Sequence[OperatorAction], peer_of: PeerOf) -> None:
        self._operator.carry_out(actions, peer_of)

    def undo(self, actions: Sequence[OperatorAction]) -> None:
        """All but the configuration. Raises `targets.errors.OperatorError`."""
        self._configured += (action for action in actions if action.name == "operator.configure")
        own = [action for action in actions if action.name != "operator.configure"]
        if own:
            self._operator.undo(own)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._configured:
            self._operator.undo(self._configured)
