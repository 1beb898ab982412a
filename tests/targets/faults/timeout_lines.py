"""The shortest commands that show each faulty variant of consumer timeouts, by its name."""

from __future__ import annotations

_QUEUE = """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.publish q body=m1
"""
_CONSUME = "a.1 basic.consume q tag=c x-consumer-timeout=600"
_WAIT = "broker clock.wait 1900"

#: One message, and a consumer whose time is up.
_TIMED_OUT = f"""
        {_QUEUE}
        {_CONSUME}
        {_WAIT}
"""
#: The same, and another consumer that gets the message then.
_HANDED_ON = f"""
        {_QUEUE}
        {_CONSUME}
        b.1 basic.consume q tag=d
        {_WAIT}
"""
#: Two deliveries whose time is up.
_TWO_TIMED_OUT = f"""
        {_QUEUE}
        a.1 basic.publish q body=m2
        a.1 basic.qos 2
        {_CONSUME}
        {_WAIT}
"""
#: Another consumer of the channel, which goes on.
_TWO_CONSUMERS = f"""
        {_QUEUE}
        a.1 queue.declare p durable x-queue-type=quorum
        {_CONSUME}
        a.1 basic.consume p tag=d
        a.1 basic.publish p body=m2
        {_WAIT}
"""
_INCAPABLE = f"""
        a connection.open consumer-cancel-notify=false
        {_TIMED_OUT}
"""
#: A queue's argument, and a policy.
_ARGUMENT_AND_POLICY = """
        broker operator.set-policy p1 queue=q consumer-timeout={policy}
        a.1 queue.declare q durable x-queue-type=quorum x-consumer-timeout={argument}
        a.1 basic.publish q body=m1
        a.1 basic.consume q tag=c
        broker clock.wait 1600
"""
_OF_QUEUE_AND_CONSUMER = f"""
        a.1 queue.declare q durable x-queue-type=quorum x-consumer-timeout=300
        a.1 basic.publish q body=m1
        a.1 basic.consume q tag=c x-consumer-timeout=5000
        {_WAIT}
"""

# ------------------------------------------------------------------------------------------------------ up to 4.2

_LOOKED_AT = "broker operator.configure consumer-timeout=300 channel-tick-interval=100"
_HELD = """
        a.1 queue.declare q durable
        a.1 basic.publish q body=m1
        a.1 basic.consume q tag=c
"""
_CLOSED = f"""
        {_LOOKED_AT}
        {_HELD}
        broker clock.wait 1700
"""

