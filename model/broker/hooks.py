"""The places at which a guest looks at the broker's steps, or answers a question in place of the law.

The lawful broker calls these places and knows nothing of who is there: nobody, unless whoever made it gave it guests.
A guest is told of a step once it has been made, or is about to be, as the sentence of each method says. It keeps what
it has to remember in a record of its own (`BrokerState.remembered`, by the guest's name), which is copied and compared
with the rest of the state. It changes nothing that the law owes or permits. Only the questions, the second half of
`Guest`, let it: there the first answer that is not None counts.

The steps are those of the law. The law by itself would ask none of the questions: each stands where a defect changes
what the broker may do between two inputs (whom it serves, in which order, what counts), and whoever looks at inputs
comes too late for that.

Guests are the known defects of brokers. A guest that is *armed* has seen a situation in which it may matter; until then
nobody asks it about inputs. One that is armed, or remembers something, is *awake*; until then it is told and asked only
where it does not say that it has to be (`once_awake`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.connections import Connection
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.broker.ruling import Ruling
from amqpspec.model.protocol.methods import Method

_Place = TypeVar("_Place", bound=Callable[..., Any])
_ONCE_AWAKE: set[Callable[..., Any]] = set()


def once_awake(place: _Place) -> _Place:
    """Decorates a method of a guest that does nothing, and answers None, as long as the guest sleeps."""
    _ONCE_AWAKE.add(place)
    return place


class Guest:
    """What may be told and asked. Without state: all that it remembers is in its memory.

    `broker` is the `BrokerState` in each of these; it is not named here, as it refers to its guests.
    """

    #: by which its memory is known
    name: ClassVar[str]

    def new_memory(self) -> object:
        """What it knows of a broker that has just been started: a dataclass, or None if it remembers nothing."""
        return None

    # ------------------------------------------------------------------------------------- steps it is told of

    def consumer_added(self, broker: Any, consumer: Consumer) -> None:
        """The consumer is new, and did not become the active one of its queue yet."""

    def cancel_asked(self, broker: Any, channel: Channel, tag: str) -> None:
        """The client cancels the consumer of that tag, which need not be there."""

    def consumer_goes(self, broker: Any, consumer: Consumer, requirement: str) -> None:
        """The consumer is about to leave its queue, by that requirement."""

    def active_consumer_changes(self, broker: Any, queue: Queue, requirement: str) -> None:
        """Another consumer may become the active one, by that requirement."""

    def active_consumer_elected(self, broker: Any, queue: Queue, before: Consumer | None, requirement: str) -> None:
        """It is known which consumer is the active one now; `before` was it until then."""

    def queue_declared(self, broker: Any, queue: Queue) -> None:
        """The queue is there now."""

    def queue_deleted(self, broker: Any, queue: Queue) -> None:
        """The queue is gone with its messages; its consumers are about to be told."""

    def deleted_by_client(self, broker: Any, channel: Channel, queue: Queue) -> None:
        """The queue is gone because the client wants it, on that channel."""

    def transaction_selected(self, broker: Any, channel: Channel) -> None:
        """The channel is in transaction mode."""

    def delivery_released(self, broker: Any, consumer: Consumer) -> None:
        """The consumer has a delivery less to settle, and nobody has looked yet whether it stays the active one."""

    def message_enqueued(self, broker: Any, queue: Queue, message: Message) -> None:
        """The message is in the queue, which is no stream."""

    def consumer_chosen(self, broker: Any, queue: Queue, consumer: Consumer) -> None:
        """The queue hands its next message to this consumer; the message is still in the queue."""

    def message_handed_over(
        self, broker: Any, queue: Queue, message: Message, consumer: Consumer | None, entry: Unacknowledged | None
    ) -> None:
        """The message is with a client; `entry` waits for its settlement, None: it needs none."""

    def consumer_served(self, broker: Any, consumer: Consumer) -> None:
        """Something has come for the consumer, of a queue that is no stream; what it is was not looked at yet."""

    def delivery_seen(
        self, broker: Any, channel: Channel, queue: Queue, properties: Mapping[str, Any], wrong: Sequence[Any]
    ) -> None:
        """What a delivery says was compared with what it must say, in its properties these; `wrong`: the mismatches."""

    def settled_late(self, broker: Any, consumer: Consumer) -> None:
        """All that has timed out of a consumer that is gone is settled."""

    def delivery_timed_out(self, broker: Any, channel: Channel, entry: Unacknowledged) -> None:
        """The delivery is off the channel, as it was not settled in time, and its message has not come back yet;
        nor has anybody looked yet which is the active consumer now.
        """

    def deliveries_taken_back(self, broker: Any, queue: Queue, many: int) -> None:
        """The queue takes back so many deliveries that a channel held which has ended."""

    def streams_settled(
        self, broker: Any, channel: Channel, settled: Sequence[tuple[int, Unacknowledged]], ruling: Ruling | None
    ) -> None:
        """The client gives deliveries back or refuses them for good, None: recovers them; among them are streams'. They
        are off the channel, and what becomes of their messages has not been done yet.
        """

    def deliveries_given_back(self, broker: Any, queue: Queue, entries: Sequence[Unacknowledged]) -> None:
        """The client has given the deliveries back, and the queue has their messages again, or has dropped them."""

    def message_expired(self, broker: Any, queue: Queue, message: Message) -> None:
        """The message is about to be removed from the queue, at a moment that is not known, as its time is up."""

    def deliveries_settled(
        self, broker: Any, channel: Channel, settled: Sequence[tuple[int, Unacknowledged]], requirement: str
    ) -> None:
        """The deliveries are off the channel, and what becomes of their messages has not been done yet."""

    def channel_limited(self, broker: Any, channel: Channel, count: int) -> None:
        """The channel has this limit from now on, 0 for none."""

    def channel_unlimited(self, broker: Any, channel: Channel) -> None:
        """basic.qos has set the limit of consumers to come: RabbitMQ keeps one limiter for both."""

    def counts_owed(self, broker: Any, channel: Channel, queue: Queue, method: Method) -> None:
        """The last thing that the channel owes are the queue's numbers, for which the frame asks."""

    def debt_paid(self, broker: Any, holder: Channel | Connection, expected: Expected, method: Method) -> None:
        """An owed frame has come that has an effect, which is about to come about, or closes its channel."""

    def nothing_got(self, broker: Any, channel: Channel) -> None:
        """A basic.get has found no message."""

    def channel_ended(self, broker: Any, channel: Channel) -> None:
        """The channel has ended, and what it held is given back."""

    def came_to_rest(self, broker: Any) -> None:
        """Nothing is under way any more."""

    # --------------------------------------------------------------------------------- questions it may answer

    def shared_limit_holds(self, broker: Any, consumer: Consumer) -> bool | None:
        """Do those who share a limit with the consumer have as many as they may?"""
        return None

    def may_cross_limit(self, broker: Any, consumer: Consumer) -> bool | None:
        """May the consumer have been served before another one, whose delivery came first, took the last room?"""
        return None

    def has_channel_limit(self, broker: Any, channel: Channel) -> bool | None:
        """Is there a limit of the channel?"""
        return None

    def rests(self, broker: Any, consumer: Consumer) -> bool | None:
        """Is the consumer handed nothing, and does it not become the active one, whatever room it has?"""
        return None

    def is_beside(self, broker: Any, consumer: Consumer) -> bool | None:
        """Is the consumer served beside the active one?"""
        return None

    def service_is_unknown(self, broker: Any, queue: Queue) -> bool | None:
        """Does nobody know what the queue does with what it has? It need not hand it out, and may, to any consumer."""
        return None

    def serves_nobody(self, broker: Any, queue: Queue) -> bool | None:
        """Does a queue that owes nothing certainly hand out nothing, whoever waits?"""
        return None

    def heeds_exclusive(self, broker: Any, queue: Queue) -> bool | None:
        """Does the queue act on the exclusive flag of its consumers?"""
        return None

    def serves_unseen(self, broker: Any, queue: Queue) -> bool | None:
        """May consumers that nobody sees be handed messages of the queue and give them back, any number of times?"""
        return None

    def hears_refusals(self, broker: Any, channel: Channel, refusing: Sequence[Queue]) -> bool | None:
        """Does the channel, which commits, learn that these queues have refused what it publishes?"""
        return None

    def letters_turn_around(self, broker: Any, queue: Queue, is_of_several: bool) -> bool | None:
        """Does the queue dead-letter what it drops at one time from the latest to the oldest? It may drop several."""
        return None

    def are_in_order(self, broker: Any, channel: Channel) -> bool | None:
        """Does what a queue has sent to the channel come there in that order?"""
        return None

    def is_served_beyond_limit(self, broker: Any, consumer: Consumer) -> bool | None:
        """Is the consumer, of a stream, handed its next message whatever its limit?"""
        return None

    def may_go_on(self, broker: Any) -> bool | None:
        """May the broker send more, though nothing more is permitted to it?"""
        return None

    def is_overlooked(self, broker: Any, message: Message) -> bool | None:
        """Does its queue not look at the message, though its time may be up?"""
        return None

    def take_late(self, broker: Any, message: Message) -> bool | None:
        """Has the queue had the message until it was handed over just now, though its time was up?"""
        return None

    def weight(self, broker: Any, queue: Queue, message: Message) -> int | None:
        """How many octets does the message count for towards the queue's limit?"""
        return None

    # --------------------------------------------------------------------------------------------- comparison

    def fingerprint(self, broker: Any) -> object:
        """A value that is equal for memories which make no difference to each other."""
        return repr(broker.memories.get(self.name))


