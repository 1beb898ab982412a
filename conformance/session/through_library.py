"""Commands through a client library: which of them it has words for (`targets.drivers.expressible`)."""

from __future__ import annotations

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.model.protocol.methods import OPERATOR
from amqpspec.targets.drivers.expressible import why_not


def not_expressible(command: Command, target: TargetUnderTest) -> str | None:
    """Why the command cannot be carried out through the library that is used; None: it can, or none is used."""
    if target.library is None:
        return None
    driver = target.library.driver
    if command.method == "operator.close-connection":
        return f"not applicable for this driver: the operator does not know connections of {driver} by their names"
    if command.connection == OPERATOR:
        return None
    why = why_not(driver, command.channel, command.method, command.arguments, command.content, command.as_it_stands)
    return why and f"not applicable for this driver: {why}"
