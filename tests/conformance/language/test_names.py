"""Names on the broker: what carries the prefix of a sequence, and what does not; reports are without it."""

from __future__ import annotations

import re

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.language.names import new_prefix, on_the_broker, plain, plain_failure
from amqpspec.model.promises.verdict import Failure, Shape

P = "amqpspec-0123456789-"


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("a.1 queue.declare q", f"a.1 queue.declare {P}q"),
        ("a.1 basic.get q", f"a.1 basic.get {P}q"),
        ("a.1 basic.consume q tag=q", f"a.1 basic.consume {P}q tag=q"),
        ("a.1 queue.bind q x routing-key=q", f"a.1 queue.bind {P}q {P}x routing-key=q"),
        ("a.1 exchange.declare x direct", f"a.1 exchange.declare {P}x direct"),
        # no name: the broker's choice, or the queue that was last declared
        ('a.1 queue.declare ""', 'a.1 queue.declare ""'),
        ("a.1 queue.declare", "a.1 queue.declare"),
        # the broker's own names
        ("a.1 queue.declare amq.gen-JzTY20BRgKO-HjmUJj0wLg", "a.1 queue.declare amq.gen-JzTY20BRgKO-HjmUJj0wLg"),
        ("a.1 queue.bind q amq.direct", f"a.1 queue.bind {P}q amq.direct"),
        ("a.1 queue.declare amqp", f"a.1 queue.declare {P}amqp"),
        # with the default exchange the routing key is a queue's name
        ("a.1 basic.publish q body=q", f"a.1 basic.publish {P}q body=q"),
        ('a.1 basic.publish q exchange=""', f'a.1 basic.publish {P}q exchange=""'),
        ("a.1 basic.publish q exchange=x", f"a.1 basic.publish q exchange={P}x"),
        ("a.1 basic.publish q exchange=amq.topic", "a.1 basic.publish q exchange=amq.topic"),
        ("a.1 basic.publish amq.gen-1", "a.1 basic.publish amq.gen-1"),
        ("a.1 basic.publish", 'a.1 basic.publish ""'),
        (
            "a.1 queue.declare q x-dead-letter-exchange=x x-dead-letter-routing-key=r x-queue-type=quorum",
            f"a.1 queue.declare {P}q x-dead-letter-exchange={P}x x-dead-letter-routing-key=r x-queue-type=quorum",
        ),
        (
            'a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=r',
            f'a.1 queue.declare {P}q x-dead-letter-exchange="" x-dead-letter-routing-key={P}r',
        ),
        (
            "broker operator.set-policy p queue=q dead-letter-exchange=x dead-letter-routing-key=r",
            f"broker operator.set-policy {P}p queue={P}q dead-letter-exchange={P}x dead-letter-routing-key=r",
        ),
        (
            'broker operator.set-policy p queue=q dead-letter-exchange="" dead-letter-routing-key=r',
            f'broker operator.set-policy {P}p queue={P}q dead-letter-exchange="" dead-letter-routing-key={P}r',
        ),
        ("a.1 queue.declare q x-dead-letter-exchange=5", f"a.1 queue.declare {P}q x-dead-letter-exchange=5"),
        ("a.1 basic.ack 3 multiple &", "a.1 basic.ack 3 multiple &"),
    ],
)
def test_which_names_carry_the_prefix(written: str, sent: str) -> None:
    command = parse_command(written)
    before = str(command)
    assert on_the_broker(command, P) == parse_command(sent)
    assert str(command) == before, "the command itself stays as it was"


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("b.1 basic.publish $reply-to body=m", "b.1 basic.publish ADDRESS body=m"),
        ("b.1 queue.declare $reply-to passive", "b.1 queue.declare ADDRESS passive"),
        ("b.1 queue.bind $reply-to x routing-key=k", f"b.1 queue.bind ADDRESS {P}x routing-key=k"),
        ("b.1 queue.bind q x routing-key=$reply-to", f"b.1 queue.bind {P}q {P}x routing-key=ADDRESS"),
        ("b.1 basic.publish q reply-to=$reply-to", f"b.1 basic.publish {P}q reply-to=ADDRESS"),
        (
            'b.1 basic.publish $reply-to headers={"CC": ["$reply-to", "q"]}',
            f'b.1 basic.publish ADDRESS headers={{"CC": ["ADDRESS", "{P}q"]}}',
        ),
        ('b.1 basic.publish k exchange=x headers={"n": {"CC": "$reply-to"}}',
         f'b.1 basic.publish k exchange={P}x headers={{"n": {{"CC": "ADDRESS"}}}}'),
    ],
)
def test_an_address_of_direct_replies_is_the_latest_that_a_message_carried(written: str, sent: str) -> None:
    address = "amq.rabbitmq.reply-to.latest"
    assert str(on_the_broker(parse_command(written), P, address)) == sent.replace("ADDRESS", address)
    assert address not in str(on_the_broker(parse_command(written), P)), "none was seen"