_PLACES = tuple(
    name
    for name, value in vars(Guest).items()
    if callable(value) and not name.startswith("_") and name not in ("new_memory", "fingerprint")
)


def _methods_at(guests: Iterable[Guest], place: str) -> Iterator[tuple[Callable[..., Any], str]]:
    """The guests' own methods of that name."""
    for guest in guests:
        method = getattr(type(guest), place)
        if method is not vars(Guest)[place]:
            yield getattr(guest, place), guest.name if method in _ONCE_AWAKE else ""


class Hooks:
    """Who is told and asked at each place: for the name of each method of `Guest`, those guests' that have it.

    `awake`: names of the guests that are; the others are not at all places. It never changes, as states share it.
    """

    def __init__(self, guests: Iterable[Guest] = ()) -> None:
        self.guests = tuple(guests)
        #: by place the methods that stand there, each with the name of the guest that has to be awake for it, or ""
        self._at = {place: tuple(_methods_at(self.guests, place)) for place in _PLACES}
        #: those of the same guests, by who of them is awake
        self._others: dict[frozenset[str], Hooks] = {}
        self._wake(frozenset())

    def _wake(self, awake: frozenset[str]) -> None:
        self.awake = awake
        for place, methods in self._at.items():
            setattr(self, place, tuple([method for method, guest in methods if not guest or guest in awake]))
        self._others[awake] = self  # once it is whole: sequences that are carried out in other threads find it there

    def with_awake(self, guest: str) -> Hooks:
        """The same, where that one is awake as well."""
        if guest in self.awake:
            return self
        awake = self.awake | {guest}
        found = self._others.get(awake)
        if found is None:
            found = Hooks.__new__(Hooks)
            found.guests, found._at, found._others = self.guests, self._at, self._others
            found._wake(awake)
        return found

    def __deepcopy__(self, memo: object) -> Hooks:
        return self

    if TYPE_CHECKING:

        def __getattr__(self, place: str) -> tuple[Any, ...]:
            """The attributes are made from the methods of `Guest`."""


#: Nobody is there.
NO_HOOKS = Hooks()


def arm(broker: Any, guest: str) -> None:
    """The guest of that name is asked about inputs from now on."""
    if guest not in broker.armed:
        broker.armed = broker.armed | {guest}
        broker.hooks = broker.hooks.with_awake(guest)


def first_answer(asked: Iterable[Callable[..., Any]], *question: Any) -> Any:
    """What the first of those says who are asked; None: nobody is there, or nobody has an answer."""
    for each in asked:
        said = each(*question)
        if said is not None:
            return said
    return None
