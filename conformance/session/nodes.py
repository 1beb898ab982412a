"""Which nodes of the broker can answer, by what was done to them in a sequence. A single broker is node 1."""

from __future__ import annotations

from collections.abc import Sequence

from amqpspec.model.broker.nodes import is_mute, node_of

__all__ = ["Nodes", "node_of"]

class Nodes:
    """`numbers`: those that there are."""

    def __init__(self, numbers: Sequence[int] = (1,)) -> None:
        self.numbers = numbers
        self.down: set[int] = set()
        self.paused: set[int] = set()
        #: nothing passes between them and the others
        self.cut: set[int] = set()
        #: something was done to one of them
        self.touched = False

    def named_by(self, node: int | None) -> Sequence[int]:
        """That one; None: all."""
        return self.numbers if node is None else (node,)

    def answers(self, connection: str) -> bool:
        """Can the node of that connection answer? It need not while it has failed, or no majority is left."""
        return not is_mute(self._failed, connection) if len(self.numbers) > 1 else not self._failed

    @property
    def all_answer(self) -> bool:
        return not self._failed

    @property
    def any_answers(self) -> bool:
        return self.all_answer or any(self.answers(f"@{each}") for each in self.numbers)

    @property
    def _failed(self) -> set[int]:
        return self.down | self.paused | self.cut
