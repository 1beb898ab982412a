"""What only the operator of a broker can do: make users, grant permissions, close connections, raise alarms."""

from __future__ import annotations

from typing import Protocol

from model.alphabet import Frame


class Operator(Protocol):
    """Does what frames of the class `operator` say (`model.alphabet`), and undoes it at the end."""

    def carry_out(self, frame: Frame) -> None:
        """Do it, and come back when it is done. Raises `targets.errors.OperatorError`."""
        ...
