"""What must hold in every state, and for every step: each property has a name and a sentence.

A property looks at positions and at the frames of a step, and counts for itself: it asks no rule that it checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from amqpspec.conformance.explore.position import Position, Step
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.outputs.debts import debts
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import TraceEvent

#: Looks at the position behind, and gives what is wrong, in a sentence each.
Check = Callable[[Position, Step, Position], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Property:
    name: str
    sentence: str
    check: Check


def wrong(before: Position, step: Step, after: Position) -> Iterator[tuple[Property, str]]:
    """The properties that the step violates, and how."""
    for each in PROPERTIES:
        for what in each.check(before, step, after):
            yield each, what


# ------------------------------------------------------------------------------------------ where messages are

#: A message of a queue: the name of the queue, when it was made, and the body.
Place = tuple[str, bytes]


def _places(broker: Broker) -> Counter[Place]:
    """Where the messages are that are there: ready, or with a client."""
    found: Counter[Place] = Counter()
    for queue in broker.queues.values():
        found.update((queue.name, message.content.body) for message in (*queue.messages, *queue.log))
    for channel in broker.channels.values():
        for entry in channel.unacknowledged.values():
            if entry.queue.type is not QueueType.STREAM and not entry.queue.deleted:
                found[(entry.queue.name, entry.message.content.body)] += 1
    return found


def _gone(broker: Broker) -> Counter[Place]:
    """What has left its queue for good by a rule that is named."""
    found: Counter[Place] = Counter()
    for queue in broker.queues.values():
        found.update((queue.name, each.body) for each in queue.gone)
    return found


def _places_of(position: Position) -> tuple[Counter[Place], Counter[Place]]:
    """Both, looked for once: a position is behind one step and before others."""
    if position.places is None:
        position.places = _places(position.broker), _gone(position.broker)
    return position.places


def _one_place(before: Position, step: Step, after: Position) -> Iterator[str]:
    (were, had_gone), (are, have_gone) = _places_of(before), _places_of(after)
    for place in were:
        lost = were[place] - are[place]
        is_told = place[0] not in after.broker.queues or have_gone[place] - had_gone[place] >= lost
        if lost > 0 and not is_told and not _may_be_lost(before, step, place):
            yield f"{_text(place)} was there, and no rule says what became of it"
    for place in are:
        more = are[place] - were[place]
        if more > 0 and not _may_come(before, step, after, place):
            yield f"{_text(place)} is there {are[place]} times, before {were[place]} times"
    for queue in after.broker.queues.values():
        ids = Counter(id(message) for message in queue.messages)
        for channel in after.broker.channels.values():
            for entry in channel.unacknowledged.values():
                if entry.queue is queue and queue.type is not QueueType.STREAM:
                    ids[id(entry.message)] += 1
        if any(times > 1 for times in ids.values()):
            yield f"a message of {queue.name} is in two places"


def _text(place: Place) -> str:
    return f"{place[1].decode(errors='replace')} of {place[0]}"


def _may_be_lost(before: Position, step: Step, place: Place) -> bool:
    """A fault takes what does not survive it, and what is not known to be there need not be there."""
    if "broker.restart" in step.text or "broker.kill" in step.text or "broker.stop" in step.text:
        return True
    messages = [*before.broker.queues[place[0]].messages, *_held(before.broker, place[0])]
    return any(m.content.body == place[1] and (m.may_be_absent or m.may_be_gone or m.may_be_late) for m in messages)


def _held(broker: Broker, name: str) -> list[Message]:
    entries = (entry for channel in broker.channels.values() for entry in channel.unacknowledged.values())
    return [entry.message for entry in entries if entry.queue.name == name]


#: What brings messages into queues.
_BRINGS = ("basic.publish", "tx.commit", "frame.header", "frame.body")


def _may_come(before: Position, step: Step, after: Position, place: Place) -> bool:
    """Was it published in this step, or is it a dead letter, or has it come back when a doubt was resolved?"""
    if any(each.name in _BRINGS for each in step.frames if each.sent) or "broker." in step.text:
        return True
    if any(each.name.startswith("operator.") for each in step.frames):
        return True  # what an alarm has held back goes on
    name, body = place
    queue = after.broker.queues[name]
    messages = [*queue.messages, *queue.log, *_held(after.broker, name)]
    if any(m.content.body == body and (m.deaths or m.content.properties.get("headers")) for m in messages):
        return True
    earlier = before.broker.queues.get(name)
    return earlier is not None and any(each.message.content.body == body for each in earlier.dropping)


# ------------------------------------------------------------------------------------------------------- limits


def _limits(before: Position, step: Step, after: Position) -> Iterator[str]:
    for event, channel in _delivered(step, after):
        consumer = channel.consumers.get(event.arguments["consumer_tag"])
        if consumer is None:
            continue
        held = sum(entry.consumer is consumer for entry in channel.unacknowledged.values())
        if held != consumer.outstanding:
            yield f"{consumer.tag} holds {held} deliveries, and {consumer.outstanding} are counted"
        if 0 < consumer.prefetch < held:
            yield f"{consumer.tag} may hold {consumer.prefetch} deliveries, and holds {held}"
        limit = channel.channel_prefetch
        earlier = before.broker.channels[channel.key]
        is_shared = consumer.queue.type is QueueType.CLASSIC and not consumer.no_ack
        if limit and is_shared and not earlier.under_way:
            mine = sum(
                entry.consumer is not None and entry.queue.type is QueueType.CLASSIC
                for entry in channel.unacknowledged.values()
            )
            credited = len(channel.transaction.credited) if channel.transaction is not None else 0
            if mine - credited > limit:
                yield f"channel {channel.key[0]}.{channel.key[1]} may hold {limit} deliveries, and holds {mine}"


def _delivered(step: Step, after: Position) -> Iterator[tuple[TraceEvent, Channel]]:
    for event in step.frames if step.kind == "output" else ():
        if event.name == "basic.deliver":
            yield event, after.broker.channels[(event.connection, event.channel)]


# --------------------------------------------------------------------------------------------------------- tags


def _tags(before: Position, step: Step, after: Position) -> Iterator[str]:
    if not after.broker.dialect.extensions:
        return  # in the text numbers may be left out
    for event in step.frames if step.kind == "output" else ():
        key = (event.connection, event.channel)
        if event.name in ("basic.deliver", "basic.get-ok"):
            tag, expected = event.arguments["delivery_tag"], before.broker.channels[key].next_tag
            behind = after.broker.channels[key].next_tag
            if tag != expected or behind != tag + 1:
                yield f"delivery-tag {tag} where {expected} is next, and {behind} then"
    for key, channel in after.broker.channels.items():
        held = list(channel.unacknowledged)
        if held != sorted(held) or any(not 0 < tag < channel.next_tag for tag in held):
            yield f"{key[0]}.{key[1]} holds the tags {held}, and {channel.next_tag} is next"
        earlier = before.broker.channels.get(key)
        is_same = earlier is not None and earlier.state is channel.state and step.kind != "output"
        if is_same and earlier is not None and earlier.next_tag != channel.next_tag and not _opens(step):
            yield f"{step.text} changes the next tag of {key[0]}.{key[1]}"


def _opens(step: Step) -> bool:
    return any(each.name in ("channel.open", "connection.open") for each in step.frames) or "broker." in step.text


# ----------------------------------------------------------------------------------------------------- confirms


def _confirms(before: Position, step: Step, after: Position) -> Iterator[str]:
    for key, channel in after.broker.channels.items():
        earlier = before.broker.channels.get(key)
        if earlier is None or earlier.state is not ChannelState.OPEN or channel.state is not ChannelState.OPEN:
            continue
        were, are = set(earlier.unconfirmed), set(channel.unconfirmed)
        own = [each for each in step.frames if (each.connection, each.channel) == key]
        confirming = [each for each in own if step.kind == "output" and each.name in ("basic.ack", "basic.nack")]
        if not confirming and were - are and not _opens(step):
            yield f"publishes {sorted(were - are)} wait for their confirm no more, and none was sent"
        for event in confirming:
            tag, multiple = event.arguments["delivery_tag"], event.arguments.get("multiple")
            said = {number for number in were if number == tag or (multiple and number <= tag)}
            if not said or said != were - are:
                yield f"{event} settles {sorted(were - are)} of {sorted(were)}"
        new = are - were
        published = [each for each in own if step.kind == "input" and each.name == "basic.publish"]
        if new and (new != {earlier.published + 1} or not published):
            yield f"publishes {sorted(new)} wait for their confirm, and {earlier.published} were published before"
        if published and earlier.confirming and not new and step.kind == "input":
            yield "a publish waits for no confirm"
    if after.is_quiet:
        for key, channel in after.broker.channels.items():
            if channel.unconfirmed and not any(queue.behind_since for queue in after.broker.queues.values()):
                yield f"all is quiet, and {key[0]}.{key[1]} waits for the confirm of {sorted(channel.unconfirmed)}"


def _returns(before: Position, step: Step, after: Position) -> Iterator[str]:
    for event in step.frames:
        key = (event.connection, event.channel)
        channel, earlier = after.broker.channels.get(key), before.broker.channels.get(key)
        if channel is None or earlier is None:
            continue
        owed = _returned(channel)
        if step.kind == "output" and event.name == "basic.ack":
            tag, multiple = event.arguments["delivery_tag"], event.arguments.get("multiple")
            if any(each == tag or (multiple and 0 < each <= tag) for each in owed):
                yield f"{event} comes before what it confirms is returned"
        elif step.kind == "output" and event.name == "basic.return":
            if len(owed) != len(_returned(earlier)) - 1:
                yield f"{event} is not owed, or more than once"
        elif step.kind == "input" and event.name == "basic.publish" and channel.state is ChannelState.OPEN:
            more = len(owed) - len(_returned(earlier))
            nowhere = event.arguments.get("mandatory") and not _reached(before, after, event)
            is_taken = earlier.state is ChannelState.OPEN and earlier.transaction is None and event.content is not None
            if is_taken and more != int(bool(nowhere)):
                yield f"{event} makes {more} returns"


def _returned(channel: Channel) -> list[int]:
    return [each.publish for each in channel.owed if isinstance(each, Expected) and each.method == "basic.return"]


def _reached(before: Position, after: Position, event: TraceEvent) -> bool:
    """Has any queue been given it, taken or not?"""
    assert event.content is not None
    body = event.content.body
    for queue in after.broker.queues.values():
        gone = any(each.body == body for each in queue.gone)
        if gone or any(message.content.body == body for message in (*queue.messages, *queue.log)):
            return True
    channel = after.broker.channels[(event.connection, event.channel)]
    return bool(channel.unconfirmed.get(channel.published))


# -------------------------------------------------------------------------------------------------- what is owed


def _quiet(before: Position, step: Step, after: Position) -> Iterator[str]:
    owed = next(permitted(after.broker), None)
    if after.broker.quiet and owed is not None:
        yield f"all is quiet, and {owed} is owed"
    if not after.broker.quiet and not any(debts(after.broker)) and not after.broker.failed:
        yield "something is owed, and nothing says what"


def _served(before: Position, step: Step, after: Position) -> Iterator[str]:
    if not after.is_quiet or after.broker.failed or after.broker.down_by:
        return
    for queue in after.broker.queues.values():
        if queue.type is QueueType.STREAM or not queue.messages or queue.open_by:
            continue
        if all(message.may_be_absent or message.may_be_late for message in queue.messages):
            continue
        for channel in after.broker.channels.values():
            for consumer in channel.consumers.values():
                if consumer.queue is queue and _has_room(after.broker, queue, channel, consumer.tag):
                    yield f"all is quiet, {queue.name} has messages, and {consumer.tag} has room"


def _has_room(broker: Broker, queue: Queue, channel: Channel, tag: str) -> bool:
    consumer = channel.consumers[tag]
    if channel.key in broker.paused or consumer.timed_out or channel.state is not ChannelState.OPEN:
        return False
    if queue.single_active_consumer and (queue.active.consumer is not consumer or queue.active.is_quiescing):
        return False
    held = sum(entry.consumer is consumer for entry in channel.unacknowledged.values())
    if 0 < consumer.prefetch <= held:
        return False
    limit = channel.channel_prefetch
    is_shared = queue.type is QueueType.CLASSIC and not consumer.no_ack
    return not (limit and is_shared and len(channel.unacknowledged) >= limit)


def _nobody(before: Position, step: Step, after: Position) -> Iterator[str]:
    for event in step.frames if step.kind == "output" else ():
        channel = before.broker.channels.get((event.connection, event.channel))
        if event.name != "basic.deliver" or channel is None:
            continue
        tag = event.arguments["consumer_tag"]
        consumer = channel.consumers.get(tag)
        if consumer is not None and consumer.announced and channel.state is ChannelState.OPEN:
            continue
        under_way = tag in channel.may_still_be_served or any(lost.consumer.tag == tag for lost in channel.lost)
        if not under_way:
            yield f"{event}: nobody consumes by that tag"
        elif not _end_is_owed(before.broker, channel, tag) and before.is_quiet:
            yield f"{event}: its end was seen"


def _end_is_owed(broker: Broker, channel: Channel, tag: str) -> bool:
    connection = broker.connections[channel.connection]
    return bool(channel.owed or connection.owed or tag in channel.may_still_be_served)


def _back(before: Position, step: Step, after: Position) -> Iterator[str]:
    """What a client held and is ready now says that it was delivered."""
    held = {
        (entry.queue.name, entry.message.content.body)
        for channel in before.broker.channels.values()
        for entry in channel.unacknowledged.values()
        if entry.queue.type is not QueueType.STREAM
    }
    if not held or "broker." in step.text or any(each.name in _BRINGS for each in step.frames):
        return
    ready = {(queue.name, each.content.body) for queue in before.broker.queues.values() for each in queue.messages}
    for queue in after.broker.queues.values():
        for message in queue.messages:
            place = (queue.name, message.content.body)
            if place in held and place not in ready and not message.redelivered and not message.deaths:
                yield f"{_text(place)} was given back, and is not to be redelivered"


# ------------------------------------------------------------------------------------------------------- errors


def _errors(before: Position, step: Step, after: Position) -> Iterator[str]:
    closed = [
        key
        for key, channel in after.broker.channels.items()
        if key in before.broker.channels
        and before.broker.channels[key].state is ChannelState.OPEN
        and channel.state is not ChannelState.OPEN
    ]
    if not closed or "broker." in step.text or "operator." in step.text:
        return
    ended = {
        name
        for name, connection in after.broker.connections.items()
        if name in before.broker.connections
        and before.broker.connections[name].state is ConnectionState.OPEN
        and connection.state is not ConnectionState.OPEN
    }
    owners = {key[0] for key in closed}
    if "Teardown" in step.text:
        ended = {name for name in owners if f"'{name}'" in step.text}
    if len(ended) > 1 or (not ended and len(closed) > 1) or (ended and owners - ended):
        yield f"{step.text} closes {', '.join(f'{name}.{number}' for name, number in closed)}"
    for key, channel in after.broker.channels.items():
        earlier = before.broker.channels.get(key)
        is_other = earlier is not None and key not in closed and not _loses_queue(before, after)
        if earlier is not None and is_other and _what_it_has(earlier) != _what_it_has(channel):
            yield f"{step.text} changes what {key[0]}.{key[1]} has"


def _what_it_has(channel: Channel) -> tuple[object, ...]:
    return list(channel.unacknowledged), sorted(channel.consumers), sorted(channel.unconfirmed), channel.state


def _loses_queue(before: Position, after: Position) -> bool:
    """A queue that ends with it takes its consumers along."""
    return bool(before.broker.queues.keys() - after.broker.queues.keys())


PROPERTIES: Sequence[Property] = (
    Property(
        "one place",
        "Every accepted message is in exactly one place: ready, with a client, settled, dead-lettered, or dropped by a"
        " rule that has a name.",
        _one_place,
    ),
    Property("limits", "No consumer or channel holds more than its limit, but by the rule that allows it.", _limits),
    Property(
        "tags",
        "The delivery tags of a channel are 1, 2, 3, … without gap (the text lets a broker leave out numbers).",
        _tags,
    ),
    Property("confirms", "Each publish in confirm mode is settled once, by a frame that says so.", _confirms),
    Property("returns", "A mandatory message that reaches no queue is returned once, before its confirm.", _returns),
    Property("quiet", "A quiet state owes nothing, and of any other it is said what it owes.", _quiet),
    Property("served", "In a quiet state no message waits while a consumer has room.", _served),
    Property("nobody", "Nothing is delivered to whom was cancelled, or whose channel is closed.", _nobody),
    Property("given back", "What was given back can be delivered again, and says that it was delivered.", _back),
    Property("errors", "An error closes what it says, and changes nothing of anybody else.", _errors),
)  # fmt: skip


#: The properties that are not of single steps, with their sentences.
SAME, COPIED, AGREED, JUDGED, BLAMELESS = "same", "copied", "agreed", "judged", "blameless"
SERVED, COMES_TO_REST, SOUND = "served alone", "comes to rest", "sound"
OTHERS = {
    SAME: "States that compare as equal permit the same outputs and have equal successors.",
    COPIED: "A state that was copied and gone on from is as one that was never copied.",
    BLAMELESS: "A state that forgets at each step what only words failures is as one that keeps it.",
    AGREED: "What is enumerated as permitted is accepted, and a quiet state accepts nothing.",
    JUDGED: "What the model permits the judge accepts, and the judge of the open world as well.",
    SERVED: "The embedded broker does only what is permitted.",
    SOUND: "No rule breaks down over anything that a client may send or the broker does.",
    COMES_TO_REST: "From every state a quiet one is reached without any further input.",
}


def sentences() -> dict[str, str]:
    """The sentence of each property, by its name."""
    return {each.name: each.sentence for each in PROPERTIES} | OTHERS


def sentence_of(name: str) -> str:
    return sentences()[name]
