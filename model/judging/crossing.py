"""Publishes that cross each other: taken as processed at once, as long as nobody can see in which order they were.

Publishes of several channels may be processed in any order, and to follow each order multiplies. Into a plain queue it
makes no difference: what is published is on its way there until something shows that it has come (`Arrival`), and of
several channels' messages on their way either may be the first (`Message.transit_group`). So the explanation that has
processed all of them permits what each other one permits, and is the only one that is followed. An acknowledgement
stays under way until what comes needs the room that it makes.

That holds as long as nothing else is sent that could come between them. So a copy of the explanation before the first
one is kept, with all that was seen since: where something else is sent, or something comes that is not right, the same
is judged again from there, in every order. Whatever is wrong is found and worded there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.internal_events import Input, lane_of
from amqpspec.model.broker.queues import Queue
from amqpspec.model.judging.defects_followed import DefectsFollowed
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.known_outputs import observe_as_known
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method, TraceEvent
from amqpspec.model.rules.basic.publish import routes_of
from amqpspec.model.rules.extensions.message_expiry import AHEAD

PUBLISH, ACK = "basic.publish", "basic.ack"
#: What comes of publishes and acknowledgements.
_COMES = frozenset({"basic.deliver", "basic.ack", "basic.nack"})
#: Arguments of queues that change nothing of what comes of a publish.
_PLAIN_ARGUMENTS = frozenset(
    {"x-queue-type", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-delivery-limit"}
)
#: Properties by which messages are treated differently.
_TREATED = frozenset({"expiration", "priority", "user_id", "reply_to"})
#: Headers by which messages are routed.
_ROUTED = frozenset({"CC", "BCC"})


@dataclass(frozen=True, slots=True)
class SeenFrame:
    """A frame that was sent or came, to be judged again: with the command of that time, and whether the next input was
    sent without waiting for what this one brings about.
    """

    event: TraceEvent
    command: str
    overlapping: bool


@dataclass(slots=True)
class Crossing:
    """What crosses now, by the one explanation that is followed; `before`: None where nothing does."""

    defects: DefectsFollowed
    before: Explanation | None = None
    frames: list[SeenFrame] = field(default_factory=list)
    #: it is judged again: every order is followed
    is_again: bool = False

    def begins(self, explanations: list[Explanation], event: TraceEvent) -> bool:
        """Can the input be taken as processed at once from here on? Then a copy of the explanation is kept."""
        if self.is_again or event.name != PUBLISH or len(explanations) > 1:
            return False
        only = explanations[0]
        if only.pending or only.is_unusual or only.defect is not None or not _owes_nothing_else(only.broker):
            return False
        if not self.takes(only, event):
            return False
        self.before = only.fork()
        return True

    def takes(self, explanation: Explanation, event: TraceEvent) -> bool:
        """Does the input go on as what crosses here?"""
        if not isinstance(event, Method) or not _is_plain(explanation.broker, event):
            return False
        if event.name == ACK:
            return _is_of_one_held(explanation, event)
        if event.name != PUBLISH or not _comes_to_plain_queues(explanation.broker, event):
            return False
        if any(explanation.may_be_defective(each, event) for each in self.defects.of_kind(PUBLISH)):
            return False
        return not explanation.alternatives(event)

    def send(self, explanation: Explanation, event: TraceEvent) -> bool:
        """The input is sent. False: it is not as it was taken for, and all is to be judged again."""
        if not explanation.broker.bookkeeping.counting:
            explanation.uncounted.append(event)
        if event.name == PUBLISH:
            lane = lane_of(event)
            while (index := _first_of(explanation, lane)) is not None:
                explanation.process_pending(index)
        explanation.pending.append(event)
        if event.name == PUBLISH:
            explanation.process_pending(len(explanation.pending) - 1)
        return _has_only_acknowledgements(explanation)

    def receive(self, explanation: Explanation, event: TraceEvent) -> Explanation | None:
        """The explanation behind the frame that came; None: all is to be judged again."""
        if event.name not in _COMES or explanation.broker.next_timeout <= event.time + AHEAD:
            return None
        lane = lane_of(event)
        while (index := _first_of(explanation, lane)) is not None:
            tried = explanation.fork()
            if not observe_as_known(tried.broker, event, self.defects):
                return tried
            explanation.process_pending(index)
        if observe_as_known(explanation.broker, event, self.defects):
            return None
        return explanation if _has_only_acknowledgements(explanation) else None

    def has_come(self, explanation: Explanation) -> bool:
        """Has everything that crossed been shown to have been processed, but for acknowledgements?"""
        return not any(queue.unproven for queue in explanation.broker.queues.values())

    def is_quiet_behind(self, explanation: Explanation) -> bool:
        """Has everything been processed, and is nothing owed?"""
        return not explanation.pending and explanation.is_quiet

    def note(self, event: TraceEvent, command: str, overlapping: bool) -> None:
        self.frames.append(SeenFrame(event, command, overlapping))

    def end(self) -> None:
        self.before = None
        self.frames = []


def _is_plain(broker: Broker, event: Method) -> bool:
    """Is nothing going on in the broker but what clients send on channels that are open?"""
    if not broker.dialect.extensions or broker.has_open or broker.has_doubts or broker.ageing or broker.expiring:
        return False
    if broker.failed or broker.down_by or broker.alarm or broker.paused or broker.shaken or broker.is_unsteady:
        return False
    if broker.deleted_of_late or broker.known_before_deletion or broker.next_timeout <= event.time + AHEAD:
        return False
    connection = broker.connections.get(event.connection)
    if connection is None or connection.state is not ConnectionState.OPEN or connection.blocked or connection.held:
        return False
    channel = broker.channels.get((event.connection, event.channel))
    return channel is not None and channel.state is ChannelState.OPEN and channel.transaction is None


def _owes_nothing_else(broker: Broker) -> bool:
    """Are confirms and deliveries all that may come?"""
    return all(number and not broker.channels[(name, number)].owed for name, number in broker.debtors)


def _comes_to_plain_queues(broker: Broker, event: Method) -> bool:
    arguments, content = event.arguments, event.content
    exchange = broker.exchanges.get(arguments.get("exchange", ""))
    if content is None or exchange is None or exchange.internal or exchange.survived:
        return False
    if arguments.get("mandatory") or arguments.get("immediate"):
        return False
    properties = content.properties
    if not _TREATED.isdisjoint(properties) or not _ROUTED.isdisjoint(properties.get("headers") or ()):
        return False
    routes = routes_of(broker, exchange, arguments.get("routing_key", ""), content)
    if not routes.queues or routes.perhaps or routes.open_by:
        return False
    return all(map(_is_a_plain_one, routes.queues))


def _is_a_plain_one(queue: Queue) -> bool:
    if queue.type is QueueType.STREAM or queue.reply_address or queue.single_active_consumer or queue.dropping:
        return False
    if queue.is_down or queue.mirrors or queue.behind_since is not None or len(queue.consumers) > 1:
        return False
    return _PLAIN_ARGUMENTS.issuperset(queue.arguments) and _PLAIN_ARGUMENTS.issuperset(queue.in_force)


def _is_of_one_held(explanation: Explanation, event: Method) -> bool:
    """Does the acknowledgement name a delivery that is held, whatever is under way?"""
    channel: Channel = explanation.broker.channels[(event.connection, event.channel)]
    tag = event.arguments.get("delivery_tag", 0)
    entry = channel.unacknowledged.get(tag)
    if entry is None or channel.timed_out:
        return False
    lane = lane_of(event)
    for other in explanation.pending:
        if isinstance(other, Method) and lane_of(other) == lane:
            earlier = other.arguments.get("delivery_tag", 0)
            if earlier == tag or (earlier > tag and other.arguments.get("multiple")):
                return False
    return True


def _first_of(explanation: Explanation, lane: object) -> int | None:
    """The place of the first input of that channel that is under way."""
    return next((place for place, each in enumerate(explanation.pending) if lane_of(each) == lane), None)


def _has_only_acknowledgements(explanation: Explanation) -> bool:
    return all(map(_is_acknowledgement, explanation.pending)) and not explanation.broker.teardowns


def _is_acknowledgement(event: Input) -> bool:
    return isinstance(event, Method) and event.name == ACK
