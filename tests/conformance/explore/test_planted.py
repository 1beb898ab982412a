"""Mistakes put into the model's steps, and the property that finds each: the table `PLANTED`.

Each is put into the rules as they are, so all who use them have it: the exploration, the judge, the embedded broker.
Those of the faulty variants that are changed steps are put into the explored broker alone (`FAULTS_FOUND`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from amqpspec.conformance.explore import along
from amqpspec.conformance.explore.properties import sentences
from amqpspec.conformance.explore.world import World
from amqpspec.model.broker import fingerprint, queue_steps
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.judging import explanation
from amqpspec.model.outputs import confirms, deliveries, observation, permitted
from amqpspec.model.rules import inputs
from amqpspec.model.rules.basic import publish, requeue, settlement
from amqpspec.targets.embedded.served_broker import ServedBroker
from tests.conformance.explore.small_worlds import (
    CANCELLED,
    CONFIRMED,
    ERRORS,
    GIVEN_BACK,
    GOT,
    LETTERS,
    violated,
    world,
)

pytestmark = pytest.mark.quick

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class Planted:
    """A mistake: how it is put in, the world in which it shows, and the property that finds it."""

    mistake: str
    plant: Callable[[Patch], None]
    world: World
    property: str


PLANTED: list[Planted] = []


def planted(mistake: str, world: World, property: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def add(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
        PLANTED.append(Planted(mistake, plant, world, property))
        return plant

    return add


@planted("a message is forgotten when it is given back", GIVEN_BACK, "one place")
def _forgotten(patch: Patch) -> None:
    patch.setattr(requeue, "_put_back", lambda *_: None)


@planted("a message is given back twice", GIVEN_BACK, "one place")
def _doubled(patch: Patch) -> None:
    right = requeue._put_back

    def twice(broker: Broker, queue: Any, message: Any, *more: Any) -> None:
        right(broker, queue, message, *more)
        queue.messages.append(message)

    patch.setattr(requeue, "_put_back", twice)


@planted("a message that is given back is not marked as redelivered", GIVEN_BACK, "given back")
def _unmarked(patch: Patch) -> None:
    right = requeue._put_back

    def unmarked(broker: Broker, queue: Any, message: Any, *more: Any) -> None:
        message.redelivered = False
        right(broker, queue, message, *more)

    patch.setattr(requeue, "_put_back", unmarked)


@planted("a delivery counts twice towards the limit", GIVEN_BACK, "limits")
def _counted_twice(patch: Patch) -> None:
    right = deliveries.note_delivery

    def twice(*arguments: Any) -> None:
        right(*arguments)
        right(*arguments)

    patch.setattr(deliveries, "note_delivery", twice)


@planted("a consumer's limit is not looked at", GIVEN_BACK, "limits")
def _no_limit(patch: Patch) -> None:
    patch.setattr(queue_steps, "own_limit_holds", lambda _: False)


@planted("a settled delivery makes no room", GIVEN_BACK, "served")
def _no_room(patch: Patch) -> None:
    right = Broker.refresh

    def refresh(broker: Broker, queue: Any) -> None:
        right(broker, queue)
        if broker.channels[("a", 1)].next_tag > 1:
            broker.deliverable.pop(queue, None)

    patch.setattr(Broker, "refresh", refresh)


@planted("a tag is left out", GIVEN_BACK, "tags")
def _tag_left_out(patch: Patch) -> None:
    right = deliveries._hand_over

    def hand_over(broker: Broker, channel: Channel, *more: Any) -> None:
        right(broker, channel, *more)
        channel.next_tag += 1

    patch.setattr(deliveries, "_hand_over", hand_over)


@planted("a confirm is lost", CONFIRMED, "confirms")
def _lost_confirm(patch: Patch) -> None:
    patch.setattr(Channel, "confirms_due", lambda _: iter(()))


@planted("a confirm without multiple settles all before it", CONFIRMED, "confirms")
def _all_before(patch: Patch) -> None:
    def confirmed(channel: Channel, method: Any) -> list[int]:
        return [number for number in channel.unconfirmed if number <= method.arguments.get("delivery_tag", 0)]

    patch.setattr(confirms, "_confirmed", confirmed)


@planted("a mandatory message is returned twice", CONFIRMED, "returns")
def _returned_twice(patch: Patch) -> None:
    right = publish._returned

    def returned(broker: Broker, channel: Channel, publication: Any) -> Any:
        channel.owed.append(right(broker, channel, publication))
        return right(broker, channel, publication)

    patch.setattr(publish, "_returned", returned)


@planted("a confirm may come before the return", CONFIRMED, "returns")
def _confirm_first(patch: Patch) -> None:
    right = confirms._not_open

    def not_open(broker: Broker, channel: Channel, method: Any, numbers: Any) -> Any:
        kept, channel.owed = channel.owed, []
        found = right(broker, channel, method, numbers)
        channel.owed = kept
        return found

    patch.setattr(confirms, "_not_open", not_open)


@planted("an answer is owed again when it has come", GOT, "comes to rest")
def _again(patch: Patch) -> None:
    right = observation.observe_get

    def observe_get(broker: Broker, channel: Channel, method: Any) -> Any:
        owed = list(channel.owed)
        found = right(broker, channel, method)
        if method.name == "basic.get-empty":
            channel.owed = owed
            broker.debtors[channel.key] = None
        return found

    patch.setattr(observation, "observe_get", observe_get)


@planted("an error ends another channel as well", ERRORS, "errors")
def _another_channel(patch: Patch) -> None:
    right = inputs.fail

    def fail(broker: Broker, channel: Channel, event: Any, error: Any) -> None:
        right(broker, channel, event, error)
        for other in broker.channels.values():
            if other is not channel and other.unacknowledged:
                other.unacknowledged.clear()

    patch.setattr(inputs, "fail", fail)


@planted("a refusal is enumerated of what no queue refused", CONFIRMED, "agreed")
def _refused(patch: Patch) -> None:
    right = permitted._confirm
    def confirm(channel: Channel, number: int, multiple: bool, refused: bool = False) -> Any:
        return right(channel, number, multiple, refused=True)

    patch.setattr(permitted, "_confirm", confirm)


@planted("an answer is enumerated with a wrong number of messages", GOT, "agreed")
def _wrong_count(patch: Patch) -> None:
    right = permitted._get_reply

    def get_reply(broker: Broker, channel: Channel, pending: Any) -> Any:
        reply = right(broker, channel, pending)
        if reply.name == "basic.get-ok":
            reply.arguments["message_count"] += 5
        return reply

    patch.setattr(permitted, "_get_reply", get_reply)


@planted("a rule breaks down over an input", GOT, "sound")
def _breaks_down(patch: Patch) -> None:
    right = explanation.process

    def process(broker: Broker, event: Any, *more: Any) -> None:
        if event.name == "queue.purge":
            raise KeyError("a queue")
        right(broker, event, *more)

    patch.setattr(explanation, "process", process)


@planted("a cancelled consumer may be served at any time", CANCELLED, "agreed")
def _served_for_ever(patch: Patch) -> None:
    right = Broker.remove_consumer

    def remove(broker: Broker, consumer: Any, requirement: str) -> None:
        right(broker, consumer, requirement)
        broker.channels[consumer.channel].may_still_be_served[consumer.tag] = consumer

    patch.setattr(Broker, "remove_consumer", remove)
    patch.setattr(Channel, "come_to_rest", lambda _: None)
    patch.setattr(Broker, "nothing_more", lambda *_: None)


@planted("a consumer that is gone is served when it is not known to be", CANCELLED, "nobody")
def _served_when_gone(patch: Patch) -> None:
    gone: dict[str, Any] = {}
    right = Broker.remove_consumer

    def remove(broker: Broker, consumer: Any, requirement: str) -> None:
        right(broker, consumer, requirement)
        gone[consumer.tag] = consumer

    patch.setattr(Broker, "remove_consumer", remove)
    def learned_from(broker: Broker, channel: Channel, method: Any) -> Any:
        consumer = gone.get(method.arguments["consumer_tag"])
        return consumer and replace(consumer, queue=broker.queues[consumer.queue.name])

    patch.setattr(deliveries, "_learned_from", learned_from)


@planted("a broker that owes a confirm is taken for quiet", CONFIRMED, "quiet")
def _quiet_too_early(patch: Patch) -> None:
    patch.setattr(Broker, "quiet", property(lambda broker: not broker.deliverable))


@planted("what was ready when a consumer gave way is not compared", world(
    ["a.1 queue.declare q durable x-queue-type=quorum x-single-active-consumer=true",
     "a.1 basic.qos 1", "a.1 basic.consume q tag=t no-ack"],
    ["b.1 basic.publish q", "a.2 basic.consume q tag=u x-priority=1"],
), "same")  # fmt: skip
def _ready_alike(patch: Patch) -> None:
    patch.setattr(fingerprint, "_before_active", lambda _: None)
    _made_anew(patch)


@planted("the next tag is not compared", world(
    ["a.1 queue.declare q durable"],
    ["2x b.1 basic.publish q", "2x a.1 basic.get q no-ack", "a.1 queue.purge q"],
), "same")  # fmt: skip
def _tags_alike(patch: Patch) -> None:
    right = fingerprint.is_compared
    patch.setattr(fingerprint, "is_compared", lambda each, way: each.name != "next_tag" and right(each, way))
    _made_anew(patch)


@planted("what clients hold is not compared with what is ready", world(
    ["a.1 queue.declare q durable", "a.1 basic.consume q tag=t"],
    ["2x b.1 basic.publish q", "a.1 basic.nack 1 multiple requeue", "a.1 basic.ack 1"],
), "same")  # fmt: skip
def _groups_alike(patch: Patch) -> None:
    patch.setattr(fingerprint, "_held_groups", lambda _: ())
    _made_anew(patch)


def _made_anew(patch: Patch) -> None:
    """Views are made once, so those that were made are put aside."""
    patch.setattr(fingerprint, "_MADE", {})
    patch.setattr(fingerprint, "_PARTS", {})


@planted("a copy shares what a channel holds", GIVEN_BACK, "copied")
def _shared(patch: Patch) -> None:
    def shallow(broker: Broker) -> Broker:
        new = copy_broker(broker)
        for key, channel in broker.channels.items():
            new.channels[key].unacknowledged = channel.unacknowledged
        return new

    patch.setattr(explanation, "copy_broker", shallow)


@planted("a copy forgets what a channel was told", CONFIRMED, "copied")
def _forgetful(patch: Patch) -> None:
    def forgetful(broker: Broker) -> Broker:
        new = copy_broker(broker)
        for channel in new.channels.values():
            channel.lowest_of_acks = 0
        return new

    patch.setattr(explanation, "copy_broker", forgetful)


@planted("what is given back is marked by what came to its queue last", GIVEN_BACK, "blameless")
def _by_blame(patch: Patch) -> None:
    right = requeue.give_back

    def give_back(broker: Broker, queue: Any, messages: Any, *rest: Any, **named: Any) -> None:
        was_published = queue.reason == "PUBLISH-002"
        right(broker, queue, messages, *rest, **named)
        for message in messages:
            message.redelivered = was_published

    patch.setattr(settlement, "give_back", give_back)


@planted("the judge goes by another dialect", LETTERS, "judged")
def _another_dialect(patch: Patch) -> None:
    right = along.dialect_named
    patch.setattr(along, "dialect_named", lambda _: right("amqp-0-9-1"))


@planted("the embedded broker looks at no limit", GIVEN_BACK, "served alone")
def _served_without_limit(patch: Patch) -> None:
    patch.setattr(ServedBroker, "has_room", lambda *_: True)


@pytest.mark.parametrize("each", PLANTED, ids=lambda each: each.mistake)
def test_each_mistake_is_found(each: Planted, monkeypatch: Patch) -> None:
    each.plant(monkeypatch)
    assert each.property in violated(each.world)


@pytest.mark.parametrize("small", {id(each.world): each.world for each in PLANTED}.values())
def test_without_a_mistake_nothing_is_found(small: World) -> None:
    assert violated(small) == set()


def test_each_property_finds_something() -> None:
    assert {each.property for each in PLANTED} == set(sentences())
