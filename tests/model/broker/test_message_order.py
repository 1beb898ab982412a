"""In which order a queue hands out messages of several priorities, and which rule is broken by another order."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.fingerprint import fingerprint
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.protocol.field_types import Int64
from tests.model.judging.test_acceptor import Conversation

CLASSIC = "a.1 queue.declare q durable"
QUORUM = "a.1 queue.declare q durable x-queue-type=quorum"


def planned(dialect: str, *lines: str) -> Plan:
    plan = Plan(dialect_named(dialect))
    for line in lines:
        plan.carry_out(parse_command(line))
    return plan


def published(*priorities: int | None, first: int = 1) -> list[str]:
    """A publish of each priority, with the bodies 1, 2, …"""
    named = ("" if priority is None else f" priority={priority}" for priority in priorities)
    return [f"a.1 basic.publish q body={number}{text}" for number, text in enumerate(named, first)]


def taken(plan: Plan) -> list[str]:
    """All ready messages, in the order in which basic.get gives them."""
    queue = plan.broker.queues["q"]
    bodies = []
    while queue.messages:
        bodies.append(queue.messages[0].content.body.decode())
        plan.carry_out(parse_command("z.1 basic.get q no-ack"))
    return bodies


@pytest.mark.parametrize(
    ("dialect", "declare", "priorities", "order"),
    [
        ("rabbitmq-4.3", f"{CLASSIC} x-max-priority=5", (0, 5, 3, 9, None, 5), "246315"),
        ("rabbitmq-3", f"{CLASSIC} x-max-priority=5", (0, 5, 3, 9, None, 5), "246315"),
        ("rabbitmq-3", f"{CLASSIC} x-max-priority=0", (None, 1, 9), "123"),
        ("rabbitmq-4.0", f"{CLASSIC} x-max-priority=0", (None, 1, 9), "231"),
        ("rabbitmq-4.3", f"{CLASSIC} x-max-priority=255", (253, 255, 254), "231"),
        ("rabbitmq-4.3", CLASSIC, (0, 5, 3, 9), "1234"),
        # from registry QUORUM-005: 9, 5, 5, 4, 3, 1, 0
        ("rabbitmq-4.3", QUORUM, (0, 5, 3, 9, 1, 4, 5), "4276351"),
        ("rabbitmq-4.3", QUORUM, (None, 3, 5, 4), "3142"),
        ("rabbitmq-4.3", QUORUM, (30, 31, 200, 32), "2341"),
        # 5, 9, 0, 5, 3, 1, 4
        ("rabbitmq-4.0", QUORUM, (0, 5, 3, 9, 1, 4, 5), "2417356"),
        # at the third turn the high one is older
        ("rabbitmq-4.0", QUORUM, (5, 5, 5, None, 5), "12354"),
        ("rabbitmq-3", QUORUM, (0, 5, 3, 9, 1, 4, 5), "1234567"),
        ("amqp-0-9-1", CLASSIC, (0, 9), "12"),
    ],
)
def test_order_of_delivery(dialect: str, declare: str, priorities: tuple[int | None, ...], order: str) -> None:
    assert "".join(taken(planned(dialect, declare, *published(*priorities)))) == order


@pytest.mark.parametrize(
    ("dialect", "declare", "order"),
    [
        ("rabbitmq-4.3", f"{CLASSIC} x-max-priority=9", "5231674"),
        ("rabbitmq-4.3", CLASSIC, "1234567"),
        # in front of all priorities, in the order of giving back
        ("rabbitmq-4.3", QUORUM, "2315674"),
        ("rabbitmq-4.0", QUORUM, "2315647"),
        # without limit: at the tail, in 4.0 as normal ones
        ("rabbitmq-4.0", f"{QUORUM} x-delivery-limit=-1", "5647231"),
        ("rabbitmq-3", QUORUM, "4567231"),
    ],
)
def test_where_a_message_of_some_priority_goes_that_is_given_back(dialect: str, declare: str, order: str) -> None:
    takes = ["b.1 basic.get q"] * 3
    plan = planned(dialect, declare, *published(5, 6, 6), *takes)
    unacknowledged = plan.broker.channels["b", 1].unacknowledged
    held = {entry.message.content.body.decode(): tag for tag, entry in unacknowledged.items()}
    returns = [f"b.1 basic.nack {held[body]} requeue" for body in "231"]
    for line in (*published(None, 7, 5, 5, first=4), *returns):
        plan.carry_out(parse_command(line))
    assert "".join(taken(plan)) == order


class Weighted:
    """rabbit_fifo_q of 4.0, word for word."""

    def __init__(self) -> None:
        self.high: deque[int] = deque()
        self.normal: deque[int] = deque()
        self.counter = 0

    def put(self, number: int, priority: int | None) -> None:
        (self.high if (priority or 0) > 4 else self.normal).append(number)

    def out(self) -> int:
        counter, self.counter = self.counter, 0 if self.counter == 2 else self.counter + 1
        if self.high and self.normal and counter == 2:
            return (self.high if self.high[0] < self.normal[0] else self.normal).popleft()
        return (self.high or self.normal).popleft()


class Strict:
    """rabbit_fifo_pq of 4.3, and rabbit_priority_queue."""

    def __init__(self, none: int, most: int) -> None:
        self.none, self.most = none, most
        self.waiting: list[tuple[int, int]] = []

    def put(self, number: int, priority: int | None) -> None:
        self.waiting.append((-min(self.none if priority is None else priority, self.most), number))

    def out(self) -> int:
        first = min(self.waiting)
        self.waiting.remove(first)
        return first[1]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("dialect", "declare", "broker"),
    [
        ("rabbitmq-4.0", QUORUM, Weighted),
        ("rabbitmq-4.3", QUORUM, lambda: Strict(4, 31)),
        ("rabbitmq-4.0", f"{CLASSIC} x-max-priority=7", lambda: Strict(0, 7)),
    ],
)
def test_any_order_of_coming_and_going(
    dialect: str, declare: str, broker: Callable[[], Weighted | Strict], seed: int
) -> None:
    draw = random.Random(seed)
    plan, other, waiting = planned(dialect, declare), broker(), 0
    for number in range(1, 80):
        if waiting and draw.random() < 0.45:
            expected = str(other.out())
            assert plan.broker.queues["q"].messages[0].content.body.decode() == expected
            plan.carry_out(parse_command("a.1 basic.get q no-ack"))
            waiting -= 1
        else:
            priority = draw.choice((None, None, 0, 3, 4, 5, 9, 31, 77))
            other.put(number, priority)
            (line,) = published(priority, first=number)
            plan.carry_out(parse_command(line))
            waiting += 1


def test_a_purged_queue_begins_its_turns_anew() -> None:
    lines = [QUORUM, *published(None, None), "a.1 basic.get q no-ack", "a.1 queue.purge q"]
    assert "".join(taken(planned("rabbitmq-4.0", *lines, *published(None, 5, 5, 5)))) == "2314"
    del lines[-1]
    assert "".join(taken(planned("rabbitmq-4.0", *lines, *published(None, 5, 5, 5, first=3)))) == "42563"


def test_whose_turn_it_is_belongs_to_the_state() -> None:
    lines = [QUORUM, "a.1 basic.publish q body=1"]
    plan = planned("rabbitmq-4.0", *lines, "a.1 basic.get q no-ack")
    copied = copy_broker(plan.broker)
    assert fingerprint(copied) == fingerprint(plan.broker)
    copied.queues["q"].turn = 2
    assert fingerprint(copied) != fingerprint(plan.broker)
    assert plan.broker.queues["q"].turn == 1


# ------------------------------------------------------------------------------------------- what is judged


def talk(declare: str, dialect: str = "rabbitmq-4.3") -> Conversation:
    """`q` is declared, and a.1 consumes one message at a time from it: body 0 at first."""
    begun = Conversation(dialect).send(declare)
    begun.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    begun.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok")
    begun.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    return begun


def handed(begun: Conversation, tag: int, body: str, priority: int | None = None) -> None:
    begun.see(
        "a.1", "basic.deliver", body, properties={} if priority is None else {"priority": priority},
        consumer_tag="t", delivery_tag=tag, redelivered=False, exchange="", routing_key="q",
    )  # fmt: skip


def arrived(begun: Conversation, count: int, consumers: int) -> None:
    """A count shows that so many messages are ready."""
    begun.rest().send("b.1 queue.declare q passive")
    begun.see("b.1", "queue.declare-ok", queue="q", message_count=count, consumer_count=consumers).rest()


@pytest.mark.parametrize("declare", [f"{CLASSIC} x-max-priority=9", QUORUM])
def test_a_lower_priority_may_go_before_a_higher_one_that_is_still_on_its_way(declare: str) -> None:
    begun = talk(declare)
    begun.send("b.1 basic.publish q body=low priority=5 &", "b.1 basic.publish q body=high priority=6")
    handed(begun, 1, "low", 5)
    assert not begun.acceptor.failures
    begun.rest().send("a.1 basic.ack 1")
    handed(begun, 2, "high", 6)
    assert not begun.rest().acceptor.failures


def test_turns_go_on_from_a_message_that_was_handed_out_before_others_came() -> None:
    begun = talk(QUORUM, "rabbitmq-4.0")
    for body, priority in (("low", 0), ("lower", 0), ("high", 9)):
        begun.send(f"b.1 basic.publish q body={body} priority={priority} &")
    begun.send("b.1 basic.publish q body=higher priority=9")
    handed(begun, 1, "low", 0)
    arrived(begun, 3, consumers=1)
    for tag, (body, priority) in enumerate((("high", 9), ("lower", 0), ("higher", 9)), 2):
        begun.send(f"a.1 basic.ack {tag - 1}")
        handed(begun, tag, body, priority)
    assert not begun.rest().acceptor.failures


@pytest.mark.parametrize("declare", [f"{CLASSIC} x-max-priority=9", QUORUM])
def test_a_message_of_the_same_channel_cannot_go_before_a_higher_one_that_was_published_earlier(declare: str) -> None:
    begun = talk(declare)
    begun.send("b.1 basic.publish q body=high priority=6 &", "b.1 basic.publish q body=low priority=5")
    handed(begun, 1, "low", 5)
    assert begun.failure.requirement in ("PRIORITY-003", "QUORUM-005")


@pytest.mark.parametrize(
    ("declare", "dialect", "waiting", "wrong", "requirement"),
    [
        (f"{CLASSIC} x-max-priority=9", "rabbitmq-4.3", (5, 6), 1, "PRIORITY-003"),
        (f"{CLASSIC} x-max-priority=9", "rabbitmq-4.3", (5, 5), 2, "PRIORITY-003"),
        (f"{CLASSIC} x-max-priority=4", "rabbitmq-4.3", (5, 6), 2, "PRIORITY-003"),
        (CLASSIC, "rabbitmq-4.3", (5, 6), 2, "PRIORITY-003"),
        (CLASSIC, "rabbitmq-4.3", (5, 5), 2, "PUBLISH-015"),
        (CLASSIC, "rabbitmq-4.3", (6, 5), 2, "PUBLISH-015"),
        (QUORUM, "rabbitmq-4.3", (5, 6), 1, "QUORUM-005"),
        (QUORUM, "rabbitmq-4.3", (5, 5), 2, "PUBLISH-015"),
        (QUORUM, "rabbitmq-4.3", (32, 40), 2, "QUORUM-005"),
        (QUORUM, "rabbitmq-4.0", (4, 5), 1, "QUORUM-005"),
        (QUORUM, "rabbitmq-4.0", (5, 6), 2, "QUORUM-005"),
        (QUORUM, "rabbitmq-3", (5, 6), 2, "QUORUM-005"),
    ],
)
def test_which_rule_a_wrong_order_breaks(
    declare: str, dialect: str, waiting: tuple[int, int], wrong: int, requirement: str
) -> None:
    begun = talk(declare, dialect)
    begun.send("b.1 basic.publish q body=0")
    handed(begun, 1, "0")
    for line in published(*waiting):
        begun.rest().send(line.replace("a.1", "b.1"))
    arrived(begun, 2, consumers=1)
    begun.send("a.1 basic.ack 1")
    handed(begun, 2, str(wrong), waiting[wrong - 1])
    assert begun.failure.requirement == requirement


@pytest.mark.parametrize(
    ("declare", "first", "other", "requirement"),
    [
        # given back to its place among equals
        (f"{CLASSIC} x-max-priority=9", 5, 5, "ACK-016"),
        (f"{CLASSIC} x-max-priority=9", 5, 3, "PRIORITY-003"),
        (CLASSIC, 5, 3, "ACK-016"),
        # given back in front, whatever the priority
        (QUORUM, 5, 5, "ACK-017"),
        (QUORUM, 5, 3, "ACK-017"),
        (QUORUM, 5, 9, "QUORUM-005"),
    ],
)
def test_which_rule_a_wrong_order_breaks_of_what_was_given_back(
    declare: str, first: int, other: int, requirement: str
) -> None:
    begun = Conversation("rabbitmq-4.3").send(declare)
    begun.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    for number, priority in enumerate((first, other), 1):
        begun.send(f"b.1 basic.publish q body={number} priority={priority}").rest()
        if number == 1:
            begun.send("a.1 basic.get q")
            begun.see(
                "a.1", "basic.get-ok", "1", properties={"priority": first},
                delivery_tag=1, redelivered=False, exchange="", routing_key="q", message_count=0,
            ).rest()  # fmt: skip
    begun.send("a.1 basic.nack 1 requeue")
    arrived(begun, 2, consumers=0)
    begun.send("a.1 basic.get q")
    begun.see(
        "a.1", "basic.get-ok", "2", properties={"priority": other},
        delivery_tag=2, redelivered=False, exchange="", routing_key="q", message_count=1,
    )  # fmt: skip
    assert begun.failure.requirement == requirement


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0"])
def test_of_what_a_transaction_publishes_and_gives_back_either_is_the_first_in_a_quorum_queue(dialect: str) -> None:
    limit = " x-delivery-limit=-1" if dialect == "rabbitmq-4.0" else ""
    talk = Conversation(dialect).send(f"{QUORUM}{limit}")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 basic.publish q body=m1").rest().send("b.1 tx.select").see("b.1", "tx.select-ok")
    counted = {"x-delivery-count": Int64(0)} if dialect == "rabbitmq-3" else {}
    talk.send("b.1 basic.get q").see(
        "b.1", "basic.get-ok", "m1", properties={"headers": counted} if counted else {},
        delivery_tag=1, exchange="", routing_key="q", message_count=0,
    )  # fmt: skip
    talk.send("b.1 basic.publish q body=m2", "b.1 basic.nack 1 requeue", "b.1 tx.commit").see("b.1", "tx.commit-ok")
    talk.send("a.1 queue.declare q passive")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=2, consumer_count=0).rest()
    talk.send("a.1 basic.get q")
    for body, properties, redelivered in (
        ("m1", {"headers": {"x-delivery-count": Int64(1)}}, True),
        ("m2", {"headers": counted} if counted else {}, False),
    ):
        either = talk.fork().see(
            "a.1", "basic.get-ok", body, properties=properties,
            delivery_tag=1, redelivered=redelivered, exchange="", routing_key="q", message_count=1,
        )  # fmt: skip
        assert either.acceptor.failures == []


@pytest.mark.parametrize(("dialect", "settled", "order"), [
    ("rabbitmq-4.3", False, "132"), ("rabbitmq-4.0", False, "132"), ("rabbitmq-4.0", True, "23"),
    ("rabbitmq-3", False, "213"),
])  # fmt: skip
def test_a_reused_tag_is_known_to_a_quorum_queue_since_its_former_consumer(
    dialect: str, settled: bool, order: str
) -> None:
    """As long as that one holds something: what the channel held comes back consumer by consumer."""
    plan = planned(
        dialect, QUORUM, "b.1 basic.qos 1", "b.1 basic.consume q tag=t", *published(None), "b.1 basic.cancel t",
        "b.1 basic.consume q tag=s", *published(None, first=2), *(["b.1 basic.ack 1"] if settled else []),
        "b.1 basic.consume q tag=t", *published(None, first=3), "b.1 channel.close",
    )  # fmt: skip
    assert "".join(taken(plan)) == order
