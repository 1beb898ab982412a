"""Does a broker still answer, and does it serve a fresh connection? Some hang, and stay so."""

from __future__ import annotations

import secrets
import time
from types import TracebackType
from typing import Any, Self

from amqpspec.model.protocol.methods import Content, Method, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.codec.field_values import EncodingError
from amqpspec.targets.errors import ServesNoMore, TargetError, TargetUnreachable

#: Seconds that a broker in good health may take for all of it: at the most, and at the least.
TIME_LIMIT, SHORT_TIME_LIMIT = 10.0, 3.0
#: Seconds until a message that was published may be got; nothing says that it is there at once.
PUBLISHING_TIME = 2.0
_BODY = b"alive"
_ENDS = ("channel.close", "connection.close", "socket.closed", "socket.garbage")


def check_alive(address: Address, time_limit: float = TIME_LIMIT, has_served: bool = False) -> bool:
    """Connect, declare a queue and delete it. Raises `TargetError` if the broker does not get through it in time.

    False: it refuses, but it answers. Where it `has_served` a fresh connection before, a part of it is gone by now: it
    is asked a second time, and a second refusal raises `ServesNoMore`.
    A broker that leaves queue.delete unanswered, and answers the channel.close behind it, does not know queue.delete:
    it is not gone.
    """
    for is_last in (False, True) if has_served else (True,):
        with _Visit(address, time_limit) as visit:
            refusal = visit.declare()
            if refusal is None:
                visit.delete()
                return True
        if is_last and has_served:
            raise ServesNoMore(f"{address} serves no fresh connection any more: {refusal}")
    return False


def is_alive(address: Address) -> bool:
    try:
        check_alive(address)
    except TargetError:
        return False
    return True


def not_served(address: Address, gets: bool = True) -> str | None:
    """What is wrong with how a fresh connection is served, which publishes a message and gets it; None: nothing is.

    `gets`: the broker knows basic.get. Raises `TargetError` if the broker does not answer any more.
    """
    with _Visit(address) as visit:
        if (wrong := visit.declare()) is not None:
            return wrong
        wrong = visit.publish_and_get() if gets else None
        if wrong is None and (refusal := visit.delete()) is not None:
            wrong = _refused("queue.delete", refusal)
    return wrong


class Watch:
    """Asks a broker again and again whether it answers: on one connection, for as long as that lasts."""

    def __init__(self, address: Address, time_limit: float = TIME_LIMIT, has_served: bool = False) -> None:
        """The arguments are those of `check_alive`."""
        self._address = address
        self._time_limit = time_limit
        self._has_served = has_served
        self._visit: _Visit | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def ask(self) -> None:
        """Raises `TargetError` if the broker does not answer in time, or serves no fresh connection where the one
        before has ended.
        """
        if self._visit is not None and self._visit.is_served_again():
            return
        self._leave()
        check_alive(self._address, self._time_limit, self._has_served)
        self._visit = _Visit(self._address, self._time_limit).__enter__()
        self._visit.ask("channel.open", {})

    def _leave(self) -> None:
        if self._visit is not None:
            self._visit.__exit__(None, None, None)
            self._visit = None


def _refused(method: str, answer: TraceEvent) -> str:
    return f"{method} on a fresh connection is answered by {answer.name}"


class _Visit:
    """A connection of its own, with one channel."""

    def __init__(self, address: Address, time_limit: float = TIME_LIMIT) -> None:
        self.queue = {"queue": f"amqpspec-{secrets.token_hex(5)}-alive"}
        #: an operator may have denied all others that are not durable
        self._declared = {**self.queue, "exclusive": True}
        self._address = address
        self._client = WireClient(address)
        self._time_limit = time_limit
        self._deadline = time.monotonic() + time_limit

    def __enter__(self) -> Self:
        self._client.__enter__()
        try:
            self._client.open("alive", timeout=self._time_limit)
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.__exit__(kind, error, trace)

    def declare(self) -> str | None:
        """Open the channel and declare the queue. Gives the refusal, if there is one."""
        for method, arguments in (("channel.open", {}), ("queue.declare", self._declared)):
            if not (answer := self.ask(method, arguments)).name.endswith("-ok"):
                return _refused(method, answer)
        return None

    def is_served_again(self) -> bool:
        """Declare one more queue, and delete it without being told. Raises `TargetUnreachable` where no answer comes;
        False: the connection or its channel has ended.
        """
        self._deadline = time.monotonic() + self._time_limit
        another = {"queue": f"amqpspec-{secrets.token_hex(5)}-alive"}
        answer = self._answer("queue.declare", {**another, "exclusive": True})
        if answer is None:
            raise self._unanswered("queue.declare")
        if not answer.name.endswith("-ok"):
            return False
        self.send("queue.delete", {**another, "nowait": True})
        return True

    def publish_and_get(self) -> str | None:
        """What is wrong with what comes of a message that is published."""
        try:
            self.send("basic.publish", {"exchange": "", "routing_key": self.queue["queue"]}, Content({}, _BODY))
        except EncodingError as error:
            return str(error)  # by the frame-max that the broker wants
        got = self.ask("basic.get", {**self.queue, "no_ack": True})
        until = time.monotonic() + PUBLISHING_TIME
        while got.name == "basic.get-empty" and time.monotonic() < until:
            got = self.ask("basic.get", {**self.queue, "no_ack": True})
        if got.name.endswith(".close"):
            return _refused("basic.get", got)
        if isinstance(got, Method) and got.content is not None and got.content.body == _BODY:
            return None
        return f"what a fresh connection publishes does not come: {got.name}"

    def delete(self) -> TraceEvent | None:
        """Delete the queue and close the channel, which is answered after it. Gives a refusal, if there is one."""
        self.send("queue.delete", self.queue)
        answer = self.ask("channel.close", {"reply_code": 200, "reply_text": "done", "class_id": 0, "method_id": 0})
        return answer if answer.name in _ENDS else None

    def send(self, method: str, arguments: dict[str, Any], content: Content | None = None) -> None:
        self._client.send(Method("alive", 1, method, dict(arguments), sent=True, content=content))

    def ask(self, method: str, arguments: dict[str, Any]) -> TraceEvent:
        """The answer, or that the broker closes. Raises `TargetUnreachable` where neither comes, or the connection
        is gone.
        """
        event = self._answer(method, arguments)
        if event is None or event.name in ("socket.closed", "socket.garbage"):
            raise self._unanswered(method)
        return event

    def _unanswered(self, method: str) -> TargetUnreachable:
        return TargetUnreachable(f"{self._address} does not answer {method} any more")

    def _answer(self, method: str, arguments: dict[str, Any]) -> TraceEvent | None:
        """The answer or an end; None: neither has come in time."""
        self.send(method, arguments)
        answers = (f"{method}-ok", "basic.get-empty" if method == "basic.get" else "", *_ENDS)
        event = self._client.receive_before(self._deadline)
        while event is not None and event.name not in answers:
            event = self._client.receive_before(self._deadline)
        return event
