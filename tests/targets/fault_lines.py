"""The shortest commands that show each faulty variant of topology and protocol, by its name."""

from __future__ import annotations

LINES: dict[str, str] = {
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
    # ------------------------------------------------------------------------------------------ protocol
    "any-login-accepted": "a connection.open password=wrong",
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
}
