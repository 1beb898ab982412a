"""What a client library is blamed for, and what it may have swallowed or not seen."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.conformance.verdicts.library import LibraryJudge
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.targets.drivers.application import REFUSED, WAITS, asked, shown

M1, M2 = Content({}, b"m1"), Content({}, b"m2")


class Seen:
    """What goes on on one channel: asked for, sent, come and shown."""

    def __init__(self) -> None:
        self._judge = LibraryJudge()

    def asked(self, method: str, content: Content | None = None, /, **arguments: Any) -> Seen:
        self._judge.event(asked("a", 1, method, arguments, content))
        return self

    def sent(self, method: str, content: Content | None = None, /, **arguments: Any) -> Seen:
        self._judge.event(Method("a", 1, method, arguments, sent=True, content=content))
        return self

    def does(self, method: str, content: Content | None = None, /, **arguments: Any) -> Seen:
        return self.asked(method, content, **arguments).sent(method, content, **arguments)

    def comes(self, method: str, content: Content | None = None, /, **arguments: Any) -> Seen:
        self._judge.event(Method("a", 1, method, arguments, sent=False, content=content))
        return self

    def shown(self, method: str, content: Content | None = None, /, **arguments: Any) -> Seen:
        self._judge.event(shown("a", 1, method, arguments, content))
        return self

    @property
    def blamed(self) -> list[str]:
        """At a quiet moment."""
        self._judge.quiescent()
        return [f"{each.requirement} {each.detail}" for each in self._judge.failures]


def test_a_delivery_to_a_consumer_that_was_cancelled_need_not_be_shown() -> None:
    seen = Seen().does("basic.consume", queue="q", consumer_tag="t").comes("basic.cancel", consumer_tag="t")
    seen.shown("basic.cancel", consumer_tag="t").comes("basic.deliver", M1, consumer_tag="t", delivery_tag=1)
    assert seen.blamed == []
    seen.does("basic.consume", queue="q", consumer_tag="t")
    assert seen.comes("basic.deliver", M1, consumer_tag="t", delivery_tag=2).blamed == [
        "LIBRARY-DELIVERY basic.deliver that has come"
    ]


def test_a_delivery_that_a_library_gives_back_need_not_be_shown() -> None:
    seen = Seen().comes("basic.deliver", M1, consumer_tag="t", delivery_tag=1)
    assert seen.sent("basic.reject", delivery_tag=1, requeue=True).blamed == []
    seen.comes("basic.deliver", M1, consumer_tag="t", delivery_tag=2).sent("basic.ack", delivery_tag=2)
    assert "LIBRARY-SENT basic.ack that was not asked for" in seen.blamed


def published(number: int = 2) -> Seen:
    seen = Seen().does("confirm.select").comes("confirm.select-ok")
    for _ in range(number):
        seen.does("basic.publish", M1, exchange="", routing_key="q", mandatory=True)
    return seen


def test_the_confirm_of_what_was_returned_need_not_be_shown() -> None:
    back = {"reply_code": 312, "exchange": "", "routing_key": "q"}
    seen = published().comes("basic.return", M1, **back).shown("basic.return", M1, **back)
    assert seen.comes("basic.ack", delivery_tag=1).blamed == []
    assert seen.comes("basic.ack", delivery_tag=2).blamed == ["LIBRARY-CONFIRM basic.ack that has come"]


@pytest.mark.parametrize(
    ("tags", "blamed"),
    [
        ([(2, True)], []),
        ([(2, False), (1, False)], []),
        ([(1, False)], ["LIBRARY-CONFIRM basic.ack that has come"]),
        ([(2, True), (2, False)], ["LIBRARY-CONFIRM basic.ack shown twice"]),
        ([(2, True), (3, False)], ["LIBRARY-CONFIRM basic.ack shown as it did not come"]),
    ],
)
def test_confirms_are_shown_one_by_one_or_together(tags: list[tuple[int, bool]], blamed: list[str]) -> None:
    seen = published().comes("basic.ack", delivery_tag=2, multiple=True)
    for tag, multiple in tags:
        seen.shown("basic.ack", delivery_tag=tag, multiple=multiple)
    assert seen.blamed == blamed


def test_a_confirm_is_shown_as_what_it_is() -> None:
    blamed = published(1).comes("basic.nack", delivery_tag=1).shown("basic.ack", delivery_tag=1).blamed
    assert blamed[0] == "LIBRARY-CONFIRM basic.ack shown as it did not come"


def test_what_comes_at_the_end_of_a_channel_may_be_shown_and_need_not_be() -> None:
    close = {"reply_code": 406, "reply_text": "no"}
    seen = Seen().does("tx.commit").comes("basic.return", M1, reply_code=312).asked("basic.publish", M2)
    seen.comes("channel.close", **close).sent("basic.publish", M2)  # it was on its way
    assert seen.blamed == []
    assert seen.shown("basic.return", M1, reply_code=312).shown("channel.close", **close).blamed == []
    late = Seen().does("channel.close").comes("basic.deliver", M1, consumer_tag="t", delivery_tag=1)
    assert late.blamed == []


def test_a_method_goes_out_as_it_was_asked_for() -> None:
    assert Seen().asked("basic.publish", M1).sent("basic.publish", M2).blamed == [
        "LIBRARY-SENT arguments of basic.publish"
    ]
    bare, named = Content({"type": "t"}, b"m1"), Content({"type": "t", "message_id": "chosen"}, b"m1")
    assert Seen().asked("basic.publish", bare).sent("basic.publish", named).blamed == []
    assert Seen().asked("basic.publish", named).sent("basic.publish", bare).blamed != []
    assert Seen().asked("basic.ack", delivery_tag=1).sent("basic.ack", delivery_tag=2).blamed == [
        "LIBRARY-SENT arguments of basic.ack"
    ]
    assert Seen().asked("basic.reject", delivery_tag=1, requeue=False).sent(
        "basic.reject", delivery_tag=1, requeue=True
    ).blamed == ["LIBRARY-SENT arguments of basic.reject"]
    refused = Seen().asked("basic.ack", delivery_tag=1).shown(REFUSED, method="basic.ack", reason="closed")
    assert refused.blamed == [] and refused.sent("basic.ack", delivery_tag=1).blamed != []


def test_a_function_waits_as_long_as_its_answer_has_not_come() -> None:
    seen = Seen().does("basic.get", queue="q").shown(WAITS, method="basic.get")
    assert seen.blamed == []
    seen.comes("basic.get-empty").shown(WAITS, method="basic.get")
    assert "LIBRARY-ANSWER the end of basic.get, whose answer has come" in seen.blamed
