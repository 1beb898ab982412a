"""A conversation in which a lawful broker answers, until the test has the broker do something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import chosen
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.protocol.methods import Content, TraceEvent, event_of
from amqpspec.model.rules.inputs import process
from tests.handshakes import CAPABLE, opening
from tests.model.judging.test_acceptor import Conversation


class Answered(Conversation):
    """Each line is answered before the next one is sent, but for lines that end in `&`, and for the last one.

    Connections of the name `u` are not told of cancels.
    """

    def __init__(self, dialect: str) -> None:
        super().__init__(dialect)
        self.lawful = Broker(self.acceptor.dialect)

    def carry_out(self, *lines: str) -> Self:
        for number, line in enumerate(lines, start=1):
            self.send(line)
            if not parse_command(line).in_flight and number < len(lines):
                self.answer().rest()
        return self

    def answer(self) -> Self:
        """Whatever the lawful broker has to say."""
        while (event := next(iter(permitted(self.lawful)), None)) is not None:
            assert observe(self.lawful, event) == ()
            self.acceptor.received(event)
        return self

    def rest(self) -> Self:
        if self.lawful.quiet:
            self.lawful.come_to_rest()
        return super().rest()

    def crash(self, connection: str) -> Self:
        about: dict[str, Any] = {"reply_code": 541, "reply_text": "INTERNAL_ERROR", "class_id": 0, "method_id": 0}
        return self.see(connection, "connection.close", **about)

    def silence(self) -> Self:
        """Nothing comes, and nothing will."""
        self.acceptor.overdue()
        return self

    def count(self, messages: int, consumers: int = 0) -> Self:
        return self.see("c.1", "queue.declare-ok", queue="q", message_count=messages, consumer_count=consumers)

    def got_letter(self, channel: str, tag: int, body: str, left: int) -> Self:
        """From the queue d, with the headers that it has to have."""
        letters = self.lawful.queues["d"].messages
        content = next(each.content for each in letters if each.content.body == body.encode())
        about = {"delivery_tag": tag, "redelivered": False, "exchange": "", "routing_key": "d", "message_count": left}
        return self.see(channel, "basic.get-ok", body, properties=chosen(content.properties), **about)

    def _ensure_open(self, connection: str, number: int) -> None:
        capabilities: Mapping[str, Any] = {} if connection == "u" else CAPABLE
        if connection != "broker" and (connection, 0) not in self._open:
            self._open.add((connection, 0))
            for method in opening(connection, self.acceptor.dialect, capabilities):
                (self.acceptor.sent if method.sent else self.acceptor.received)(method)
                if method.sent:
                    process(self.lawful, method)
                else:
                    assert observe(self.lawful, method) == ()
        if number and (connection, number) not in self._open:
            self._open.add((connection, number))
            self._sent(connection, number, "channel.open", {})
            self.answer()

    def _sent(self, connection: str, number: int, method: str, arguments: Any, content: Content | None = None) -> None:
        event = event_of(connection, number, method, dict(arguments), sent=True, content=content)
        if method in ("channel.close", "connection.close"):
            self._open -= {each for each in self._open if each[0] == connection and number in (0, each[1])}
        self.acceptor.sent(event)
        process(self.lawful, event)


def input_of(line: str) -> TraceEvent:
    command = parse_command(line)
    arguments = dict(command.arguments)
    return event_of(command.connection, command.channel, command.method, arguments, True, command.content)
