"""What a reproducer cannot do itself: it tells the person who runs it which commands to give, and waits.

`CLIENT_PART` goes into programs that need it, after `conformance.failures.standalone_client`. There `PREFIX-` in the
commands stands for the random prefix of names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.names import on_the_broker
from amqpspec.model.protocol.methods import CLOCK_WAIT, OPERATOR, OperatorAction
from amqpspec.targets.brokers.operator import undoing
from amqpspec.targets.brokers.rabbitmqctl_operator import by_hand

CLIENT_PART = '''

def by_hand(text: str, *commands: str) -> None:
    """What only the operator of the broker can do; the names are those of this run."""
    tell(f"> {text}")
    lines = (f"    {each}".replace("PREFIX-", P) for each in commands)
    print("  on the broker's machine:", *lines, sep="\\n", flush=True)
    input("  and when that is done, Enter: ")
    settle()


def left_behind(*commands: str) -> None:
    lines = (f"    {each}".replace("PREFIX-", P) for each in commands)
    print("to be undone on the broker's machine:", *lines, sep="\\n")


def pause(text: str, seconds: float) -> None:
    """So long, whatever comes."""
    tell(f"> {text}")
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        before = len(PRINTED)
        wait(lambda: len(PRINTED) > before, left)
'''


def call(command: Command) -> tuple[str, list[Any]]:
    """The function of the client part, and its arguments, for a command of the operator or one that waits."""
    if command.method == "clock.wait":
        return "pause", [str(command), command.arguments.get("milliseconds", 0) / 1000]
    action = _action(command)
    return "by_hand", [str(command), *by_hand(action, f"PREFIX-{action.arguments.get('name', '')}")]


def needs_operator(commands: Iterable[Command]) -> bool:
    """Is anything of it done on the broker's machine? Waiting is not."""
    return any(each.connection == OPERATOR and each.method != CLOCK_WAIT for each in commands)


def left_behind(commands: Iterable[Command]) -> list[str]:
    """The commands by which a person undoes what all these made."""
    done = [_action(each) for each in commands if each.connection == OPERATOR]
    return [line for action in undoing(done) for line in by_hand(action)]


def _action(command: Command) -> OperatorAction:
    return OperatorAction(OPERATOR, 0, command.method, dict(on_the_broker(command, "PREFIX-").arguments), sent=True)
