"""The class and the source of what differs by version, or rests on observation, and follows from no choice.

See `model.promises.differences`. What the notes of the registry mark "broken" is a known defect of that version.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from amqpspec.model.promises.differences import Difference, DifferenceClass

_change = partial(Difference, DifferenceClass.CHANGE)
_defect = partial(Difference, DifferenceClass.DEFECT)
_free = partial(Difference, DifferenceClass.FREE)

_STOPPED = "guide: consumer cancel notification (the consumption has stopped); release notes of 4.3.7"

#: By the requirement's identifier.
REQUIREMENTS: Mapping[str, Difference] = MappingProxyType(
    {
        "ACK-024": _defect("0-9-1 basic.ack, delivery-tag"),
        "ACK-021": _defect("0-9-1 basic.reject; guide: streams 3.13 and confirms, of basic.nack; mended in 3.13.0"),
        "ACK-019": _free("no text says which consumer it is", allowed_by="the requirement allows each"),
        "CANCEL-009": _defect(
            "RabbitMQ from 4.3 on takes a client's cancel-ok, and crashes where the consumer is gone"
        ),
        "CANCEL-017": _change("release notes of 4.0.1 (mirroring is removed)"),
        "CHAN-015": _defect("0-9-1 section 4.2.6: badly formatted content is a connection exception; mended in 4.2.6"),
        "CLUSTER-003": _change("release notes of 4.3.0"),
        "CLUSTER-008": _change("release notes of 4.3.0 (consumer timeouts of quorum queues)"),
        "CLUSTER-013": _change("release notes of 4.0.1 (mirroring is removed)"),
        "CLUSTER-014": _change("release notes of 4.0.1 (mirroring is removed)"),
        "CONN-021": _free("no text says when a lost connection is noticed", allowed_by="the requirement allows both"),
        "CONSUME-004": _defect("0-9-1 basic.consume: each is answered, and a tag is free again after cancel-ok"),
        "CONSUME-005": _defect("0-9-1 basic.consume and basic.cancel: each is answered"),
        "CONSUME-006": _defect("0-9-1 basic.consume: a queue that is not there is a channel exception, 404"),
        "CONSUME-008": _defect("0-9-1 basic.consume, exclusive"),
        "CONSUME-016": _defect("guide: consumer-prefetch, a limit for each new consumer on the channel"),
        "DLX-002": _defect("guide: dlx 3.13 (ordered by recency); right from 3.13.0 on"),
        "DLX-008": _defect("guide: dlx 3.13 (cycles: no rejections in the entire cycle); right from 3.13.0 on"),
        "DLX-009": _defect("release notes of 4.2.1 and 4.3.0 (now happens in the correct order)"),
        "DURABLE-001": _defect("0-9-1 exchange.declare, durable: transient exchanges are purged by a restart"),
        "DURABLE-014": _free("no text says what a pause does", allowed_by="what is owed may be late"),
        "DURABLE-015": _free("no text says whether a stop is an end of consumers", allowed_by="the queue may be there"),
        "DURABLE-020": _defect("0-9-1 basic.deliver, redelivered"),
        "OVERFLOW-004": _defect("guide: maxlength (message body length counts)"),
        "POLICY-002": _defect("guide: maxlength (reject-publish discards what is published, drop-head does not)"),
        "PUBLISH-016": _defect(
            "0-9-1 section 3.1.1: nothing of a content is modified; that type L may come as l is allowed of all"
            " (guide: amqp-0-9-1-errata has one 64-bit number)"
        ),
        "PUBLISH-018": _defect("0-9-1 section 3.1.3.4: the same value is equal"),
        "QOS-005": _defect("0-9-1 basic.qos: the prefetch-count is ignored if no-ack is set"),
        "QOS-010": _defect("guide: consumer-prefetch: the two limits are independent of each other"),
        "QOS-013": _defect("guide: consumer-prefetch: limits are on unacknowledged messages"),
        "QUEUE-013": _defect("a wrong argument is a soft 406 in all cases but these"),
        "QUEUE-026": _defect("0-9-1 queue.declare-ok, consumer-count: active consumers"),
        "QUEUE-029": _defect("0-9-1 section 1.7.2.9: a deleted queue is gone, its name free"),
        "REPLY-002": _defect("guide: direct-reply-to: a check by a passive declare is no error of the connection"),
        "REPLY-005": _defect("0-9-1 basic.consume, consumer-tag"),
        "REPLY-006": _defect("0-9-1 basic.deliver, delivery-tag"),
        "SAC-002": _defect("guide: consumers, Single Active Consumer: the next consumer takes over"),
        "SAC-004": _defect("guide: consumers, Initial SAC Selection"),
        "SAC-005": _free("no text orders what comes on two channels", allowed_by="the requirement allows each"),
        "STREAM-005": _defect("a wrong argument is a soft 406, as for x-max-age; mended for text in 4.2.7 and 4.3.1"),
        "STREAM-006": _defect("guide: streams (prefetch limits a consumer) and consumer-prefetch; mended in 4.0"),
        "STREAM-007": _defect("0-9-1 basic.recover, which is answered; mended in 3.13.0"),
        "TIMEOUT-008": _defect(_STOPPED),
        "TIMEOUT-009": _defect("the guide on consumer timeouts; the text is to name the value used"),
        "TIMEOUT-010": _defect("the text of TIMEOUT-009, here as well", as_of="TIMEOUT-009"),
        "TIMEOUT-011": _defect("the guide on consumer timeouts: with the capability the channel stays open"),
        "TIMEOUT-014": _defect(_STOPPED),
        "TIMEOUT-016": _defect(_STOPPED),
        "TIMEOUT-017": _defect(_STOPPED),
        "TIMEOUT-018": _defect(_STOPPED),
        "TIMEOUT-021": _defect(
            "the guide on consumer timeouts: messages that have exceeded their timeout are returned"
        ),
        "TIMEOUT-030": _defect("0-9-1 basic.consume, consumer-tag: the consumer was cancelled, so its tag is free"),
    }
)
