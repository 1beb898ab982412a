"""What each choice of a dialect is about, and what each of its values does, in words for the developer of an
application. By the name of the field of `Dialect`, those of `KnownArguments` behind "queue_arguments.".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from amqpspec.model.promises.choices import CarriedFailures, ConsumerTimeouts, DeprecatedFeature, QuorumPriorities
from amqpspec.model.promises.choices import QuorumRequeue as Requeue
from amqpspec.model.promises.deleted_before_commit import DeletedBeforeCommit
from amqpspec.model.promises.passive_declare_permission import PassiveDeclarePermission


@dataclass(frozen=True, slots=True)
class Sentences:
    """`title` names the choice; `values`: a sentence for each value, or what makes one of it."""

    title: str
    values: Mapping[Any, str] | Callable[[Any], str]

    def of(self, value: Any) -> str:
        """What a broker with that value does."""
        return self.values(value) if callable(self.values) else self.values[value]


def _named(none: str, some: str) -> Callable[[Collection[object]], str]:
    return lambda names: some.format(", ".join(map(str, names))) if names else none


def _deprecated(feature: str, refusal: str) -> Mapping[DeprecatedFeature, str]:
    return {
        DeprecatedFeature.ALLOWED: f"{feature} is made.",
        DeprecatedFeature.EITHER: f"{feature} is refused by default, with {refusal}; an operator may permit it.",
        DeprecatedFeature.USUALLY_REFUSED: f"{feature} is refused by default, with {refusal}; an operator may permit"
        " it.",
        DeprecatedFeature.REFUSED: f"{feature} is refused, with {refusal}.",
    }


def _limit(text: str, none: str) -> Callable[[int | None], str]:
    return lambda limit: none if limit is None else text.format(f"{limit:,}")


_CLOSES = "connection.close 541"
_KNOWN = _named("They are ignored.", "These are known, and compared by a second declare: {}.")

SENTENCES: Mapping[str, Sentences] = MappingProxyType(
    {
        # ------------------------------------------------------------------------------- connections and frames
        "mechanisms": Sentences("Ways to log in", _named("No mechanism is offered.", "The broker offers {}.")),
        "speaks_0_8": Sentences(
            "AMQP 0-8", {True: "The header of AMQP 0-8 begins a connection of it.", False: "AMQP 0-8 is refused."}
        ),
        "headers_1_0": Sentences(
            "AMQP 1.0 on the same port",
            _named("Headers of AMQP 1.0 are refused.", "These headers of AMQP 1.0 are answered by AMQP 1.0: {}."),
        ),
        "refuses_with_1_0_header": Sentences(
            "Refused protocol headers",
            {True: "They are answered with the header of AMQP 1.0.", False: "They are answered with that of 0-9-1."},
        ),
        "least_frame_max": Sentences(
            "Least frame-max", _limit("A frame-max below {} octets in connection.tune-ok is refused.", "None is known.")
        ),
        "largest_announced_body": Sentences(
            "Announced size of a body",
            _limit("A content header that announces more than {} octets ends the connection.", "Any size is taken."),
        ),
        "max_message_size": Sentences(
            "Largest message", _limit("A body of more than {} octets closes the channel with 406.", "There is none.")
        ),
        "rechecks_consumers": Sentences(
            "Consumers after connection.update-secret",
            {
                True: "Consumers that the new secret does not permit to read are cancelled.",
                False: "Consumers stay, whatever the new secret permits.",
            },
        ),
        "client_cancel_ok": Sentences(
            "basic.cancel-ok of a client",
            {True: "It is accepted.", False: "It closes the connection with 503."},
        ),
        "refusals_name_permission": Sentences(
            "Text of a refusal for want of a permission",
            {True: "It names the permission.", False: "It does not name the permission."},
        ),
        "passive_declare_permission": Sentences(
            "Permission for a passive declare",
            {
                PassiveDeclarePermission.NONE: "None is needed.",
                PassiveDeclarePermission.CONFIGURE: "Permission to configure is needed.",
                PassiveDeclarePermission.ANY: "Any permission for that name is needed: configure, write or read.",
            },
        ),
        # -------------------------------------------------------------------------------- exchanges and bindings
        "unknown_exchange_type": Sentences(
            "Unknown type of an exchange",
            lambda code: f"The {'channel' if code == 406 else 'connection'} is closed with {code}.",
        ),
        "further_exchange_types": Sentences(
            "Further types of exchanges",
            _named("There are none without a plugin.", "These are there without a plugin: {}."),
        ),
        "topic_wildcard_limit": Sentences(
            "`#` in a topic binding", _limit("More than {} in one binding key are refused.", "There is no limit.")
        ),
        "headers_numbers_by_value": Sentences(
            "Numbers in headers exchanges",
            {True: "1 and 1.0 are equal.", False: "1 and 1.0 are not equal: a binding may not match any more."},
        ),
        # ---------------------------------------------------------------------------------- declaring of queues
        "transient_queues": Sentences(
            "Queues that are neither durable nor exclusive",
            _deprecated("A queue that is neither durable nor exclusive", _CLOSES),
        ),
        "master_locators": Sentences(
            "x-queue-master-locator", _deprecated("A queue with x-queue-master-locator", _CLOSES)
        ),
        "least_max_priority": Sentences(
            "x-max-priority of 0",
            {0: "The queue has one priority.", 1: "It counts as 1: the queue has two priorities."},
        ),
        "default_queue_type_in_errors": Sentences(
            "Text of a refused second declare",
            {None: "A type that was not given is called none.", "classic": "A type that was not given is classic."},
        ),
        "queue_arguments.classic": Sentences("Arguments of classic queues", _KNOWN),
        "queue_arguments.quorum": Sentences("Arguments of quorum queues", _KNOWN),
        "queue_arguments.stream": Sentences("Arguments of streams", _KNOWN),
        "queue_arguments.queue_versions": Sentences(
            "x-queue-version",
            lambda values: f"These values are taken, others close the channel with 406: {', '.join(map(str, values))}.",
        ),
        "queue_arguments.queue_modes": Sentences(
            "x-queue-mode",
            _named("Any value closes the channel with 406.", "These values are taken, others refused with 406: {}."),
        ),
        "queue_arguments.leader_locators": Sentences(
            "x-queue-leader-locator",
            _named("None is known.", "These values are taken, others close the channel with 406: {}."),
        ),
        "queue_arguments.age_is_compared_by_length": Sentences(
            "x-max-age in a second declare",
            {True: 'It is compared as a length of time: "7D" is "168h".', False: "It is compared as a text."},
        ),
        "queue_arguments.filter_size_text": Sentences(
            "x-stream-filter-size-bytes outside 16 to 255",
            lambda text: f'It is refused with "{text}".' if text else "It is not looked at.",
        ),
        # ------------------------------------------------------------------------------------------- consumers
        "channel_prefetch": Sentences(
            "basic.qos with global=true",
            {
                True: "It limits the whole channel.",
                False: "It is read as global=false: it limits each later consumer of the channel, and nothing limits"
                " the channel.",
            },
        ),
        "consumer_timeout_checked": Sentences(
            "x-consumer-timeout of basic.consume",
            {True: "Its value is checked, and a wrong one refused.", False: "It is ignored, whatever it is."},
        ),
        "consumer_timeouts": Sentences(
            "Deliveries that are not acknowledged in time",
            {
                ConsumerTimeouts.NONE: "There is no time limit.",
                ConsumerTimeouts.OF_CHANNELS: "The channel is closed with 406, by a time of the server.",
                ConsumerTimeouts.OF_CHANNELS_BY_QUEUE: "The channel is closed with 406, by x-consumer-timeout of the"
                " queue, a policy, or the server's time.",
                ConsumerTimeouts.OF_QUORUM_QUEUES: "In quorum queues the message goes back and the consumer is"
                " cancelled; the channel stays open for a client that knows consumer_cancel_notify. In other queues"
                " there is no time limit.",
            },
        ),
        "first_stream_texts": Sentences(
            "Texts of refused stream consumers",
            {True: "They name the stream as 3 did.", False: "They are those of 4.0."},
        ),
        "queue_type_in_get_error": Sentences(
            "Text of a refused basic.get", lambda name: f"A quorum queue is called {name}."
        ),
        "reply_address_is_routable": Sentences(
            "Mandatory messages to a direct reply address",
            {True: "They are not returned.", False: "They are returned with 312."},
        ),
        # ---------------------------------------------------------------------------------------- quorum queues
        "quorum_requeue": Sentences(
            "Messages given back to a quorum queue",
            {
                Requeue.FRONT_WITH_LIMIT: "They go to the front if the queue has a delivery limit, else to the tail.",
                Requeue.FRONT: "They go to the front, with or without a delivery limit.",
            },
        ),
        "quorum_delivery_limit": Sentences(
            "Delivery limit of quorum queues",
            _limit(
                "A message that has come back more than {} times is dropped or dead-lettered, unless the queue or a"
                " policy says otherwise.",
                "There is none, unless the queue or a policy sets one.",
            ),
        ),
        "negative_delivery_limit_is_none": Sentences(
            "x-delivery-limit below 0",
            {True: "There is no limit.", False: "It is exceeded when a message comes back the first time."},
        ),
        "quorum_expires_by_policy": Sentences(
            "x-expires of a quorum queue, and a policy's",
            {True: "The policy's counts.", False: "The lower of both counts."},
        ),
        "quorum_nack_has_not_failed": Sentences(
            "What counts as a failed delivery in quorum queues",
            {
                False: "basic.nack and basic.recover with requeue count towards the delivery limit, as reject does.",
                True: "basic.nack and basic.recover with requeue do not count: a message that is given back so is"
                " never dropped for it. basic.reject and a lost channel or connection count.",
            },
        ),
        "quorum_acquired_count": Sentences(
            "Header x-acquired-count",
            {
                True: "A message that was delivered before has it. x-delivery-count counts failed deliveries only.",
                False: "It does not exist.",
            },
        ),
        "quorum_count_on_first_get": Sentences(
            "x-delivery-count on the first basic.get",
            {True: "It is there, as 0.", False: "It is not there before the message has come back."},
        ),
        "lost_consumers_by_creation": Sentences(
            "Order of what several consumers of a lost channel held",
            {True: "By the order in which they were created.", False: "By their tags, as text."},
        ),
        "quorum_active_by_priority": Sentences(
            "Single active consumer of a quorum queue",
            {True: "The consumer with the highest x-priority.", False: "The first one, whatever x-priority says."},
        ),
        "quorum_priorities": Sentences(
            "The property priority in quorum queues",
            {
                QuorumPriorities.NONE: "It is ignored.",
                QuorumPriorities.TWO_CLASSES: "Above 4 is high: two high ones are served to one normal one.",
                QuorumPriorities.STRICT: "0 to 31, and higher ones are served first.",
            },
        ),
        "quorum_expires_by_priority": Sentences(
            "Expired messages in quorum queues",
            {
                True: "They leave when they are at the front of their priority.",
                False: "They leave when they are at the front of the queue.",
            },
        ),
        # ------------------------------------------------------------------------- messages and dead letters
        "user_id_checked_first": Sentences(
            "Several faults of one message",
            {True: "user-id is told before the others.", False: "user-id is told after expiration, CC and BCC."},
        ),
        "deaths_in_headers": Sentences(
            "Header x-death of a client",
            {
                True: "What a client publishes in x-death counts: the broker goes on with its counts.",
                False: "What a client publishes in x-death is a header like any other: counts begin anew, and a"
                " message that was published again is a new one. Dead letters have the headers x-last-death-exchange,"
                " -queue and -reason.",
            },
        ),
        "carried_failures": Sentences(
            "Counts of a dead letter",
            {
                CarriedFailures.NONE: "It begins without any in the next queue.",
                CarriedFailures.OF_QUORUM_QUEUES: "It takes along the failed deliveries of a quorum queue.",
                CarriedFailures.OF_ALL_QUEUES: "It takes along its failed deliveries, those of classic queues too.",
            },
        ),
        "deleted_before_commit": Sentences(
            "A queue that is deleted before tx.commit",
            {
                DeletedBeforeCommit.LOOKED_UP: "Queues are looked up again by name at the commit.",
                DeletedBeforeCommit.KEPT: "A deleted classic queue refuses its message at the commit.",
                DeletedBeforeCommit.MISSED: "Without a queue of that name the connection is closed with 506.",
            },
        ),
        "stream_names_delivery_mode": Sentences(
            "delivery-mode of what comes from a stream",
            {True: "It is always there, 1 if the publisher gave none.", False: "It is there if the publisher gave it."},
        ),
        # ------------------------------------------------------------------------------------- the whole broker
        "nodes_pause_themselves": Sentences(
            "A node that cannot reach a majority",
            {
                True: "It ends its connections, by cluster_partition_handling.",
                False: "It keeps its connections: cluster_partition_handling has no effect.",
            },
        ),
        "mirrors_classic_queues": Sentences(
            "Classic mirrored queues",
            {True: "A policy may mirror classic queues to other nodes.", False: "ha-mode of a policy has no effect."},
        ),
    }
)
