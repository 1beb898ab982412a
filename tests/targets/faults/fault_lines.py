"""The shortest commands that show each faulty variant of topology and protocol, by its name."""

from __future__ import annotations

from tests.targets.faults.confirm_lines import CONFIRM_LINES
from tests.targets.faults.length_limit_lines import OVERFLOW_LINES
from tests.targets.faults.policy_lines import POLICY_LINES
from tests.targets.faults.restart_lines import RESTART_LINES

LINES: dict[str, str] = {
    # ------------------------------------------------------------------------------- what is looked at
    "counts-untold": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 queue.declare q
    """,
    "others-lose-what-they-hold": """
        a.1 queue.declare q
        a.1 basic.publish q body=m1
        a.1 basic.get q
        b connection.close
        a.1 basic.get q
    """,
    "get-unknown": """
        a.1 queue.declare q
        a.1 basic.get q
    """,
    "predeclared-missing": "a.1 exchange.declare amq.direct direct durable",
    "delete-unanswered": """
        a.1 queue.declare q
        a.1 queue.delete q
    """,
    # -------------------------------------------------------------------------------------------- cancel
    "cancel-ok-names-another": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 basic.cancel t
    """,
    "cancel-of-unknown-unanswered": "a.1 basic.cancel t",
    "cancel-after-deletion-refused": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 queue.delete q
        a.1 basic.cancel t
    """,
    "cancel-ok-then-cancel": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 basic.cancel t
    """,
    "cancelled-consumer-told": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 basic.cancel t
        a.1 queue.delete q
    """,
    "deletion-not-told": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 queue.delete q
    """,
    "deletion-told-once-a-channel": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 basic.consume q tag=u
        a.1 queue.delete q
    """,
    "deletion-told-to-all": """
        a.1 queue.declare q
        a.1 queue.declare r
        a.1 basic.consume q tag=t
        a.1 basic.consume r tag=u
        a.1 queue.delete q
    """,
    "capability-not-asked": """
        a connection.open consumer-cancel-notify=false
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 queue.delete q
    """,
    "notice-wants-answer": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 queue.delete q
    """,
    "delivery-after-notice": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 queue.delete q
    """,
    "notice-before-delete-ok": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 queue.delete q
    """,
    "tag-taken-after-notice": """
        a.1 queue.declare q
        a.1 queue.declare r
        a.1 basic.consume q tag=t
        a.1 queue.delete q
        a.1 basic.consume r tag=t
    """,
    "deletion-forgets-unacked": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 basic.publish q body=m
        a.1 queue.delete q
        a.1 basic.ack 1
    """,
    # ------------------------------------------------------------------------------------------ topology
    "exchange-inequivalence-accepted": """
        a.1 exchange.declare e direct
        a.1 exchange.declare e fanout
    """,
    "missing-exchange-breaks-connection": "a.1 exchange.declare e direct passive",
    "reserved-exchange-name-free": "a.1 exchange.declare amq.mine direct",
    "if-unused-ignored": """
        a.1 queue.declare q
        a.1 exchange.declare e direct
        a.1 queue.bind q e
        a.1 exchange.delete e if-unused
    """,
    "exchange-auto-delete-forgotten": """
        a.1 queue.declare q
        a.1 exchange.declare e direct auto-delete
        a.1 queue.bind q e
        a.1 queue.unbind q e
        a.1 exchange.declare e direct passive
    """,
    "internal-exchange-open": """
        a.1 exchange.declare e direct internal
        a.1 basic.publish exchange=e
    """,
    "exclusive-queue-open-to-others": """
        a.1 queue.declare q exclusive
        b.1 basic.get q
    """,
    "locked-queue-not-found": """
        a.1 queue.declare q exclusive
        b.1 basic.get q
    """,
    "queue-auto-delete-forgotten": """
        a.1 queue.declare q auto-delete
        a.1 basic.consume q tag=t
        a.1 basic.cancel t
        a.1 queue.declare q passive
    """,
    "queue-argument-not-compared": """
        a.1 queue.declare q x-max-length=1
        a.1 queue.declare q x-max-length=2
    """,
    "last-queue-of-connection": """
        a.1 queue.declare q
        a.2 basic.get
    """,
    "no-wait-answered": "a.1 queue.declare q nowait",
    "unbind-keeps-binding": """
        a.1 queue.declare q
        a.1 queue.bind q amq.direct routing-key=k
        a.1 queue.unbind q amq.direct routing-key=k
        a.1 basic.publish k exchange=amq.direct body=m
        a.1 basic.get q
    """,
    "exchange-bindings-not-followed": """
        a.1 queue.declare q
        a.1 exchange.declare e fanout
        a.1 queue.bind q e
        a.1 exchange.bind e amq.fanout
        a.1 basic.publish exchange=amq.fanout body=m
        a.1 basic.get q
    """,
    "routed-once-for-each-binding": """
        a.1 queue.declare q
        a.1 exchange.declare e topic
        a.1 queue.bind q e routing-key=k
        a.1 queue.bind q e routing-key=k x-other=1
        a.1 basic.publish k exchange=e body=m
        a.1 queue.declare q passive
    """,
    "topic-star-is-hash": """
        a.1 queue.declare q
        a.1 exchange.declare e topic
        a.1 queue.bind q e routing-key=a.*
        a.1 basic.publish a.b.c exchange=e body=m
        a.1 basic.get q
    """,
    "topic-hash-needs-a-word": """
        a.1 queue.declare q
        a.1 exchange.declare e topic
        a.1 queue.bind q e routing-key=a.#
        a.1 basic.publish a exchange=e body=m
        a.1 basic.get q
    """,
    "headers-any-means-all": """
        a.1 queue.declare q
        a.1 exchange.declare e headers
        a.1 queue.bind q e x-match=any arguments={"a": 1, "b": 2}
        a.1 basic.publish exchange=e headers={"a": 1} body=m
        a.1 basic.get q
    """,
    "headers-values-not-compared": """
        a.1 queue.declare q
        a.1 exchange.declare e headers
        a.1 queue.bind q e arguments={"a": 1}
        a.1 basic.publish exchange=e headers={"a": 2} body=m
        a.1 basic.get q
    """,
    "alternate-exchange-ignored": """
        a.1 queue.declare q
        a.1 exchange.declare o fanout
        a.1 queue.bind q o
        a.1 exchange.declare e direct alternate-exchange=o
        a.1 basic.publish k exchange=e body=m
        a.1 basic.get q
    """,
    "further-keys-ignored": """
        a.1 queue.declare q
        a.1 basic.publish nowhere headers={"CC": ["q"]} body=m
        a.1 basic.get q
    """,
    "bcc-shown": """
        a.1 queue.declare q
        a.1 basic.publish q headers={"BCC": ["q"]} body=m
        a.1 basic.get q
    """,
    "nested-header-lost": """
        a.1 queue.declare q
        a.1 basic.publish q headers={"a": {"b": 1}} body=m
        a.1 basic.get q
    """,
    "user-id-not-checked": "a.1 basic.publish q user-id=somebody",
    "expiration-not-checked": "a.1 basic.publish q expiration=soon",
    "return-code-wrong": "a.1 basic.publish nowhere mandatory body=m",
    # ------------------------------------------------------------------------- quorum queues, dead letters
    "delivery-count-off-by-one": """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.reject 1 requeue
        a.1 basic.get q
    """,
    "delivery-count-missing": """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.nack 1 requeue
        a.1 basic.get q
    """,
    "classic-queue-counts": """
        a.1 queue.declare q
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.reject 1 requeue
        a.1 basic.get q
    """,
    "nack-counts-as-failed": """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.nack 1 requeue
        a.1 basic.get q
    """,
    "reject-does-not-count": """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.reject 1 requeue
        a.1 basic.get q
    """,
    "delivery-limit-never-applied": """
        a.1 queue.declare q durable x-queue-type=quorum x-delivery-limit=0
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.reject 1 requeue
    """,
    "delivery-limit-one-too-early": """
        a.1 queue.declare q durable x-queue-type=quorum x-delivery-limit=1
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.reject 1 requeue
    """,
    "negative-limit-taken-literally": """
        a.1 queue.declare q durable x-queue-type=quorum x-delivery-limit=-1
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.nack 1 requeue
    """,
    "dead-letter-lost": """
        a.1 queue.declare d
        a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=d
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.nack 1
    """,
    "dead-letter-reason-wrong": """
        a.1 queue.declare d
        a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=d
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.nack 1
        a.1 basic.get d
    """,
    "death-count-stays-one": """
        a.1 queue.declare q x-dead-letter-exchange=""
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.nack 1
        a.1 basic.get q
        a.1 basic.nack 2
        a.1 basic.get q
    """,
    "delivery-count-short": """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.reject 1 requeue
        a.1 basic.get q
    """,
    "acquired-count-short": """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.nack 1 requeue
        a.1 basic.get q
    """,
    "stream-offset-short": """
        a.1 queue.declare s durable x-queue-type=stream
        b.1 confirm.select
        b.1 basic.publish s body=m0
        a.1 basic.qos 1
        a.1 basic.consume s tag=t x-stream-offset=first
    """,
    "death-count-short": """
        a.1 queue.declare d
        a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=d
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.nack 1
        a.1 basic.get d
    """,
    "death-time-a-number": """
        a.1 queue.declare d
        a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=d
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.nack 1
        a.1 basic.get d
    """,
    "dead-letter-keeps-its-key": """
        a.1 queue.declare d
        a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=d
        a.1 basic.publish q body=m
        a.1 basic.get q
        a.1 basic.nack 1
    """,
    "dead-letter-is-redelivery": """
        a.1 queue.declare d
        a.1 queue.declare q x-max-length=0 x-dead-letter-exchange="" x-dead-letter-routing-key=d
        a.1 basic.publish q body=m
        a.1 basic.get d
    """,
    "dead-letters-reversed": """
        a.1 queue.declare d
        a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=d
        a.1 basic.publish q body=m
        a.1 basic.publish q body=n
        a.1 basic.get q
        a.1 basic.get q
        a.1 basic.nack 0 multiple
        a.1 basic.get d
    """,
    # -------------------------------------------------------------------------------------------- limits
    "qos-changes-existing-consumers": """
        a.1 queue.declare q
        a.1 basic.qos 2
        a.1 basic.consume q tag=t
        a.1 basic.qos 1
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "prefetch-zero-is-one": """
        a.1 queue.declare q
        a.1 basic.qos 0
        a.1 basic.consume q tag=t
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "prefetch-size-accepted": "a.1 basic.qos prefetch-size=1",
    "no-ack-consumer-limited": """
        a.1 queue.declare q
        a.1 basic.qos 1
        a.1 basic.consume q tag=t no-ack
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "consumers-share-limit": """
        a.1 queue.declare q
        a.1 basic.qos 1
        a.1 basic.consume q tag=t
        a.1 basic.consume q tag=u
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "requeue-frees-two": """
        a.1 queue.declare q
        a.1 basic.qos 1
        a.1 basic.consume q tag=t
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
        a.1 basic.nack 1 requeue
    """,
    "window-opens-when-empty": """
        a.1 queue.declare q
        a.1 basic.qos 2
        a.1 basic.consume q tag=t
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
        a.1 basic.publish q body=m3
        a.1 basic.ack 1
    """,
    "cancel-lifts-limits": """
        a.1 queue.declare q
        a.1 basic.qos 1
        a.1 basic.consume q tag=t
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
        a.1 basic.cancel u
    """,
    "global-limits-channel": """
        a.1 queue.declare q
        a.1 basic.qos 1 global
        a.1 basic.consume q tag=t
        a.1 basic.consume q tag=u
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "global-limit-ignored": """
        a.1 queue.declare q
        a.1 basic.qos 1 global
        a.1 basic.consume q tag=t
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "channel-limit-per-consumer": """
        a.1 queue.declare q
        a.1 basic.qos 1 global
        a.1 basic.consume q tag=t
        a.1 basic.consume q tag=u
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "channel-limit-forgets-cancelled": """
        a.1 queue.declare q
        a.1 basic.qos 1 global
        a.1 basic.consume q tag=t
        a.1 basic.publish q body=m1
        a.1 basic.cancel t
        a.1 basic.consume q tag=u
        a.1 basic.publish q body=m2
    """,
    "channel-limit-for-new-consumers": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 basic.publish q body=m1
        a.1 basic.qos 1 global
        a.1 basic.publish q body=m2
    """,
    "channel-limit-replaces-consumers": """
        a.1 queue.declare q
        a.1 basic.qos 1
        a.1 basic.qos 2 global
        a.1 basic.consume q tag=t
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "gets-not-counted": """
        a.1 queue.declare q
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
        a.1 basic.get q
        a.1 basic.qos 1 global
        a.1 basic.consume q tag=t
    """,
    # ------------------------------------------------------------------------------------------ protocol
    "any-login-accepted": "a connection.open password=wrong",
    "anonymous-refused": "a connection.open mechanism=ANONYMOUS",
    "any-virtual-host-opened": "a connection.open nowhere",
    "tune-ok-not-checked": "a connection.open frame-max=200000",
    "capability-missing": "a.1 channel.open",
    "capability-not-kept": "a.1 exchange.bind amq.direct amq.fanout",
    "version-not-told": "a.1 channel.open",
    "closed-channel-used": "a.1! basic.qos 1",
    "closed-channel-wrong-code": "a.1! basic.qos 1",
    "second-open-accepted": """
        a.1 channel.open
        a.1! channel.open
    """,
    "error-does-not-close": """
        a.1 queue.declare q passive &
        a.1! basic.qos 1
    """,
    "flow-off-accepted": "a.1 channel.flow active=false",
    "channel-max-not-enforced": """
        a connection.open channel-max=1
        a.1 channel.open
        a.2 channel.open
    """,
    "bad-frame-end-accepted": "a.1 frame.other type=1 payload=003c000a end=0",
    "unknown-frame-type-accepted": "a.1 frame.other type=9",
    "stray-content-accepted": "a.1 frame.body body=x",
    "octet-behind-arguments": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
    """,
    "content-of-any-class": """
        a.1 basic.publish q unfinished &
        a.1! frame.header class-id=50 body-size=0
    """,
    "long-body-cut": """
        a.1 basic.publish q unfinished &
        a.1! frame.header class-id=60 body-size=1 &
        a.1! frame.body body=xyz
    """,
    "exclusive-queue-outlives-connection": """
        a.1 queue.declare q exclusive
        a connection.close
        b.1 queue.declare q passive
    """,
    "permissions-not-checked": """
        broker operator.add-user lim password=p
        broker operator.set-permissions lim configure= write= read=
        a connection.open user=lim password=p
        a.1 queue.declare q
    """,
    "refusal-names-nobody": """
        broker operator.add-user lim password=p
        broker operator.set-permissions lim configure= write= read=
        a connection.open user=lim password=p
        a.1 queue.declare q
    """,
    # ------------------------------------------------------------------------------ priorities of messages
    "priority-ignored": """
        a.1 queue.declare q x-max-priority=1
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2 priority=1
        a.1 basic.get q
    """,
    "priority-newest-first": """
        a.1 queue.declare q x-max-priority=1
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
        a.1 basic.get q
    """,
    "priority-above-maximum-is-none": """
        a.1 queue.declare q x-max-priority=1
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2 priority=2
        a.1 basic.get q
    """,
    "priority-without-asking": """
        a.1 queue.declare q
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2 priority=1
        a.1 basic.get q
    """,
    "priority-lost-on-requeue": """
        a.1 queue.declare q x-max-priority=1
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2 priority=1
        a.1 basic.get q
        a.1 basic.reject 1 requeue
        a.1 basic.get q
    """,
    "quorum-priority-ignored": """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2 priority=5
        a.1 basic.get q
    """,
    "quorum-priority-none-is-lowest": """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2 priority=1
        a.1 basic.get q
    """,
    "quorum-priority-reversed": """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.publish q body=m1 priority=1
        a.1 basic.publish q body=m2 priority=2
        a.1 basic.get q
    """,
    "quorum-requeue-by-priority": """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.publish q body=m1
        a.1 basic.get q
        a.1 basic.publish q body=m2 priority=5
        a.1 basic.reject 1 requeue
        a.1 basic.get q
    """,
    # ------------------------------------------------------------------------------------------ dispatch
    "consumer-priority-ignored": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 basic.consume q tag=u x-priority=1
        a.1 basic.publish q body=m1
    """,
    "consumer-priority-reversed": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t x-priority=1
        a.1 basic.consume q tag=u
        a.1 basic.publish q body=m1
    """,
    "lower-priority-never-served": """
        a.1 queue.declare q
        a.1 basic.qos 1
        a.1 basic.consume q tag=t x-priority=1
        a.2 basic.consume q tag=u
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "full-consumer-holds-up-queue": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 basic.qos 1
        a.1 basic.consume q tag=u
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
        a.1 basic.publish q body=m3
        a.1 basic.publish q body=m4
    """,
    "newer-consumers-starve": """
        a.1 queue.declare q
        a.1 basic.consume q tag=t
        a.1 basic.consume q tag=u
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "second-active-consumer": """
        a.1 queue.declare q x-single-active-consumer=true
        a.1 basic.consume q tag=t
        a.1 basic.consume q tag=u
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "newcomer-becomes-active": """
        a.1 queue.declare q x-single-active-consumer=true
        a.1 basic.consume q tag=t
        a.1 basic.consume q tag=u
        a.1 basic.publish q body=m1
    """,
    "nobody-follows-cancelled": """
        a.1 queue.declare q x-single-active-consumer=true
        a.1 basic.consume q tag=t
        a.1 basic.consume q tag=u
        a.1 basic.cancel t
        a.1 basic.publish q body=m1
    """,
    "nobody-follows-lost": """
        a.1 queue.declare q x-single-active-consumer=true
        a.2 basic.consume q tag=t
        a.1 basic.consume q tag=u
        a.2 channel.close
        a.1 basic.publish q body=m1
    """,
    "newest-follows-cancelled": """
        a.1 queue.declare q x-single-active-consumer=true
        a.1 basic.consume q tag=t
        a.1 basic.consume q tag=u
        a.1 basic.consume q tag=v
        a.1 basic.cancel t
        a.1 basic.publish q body=m1
    """,
    "failover-drops-messages": """
        a.1 queue.declare q x-single-active-consumer=true
        a.1 basic.qos 1
        a.1 basic.consume q tag=t
        a.2 basic.consume q tag=u
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
        a.1 basic.cancel t
    """,
    "lost-messages-come-last": """
        a.1 queue.declare q x-single-active-consumer=true
        a.2 basic.qos 1
        a.2 basic.consume q tag=t
        a.1 basic.consume q tag=u
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
        a.2 channel.close
    """,
    "takeover-at-once": """
        a.1 queue.declare q durable x-queue-type=quorum x-single-active-consumer=true
        a.1 basic.consume q tag=t
        a.1 basic.publish q body=m1
        a.1 basic.consume q tag=u x-priority=1
        a.1 basic.publish q body=m2
    """,
    "takeover-never": """
        a.1 queue.declare q durable x-queue-type=quorum x-single-active-consumer=true
        a.1 basic.consume q tag=t
        a.1 basic.consume q tag=u x-priority=1
        a.1 basic.publish q body=m1
    """,
    "classic-takeover": """
        a.1 queue.declare q x-single-active-consumer=true
        a.1 basic.consume q tag=t
        a.1 basic.consume q tag=u x-priority=1
        a.1 basic.publish q body=m1
    """,
    # ------------------------------------------------------------------------------------------- streams
    "stream-offset-off-by-one": """
        a.1 queue.declare s durable x-queue-type=stream
        b.1 confirm.select
        b.1 basic.publish s body=m0
        b.1 basic.publish s body=m1
        b.1 basic.publish s body=m2
        a.1 basic.qos 1
        a.1 basic.consume s tag=t x-stream-offset=0
    """,
    "stream-last-is-next": """
        a.1 queue.declare s durable x-queue-type=stream
        b.1 confirm.select
        b.1 basic.publish s body=m0
        b.1 basic.publish s body=m1
        b.1 basic.publish s body=m2
        a.1 basic.qos 1
        a.1 basic.consume s tag=t x-stream-offset=last
    """,
    "stream-read-from-first": """
        a.1 queue.declare s durable x-queue-type=stream
        b.1 confirm.select
        b.1 basic.publish s body=m0
        b.1 basic.publish s body=m1
        b.1 basic.publish s body=m2
        a.1 basic.qos 1
        a.1 basic.consume s tag=t
    """,
    "stream-offset-not-checked": """
        a.1 queue.declare s durable x-queue-type=stream
        a.1 basic.qos 1
        a.1 basic.consume s tag=t x-stream-offset=0h
    """,
    "stream-message-read-once": """
        a.1 queue.declare s durable x-queue-type=stream
        b.1 confirm.select
        b.1 basic.publish s body=m0
        b.1 basic.publish s body=m1
        b.1 basic.publish s body=m2
        a.1 basic.qos 1
        a.1 basic.consume s tag=t x-stream-offset=first
        a.1 basic.consume s tag=u x-stream-offset=first
    """,
    "stream-offset-header-wrong": """
        a.1 queue.declare s durable x-queue-type=stream
        b.1 confirm.select
        b.1 basic.publish s body=m0
        b.1 basic.publish s body=m1
        b.1 basic.publish s body=m2
        a.1 basic.qos 1
        a.1 basic.consume s tag=t x-stream-offset=first
    """,
    "stream-read-again-is-redelivered": """
        a.1 queue.declare s durable x-queue-type=stream
        b.1 confirm.select
        b.1 basic.publish s body=m0
        b.1 basic.publish s body=m1
        b.1 basic.publish s body=m2
        a.1 basic.qos 1
        a.1 basic.consume s tag=t x-stream-offset=first
        a.1 basic.consume s tag=u x-stream-offset=first
    """,
    "stream-limit-ignored": """
        a.1 queue.declare s durable x-queue-type=stream
        b.1 confirm.select
        b.1 basic.publish s body=m0
        b.1 basic.publish s body=m1
        b.1 basic.publish s body=m2
        a.1 basic.qos 1
        a.1 basic.consume s tag=t x-stream-offset=first
    """,
    "stream-credit-never-returned": """
        a.1 queue.declare s durable x-queue-type=stream
        b.1 confirm.select
        b.1 basic.publish s body=m0
        b.1 basic.publish s body=m1
        b.1 basic.publish s body=m2
        a.1 basic.qos 1
        a.1 basic.consume s tag=t x-stream-offset=first
        a.1 basic.ack 1
    """,
    "stream-nack-requeues": """
        a.1 queue.declare s durable x-queue-type=stream
        b.1 confirm.select
        b.1 basic.publish s body=m0
        b.1 basic.publish s body=m1
        b.1 basic.publish s body=m2
        a.1 basic.qos 1
        a.1 basic.consume s tag=t x-stream-offset=first
        a.1 basic.nack 1 requeue
    """,
    "stream-recover-reads-again": """
        a.1 queue.declare s durable x-queue-type=stream
        b.1 confirm.select
        b.1 basic.publish s body=m0
        b.1 basic.publish s body=m1
        b.1 basic.publish s body=m2
        a.1 basic.qos 1
        a.1 basic.consume s tag=t x-stream-offset=first
        a.1 basic.recover requeue
    """,
    # -------------------------------------------------------------------------------------- time to live
    "expiration-ignored": """
        a.1 queue.declare q
        a.1 basic.publish q body=m1 expiration=100
        broker clock.wait 1300
        b.1 basic.get q
    """,
    "message-expires-late": """
        a.1 queue.declare q
        a.1 basic.publish q body=m1 expiration=800
        broker clock.wait 2000
        b.1 basic.get q
    """,
    "message-expires-at-once": """
        a.1 queue.declare q
        a.1 basic.publish q body=m1 expiration=60000
        b.1 basic.get q
    """,
    "queue-ttl-ignored": """
        a.1 queue.declare q x-message-ttl=100
        a.1 basic.publish q body=m1
        broker clock.wait 1300
        b.1 basic.get q
    """,
    "longer-time-holds": """
        a.1 queue.declare q x-message-ttl=60000
        a.1 basic.publish q body=m1 expiration=100
        broker clock.wait 1300
        b.1 basic.get q
    """,
    "zero-lives-on": """
        a.1 queue.declare q
        a.1 basic.publish q body=m1 expiration=0
        broker clock.wait 1300
        b.1 basic.get q
    """,
    "zero-never-delivered": """
        a.1 queue.declare q
        b.1 basic.consume q tag=t
        a.1 basic.publish q body=m1 expiration=0
    """,
    "given-back-lives-on": """
        a.1 queue.declare q
        a.1 basic.publish q body=m1 expiration=100
        a.1 basic.get q
        broker clock.wait 300
        a.1 basic.nack 1 requeue
        a.1 basic.get q
    """,
    "unacknowledged-expires": """
        a.1 queue.declare w
        a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=w
        b.1 basic.consume w tag=t
        a.1 basic.publish q body=m1 expiration=2000
        a.1 basic.get q
        broker clock.wait 3000
        c.1 queue.declare q passive
    """,
    "follower-expires-early": """
        a.1 queue.declare q
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2 expiration=100
        broker clock.wait 300
        c.1 queue.declare q passive
    """,
    "expired-letter-lost": """
        a.1 queue.declare w
        a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=w
        b.1 basic.consume w tag=t
        a.1 basic.publish q body=m1 expiration=100
        broker clock.wait 1300
    """,
    "expired-is-rejected": """
        a.1 queue.declare w
        a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=w
        b.1 basic.consume w tag=t
        a.1 basic.publish q body=m1 expiration=100
        broker clock.wait 300
    """,
    "original-expiration-missing": """
        a.1 queue.declare w
        a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=w
        b.1 basic.consume w tag=t
        a.1 basic.publish q body=m1 expiration=100
        broker clock.wait 300
    """,
    "expiration-kept": """
        a.1 queue.declare w
        a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=w
        b.1 basic.consume w tag=t
        a.1 basic.publish q body=m1 expiration=100
        broker clock.wait 300
    """,
    "circle-of-expiry-not-cut": """
        a.1 queue.declare q x-message-ttl=10 x-dead-letter-exchange="" x-dead-letter-routing-key=r
        a.1 queue.declare r x-message-ttl=400 x-dead-letter-exchange="" x-dead-letter-routing-key=q
        a.1 basic.publish r body=m1
        broker clock.wait 2700
        a.1 queue.declare q passive
        a.1 queue.declare r passive
    """,
    # -------------------------------------------------------------------------------------- transactions
    "tx-in-confirm-mode": """
        a.1 confirm.select
        a.1 tx.select
    """,
    "confirm-in-tx-mode": """
        a.1 tx.select
        a.1 confirm.select
    """,
    "commit-without-select": "a.1 tx.commit",
    "published-before-commit": """
        a.1 queue.declare q
        a.1 tx.select
        a.1 basic.publish q body=m1
    """,
    "commit-loses-publishes": """
        a.1 queue.declare q
        a.1 tx.select
        a.1 basic.publish q body=m1
        a.1 tx.commit
    """,
    "rollback-commits": """
        a.1 queue.declare q
        a.1 tx.select
        a.1 basic.publish q body=m1
        a.1 tx.rollback
    """,
    "returned-before-commit": """
        a.1 tx.select
        a.1 basic.publish nosuch body=m1 mandatory
    """,
    "commit-ok-before-return": """
        a.1 tx.select
        a.1 basic.publish nosuch body=m1 mandatory
        a.1 tx.commit
    """,
    "commit-confirms": """
        a.1 tx.select
        a.1 tx.commit
    """,
    "failed-commit-hidden": """
        a.1 queue.declare q x-max-length=0 x-overflow=reject-publish
        a.1 tx.select
        a.1 basic.publish q body=m1
        a.1 tx.commit
    """,
    "settled-before-commit": """
        b.1 queue.declare q
        b.1 basic.publish q body=m1
        a.1 tx.select
        a.1 basic.get q
        a.1 basic.reject 1 requeue
    """,
    "commit-settles-nothing": """
        b.1 queue.declare q
        b.1 basic.publish q body=m1
        a.1 tx.select
        a.1 basic.get q
        a.1 basic.reject 1 requeue
        a.1 tx.commit
    """,
    "settled-twice-in-tx": """
        b.1 queue.declare q
        b.1 basic.publish q body=m1
        a.1 tx.select
        a.1 basic.get q
        a.1 basic.ack 1
        a.1 basic.ack 1
    """,
    "rollback-requeues": """
        b.1 queue.declare q
        b.1 basic.publish q body=m1
        a.1 tx.select
        a.1 basic.get q
        a.1 basic.ack 1
        a.1 tx.rollback
    """,
    "rollback-keeps-tags": """
        b.1 queue.declare q
        b.1 basic.publish q body=m1
        a.1 tx.select
        a.1 basic.get q
        a.1 basic.ack 1
        a.1 tx.rollback
        a.1 basic.ack 1
    """,
    "close-commits": """
        b.1 queue.declare q
        a.1 tx.select
        a.1 basic.publish q body=m1
        a.1 channel.close
        b.1 basic.get q
    """,
    **OVERFLOW_LINES,
    **POLICY_LINES,
    **CONFIRM_LINES,
    **RESTART_LINES,
}
