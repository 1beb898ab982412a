"""What the search makes: how often each interesting thing happens, and that equal seeds make equal commands.

The generator only looks at its plan, so no target is needed. Shares are those of sequences in which a thing happened at
least once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import count, pairwise

import pytest

from amqpspec.conformance.failures.shrink import _meant, _written
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.search.machine import THEMES
from amqpspec.conformance.search.round import make_round
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.queue_types import QueueType
from tests.conformance.search import consumer_questions, publisher_questions
from tests.conformance.search.consumer_questions import QUESTIONS_OF_CHANNEL_LIMITS, Question, exercised

SEQUENCES = 120
STEPS = 30


@cache
def sequences(first_seed: int, dialect: str = "rabbitmq-4.3", most: int = SEQUENCES) -> tuple[tuple[Command, ...], ...]:
    """The commands of each sequence that the search makes with that seed."""
    made: list[tuple[Command, ...]] = []
    # those that wait have a test of their own (`test_search_timeouts.py`)
    chosen = tuple(name for name, theme in THEMES.items() if not theme.waits)
    for number in count():
        made += [each.commands for each in make_round(dialect_named(dialect), first_seed, number, STEPS, chosen)]
        if len(made) >= most:
            break
    return tuple(made[:most])


def _settles(broker: Broker, command: Command) -> list[int]:
    """The deliveries that the command settles."""
    channel = broker.channels.get((command.connection, command.channel))
    if channel is None or command.method not in ("basic.ack", "basic.nack", "basic.reject"):
        return []
    tag = command.arguments.get("delivery_tag", 0)
    if command.arguments.get("multiple"):
        return [other for other in channel.unacknowledged if other <= tag or not tag]
    return [tag] if tag in channel.unacknowledged else []


def _holds(broker: Broker, command: Command) -> bool:
    """Does the channel hold deliveries?"""
    channel = broker.channels.get((command.connection, command.channel))
    return channel is not None and bool(channel.unacknowledged)


def _limit_holds(broker: Broker, command: Command | None) -> bool:
    return any(
        consumer.prefetch and consumer.outstanding >= consumer.prefetch and queue.messages
        for queue in broker.queues.values()
        for consumer in queue.consumers
    )


def _cancels_holder(broker: Broker, command: Command | None) -> bool:
    if command is None or command.method != "basic.cancel":
        return False
    channel = broker.channels.get((command.connection, command.channel))
    consumer = channel.consumers.get(command.arguments["consumer_tag"]) if channel else None
    return consumer is not None and consumer.outstanding > 0


def _after(method: str, question: Callable[[Broker, Command], bool]) -> Question:
    return lambda broker, command: command is not None and command.method == method and question(broker, command)


def _settling(question: Callable[[Broker, Command, list[int]], bool]) -> Question:
    return lambda broker, command: command is not None and question(broker, command, _settles(broker, command))


def _queue_type(kind: QueueType) -> Question:
    return lambda broker, command: any(queue.type is kind for queue in broker.queues.values())


PAIRS = {**consumer_questions.PAIRS, **publisher_questions.PAIRS}

QUESTIONS: dict[str, tuple[float, Question]] = {
    "a classic queue": (0.3, _queue_type(QueueType.CLASSIC)),
    "a quorum queue": (0.3, _queue_type(QueueType.QUORUM)),
    "a message is ready or held": (0.6, lambda broker, command: any(q.next_position for q in broker.queues.values())),
    "two consumers of one queue": (0.08, lambda broker, _: any(len(q.consumers) > 1 for q in broker.queues.values())),
    "a delivery": (0.3, lambda broker, _: any(channel.next_tag > 1 for channel in broker.channels.values())),
    "a redelivery": (0.25, exercised("ACK-015")),
    "a redelivery from a quorum queue": (0.05, exercised("QUORUM-001")),
    "an acknowledgement of one": (0.2, _settling(lambda b, c, tags: c.method == "basic.ack" and len(tags) == 1)),
    "multiple settles two or more": (0.05, _settling(lambda b, c, tags: len(tags) >= 2)),
    "nack with requeue": (0.05, _settling(lambda b, c, tags: bool(tags) and bool(c.arguments.get("requeue")))),
    "nack or reject without requeue": (
        0.05,
        _settling(lambda b, c, tags: bool(tags) and c.method != "basic.ack" and not c.arguments.get("requeue")),
    ),
    "a limit holds a message back": (0.15, _limit_holds),
    "a settlement under a limit makes room": (0.08, exercised("QOS-004")),
    "cancel of a consumer that holds deliveries": (0.05, _cancels_holder),
    "close of a channel that holds deliveries": (0.06, _after("channel.close", _holds)),
    "recover of what is held": (0.05, exercised("RECOVER-001", "RECOVER-002")),
    "an error of a channel": (0.3, exercised("CHAN-008")),
    "an error while deliveries are held": (
        0.03,
        lambda broker, command: command is None
        and all(broker.bookkeeping.exercised[id] for id in ("CHAN-016", "CHAN-008")),
    ),
    "a confirm": (0.3, exercised("CONFIRM-003")),
    "a consumer without acknowledgements gets something": (0.05, exercised("CONSUME-013")),
    "the end of a connection": (0.05, exercised("CONN-020")),
    "deletion of a queue with consumers": (0.02, exercised("CANCEL-007")),
    "a topic exchange routes": (0.01, exercised("PUBLISH-005")),
    "a headers exchange routes": (0.01, exercised("PUBLISH-006")),
    "an exchange that is bound to another routes": (0.05, exercised("BIND-004")),
    "two bindings lead to one queue": (0.005, exercised("BIND-003")),
    "an alternate exchange routes": (0.005, exercised("PUBLISH-010")),
    "CC or BCC routes": (0.01, exercised("PUBLISH-011")),
    "an auto-delete exchange goes": (0.015, exercised("EXCHANGE-008")),
    "redeclaring with a difference": (0.03, exercised("EXCHANGE-006")),
    "a direct reply": (0.005, exercised("REPLY-001")),
    "an exclusive queue is refused to others": (0.005, exercised("QUEUE-019")),
    "a frame that has no place": (0.03, exercised("CHAN-012", "CHAN-013", "CHAN-014", "CONN-015", "CONN-016")),
    "crossing closes of a channel": (
        0.01, lambda _, command: command is not None and command.method == "channel.close" and command.as_it_stands
    ),
    "a content in pieces": (
        0.03,
        lambda broker, command: command is not None and command.method == "frame.body" and bool(broker.queues),
    ),
    "a sequence goes on after a lost connection": (
        0.15, lambda broker, command: command is not None and command.connection not in "ab"
    ),
    "purge": (0.05, lambda broker, command: command is not None and command.method == "queue.purge"),
    **consumer_questions.QUESTIONS,
    **publisher_questions.QUESTIONS,
}  # fmt: skip


#: The least share of everything that is asked.
BOUNDS = {
    name: bound for asked in (QUESTIONS, QUESTIONS_OF_CHANNEL_LIMITS, PAIRS) for name, (bound, _) in asked.items()
}


@cache
def shares() -> dict[str, float]:
    """Share by question, and under "different" the share of sequences that are unlike all others."""
    # of what is rare, fewer say little: each change of what the search draws throws the dice anew
    made = tuple(each for seed in (9, *range(12, 17)) for each in sequences(seed))
    counted = {"different": len({tuple(map(str, commands)) for commands in made}) / len(made)}
    counted |= _shares_of(made, QUESTIONS, "rabbitmq-4.3")
    limited = sequences(9, "rabbitmq-4.0") + sequences(12, "rabbitmq-4.0") + sequences(13, "rabbitmq-4.0")
    counted |= _shares_of(limited, QUESTIONS_OF_CHANNEL_LIMITS, "rabbitmq-4.0")
    for name, (_, asks) in PAIRS.items():
        crossing = [any(first.in_flight and asks(first, second) for first, second in pairwise(each)) for each in made]
        counted[name] = sum(crossing) / len(made)
    return counted


def _shares_of(
    made: Sequence[Sequence[Command]], questions: Mapping[str, tuple[float, Question]], dialect: str
) -> dict[str, float]:
    seen: Counter[str] = Counter()
    for commands in made:
        plan = Plan(dialect_named(dialect))
        happened: set[str] = set()
        for command in (*commands, None):
            happened.update(name for name, (_, asks) in questions.items() if asks(plan.broker, command))
            if command is not None:
                plan.carry_out(command)
        seen.update(happened)
    return {name: seen[name] / len(made) for name in questions}


@pytest.mark.parametrize("name", BOUNDS)
def test_interesting_things_happen_often_enough(name: str) -> None:
    assert shares()[name] >= BOUNDS[name]


def test_sequences_differ_and_are_long_enough() -> None:
    assert shares()["different"] >= 0.6
    made = sequences(7)
    assert len(made) == SEQUENCES
    lengths = sorted(len(commands) for commands in made)
    assert lengths[len(lengths) // 2] >= STEPS // 2, "the median"


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_equal_seeds_make_equal_commands(dialect: str) -> None:
    once = sequences(3, dialect, 15)
    sequences.cache_clear()
    again = sequences(3, dialect, 15)
    assert once is not again
    assert once == again
    assert sequences(4, dialect, 15) != once


def test_commands_are_printable_and_tags_mean_deliveries() -> None:
    """What the search makes can be written to a file, read back, and shrunk."""
    for commands in sequences(7)[:40]:
        for command in commands:
            assert parse_command(str(command)) == command
        dialect = dialect_named("rabbitmq-4.3")
        assert list(_written(_meant(commands, dialect), dialect)) == list(commands), "nothing left out, nothing changed"


def test_the_search_uses_no_body_twice() -> None:
    """So a body says which message it is. (What is a piece of a body only, may be equal.)"""
    for commands in sequences(7):
        contents = [each.content for each in commands if each.content and each.method == "basic.publish"]
        bodies = [content.body for content in contents if content.body]
        assert len(bodies) == len(set(bodies))


def _methods(made: Sequence[Sequence[Command]]) -> set[str]:
    return {command.method for commands in made for command in commands}


def test_every_method_of_the_chapters_is_made() -> None:
    assert _methods(sequences(7)) >= {
        "basic.ack", "basic.cancel", "basic.consume", "basic.get", "basic.nack", "basic.publish", "basic.qos",
        "basic.recover", "basic.recover-async", "channel.close", "channel.open", "confirm.select",
        "connection.close", "connection.open", "exchange.bind", "exchange.declare", "exchange.delete",
        "exchange.unbind", "frame.body", "frame.header", "frame.method", "frame.other", "queue.bind", "queue.declare",
        "queue.delete", "queue.purge", "queue.unbind", "socket.abort", "tx.commit", "tx.rollback", "tx.select",
    }  # fmt: skip
