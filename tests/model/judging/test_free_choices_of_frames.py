"""Free choices of what is made of octets: whatever no text promises, a broker may do either way."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import event_of
from amqpspec.model.rules.connection.handshake_content import HEADER_0_9_1, HEADER_1_0, HEADERS_0_8
from tests.handshakes import opening, start
from tests.model.judging.test_acceptor import Conversation, consuming

VERSIONS = [name for name in DIALECTS if name.startswith("rabbitmq")]


def is_right(talk: Conversation) -> bool:
    return talk.rest().acceptor.verdict is Verdict.PASS


def closed(talk: Conversation, code: int, text: str, class_id: int = 0, method_id: int = 0) -> Conversation:
    return talk.see("a", "connection.close", reply_code=code, reply_text=text, class_id=class_id, method_id=method_id)


@pytest.mark.parametrize("dialect", VERSIONS)
@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("a.1 frame.other type=1 payload=003c end=205",
         "FRAME_ERROR - type 1, all octets = <<0,60>>: {invalid_frame_end_marker,205}"),
        ("a.1 frame.other type=9 payload=00", "FRAME_ERROR - type 9, all octets = <<0>>: unknown_frame"),
    ],
)  # fmt: skip
def test_what_is_no_frame_ends_the_connection_with_501_or_without_a_word(dialect: str, line: str, text: str) -> None:
    assert is_right(closed(Conversation(dialect).send(line), 501, text))
    assert is_right(Conversation(dialect).send(line).see("a", "socket.closed"))
    assert not is_right(closed(Conversation(dialect).send(line), 505, text))
    assert not is_right(Conversation(dialect).send(line)), "it is not passed over"


def announcing(dialect: str, **header: Any) -> Conversation:
    arguments = " ".join(f"{name.replace('_', '-')}={value}" for name, value in header.items())
    return Conversation(dialect).send("a.1 basic.publish q unfinished", f"a.1 frame.header {arguments}")


@pytest.mark.parametrize("dialect", VERSIONS)
@pytest.mark.parametrize(("code", "word"), [(501, "FRAME_ERROR"), (505, "UNEXPECTED_FRAME")])
def test_a_content_header_of_another_class_is_refused_with_501_or_505(dialect: str, code: int, word: str) -> None:
    text = "expected content header for class 60, got one for class 50 instead"
    assert is_right(closed(announcing(dialect, class_id=50), code, f"{word} - {text}", 60, 40))
    assert not is_right(closed(announcing(dialect, class_id=50), 502, f"SYNTAX_ERROR - {text}", 60, 40))
    assert not is_right(announcing(dialect, class_id=50))


@pytest.mark.parametrize("dialect", VERSIONS)
@pytest.mark.parametrize("is_at_once", [True, False])
def test_more_than_512_mib_may_be_announced_or_not(dialect: str, is_at_once: bool) -> None:
    """No round trip can wait for the refusal, so it may come after the barrier as well."""
    size = 536_870_913
    text = f"FRAME_ERROR - content body size {size} exceeds maximum allowed size 536870912"
    talk = announcing(dialect, body_size=size)
    assert is_right(talk.fork())
    talk = talk if is_at_once else talk.rest()
    assert is_right(closed(talk, 501, text, 60, 40))


@pytest.mark.parametrize("dialect", VERSIONS)
def test_512_mib_may_be_announced(dialect: str) -> None:
    text = "FRAME_ERROR - content body size 536870912 exceeds maximum allowed size 536870912"
    assert is_right(announcing(dialect, body_size=536_870_912))
    assert not is_right(closed(announcing(dialect, body_size=536_870_912), 501, text, 60, 40))


@pytest.mark.parametrize("dialect", VERSIONS)
@pytest.mark.parametrize("header", ["414d515001010800", "414d515000000a00", "485454502f312e31"])
@pytest.mark.parametrize("answer", [HEADER_0_9_1, HEADER_1_0, "start", "nothing"])
def test_a_header_of_0_8_may_be_spoken_to_and_others_are_refused_by_any_header_that_is_right(
    dialect: str, header: str, answer: str
) -> None:
    acceptor = acceptor_for(dialect_named(dialect))
    for name, arguments in (("socket.open", {}), ("protocol.header", {"octets": header})):
        acceptor.sent(event_of("b", 0, name, arguments, sent=True))
    if answer == "start":
        version = {"version_major": 8, "version_minor": 0}
        acceptor.received(event_of("b", 0, "connection.start", {**start(acceptor.dialect), **version}, sent=False))
    elif answer != "nothing":
        acceptor.received(event_of("b", 0, "protocol.header", {"octets": answer}, sent=False))
        acceptor.received(event_of("b", 0, "socket.closed", {}, sent=False))
    acceptor.quiescent()
    is_0_8 = header in HEADERS_0_8
    assert (acceptor.verdict is Verdict.PASS) is {"start": is_0_8, "nothing": False}.get(answer, True)


def test_the_usual_header_is_tried_with_nothing_else() -> None:
    acceptor = acceptor_for(dialect_named("rabbitmq-4.3"))
    for method in opening("b", acceptor.dialect)[:2]:
        acceptor.sent(method)
    assert len(acceptor.explanations) == 1


@pytest.mark.parametrize("dialect", VERSIONS)
@pytest.mark.parametrize("tag", ["t", "nobody"])
@pytest.mark.parametrize("is_taken", [True, False])
def test_a_clients_cancel_ok_is_taken_or_no_method_of_its(dialect: str, tag: str, is_taken: bool) -> None:
    talk = consuming(dialect=dialect).send(f"a.1 basic.cancel-ok {tag}")
    if not is_taken:
        assert is_right(closed(talk, 503, "COMMAND_INVALID - unimplemented method", 60, 31))
        return
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").rest()
    assert talk.acceptor.verdict is Verdict.PASS
    talk.send("b.1 basic.publish q body=m1").confirm("b.1", 1)
    assert is_right(talk.deliver("a.1", 1, "m1") if tag == "nobody" else talk)
