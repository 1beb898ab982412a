"""What a message's properties may be refused for, in which order, and what of them is delivered."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.connections import Connection
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Content
from amqpspec.model.rules.basic.message_checks import as_delivered, check_properties, check_size, further_keys


def broker(dialect: str = "rabbitmq-4.3", user: str = "guest") -> Broker:
    made = Broker(dialect_named(dialect))
    made.connections["a"] = Connection("a", user=user)
    return made


def refusal(made: Broker, **properties: Any) -> tuple[str, str] | None:
    """Requirement and text, or None."""
    try:
        check_properties(made, Channel("a", 1), Content(properties))
    except ProtocolError as error:
        return error.requirement, error.text.removeprefix("PRECONDITION_FAILED - ")
    return None


@pytest.mark.parametrize("expiration", ["0", "1", "+5", "007", "-0", "315360000000"])
def test_expirations(expiration: str) -> None:
    assert refusal(broker(), expiration=expiration) is None


@pytest.mark.parametrize(
    ("expiration", "reason"),
    [
        ("", "no_integer"), ("abc", "no_integer"), ("-", "no_integer"), (" 1", "no_integer"), ("--1", "no_integer"),
        ("1 ", '{leftover_string," "}'), ("12ms", '{leftover_string,"ms"}'), ("1.5", '{leftover_string,".5"}'),
        ("-1", "{value_negative,-1}"), ("-1x", '{leftover_string,"x"}'),
        ("315360000001", "{value_too_large,315360000001}"),
    ],
)  # fmt: skip
def test_wrong_expirations(expiration: str, reason: str) -> None:
    assert refusal(broker(), expiration=expiration) == ("PUBLISH-014", f"invalid expiration '{expiration}': {reason}")


def test_what_erlang_prints_in_its_own_way_is_left_open() -> None:
    for expiration in ('1"', "1\\", "1é", "1\n"):
        with pytest.raises(ProtocolError) as caught:
            check_properties(broker(), Channel("a", 1), Content({"expiration": expiration}))
        assert caught.value.any_text


def test_user_id() -> None:
    assert refusal(broker(), user_id="guest") is None
    text = "user_id property set to 'bob' but authenticated user was 'guest'"
    assert refusal(broker(), user_id="bob") == ("PUBLISH-012", text)
    assert refusal(broker(user=""), user_id="bob") is None, "the user is not known"


def test_key_headers() -> None:
    assert refusal(broker(), headers={"CC": ["a"], "BCC": []}) is None
    text = 'invalid message: {unacceptable_type_in_header,"CC",longstr}'
    assert refusal(broker(), headers={"BCC": 5, "CC": "a"}) == ("PUBLISH-011", text)
    text = 'invalid message: {unacceptable_type_in_header,"BCC",bool}'
    assert refusal(broker(), headers={"BCC": True, "CC": ["a"]}) == ("PUBLISH-011", text)
    assert further_keys(broker(), Content({"headers": {"BCC": ["b"], "CC": ["a", 5, None, "c"]}})) == ("a", "c", "b")


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "amqp-0-9-1"])
def test_the_order_of_the_checks(dialect: str) -> None:
    made = broker(dialect)
    wrong: dict[str, Any] = {"user_id": "bob", "expiration": "x", "headers": {"CC": 1}}
    in_order = []
    while (refused := refusal(made, **wrong)) is not None:
        in_order.append(refused[0])
        del wrong[{"PUBLISH-012": "user_id", "PUBLISH-014": "expiration", "PUBLISH-011": "headers"}[refused[0]]]
    user_id_first = ["PUBLISH-012", "PUBLISH-014", "PUBLISH-011"]
    user_id_last = ["PUBLISH-014", "PUBLISH-011", "PUBLISH-012"]
    assert in_order == (user_id_first if dialect == "rabbitmq-3" else user_id_last)


def test_the_bare_text_looks_at_none_of_them() -> None:
    made = broker("amqp-0-9-1")
    properties = {"user_id": "bob", "expiration": "x", "headers": {"CC": 1, "BCC": ["a"]}}
    assert refusal(made, **properties) is None
    assert further_keys(made, Content(properties)) == ()
    assert as_delivered(made, Content(properties)).properties == properties


def test_what_is_delivered() -> None:
    plain = Content({"headers": {"CC": ["a"]}}, b"m")
    assert as_delivered(broker(), plain) is plain
    blind = Content({"headers": {"BCC": ["a"]}, "type": "t"}, b"m")
    assert as_delivered(broker(), blind) == Content({"headers": {}, "type": "t"}, b"m")
    assert blind.properties["headers"] == {"BCC": ["a"]}
    told = Content({"expiration": "+0060"})
    assert all(as_delivered(broker(name), told) is told for name in DIALECTS)


@pytest.mark.parametrize(
    ("dialect", "limit"), [("rabbitmq-3", 2**27), ("rabbitmq-4.0", 2**24), ("rabbitmq-4.3", 2**24)]
)
def test_the_largest_body(dialect: str, limit: int) -> None:
    class Body(bytes):
        """Octets that need no memory."""

        def __len__(self) -> int:
            return self.size

        size = limit

    made = broker(dialect)
    check_size(made, Content({}, Body()))
    assert made.bookkeeping.exercised["PUBLISH-013"] == 1
    body = Body()
    body.size = limit + 1
    with pytest.raises(ProtocolError, match=f"message size {limit + 1} is larger than configured max size {limit}"):
        check_size(made, Content({}, body))
