"""Lines that expect something: read, and printed so that they are read as the same."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command import EXPECT, EXPECT_FRAME
from amqpspec.conformance.language.command_parsing import CommandSyntaxError, parse_command


@pytest.mark.parametrize(
    "line",
    [
        "expect nothing",
        "expect ready q 0",
        'expect ready "a queue" 3',
        "expect a.1 channel.close reply-code=403 reply-text=ACCESS_REFUSED*",
        "expect a connection.close",
        "expect a@2.1 basic.cancel consumer-tag=t",
        "expect a socket.closed",
        'expect a.1 basic.deliver delivery-tag=2 redelivered body="m 1" headers={"x": 1} message-id="7"',
        "expect a.1 basic.get-empty",
    ],
)  # fmt: skip
def test_a_line_is_read_as_it_is_printed(line: str) -> None:
    text = line.replace(" redelivered ", " redelivered=true ").replace('message-id="7"', "message-id=7")
    command = parse_command(text)
    assert command.connection == EXPECT and str(command) == text
    assert parse_command(str(command)) == command


def test_what_is_expected_of_a_frame() -> None:
    command = parse_command("expect a.1 channel.close reply-code=403")
    assert command.method == EXPECT_FRAME
    assert command.arguments == {"on": "a.1", "frame": "channel.close", "fields": {"reply_code": 403}}


@pytest.mark.parametrize(
    ("line", "column"),
    [("expect", 7), ("expect a.1", 11), ("expect a.1! channel.close", 8), ("expect ready q", 8),
     ("expect ready q -1", 16), ("expect a.1 basic.deliver body=m body=n", 33), ("expect a.1 channel.close 403", 26),
     ("expect nothing &", 16)],
)  # fmt: skip
def test_the_column_of_what_is_wrong(line: str, column: int) -> None:
    with pytest.raises(CommandSyntaxError) as raised:
        parse_command(line)
    assert raised.value.column == column
