"""What a reproducer cannot do itself: it tells the person who runs it which commands to give, and waits.

`CLIENT_PART` goes into programs that need it, after `conformance.failures.standalone_client`. There `PREFIX-` in the
commands stands for the random prefix of names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.faults import is_left_broken, of_broker
from amqpspec.conformance.language.names import on_the_broker
from amqpspec.model.protocol.methods import CLOCK_WAIT, FAULTS, OPERATOR, OperatorAction
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


def restarted(text: str, *commands: str) -> None:
    """The same; connections of before can be opened anew."""
    by_hand(text, *commands)
    for name in [name for name, each in CONNECTIONS.items() if each.state == "gone"]:
        del CONNECTIONS[name]


def cut(text: str, name: str) -> None:
    """As if the network were cut: until it is healed nothing is read on the connection, and what is written waits."""
    tell(f"> {text}")
    connection: Any = connect(name)
    if not hasattr(connection, "cut"):
        connection.cut, connection.kept = (connection.state, connection.socket, socket.socketpair()), []
        connection.state, connection.socket, connection.write = "cut", connection.cut[2][0], connection.kept.append


def heal(text: str, name: str) -> None:
    tell(f"> {text}")
    connection: Any = connect(name)
    if hasattr(connection, "cut"):
        connection.state, connection.socket, _ = connection.cut
        del connection.cut, connection.write
        for octets in connection.kept:
            connection.write(octets)
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
    if command.method in FAULTS:
        return _fault(command)
    action = _action(command)
    return "by_hand", [str(command), *by_hand(action, f"PREFIX-{action.arguments.get('name', '')}")]


#: Of a node in a container; who has none does the like to the process of the broker.
_FAULTS_BY_HAND = {
    "broker.stop": "docker stop {node}   # or: rabbitmqctl shutdown",
    "broker.kill": "docker kill {node}   # or: kill -KILL, and the process of the broker",
    "broker.pause": "docker pause {node}   # or: kill -STOP, and the process of the broker",
    "broker.resume": "docker unpause {node}   # or: kill -CONT, and the process of the broker",
    "broker.restart": "docker stop {node}; docker start {node}   # or: rabbitmqctl shutdown; rabbitmq-server -detached",
    "network.cut": "docker network disconnect NETWORK {node}   # the one between the nodes",
    "network.slow": "tc qdisc add dev INTERFACE root netem delay {milliseconds}ms   # on {node}",
    "network.heal": "docker network connect NETWORK {node}   # the one between the nodes",
    "queue.transfer-leader": "have {node} lead the queue {queue}",
}


def _fault(command: Command) -> tuple[str, list[Any]]:
    """What happens to a connection a program does by itself, but for delays."""
    name = command.arguments.get("connection")
    if name is None:
        return ("restarted" if command.method == "broker.restart" else "by_hand"), [str(command), _line(command)]
    if command.method == "network.slow":
        return "tell", [f"> {command}   (the suite delays what passes; this program does not)"]
    return command.method.partition(".")[2], [str(command), name]


def _line(command: Command) -> str:
    node = f"NODE{command.arguments['node']}" if "node" in command.arguments else "BROKER"
    queue = f"PREFIX-{command.arguments.get('queue', '')}"
    milliseconds = command.arguments.get("milliseconds", 0)
    return _FAULTS_BY_HAND[command.method].format(node=node, queue=queue, milliseconds=milliseconds)


def needs_operator(commands: Iterable[Command]) -> bool:
    """Is anything of it done on the broker's machine? Waiting is not."""
    return any(each.connection == OPERATOR and each.method != CLOCK_WAIT for each in commands)


def left_behind(commands: Iterable[Command]) -> list[str]:
    """The commands by which a person undoes what all these made."""
    commands = list(commands)
    done = [_action(each) for each in commands if each.connection == OPERATOR and each.method not in FAULTS]
    lines = [line for action in undoing(done) for line in by_hand(action)]
    if is_left_broken(commands):
        is_paused = next(each for each in reversed(of_broker(commands))).method == "broker.pause"
        lines.insert(0, _line(Command(OPERATOR, 0, "broker.resume" if is_paused else "broker.restart")))
    return lines


def _action(command: Command) -> OperatorAction:
    return OperatorAction(OPERATOR, 0, command.method, dict(on_the_broker(command, "PREFIX-").arguments), sent=True)
