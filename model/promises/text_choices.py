"""Where RabbitMQ goes a way of its own, and the text of 0-9-1 wants something else or leaves it open.

Each field names the sentence. What values a choice has, which of them are right, and what sets these fields is
`model.promises.text_values`. What is free has the way that is usual here; the other ways are `model.rules.other_ways`,
and reply codes of which several are right are `CODES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import MappingProxyType
from typing import Any

#: Codes of errors of a channel.
SOFT = (403, 404, 405, 406)


@dataclass(frozen=True, slots=True)
class TextChoices:
    """The choices of one dialect."""

    name: str
    #: queue.bind, queue.unbind: "The server MUST accept a blank exchange name to mean the default exchange."
    default_exchange_can_be_bound: bool
    #: queue.delete, exchange.delete: rules `must-exist`, `not-found`; RabbitMQ answers ok
    missing_is_not_found: bool
    #: queue.unbind `must-exist`: the same of a binding, or what it would be between
    missing_binding_is_not_found: bool
    #: channel.flow: "If 0, the peer stops sending content frames."; RabbitMQ refuses with 540
    flow_can_be_stopped: bool
    #: basic.qos: "This field specifies the prefetch window size in octets."; how the window is kept is not judged
    prefetch_size_is_known: bool
    #: basic.publish: "The server SHOULD implement the immediate flag."
    immediate_is_known: bool
    #: connection.tune: "Usable channel numbers are in the range 1..channel-max."; RabbitMQ counts open channels
    channel_max_is_a_number: bool
    #: connection.tune-ok: "Zero means that the client does not impose any specific limit"
    frame_max_can_be_left_open: bool
    #: queue.declare `equivalent`: durable is compared, also of exclusive queues
    durable_of_exclusive_is_compared: bool
    #: queue.declare `equivalent`: all arguments are compared, also those that mean nothing to the broker
    all_arguments_are_compared: bool
    #: queue.declare: "The client MAY declare a queue starting with "amq." if … the queue already exists."
    reserved_queues_can_be_redeclared: bool
    #: 0-9-1 section 4.2.7: an invalid heartbeat is answered with 501
    wrong_heartbeat_is_told: bool
    #: 0-9-1 section 4.2.3: a heartbeat on a channel is answered with 503, or 501
    heartbeat_of_channel_is_invalid: bool
    #: basic.return: "This text can be logged as an aid to resolving issues."; its code is in no table
    returns_are_in_any_words: bool
    #: "a unique generated name"
    any_generated_name: bool
    #: "the server will generate a unique tag"
    any_generated_tag: bool
    #: connection.close-ok: it is safe "to release resources for the connection and close the socket"
    close_ok_may_end_it: bool
    #: grammar of the class basic: C:CANCEL S:CANCEL-OK; only who advertises it tells of cancelled consumers
    cancel_is_advertised: bool
    #: queue.delete-ok: "Reports the number of messages deleted.", the unacknowledged among them or not
    deleted_may_count_unacknowledged: bool
    #: a round trip of a channel that changes nothing is a passive exchange.declare, as flow and qos are no such thing
    flushed_by_passive_declare: bool
    #: basic.consume: "only this consumer can access the queue": basic.get beside it may be refused
    exclusive_consumer_may_exclude_gets: bool
    #: queue.bind alone: "If the queue name is empty, … the routing key is also empty" means the queue's name as key;
    #: RabbitMQ reads queue.unbind so, too
    unbind_names_key: bool = True
    #: section 3.1.3.4 does not say whether a headers binding `any` without fields matches nothing or everything
    any_of_nothing_matches: bool = False
    #: the exchange of a round trip is there from the beginning (`model.promises.text_means`)
    predeclared_are_there: bool = True
    #: the numbers in queue.declare-ok are worth asking for (`model.promises.text_means`)
    counts_are_told: bool = True
    #: basic.get is answered, so that a barrier may use it
    get_is_known: bool = True
    #: a text of the broker's own is sent with basic.return, if any may be
    return_text: str = "NO_ROUTE"
    #: choices that are not open here, with their values (`model.promises.text_values`)
    settled: tuple[tuple[str, str], ...] = ()
    #: reply codes that are right, by requirement
    codes: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    #: requirements whose errors of a channel may end the connection
    any_close: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.name

    def __deepcopy__(self, memo: object) -> TextChoices:
        return self


#: Those that RabbitMQ answers with no and the text with yes.
_BOOLEANS = [each.name for each in fields(TextChoices) if each.type == "bool" and each.default is MISSING]
_NONE: dict[str, Any] = dict.fromkeys(_BOOLEANS, False)
_ALL: dict[str, Any] = dict.fromkeys(_BOOLEANS, True)

RABBITMQS_WAYS = TextChoices("RabbitMQ's ways", **_NONE)

#: Codes that the text leaves open, or names two of.
CODES: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        # no sentence says how the default exchange, or one that is predeclared, is refused
        "EXCHANGE-001": (*SOFT, 530),
        "EXCHANGE-003": (*SOFT, 530),
        # no text of 0-9-1, and RabbitMQ's code is its own
        "PUBLISH-012": (*SOFT, 530),
        # "MUST raise a channel exception", without a code
        "EXCHANGE-006": SOFT,
        "EXCHANGE-007": SOFT,
        "QUEUE-007": SOFT,
        "QUEUE-008": SOFT,
        # domain queue-name: "a 502 (syntax error) channel exception", against `queue-known`, not-found
        "CHAN-017": (404, 502),
        # section 2.3.6: "a connection exception", without a code
        "CHAN-011": (501, 503, 505, 540),
        "CONN-019": (501, 503, 504, 505, 540),
        "CANCEL-009": (501, 503, 505, 540),
        # 505: a frame that was not expected; 503: "an invalid sequence of frames"
        # … and 504 where the channel was never opened
        "CHAN-012": (503, 504, 505),
        "CHAN-013": (503, 505),
        # section 4.2.6: wrong class IDs in content headers are 505; 4.2.6.1: 501
        "CHAN-014": (501, 503, 505),
        # section 4.2.3: 503; section 4.2.7: 501
        "CHAN-020": (501, 503),
        # 501: a frame that cannot be decoded; 502: illegal values
        "CONN-018": (501, 502),
        # 504: a channel that is not there; 530: a limit of the server's; 506: "too many of some type of entity"
        "CONN-013": (504, 506, 530),
    }
)

THE_TEXT = TextChoices(
    "the text's ways",
    **_ALL,
    codes=CODES,
    # "If a unbind fails, the server MUST raise a connection exception.", against `must-exist`, not-found, which is soft
    any_close=frozenset({"BIND-002", "EXCHANGE-001", "CHAN-017", "PUBLISH-012"}),
)
