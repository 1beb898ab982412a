"""The shortest commands that show each faulty variant of policies, by its name."""

from __future__ import annotations

_QUEUES = """
        a.1 confirm.select
        a.1 queue.declare q durable
        a.1 queue.declare d durable
        a.1 queue.declare e durable
"""
_LETTERS = "dead-letter-exchange= dead-letter-routing-key"
_PUBLISH = """
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
        a.1 queue.declare q durable passive
"""

POLICY_LINES = {
    "policy-ignored": f"""
        {_QUEUES}
        broker operator.set-policy p queue=q max-length=1
        {_PUBLISH}
    """,
    "policy-overflow-ignored": f"""
        {_QUEUES}
        broker operator.set-policy p queue=q max-length=1 overflow=reject-publish
        {_PUBLISH}
    """,
    "policy-dead-letters-ignored": f"""
        {_QUEUES}
        broker operator.set-policy p queue=q {_LETTERS}=d
        a.1 basic.publish q body=m1
        a.1 basic.get q
        a.1 basic.reject 1
        a.1 basic.get d
    """,
    "policy-delivery-limit-ignored": """
        a.1 queue.declare q durable x-queue-type=quorum
        broker operator.set-policy p queue=q delivery-limit=0
        a.1 basic.publish q body=m1
        a.1 basic.get q
        a.1 basic.reject 1 requeue
        a.1 basic.get q
    """,
    "argument-prevails": f"""
        a.1 confirm.select
        a.1 queue.declare q durable x-max-length=2
        broker operator.set-policy p queue=q max-length=1
        {_PUBLISH}
    """,
    "policy-prevails": f"""
        {_QUEUES}
        a.1 queue.declare r durable x-dead-letter-exchange= x-dead-letter-routing-key=d
        broker operator.set-policy p queue=r {_LETTERS}=e
        a.1 basic.publish r body=m1
        a.1 basic.get r
        a.1 basic.reject 1
        a.1 basic.get d
    """,
    "new-limit-waits": f"""
        {_QUEUES}
        {_PUBLISH}
        broker operator.set-policy p queue=q max-length=1
        a.1 queue.declare q durable passive
    """,
    "dead-letters-by-first-policy": f"""
        {_QUEUES}
        broker operator.set-policy p queue=q {_LETTERS}=d
        a.1 basic.publish q body=m1
        a.1 basic.get q
        broker operator.set-policy p queue=q {_LETTERS}=e
        a.1 basic.reject 1
        a.1 basic.get e
    """,
    "policy-never-cleared": f"""
        {_QUEUES}
        broker operator.set-policy p queue=q max-length=1
        broker operator.clear-policy p
        {_PUBLISH}
    """,
    "lowest-policy-applies": f"""
        {_QUEUES}
        broker operator.set-policy p1 queue=q max-length=5
        broker operator.set-policy p2 queue=q max-length=1 priority=1
        {_PUBLISH}
    """,
    "policy-is-argument": f"""
        {_QUEUES}
        broker operator.set-policy p queue=q max-length=1
        a.1 queue.declare q durable
    """,
    "policy-time-to-live-ignored": f"""
        {_QUEUES}
        broker operator.set-policy p queue=q message-ttl=300
        a.1 basic.publish q body=m1
        broker clock.wait 1900
        a.1 basic.get q
    """,
    "policy-expiry-ignored": f"""
        {_QUEUES}
        broker operator.set-policy p queue=q expires=300
        broker clock.wait 1900
        a.1 queue.declare q durable passive
    """,
    "new-time-for-all": f"""
        {_QUEUES}
        a.1 basic.publish q body=m1
        broker operator.set-policy p queue=q message-ttl=300
        broker clock.wait 1900
        a.1 basic.get q
    """,
}