TIMEOUT_LINES: dict[str, str] = {
    "timeout-twice-as-long": f"""
        {_QUEUE}
        a.1 basic.consume q tag=c x-consumer-timeout=1500
        broker clock.wait 2700
    """,
    "timeout-half-as-long": _TIMED_OUT,
    "timeout-never": _TIMED_OUT,
    "timeout-of-queue-first": _OF_QUEUE_AND_CONSUMER,
    "timeout-of-consumer-ignored": _OF_QUEUE_AND_CONSUMER,
    "longer-timeout-holds": _ARGUMENT_AND_POLICY.format(policy=5000, argument=300),
    "timeout-policy-ignored": _ARGUMENT_AND_POLICY.format(policy=300, argument=5000),
    "timeout-argument-of-queue-ignored": _ARGUMENT_AND_POLICY.format(policy=5000, argument=300),
    "timeout-setting-ignored": f"""
        broker operator.configure consumer-timeout=300
        {_QUEUE}
        a.1 basic.consume q tag=c
        {_WAIT}
    """,
    "timeout-zero-is-never": f"""
        {_QUEUE}
        a.1 basic.consume q tag=c x-consumer-timeout=0
        broker clock.wait 1300
    """,
    "later-timeout-holds": """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.consume q tag=c
        broker operator.set-policy p1 queue=q consumer-timeout=300
        a.1 basic.publish q body=m1
        broker clock.wait 800
    """,
    "timeout-since-publish": f"""
        {_QUEUE}
        broker clock.wait 500
        a.1 basic.consume q tag=c x-consumer-timeout=800
        broker clock.wait 2100
    """,
    "timeout-since-first-delivery": f"""
        {_QUEUE}
        a.1 basic.consume q tag=c x-consumer-timeout=1000
        broker clock.wait 400
        a.1 basic.nack 1 requeue
        broker clock.wait 2200
    """,
    "timeout-of-next-forgotten": f"""
        {_QUEUE}
        a.1 basic.publish q body=m2
        a.1 basic.qos 1
        {_CONSUME}
        b.1 basic.qos 1
        b.1 basic.consume q tag=d x-consumer-timeout=1200
        broker clock.wait 2500
    """,
    "get-never-times-out": f"""
        a.1 queue.declare q durable x-queue-type=quorum x-consumer-timeout=300
        a.1 basic.publish q body=m1
        a.1 basic.get q
        {_WAIT}
    """,
    "classic-queue-times-out": """
        broker operator.set-policy p1 queue=q consumer-timeout=300
        a.1 queue.declare q durable
        a.1 basic.publish q body=m1
        a.1 basic.consume q tag=c
        broker clock.wait 800
    """,
    "no-ack-times-out": """
        a.1 queue.declare q durable x-queue-type=quorum
        a.1 basic.consume q tag=c no-ack x-consumer-timeout=300
        a.1 basic.publish q body=m1
        broker clock.wait 800
    """,
    # ------------------------------------------------------------------------------------------- effects
    "timed-out-message-lost": _HANDED_ON,
    "younger-deliveries-time-out": f"""
        {_QUEUE}
        a.1 basic.consume q tag=c x-consumer-timeout=2000
        broker clock.wait 1500
        a.1 basic.publish q body=m2
        broker clock.wait 1700
        b.1 queue.declare q passive
    """,
    "timeout-counts-as-failed": f"""
        {_QUEUE}
        {_CONSUME}
        {_WAIT}
        b.1 basic.get q
    """.replace("type=quorum", "type=quorum x-delivery-limit=0"),
    "timed-out-not-redelivered": _HANDED_ON,
    "timeout-told-twice": _TIMED_OUT,
    "timeout-not-told": _TIMED_OUT,
    "timeout-of-another-told": _TWO_CONSUMERS,
    "timeout-of-all-told": _TWO_CONSUMERS,
    "timeout-stops-channel": f"{_TWO_CONSUMERS}\n        a.1 basic.publish p body=m3",
    "timeout-closes-channel": _TIMED_OUT,
    "timeout-told-uncalled": _INCAPABLE,
    "timed-out-channel-not-closed": _INCAPABLE,
    "timeout-after-cancel-closes": f"""
        {_QUEUE}
        {_CONSUME}
        a.1 basic.cancel c
        {_WAIT}
    """,
    "timed-out-consumer-counted": f"{_TIMED_OUT}\n        b.1 queue.declare q passive",
    "timeout-told-again": f"""
        {_QUEUE}
        a.1 basic.consume q tag=c x-consumer-timeout=1500
        broker clock.wait 900
        a.1 basic.publish q body=m2
        broker clock.wait 2900
    """,
    "timed-out-consumer-served": f"{_TIMED_OUT}\n        a.1 basic.publish q body=m2",
    "timed-out-stays-active": _HANDED_ON.replace("type=quorum", "type=quorum x-single-active-consumer=true"),
    "timed-out-tag-kept": f"""
        {_TIMED_OUT}
        a.1 basic.cancel c
        a.1 basic.consume q tag=c
    """,
    "timed-out-tag-in-use": f"{_TIMED_OUT}\n        a.1 basic.consume q tag=c",
    "late-settling-refused": f"{_TIMED_OUT}\n        a.1 basic.ack 1",
    "late-settling-settles": f"""
        {_HANDED_ON}
        a.1 basic.ack 1
        b.1 basic.nack 1 requeue
    """,
    "late-ack-resumes": f"{_TIMED_OUT}\n        a.1 basic.ack 1",
    "late-commit-resumes": f"""
        a.1 tx.select
        {_QUEUE}
        a.1 tx.commit
        {_CONSUME}
        {_WAIT}
        a.1 basic.ack 1
        a.1 tx.commit
    """,
    "late-nack-resumes": f"{_TIMED_OUT}\n        a.1 basic.nack 1",
    "late-recover-resumes": f"{_TIMED_OUT}\n        a.1 basic.recover requeue",
    "late-ack-resumes-early": f"{_TWO_TIMED_OUT}\n        a.1 basic.ack 1",
    # --------------------------------------------------------------------------------------- up to 4.2
    "channel-closed-for-capable-only": f"""
        a connection.open consumer-cancel-notify=false
        {_CLOSED}
    """,
    "consumer-cancelled-before-4.3": _CLOSED.replace("durable", "durable x-queue-type=quorum"),
    "channel-tick-not-set": _CLOSED.replace("interval=100", "interval=400").replace("1700", "2000"),
    "youngest-delivery-counts": f"""
        broker operator.configure consumer-timeout=2400 channel-tick-interval=100
        {_HELD}
        broker clock.wait 2000
        a.1 basic.publish q body=m2
        broker clock.wait 1850
    """,
    "settled-delivery-counts": f"""
        broker operator.configure consumer-timeout=800 channel-tick-interval=100
        {_HELD}
        broker clock.wait 500
        a.1 basic.publish q body=m2
        a.1 basic.ack 1
        broker clock.wait 500
        a.1 queue.declare q passive
        broker clock.wait 1600
    """,
    "timed-out-channel-keeps": f"""
        {_LOOKED_AT}
        {_HELD}
        a.2 basic.consume q tag=d
        broker clock.wait 1700
    """,
    "queue-timeout-ignored": """
        broker operator.configure channel-tick-interval=100
        a.1 queue.declare q durable x-consumer-timeout=300
        a.1 basic.publish q body=m1
        a.1 basic.consume q tag=c
        broker clock.wait 1700
    """,
    "queue-timeout-before-3.12": """
        broker operator.configure channel-tick-interval=100
        a.1 queue.declare q durable x-consumer-timeout=300
        a.1 basic.publish q body=m1
        a.1 basic.consume q tag=c
        broker clock.wait 800
    """,
    "consumer-timeout-before-4.3": """
        broker operator.configure channel-tick-interval=100
        a.1 queue.declare q durable
        a.1 basic.publish q body=m1
        a.1 basic.consume q tag=c x-consumer-timeout=300
        broker clock.wait 800
    """,
    "stream-never-times-out": f"""
        {_LOOKED_AT}
        a.1 queue.declare q durable x-queue-type=stream
        a.1 basic.qos 10
        a.1 basic.consume q tag=c
        a.1 basic.publish q body=m1
        broker clock.wait 1700
    """,
}
