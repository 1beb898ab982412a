"""The scenarios as worlds: their commands in their order, and all that a broker may answer.

Left out are those in which time passes: the clock of a world stands still between two commands, so that what is due at
one moment would have to be looked at in every order. The worlds `expiry` and `timeouts` are about time.
"""

from __future__ import annotations

from collections.abc import Iterator

from amqpspec.conformance.explore.world import World
from amqpspec.conformance.language.command_arguments import LAST_HEADERS
from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.scenarios.scenario_files import selected
from amqpspec.conformance.session.handshake_steps import STEPS
from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from amqpspec.model.protocol.methods import CLOCK_WAIT

#: Octets of a content beyond which a scenario is left out: each copy of a state would be looked at.
LARGE = 100_000
#: More commands would be no small world.
MOST_COMMANDS = 40
_NOT_OF_A_WORLD = ("network.", "queue.transfer", "broker.pause", "socket.silence")


def scenario_worlds(states: int) -> Iterator[World]:
    """Those that no time, cluster, network, large content, step of a handshake or header of an earlier delivery is
    needed for. `states`: most of each.
    """
    dialect = DEFAULT_DIALECT.name
    for scenario in selected((), dialect):
        if is_small(scenario) and all(command.method != CLOCK_WAIT for command in scenario.commands):
            name = " ".join(filter(None, ("scenario", scenario.name, scenario.queue_type)))
            count = len(scenario.commands)
            yield World(
                name, scenario.title, dialect, (), scenario.commands, (1,) * count, count, crossing=False,
                states=states, ordered=True,
            )  # fmt: skip


def is_small(scenario: CommandFile) -> bool:
    """Can the model play it by itself?"""
    if len(scenario.commands) > MOST_COMMANDS:
        return False
    for command in scenario.commands:
        if command.method in STEPS[:-1] or command.method.startswith(_NOT_OF_A_WORLD):
            return False
        if "@" in command.connection or "node" in command.arguments:
            return False
        content = command.content
        if content is not None and (len(content.body) > LARGE or content.properties.get("headers") == LAST_HEADERS):
            return False
    return True
