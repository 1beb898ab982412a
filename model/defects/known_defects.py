"""All known defects by name: those that the judge follows, and those that are one wrong argument.

The second verdict of a report goes by this: a failure that a known defect explains which is known of the target's
dialect is none against the broker as it is known. It stays a failure against the promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from amqpspec.model.broker.time_to_live import LATE_BY_PRIORITY
from amqpspec.model.defects.transitions import DEFECT_TRANSITIONS
from amqpspec.model.judging.known_defect import KnownDefect
from amqpspec.model.outputs.late_deliveries import BEHIND_CHANNEL_CLOSE
from amqpspec.model.outputs.messages import DIRECT_REPLIES_NOT_COUNTED, GET_OVERTAKES
from amqpspec.model.outputs.replies import CLOSED_AGAIN
from amqpspec.model.outputs.stream_content import (
    STREAM_DROPS_CLUSTER_ID,
    STREAM_DROPS_NESTED_HEADERS,
    STREAM_KEEPS_EXPIRATION,
    STREAM_TURNS_OCTETS_INTO_TEXT,
)
from amqpspec.model.promises.verdict import Failure
from amqpspec.model.rules.extensions.consumer_timeout import TEXT_WITHOUT_VALUE
from amqpspec.model.rules.operator.operator import END_OF_STREAM_UNTOLD
from amqpspec.model.rules.queue.queue import COUNTS_GIVEN_UP, HOLDERS_COUNTED, STREAM_CONSUMERS_NOT_COUNTED

#: Those that need no following, as the state is the same: named where the argument is compared.
ARGUMENT_DEFECTS: tuple[KnownDefect, ...] = (
    KnownDefect(
        name=HOLDERS_COUNTED,
        requirement="QUEUE-026",
        statement="A quorum queue counts whoever holds messages of it as a consumer (cancelled consumers, basic.get),"
        " and does not count the waiting consumers of a single-active-consumer queue.",
        source="rabbit_fifo:query_stat, the size of its map of consumers",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
    ),
    KnownDefect(
        name=COUNTS_GIVEN_UP,
        requirement="QUEUE-001",
        statement="A quorum queue that has not told its numbers within 250 ms is said to have no messages and no"
        " consumers.",
        source="rabbit_quorum_queue:stat, {ok, 0, 0} for a timeout of rabbit_fifo_client:stat",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
    ),
    KnownDefect(
        name=TEXT_WITHOUT_VALUE,
        requirement="TIMEOUT-009",
        statement="The text of the close names -1 ms, and not the time that was up.",
        source="rabbit_channel:handle_queue_actions released, handle_consumer_timed_out(-1, ...)",
        dialects=("rabbitmq-4.3",),
    ),
    KnownDefect(
        name=CLOSED_AGAIN,
        requirement="CHAN-005",
        statement="A channel that is closed because a delivery was not settled in time is closed again until the client"
        " has answered: with every tick, and from 4.3 on whenever something further of it times out.",
        source="rabbit_channel:handle_info tick, and handle_queue_actions released, which do not ask whether the"
        " channel is closing",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
    ),
    KnownDefect(
        name=END_OF_STREAM_UNTOLD,
        requirement="CANCEL-015",
        statement="A virtual host that is deleted may close its connections before consumers of its streams are told.",
        source="rabbit_stream_coordinator:delete_stream returns before the stream's last member is deleted, which is"
        " what consumers are told of (inform_listeners_eol); rabbit_vhost:delete does not wait for that",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
    ),
    KnownDefect(
        name=STREAM_CONSUMERS_NOT_COUNTED,
        requirement="QUEUE-026",
        statement="A stream counts none of its consumers: declare-ok says 0.",
        source="rabbit_stream_queue:stat",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
    ),
    KnownDefect(
        name=BEHIND_CHANNEL_CLOSE,
        requirement="CHAN-005",
        statement="What was under way to a consumer when an error closed its channel comes behind channel.close.",
        source="rabbit_channel:handle_cast queue_event, which does not ask whether the channel is closing",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
    ),
    KnownDefect(
        name=STREAM_DROPS_NESTED_HEADERS,
        requirement="PUBLISH-016",
        statement="Headers that are tables or arrays are lost in a stream: it keeps messages as AMQP 1.0, whose"
        " application properties hold simple values only.",
        source="rabbit_msg_record:from_amqp091; mc_amqpl:convert_to from 4.0 on",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
    ),
    KnownDefect(
        name=STREAM_DROPS_CLUSTER_ID,
        requirement="PUBLISH-016",
        statement="The property cluster-id is lost in a stream: AMQP 1.0, as which it keeps messages, has none.",
        source="rabbit_msg_record:from_amqp091; mc_amqpl:convert_to from 4.0 on",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
    ),
    KnownDefect(
        name=STREAM_TURNS_OCTETS_INTO_TEXT,
        requirement="PUBLISH-016",
        statement="A header of octets (type x) comes out of a stream as text (type S).",
        source="mc_amqpl:to_091, which has binary become longstr",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
    ),
    KnownDefect(
        name=STREAM_KEEPS_EXPIRATION,
        requirement="DLX-006",
        statement="A dead letter that comes out of a stream has the expiration that it was published with.",
        source="v4.0.5 mc_amqpl:convert_to (takes the expiration out of the properties as they were published; that it"
        " is none any more is noted beside them, mc:set_ttl)",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
    ),
    KnownDefect(
        name=DIRECT_REPLIES_NOT_COUNTED,
        requirement="REPLY-006",
        statement="A direct reply has the delivery tag that the next delivery has as well.",
        source="v4.0.5 rabbit_channel:handle_cast deliver_reply, which leaves next_tag as it is",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
    ),
    KnownDefect(
        name=GET_OVERTAKES,
        requirement="PUBLISH-015",
        statement="The answer to basic.get comes ahead of older messages that the queue had sent to consumers on the"
        " same channel before.",
        source="rabbit_channel:handle_method basic.get calls the queue, and waits for the answer alone: what the queue"
        " has sent it stays in its mailbox meanwhile",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
    ),
    KnownDefect(
        name=LATE_BY_PRIORITY,
        requirement="TTL-001",
        statement="A message that goes in front of others by its priority does not expire in a classic queue: it stays,"
        " and is handed over however late.",
        source="rabbit_amqqueue_process:deliver_or_enqueue looks at what is in front only when it is alone, and fetch"
        " takes a message before it looks",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
    ),
)

KNOWN_DEFECTS: Mapping[str, KnownDefect] = MappingProxyType(
    {defect.name: defect for defect in (*DEFECT_TRANSITIONS, *ARGUMENT_DEFECTS)}
)


@cache
def known_defects(dialect_name: str) -> tuple[KnownDefect, ...]:
    """The known defects of the brokers of a dialect, in the order of their requirements."""
    own = (defect for defect in KNOWN_DEFECTS.values() if dialect_name in defect.dialects)
    return tuple(sorted(own, key=lambda defect: (defect.requirement, defect.name)))


def defects_from(requirement: str) -> tuple[KnownDefect, ...]:
    """The known defects from one requirement, of any broker."""
    return tuple(defect for defect in KNOWN_DEFECTS.values() if defect.requirement == requirement)


def is_as_known(failure: Failure, dialect_name: str) -> bool:
    """Is the failure explained by a known defect that is known of the dialect's brokers?"""
    defect = KNOWN_DEFECTS.get(failure.defect)
    return defect is not None and dialect_name in defect.dialects
