"""Which nodes of the broker can answer, by what was done to them in a sequence. A single broker is node 1."""

from __future__ import annotations

from collections.abc import Sequence

#: Stands in the name of a connection before the number of the node that it goes to.
AT = "@"


def node_of(connection: str) -> int:
    """The node that a connection of that name goes to."""
    number = connection.partition(AT)[2]
    return int(number) if number.isdecimal() else 1


class Nodes:
    """`numbers`: those that there are."""

    def __init__(self, numbers: Sequence[int] = (1,)) -> None:
        self.numbers = numbers
        self.down: set[int] = set()
        self.paused: set[int] = set()
        #: something was done to one of them
        self.touched = False

    def named_by(self, node: int | None) -> Sequence[int]:
        """That one; None: all."""
        return self.numbers if node is None else (node,)

    def answers(self, connection: str) -> bool:
        """Can the node of that connection answer?"""
        node = node_of(connection)
        return node not in self.down and node not in self.paused

    @property
    def all_answer(self) -> bool:
        return not self.down and not self.paused

    @property
    def any_answers(self) -> bool:
        return self.all_answer or any(each not in self.down and each not in self.paused for each in self.numbers)
