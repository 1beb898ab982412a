"""The shortest commands that show each faulty variant of limits on queues, by its name."""

from __future__ import annotations

_TO_D = 'x-dead-letter-exchange="" x-dead-letter-routing-key=d'

OVERFLOW_LINES: dict[str, str] = {
    "length-limit-one-too-low": """
        a.1 queue.declare q durable x-max-length=2
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "length-zero-is-no-limit": """
        a.1 queue.declare q durable x-max-length=0
        a.1 basic.publish q body=m1
    """,
    "byte-limit-ignored": """
        a.1 queue.declare q durable x-max-length-bytes=3
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "byte-limit-one-too-low": """
        a.1 queue.declare q durable x-max-length-bytes=2
        a.1 basic.publish q body=m1
    """,
    "limit-drops-newest": """
        a.1 queue.declare q durable x-max-length=1
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
        a.1 basic.get q
    """,
    "held-messages-count": """
        a.1 queue.declare q durable x-max-length=1
        a.1 basic.publish q body=m1
        a.1 basic.get q
        a.1 basic.publish q body=m2
    """,
    "dropped-by-limit-not-dead-lettered": """
        a.1 queue.declare d
        a.1 queue.declare q durable x-max-length=0 x-dead-letter-exchange="" x-dead-letter-routing-key=d
        a.1 basic.publish q body=m1
    """,
    "dropped-by-limit-said-to-be-rejected": """
        a.1 queue.declare d
        a.1 queue.declare q durable x-max-length=0 x-dead-letter-exchange="" x-dead-letter-routing-key=d
        a.1 basic.publish q body=m1
        a.1 basic.get d
    """,
    "refusal-one-too-late": """
        a.1 queue.declare q durable x-max-length=1 x-overflow=reject-publish
        a.1 confirm.select
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "quorum-refuses-at-its-limit": """
        a.1 queue.declare q durable x-queue-type=quorum x-max-length=1 x-overflow=reject-publish
        a.1 confirm.select
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
    """,
    "refused-publish-acked": """
        a.1 queue.declare q durable x-max-length=0 x-overflow=reject-publish
        a.1 confirm.select
        a.1 basic.publish q body=m1
    """,
    "last-that-fits-nacked": """
        a.1 queue.declare q durable x-max-length=1 x-overflow=reject-publish
        a.1 confirm.select
        a.1 basic.publish q body=m1
    """,
    "refused-message-kept": """
        a.1 queue.declare q durable x-max-length=0 x-overflow=reject-publish
        a.1 confirm.select
        a.1 basic.publish q body=m1
        a.1 basic.get q
    """,
    "refused-without-confirms-kept": """
        a.1 queue.declare q durable x-max-length=0 x-overflow=reject-publish
        a.1 basic.publish q body=m1
        a.1 basic.get q
    """,
    "one-that-takes-it-is-enough": """
        a.1 queue.declare q durable x-max-length=0 x-overflow=reject-publish
        a.1 queue.declare r
        a.1 exchange.declare x fanout
        a.1 queue.bind q x
        a.1 queue.bind r x
        a.1 confirm.select
        a.1 basic.publish k exchange=x body=m1
    """,
    "refused-publish-not-dead-lettered": f"""
        a.1 queue.declare d
        a.1 queue.declare q durable x-max-length=0 x-overflow=reject-publish-dlx {_TO_D}
        a.1 confirm.select
        a.1 basic.publish q body=m1
    """,
    "refused-comes-back": """
        a.1 queue.declare q durable x-max-length=0 x-overflow=reject-publish
        a.1 confirm.select
        a.1 basic.publish q body=m1 mandatory
    """,
}
