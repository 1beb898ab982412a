"""What of a handshake may be recorded."""

from __future__ import annotations

import pytest

from amqpspec.model.protocol.credentials import Credentials, amqplain_response, credentials_of, plain_response
from amqpspec.model.protocol.methods import MASK, Method, event_of
from amqpspec.targets.address import Address
from amqpspec.targets.client.handshake import recordable
from amqpspec.targets.codec.field_values import encode_table

OURS = Credentials("anna", "Sesame-4711")
ADDRESS = Address("host", 5672, OURS.user, OURS.password)
DEFAULT = Address("host", 5672, "guest", "guest")


def recorded(response: str, address: Address = ADDRESS, mechanism: str = "PLAIN") -> str:
    method = Method("a", 0, "connection.start-ok", {"mechanism": mechanism, "response": response}, sent=True)
    text: str = recordable(method, address).arguments["response"]
    assert method.arguments["response"] == response, "the frame itself is not touched"
    return text


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN", "NOSUCH"])
@pytest.mark.parametrize("respond", [plain_response, amqplain_response])
def test_the_right_credentials_are_masked(respond: object, mechanism: str) -> None:
    assert callable(respond)
    assert recorded(respond(OURS), mechanism=mechanism) == MASK


@pytest.mark.parametrize("response", ["", "trace@example.org"])
def test_anonymous_means_the_default_login(response: str) -> None:
    assert recorded(response, DEFAULT, "ANONYMOUS") == MASK
    assert recorded(response, mechanism="ANONYMOUS") == response


def test_others_are_recorded_as_they_are() -> None:
    assert recorded("\0anna\0wrong") == "\0anna\0wrong"
    assert recorded("\0nobody\0guest", DEFAULT) == "\0nobody\0guest"
    assert recorded("") == ""


def test_a_secret_is_never_recorded() -> None:
    for response in ("\0nobody\0Sesame-4711", "Sesame-4711", "\0anna\0Sesame-4711\0"):
        assert "Sesame" not in recorded(response)
        assert recorded(response) != MASK, "they are not right"


def test_nobody_can_send_a_mask() -> None:
    assert recorded(MASK) != MASK


@pytest.mark.parametrize("method", ["connection.secure-ok", "connection.update-secret"])
def test_other_secrets_are_masked_whatever_they_are(method: str) -> None:
    argument = {"connection.secure-ok": "response", "connection.update-secret": "new_secret"}[method]
    event = event_of("a", 0, method, {argument: "a secret", "reason": "why"}, sent=True)
    assert recordable(event, ADDRESS).arguments[argument] == MASK


def test_amqplain_is_the_table_that_others_make() -> None:
    table = encode_table({"LOGIN": "ännä", "PASSWORD": "ß"})[4:].decode("utf-8", "surrogateescape")
    assert amqplain_response(Credentials("ännä", "ß")) == table
    assert credentials_of("AMQPLAIN", table) == Credentials("ännä", "ß")


@pytest.mark.parametrize(
    "response", ["\5LOG", "\5LOGIN", "\5LOGINS\0\0\0\2a", "\5LOGINS\0\0\0\1a", "\5LOGINI\0\0\0\1", "\0guest\0guest"]
)
def test_what_is_no_amqplain(response: str) -> None:
    assert credentials_of("AMQPLAIN", response) is None


@pytest.mark.parametrize("response", ["", "guest", "\0guest", "guest\0guest", "x\0guest\0guest", "\0guest\0guest\0"])
def test_what_is_no_plain(response: str) -> None:
    assert credentials_of("PLAIN", response) is None
