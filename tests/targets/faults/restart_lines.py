"""The shortest commands that show each faulty variant of restarts, by its name."""

from __future__ import annotations

_QUEUE = "a.1 queue.declare q durable"
_QUORUM = "a.1 queue.declare q durable x-queue-type=quorum"
_PUBLISH = "a.1 basic.publish q body=m1 delivery-mode=2"
_ANOTHER = "a.1 basic.publish q body=m2 delivery-mode=2"
_GET = "b.1 basic.get q"


def _lines(*lines: str) -> str:
    return "\n".join(lines)


RESTART_LINES: dict[str, str] = {
    "stop-forgets-message": _lines(_QUEUE, _PUBLISH, "broker.restart", _GET),
    "stop-forgets-quorum-message": _lines(_QUORUM, _PUBLISH, "broker.restart", _GET),
    "confirms-before-disk": _lines(_QUEUE, "a.1 confirm.select", _PUBLISH, "broker.kill", "broker.restart", _GET),
    "restart-forgets-redelivered": _lines(_QUEUE, _PUBLISH, "a.1 basic.get q", "broker.restart", _GET),
    "restart-counts-anew": _lines(_QUORUM, _PUBLISH, "a.1 basic.get q", "broker.restart", _GET),
    "restart-doubles-message": _lines(_QUEUE, _PUBLISH, "broker.restart", "b.1 basic.consume q tag=t"),
    "restart-turns-around": _lines(_QUEUE, _PUBLISH, _ANOTHER, "broker.restart", _GET),
    "restart-flags-all": _lines(_QUEUE, _PUBLISH, "broker.restart", _GET),
    "restart-shifts-stream": _lines(
        "a.1 queue.declare q durable x-queue-type=stream", "a.1 confirm.select", _PUBLISH, _ANOTHER,
        "broker.restart", "b.1 basic.qos 10",
        "b.1 basic.consume q x-stream-offset=first",
    ),
    "restart-doubles-letters": _lines(
        "a.1 queue.declare d durable",
        'a.1 queue.declare q durable x-dead-letter-exchange="" x-dead-letter-routing-key=d',
        _PUBLISH, "a.1 basic.get q", "a.1 basic.reject 1", "broker.restart", "b.1 basic.consume d tag=t",
    ),
    "restart-keeps-transient": _lines(_QUEUE, "a.1 basic.publish q", "broker.restart", _GET),
    "restart-keeps-exclusive-queue": _lines(
        "a.1 queue.declare q durable exclusive", "broker.kill", "broker.restart", "b.1 queue.declare q passive"
    ),
    "restart-keeps-transient-queue": _lines("a.1 queue.declare q", "broker.restart", "b.1 queue.declare q passive"),
    "restart-deletes-unused-queue": _lines(
        "a.1 queue.declare q durable auto-delete", "broker.restart", "b.1 queue.declare q passive"
    ),
    "restart-expires-queues": _lines(
        "a.1 queue.declare q durable x-expires=60000", "broker.restart", "b.1 queue.declare q passive"
    ),
    "restart-keeps-consumer": _lines(
        _QUEUE, "a.1 basic.consume q tag=t", "broker.kill", "broker.restart", "b.1 queue.declare q passive"
    ),
    "restart-loses-bindings": _lines(
        _QUEUE, "a.1 exchange.declare x fanout durable", "a.1 queue.bind q x", "broker.restart",
        "b.1 basic.publish exchange=x",
    ),
    "restart-commits": _lines(_QUEUE, "a.1 tx.select", _PUBLISH, "broker.kill", "broker.restart", _GET),
    "kill-forgets-quorum-message": _lines(
        _QUORUM, "broker clock.wait 1500", "a.1 confirm.select", _PUBLISH, "broker.kill", "broker.restart", _GET
    ),
    "restart-forgets-given-back": _lines(
        _QUORUM, _PUBLISH, "a.1 basic.get q", "a.1 basic.reject 1 requeue", "broker.restart", _GET
    ),
    "restart-publishes-half": _lines(
        _QUEUE, "a.1 basic.publish q unfinished", "a.1 frame.header body-size=8", "a.1 frame.body body=half",
        "broker.kill", "broker.restart", _GET,
    ),
    "restart-forgets-permissions": _lines(
        "broker operator.add-user u password=p", "broker operator.set-permissions u configure=.*", "broker.restart",
        "b connection.open user=u password=p",
    ),
    "resume-ends-connections": _lines(_QUEUE, "broker.pause", "broker.resume"),
    "restart-renews-time": _lines(
        "a.1 queue.declare q durable x-message-ttl=5000", _PUBLISH, "broker clock.wait 2000", "broker.restart",
        "broker clock.wait 4500", _GET,
    ),
}  # fmt: skip