def test_the_headers_of_the_last_message_are_sent_again_as_they_came() -> None:
    command = parse_command("a.1 basic.publish q headers=$last body=m1")
    assert parse_command(str(command)) == command
    came = {"x-death": [{"queue": f"{P}q", "count": 2}], "k": "v"}
    sent = on_the_broker(command, P, last_headers=came)
    assert sent.content is not None and sent.content.properties == {"headers": came}
    before = on_the_broker(command, P)
    assert before.content is not None and before.content.properties == {}, "no message has come with any"


def test_the_history_of_a_dead_letter_names_queues() -> None:
    written = parse_command(
        'a.1 basic.publish k exchange=x headers={"x-death": [{"queue": "q", "exchange": "", "routing-keys": ["q"]}, '
        '{"queue": "r", "exchange": "x", "routing-keys": ["k"]}], "x-first-death-queue": "q", '
        '"x-last-death-exchange": "", "x-first-death-reason": "expired"}'
    )
    sent = on_the_broker(written, P).content
    assert sent is not None and sent.properties["headers"] == {
        "x-death": [
            {"queue": f"{P}q", "exchange": "", "routing-keys": [f"{P}q"]},
            {"queue": f"{P}r", "exchange": f"{P}x", "routing-keys": ["k"]},
        ],
        "x-first-death-queue": f"{P}q", "x-last-death-exchange": "", "x-first-death-reason": "expired",
    }  # fmt: skip


@pytest.mark.parametrize("headers", ["none of yours", "[1, 2]"])
def test_what_is_no_history_stays_as_it_is(headers: str) -> None:
    text = headers if headers.startswith("[") else f'"{headers}"'
    sent = on_the_broker(parse_command(f'a.1 basic.publish q headers={{"x-death": {text}}}'), P).content
    assert sent is not None and sent.properties["headers"]["x-death"] == (headers if text[0] == '"' else [1, 2])


def test_prefixes_are_random_and_can_be_taken_off_again() -> None:
    prefixes = {new_prefix() for _ in range(200)}
    assert len(prefixes) == 200
    for prefix in prefixes:
        assert re.fullmatch(r"[a-z0-9-]{1,30}", prefix), "fit for any broker's names"
        assert plain(f"no queue '{prefix}q1' in vhost '/', nor {prefix}x") == "no queue 'q1' in vhost '/', nor x"
    assert plain("amqpspec-q and amqpspec-012345678-q stay") == "amqpspec-q and amqpspec-012345678-q stay"


def test_failures_are_shown_without_the_prefix() -> None:
    failure = Failure(
        "ACK-001",
        Shape.MISSING,
        f"1 of 1 ready messages of {P}q",
        "a.1 basic.get q",
        f"a.1 < x {P}q",
        (f"{P}q", "b"),
        (f"queue {P}q",),
        "known",
    )
    shown = plain_failure(failure)
    assert P not in repr(shown)
    assert shown.identity == "ACK-001|known"
    assert (shown.detail, shown.allowed, shown.state) == ("1 of 1 ready messages of q", ("q", "b"), ("queue q",))
