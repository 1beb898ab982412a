"""What a frame costs where inputs cross: `python -m benchmarks.bursts [REPETITIONS]`.

Publishes in confirm mode are sent in a burst, to a queue with a consumer: all on one channel, or on two in turns. Then
each delivery and each confirm comes, a frame each, and all is at rest. Least processor time of the repetitions, in
microseconds for each frame, sent or received.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from amqpspec.conformance.explore.steps import answers, event_for, first_position, process_input
from amqpspec.conformance.explore.world import parse_world
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.judging.acceptor import Acceptor
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import TraceEvent

SIZES = (1, 2, 4, 8)
BURSTS = 10

_SETUP = """
setup = ["a.1 queue.declare q durable", "a.1 basic.consume q tag=t no-ack", "b.1 confirm.select", "c.1 confirm.select"]
commands = ["b.1 basic.publish q", "c.1 basic.publish q"]
"""


def main(repetitions: int) -> None:
    print("| publishes in a burst | on one channel, µs a frame | on two channels |\n| --- | --- | --- |")
    for size in SIZES:
        taken = [min(_measured(size, channels) for _ in range(repetitions)) for channels in (1, 2)]
        print(f"| {size} | {taken[0]:,.0f} | {taken[1]:,.0f} |", flush=True)


def _measured(size: int, channels: int) -> float:
    world = parse_world(_SETUP, Path("bursts.toml"))[0]
    position, setup = first_position(world)
    acceptor = acceptor_for(dialect_named(world.dialect))
    for event in setup:
        _judge(acceptor, event)
    bursts: list[list[TraceEvent | None]] = []
    for _ in range(BURSTS):
        sent: list[TraceEvent] = []
        answered: list[TraceEvent] = []
        for number in range(size):
            command = world.command(number % channels, number + 1)
            sent.append(process_input(position, event_for(position, command)))
            answered += answers(position)
        bursts.append([*sent, *answered, None])
    began = time.process_time()
    for burst in bursts:
        acceptor.overlapping = True
        for event in burst[:size]:
            _judge(acceptor, event)
        acceptor.overlapping = False
        for event in burst[size:]:
            _judge(acceptor, event)
    taken = time.process_time() - began
    assert acceptor.verdict is Verdict.PASS, (acceptor.failures, acceptor.reason)
    return taken * 1e6 / sum(len(burst) - 1 for burst in bursts)


def _judge(acceptor: Acceptor, event: TraceEvent | None) -> None:
    if event is None:
        acceptor.quiescent()
    elif event.sent:
        acceptor.sent(event)
    else:
        acceptor.received(event)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
