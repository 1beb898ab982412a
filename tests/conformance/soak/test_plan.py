import pytest

from amqpspec.conformance.soak.errands import declaring, deleting
from amqpspec.conformance.soak.message import Identity, content, identity_of, is_unchanged
from amqpspec.conformance.soak.plan import Style, plan_of
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.queue_types import QueueType

pytestmark = pytest.mark.quick

_NEW = dialect_named("rabbitmq-4.3")


def test_equal_seeds_make_equal_plans() -> None:
    assert plan_of(5, _NEW, "x") == plan_of(5, _NEW, "x")
    assert any(plan_of(5, _NEW, "x") != plan_of(seed, _NEW, "x") for seed in range(6, 9))


def test_each_type_of_queue_has_publishers_and_consumers() -> None:
    plan = plan_of(1, _NEW, "x")
    assert {queue.type for queue in plan.queues} == set(QueueType)
    for queue in plan.queues:
        assert any(queue.name in each.queues for each in plan.publishers)
        assert any(queue.name == each.queue for each in plan.consumers)
    assert {each.style for each in plan.consumers} == set(Style)


def test_a_broker_of_the_text_has_classic_queues_only() -> None:
    plan = plan_of(1, dialect_named("amqp-0-9-1"), "x")
    assert [queue.type for queue in plan.queues] == [QueueType.CLASSIC]
    assert not any(queue.arguments for queue in plan.queues)


def test_all_that_is_declared_is_deleted_and_begins_with_the_prefix() -> None:
    plan = plan_of(1, _NEW, "mine")
    made = {arguments[key] for name, arguments in declaring(plan) if "declare" in name for key in ("queue", "exchange")
            if key in arguments}  # fmt: skip
    gone = {arguments[key] for _, arguments in deleting(plan) for key in ("queue", "exchange") if key in arguments}
    assert made == gone
    assert all(name.startswith("mine-") for name in made)


@pytest.mark.parametrize("number", range(60))
def test_a_message_tells_who_published_it_and_whether_it_is_whole(number: int) -> None:
    identity = Identity("p3", number)
    said = content(identity, "x", "key", 2)
    body, id = said.body.decode(), said.properties["message_id"]
    assert identity_of(body) == identity
    assert is_unchanged(body, identity, "x", "key", id)
    assert not is_unchanged(body, identity, "x", "another", id)
    assert not is_unchanged(body, identity, "", "key", id)
    assert not is_unchanged(body + ".", identity, "x", "key", id)
    assert not is_unchanged(body, identity, "x", "key", None)


def test_other_bodies_are_of_no_soak() -> None:
    assert identity_of("") is None
    assert identity_of("soak p1") is None
    assert identity_of("soak p1 x 00000000 ") is None
    assert identity_of("hello p1 1 00000000 ") is None
