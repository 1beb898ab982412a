"""Who is served: priorities, turns and the single active consumer, where the broker's frames may come in any order."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.versions import RABBITMQ
from tests.model.judging.test_acceptor import ANOTHER, Conversation

SINGLE = "x-single-active-consumer=true"
QUORUM = "durable x-queue-type=quorum"


def conversation(options: str = "", dialect: str = "rabbitmq-4.3", product: str = RABBITMQ) -> Conversation:
    talk = Conversation(dialect, product=product).send(f"a.1 queue.declare q {options}")
    return talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()


def consume(talk: Conversation, channel: str, tag: str, *options: str) -> Conversation:
    talk.send(f"{channel} basic.consume q tag={tag} {' '.join(options)}")
    return talk.see(channel, "basic.consume-ok", consumer_tag=tag).rest()


def limit(talk: Conversation, channel: str, count: int | str) -> Conversation:
    return talk.send(f"{channel} basic.qos {count}").see(channel, "basic.qos-ok").rest()


def two(*options: str, limits: tuple[int, int] = (0, 0)) -> Conversation:
    """Consumers of low priority on a.1 and of high priority on b.1."""
    talk = limit(limit(conversation(*options), "a.1", limits[0]), "b.1", limits[1])
    return consume(consume(talk, "a.1", "low"), "b.1", "high", "x-priority=1")


def test_the_lower_priority_gets_what_the_higher_has_no_room_for() -> None:
    talk = two(limits=(0, 1)).send("c.1 basic.publish q body=m1").deliver("b.1", 1, "m1", consumer="high").rest()
    talk.send("c.1 basic.publish q body=m2").deliver("a.1", 1, "m2", consumer="low").rest()
    assert talk.acceptor.failures == []
    assert talk.acceptor.exercised["PRIORITY-001"] == 2


def test_the_lower_priority_is_served_first() -> None:
    talk = two().send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1", consumer="low")
    assert talk.failure.requirement == "PRIORITY-001"


def test_what_the_higher_priority_was_handed_may_be_seen_later() -> None:
    talk = two(limits=(0, 1)).send("c.1 basic.publish q body=m1", "c.1 basic.publish q body=m2")
    talk.deliver("a.1", 1, "m2", consumer="low").deliver("b.1", 1, "m1", consumer="high").rest()
    assert talk.acceptor.failures == []


def test_two_messages_are_too_few_to_fill_the_higher_priority() -> None:
    talk = two(limits=(0, 2)).send("c.1 basic.publish q body=m1", "c.1 basic.publish q body=m2")
    assert talk.deliver("a.1", 1, "m2", consumer="low").failure.requirement == "PRIORITY-001"


def test_room_by_a_settlement_is_not_certain_before_all_is_at_rest() -> None:
    talk = two(limits=(0, 1)).send("c.1 basic.publish q body=m1").deliver("b.1", 1, "m1", consumer="high").rest()
    talk.send("b.1 basic.ack 1", "c.1 basic.publish q body=m2")
    on_its_way, at_rest = talk.fork(), talk.fork()
    assert on_its_way.deliver("a.1", 1, "m2", consumer="low").acceptor.failures == []
    at_rest.deliver("b.1", 2, "m2", consumer="high").rest().send("b.1 basic.ack 2").rest()
    at_rest.send("c.1 basic.publish q body=m3").deliver("a.1", 1, "m3", consumer="low")
    assert at_rest.failure.requirement == "PRIORITY-001"


def test_nobody_is_served_when_the_higher_priority_is_full() -> None:
    talk = two(limits=(0, 1)).send("c.1 basic.publish q body=m1").deliver("b.1", 1, "m1", consumer="high").rest()
    assert talk.send("c.1 basic.publish q body=m2").rest().failure.requirement == "PRIORITY-001"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_turns_begin_with_either_and_none_has_two(order: str) -> None:
    talk = consume(consume(conversation(), "a.1", "t"), "b.1", "t")
    for number, connection in enumerate(order, 1):
        talk.send(f"c.1 basic.publish q body=m{number}").deliver(f"{connection}.1", 1, f"m{number}").rest()
    assert talk.acceptor.failures == []
    assert talk.acceptor.exercised["PRIORITY-002"] == 1
    talk.send("c.1 basic.publish q body=m3").deliver(f"{order[1]}.1", 2, "m3")
    assert talk.failure.requirement == "PRIORITY-002"


def test_messages_that_come_together_show_no_turns() -> None:
    talk = consume(consume(conversation(), "a.1", "t"), "b.1", "t")
    talk.send("c.1 basic.publish q body=m1", "c.1 basic.publish q body=m2", "c.1 basic.publish q body=m3")
    talk.deliver("a.1", 1, "m1").deliver("a.1", 2, "m3").deliver("b.1", 1, "m2").rest()
    assert talk.acceptor.failures == []


def test_who_came_first_is_active() -> None:
    talk = consume(consume(conversation(SINGLE), "a.1", "t"), "b.1", "t").send("c.1 basic.publish q body=m1")
    served, other = talk.fork().deliver("a.1", 1, "m1").rest(), talk.deliver("b.1", 1, "m1")
    assert served.acceptor.failures == []
    assert other.failure.requirement == "SAC-001"


def cancelled(dialect: str, options: str) -> Conversation:
    """The active consumer is gone; two wait, of which the newer has the higher priority."""
    talk = consume(conversation(f"{options} {SINGLE}", dialect), "a.1", "t", "x-priority=5")
    talk = consume(consume(talk, "b.1", "t"), "c.1", "t", "x-priority=1")
    talk.send("a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    return talk.send("a.1 basic.publish q body=m1")


@pytest.mark.parametrize(
    ("dialect", "options", "successor"),
    [
        ("rabbitmq-3", "", "c"),
        ("rabbitmq-3", QUORUM, "b"),
        ("rabbitmq-4.0", QUORUM, "c"),
        ("rabbitmq-4.3", QUORUM, "c"),
        ("rabbitmq-4.3", "", "c"),
    ],
)
def test_who_follows_a_cancelled_one(dialect: str, options: str, successor: str) -> None:
    talk = cancelled(dialect, options)
    other = "b" if successor == "c" else "c"
    wrong = talk.fork().deliver(f"{other}.1", 1, "m1")
    assert wrong.failure.requirement == "SAC-002"
    assert talk.fork().rest().failure.requirement == "SAC-002", "nobody follows"
    talk.deliver(f"{successor}.1", 1, "m1").rest()
    assert talk.acceptor.failures == []
    assert talk.acceptor.exercised["SAC-002"] == 1


def test_what_the_lost_one_held_comes_first() -> None:
    talk = limit(conversation(SINGLE), "a.1", 1)
    talk = consume(consume(talk, "a.1", "t"), "b.1", "t")
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("c.1 basic.publish q body=m2").send("a.1 channel.close").see("a.1", "channel.close-ok")
    assert talk.fork().deliver("b.1", 1, "m2").failure.requirement == "SAC-003"
    talk.deliver("b.1", 1, "m1", redelivered=True).deliver("b.1", 2, "m2").rest()
    assert talk.acceptor.failures == []
    assert talk.acceptor.exercised["SAC-003"] == 1


def held_when_higher_comes() -> Conversation:
    """The active consumer on a.1 holds m1 when one of higher priority comes on b.1."""
    talk = consume(conversation(f"{QUORUM} {SINGLE}"), "a.1", "t")
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    return consume(talk, "b.1", "t", "x-priority=1")


def test_the_higher_priority_takes_over_when_everything_is_settled() -> None:
    talk = held_when_higher_comes().send("c.1 basic.publish q body=m2")
    for channel, tag in (("a.1", 2), ("b.1", 1)):
        assert talk.fork().deliver(channel, tag, "m2").failure.requirement == "SAC-004"
    talk.rest().send("a.1 basic.ack 1")
    assert talk.fork().rest().failure.requirement == "SAC-004", "no consumer is active"
    talk.deliver("b.1", 1, "m2").rest()
    assert talk.acceptor.failures == []
    assert talk.acceptor.exercised["SAC-004"] == 1


def test_a_quiescing_consumer_may_still_be_seen_to_be_served() -> None:
    """m1 was handed to the active consumer before the other came, and is seen after its consume-ok."""
    talk = consume(conversation(f"{QUORUM} {SINGLE}"), "a.1", "t")
    talk.send("c.1 basic.publish q body=m1", "b.1 basic.consume q tag=t x-priority=1")
    talk.see("b.1", "basic.consume-ok", consumer_tag="t").deliver("a.1", 1, "m1").rest()
    assert talk.acceptor.failures == []
    talk.send("c.1 basic.publish q body=m2")
    assert talk.fork().deliver("a.1", 2, "m2").failure.requirement == "SAC-004"
    talk.rest().send("a.1 basic.ack 1").deliver("b.1", 1, "m2").rest()
    assert talk.acceptor.failures == []


def test_either_of_two_that_race_is_active_and_not_both() -> None:
    talk = limit(limit(conversation(SINGLE), "a.2", 0), "b.1", 0)
    talk.send("a.2 basic.consume q tag=t &", "b.1 basic.consume q tag=t")
    talk.see("a.2", "basic.consume-ok", consumer_tag="t")
    talk.see("b.1", "basic.consume-ok", consumer_tag="t").rest().send("c.1 basic.publish q body=m1")
    assert talk.acceptor.exercised["SAC-005"] == 1
    for first, second in (("a.2", "b.1"), ("b.1", "a.2")):
        race = talk.fork().deliver(first, 1, "m1").rest().send("c.1 basic.publish q body=m2")
        assert race.acceptor.failures == []
        assert race.deliver(second, 1, "m2").failure.requirement == "SAC-001"


def test_who_was_served_last_of_several_is_not_told_by_what_is_seen_last() -> None:
    talk = consume(consume(consume(conversation(), "a.1", "t"), "b.1", "u"), "c.1", "v")
    talk.send("d.1 basic.publish q body=m1", "d.1 basic.publish q body=m2", "d.1 basic.publish q body=m3")
    # the turns were t, u, v
    talk.deliver("a.1", 1, "m1").deliver("c.1", 1, "m3", consumer="v").deliver("b.1", 1, "m2", consumer="u").rest()
    talk.send("d.1 basic.publish q body=m4").deliver("a.1", 2, "m4").rest()
    talk.send("d.1 basic.publish q body=m5").deliver("b.1", 2, "m5", consumer="u").rest()
    assert talk.acceptor.failures == []
    talk.send("d.1 basic.publish q body=m6").deliver("a.1", 3, "m6")
    assert talk.failure.requirement == "PRIORITY-002"


def test_messages_of_two_channels_may_have_had_their_turns_in_either_order() -> None:
    talk = consume(consume(conversation(), "a.1", "t"), "b.1", "u")
    talk.send("c.1 basic.publish q body=m1", "d.1 basic.publish q body=m2")
    # m2 came first, and was handed to a.1
    talk.deliver("b.1", 1, "m1", consumer="u").deliver("a.1", 1, "m2").rest()
    talk.send("c.1 basic.publish q body=m3").deliver("a.1", 2, "m3").rest()
    assert talk.acceptor.failures == []


def with_a_backlog() -> Conversation:
    """The active consumer was cancelled, and the queue did not hand its successor what was ready."""
    talk = limit(conversation(f"durable {SINGLE}", "rabbitmq-3"), "a.1", 1)
    consume(consume(talk, "a.1", "t"), "b.1", "u")
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("c.1 basic.publish q body=m2").rest()
    talk.send("a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t")
    talk.acceptor.overdue()
    return talk.rest()


@pytest.mark.known_defects
def test_a_queue_that_left_its_backlog_may_serve_what_is_new_first() -> None:
    talk = with_a_backlog().send("c.1 basic.publish q body=m3").deliver("b.1", 1, "m3", consumer="u")
    assert talk.failure.defect == "cancel-leaves-backlog"
    assert talk.acceptor.broker.queues["q"].open_by


@pytest.mark.known_defects
def test_a_queue_that_left_its_backlog_may_crash() -> None:
    talk = with_a_backlog().send("c.1 basic.publish q body=m3")
    talk.see("b.1", "basic.cancel", consumer_tag="u", nowait=True).rest()
    assert talk.failure.defect == "cancel-leaves-backlog"
    assert talk.acceptor.finished, "what comes of a crash nobody can tell"


@pytest.mark.known_defects
def test_a_backlog_may_be_left_unseen_where_the_limit_of_the_channel_is_lifted() -> None:
    """By QOS-010 u, at its channel's limit, has room in fact; so neither known defect shows until the crash."""
    talk = limit(limit(conversation(f"durable {SINGLE}", "rabbitmq-3"), "a.1", "1 global"), "a.1", 1)
    consume(consume(talk, "a.1", "t"), "a.1", "u")
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("c.1 basic.publish q body=m2").rest()
    talk.send("a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    assert not talk.acceptor.failures
    talk.send("c.1 basic.publish q body=m3").see("a.1", "basic.cancel", consumer_tag="u", nowait=True)
    assert talk.failure.defect == "cancel-leaves-backlog"


@pytest.mark.known_defects
def test_a_queue_that_left_its_backlog_may_crash_over_what_comes_behind_the_barrier() -> None:
    """A queue that may or may not deliver says nothing by which a barrier could tell that the publish has arrived."""
    talk = with_a_backlog().send("c.1 basic.publish q body=m3").rest()
    talk.send("b.1 channel.close reply-code=200 reply-text=done")
    talk.see("b.1", "basic.cancel", consumer_tag="u", nowait=True)
    assert talk.failure.defect == "cancel-leaves-backlog"
    assert talk.acceptor.broker.queues["q"].open_by


def test_who_is_served_out_of_turn_is_not_among_those_who_might_have_been() -> None:
    talk = consume(consume(conversation(), "a.1", "t"), "b.1", "u")
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("c.1 basic.publish q body=m2").deliver("a.1", 2, "m2")
    assert talk.failure.requirement == "PRIORITY-002"
    assert [frame.split(" consumer-tag")[0] for frame in talk.failure.allowed] == ["b.1 < basic.deliver"]


def test_in_the_text_consumers_take_turns_only_where_priorities_are_announced() -> None:
    def out_of_turn(dialect: str) -> list[str]:
        talk = consume(consume(conversation(dialect=dialect), "a.1", "t"), "b.1", "u")
        talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
        talk.send("c.1 basic.publish q body=m2").deliver("a.1", 2, "m2").rest()
        return [failure.requirement for failure in talk.acceptor.failures]

    assert out_of_turn("amqp-0-9-1+per_consumer_qos") == []
    assert out_of_turn("amqp-0-9-1+consumer_priorities+per_consumer_qos") == ["PRIORITY-002"]


@pytest.mark.known_defects
@pytest.mark.parametrize("at_rest", [False, True])
def test_messages_may_be_on_their_way_to_the_previous_active_consumer(at_rest: bool) -> None:
    """So the queue counts them no more, until all is at rest."""
    talk = conversation(f"{QUORUM} {SINGLE}", "rabbitmq-4.0", ANOTHER)
    talk.send("c.1 confirm.select").see("c.1", "confirm.select-ok").rest()
    for number in (1, 2):
        talk.send(f"c.1 basic.publish q body=m{number}").confirm("c.1", number).rest()
    talk.send("a.1 basic.consume q tag=s x-priority=-1 &", "b.1 basic.qos 1").see("b.1", "basic.qos-ok")
    talk.send("b.1 basic.consume q tag=t x-priority=5").see("b.1", "basic.consume-ok", consumer_tag="t")
    talk.see("a.1", "basic.consume-ok", consumer_tag="s").deliver("a.1", 1, "m1", consumer="s")
    if at_rest:
        talk.rest()
    talk.send("c.1 queue.declare q passive")
    if not at_rest:
        talk.deliver("a.1", 2, "m2", consumer="s")
    talk.see("c.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=1)
    assert all(failure.defect for failure in talk.acceptor.failures) is not at_rest


@pytest.mark.parametrize("first", ["t no-ack", "t"])
@pytest.mark.parametrize(("limits", "successor"), [((2, 5), "u"), ((5, 2), "t"), ((0, 5), "t"), ((0, 3000), "u")])
def test_of_equal_ones_the_one_with_the_higher_limit_is_next(
    first: str, limits: tuple[int, int], successor: str
) -> None:
    talk = consume(conversation(f"{QUORUM} {SINGLE}", "rabbitmq-4.3"), "b.1", "active")
    talk = consume(limit(talk, "a.1", limits[0]), "a.1", *first.split())
    talk = consume(limit(talk, "a.1", limits[1]), "a.1", "u")
    talk.send("b.1 channel.close").see("b.1", "channel.close-ok").rest().send("c.1 basic.publish q body=m1")
    wrong = talk.fork().deliver("a.1", 1, "m1", consumer="t" if successor == "u" else "u")
    assert wrong.failure.requirement == "SAC-003"
    talk.deliver("a.1", 1, "m1", consumer=successor).rest()
    assert talk.acceptor.failures == []
