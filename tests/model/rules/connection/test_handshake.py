"""The handshake, frame by frame: what is owed at each step, what is refused and how, and the ends of connections."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.broker.administration import User
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.dialects.rabbitmq_3 import RABBITMQ_3
from amqpspec.model.promises.dialects.rabbitmq_4_0 import RABBITMQ_4_0
from amqpspec.model.promises.dialects.rabbitmq_4_3 import RABBITMQ_4_3
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.model.protocol.methods import MASK, NO_HEARTBEAT, Table, event_of
from amqpspec.model.protocol.patterns import choose
from amqpspec.model.rules.connection.handshake_content import (
    HEADER_0_9,
    HEADER_0_9_1,
    HEADER_1_0,
    HEADERS_0_8,
    TUNE_OFFER,
)
from tests.handshakes import opening, start

GUEST = {"client_properties": {}, "mechanism": "PLAIN", "response": MASK, "locale": "en_US"}
TELLS = {"capabilities": {"authentication_failure_close": True}}
REFUSED_LOGIN: Table = {
    "reply_code": 403,
    "reply_text": "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker"
    " logfile.",
}


class Talk:
    """One connection, up to some step of its handshake."""

    def __init__(self, dialect: Dialect = RABBITMQ_4_3, steps: int = 2) -> None:
        self.acceptor = acceptor_for(dialect)
        self.time = 0.0
        for method in opening("a", dialect)[:steps]:
            (self.acceptor.sent if method.sent else self.acceptor.received)(method)

    def say(self, method: str, channel: int = 0, /, **arguments: Any) -> Talk:
        self.acceptor.sent(event_of("a", channel, method, arguments, sent=True, time=self.time))
        return self

    def see(self, method: str, channel: int = 0, /, **arguments: Any) -> Talk:
        self.acceptor.received(event_of("a", channel, method, arguments, sent=False, time=self.time))
        return self

    @property
    def state(self) -> ConnectionState:
        return self.acceptor.broker.connections["a"].state

    @property
    def owed(self) -> list[str]:
        return [owed.method for owed in self.acceptor.broker.connections["a"].owed]  # type: ignore[union-attr]

    @property
    def failure(self) -> Failure:
        (failure,) = self.acceptor.failures
        return failure

    def ends_silently(self, requirement: str) -> None:
        """Nothing but the end of the TCP connection is right now, and it is owed under that requirement."""
        assert self.owed == ["socket.closed"]
        assert self.acceptor.patience >= 3
        self.see("socket.closed", reason="the broker ended the stream")
        self.acceptor.quiescent()
        assert self.acceptor.failures == []
        assert self.acceptor.exercised[requirement] == 1
        assert self.state is ConnectionState.CLOSED


#: Number of frames of `opening` after which a step is due.
HEADER, START_OK, TUNE_OK, OPEN, RUNNING = 1, 3, 5, 6, 8


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_handshake_passes_and_counts(dialect: Dialect) -> None:
    talk = Talk(dialect, RUNNING)
    talk.acceptor.quiescent()
    assert talk.acceptor.verdict is Verdict.PASS
    assert talk.state is ConnectionState.OPEN
    assert talk.acceptor.exercised["CONN-001"] == 2
    assert bool(talk.acceptor.exercised["CAP-001"]) == dialect.extensions


@pytest.mark.parametrize(("steps", "requirement"), [(2, "CONN-001"), (4, "CONN-010"), (7, "CONN-001")])
def test_each_reply_is_owed(steps: int, requirement: str) -> None:
    talk = Talk(steps=steps)
    talk.acceptor.overdue()
    assert (talk.failure.requirement, talk.failure.shape) == (requirement, Shape.MISSING)


@pytest.mark.parametrize("steps", [2, 4, 7])
@pytest.mark.parametrize("method", ["connection.open-ok", "connection.start", "connection.tune", "connection.blocked"])
def test_nothing_comes_out_of_turn(steps: int, method: str) -> None:
    talk = Talk(steps=steps)
    if method in talk.owed:
        return
    talk.see(method)
    assert talk.failure.shape is Shape.UNEXPECTED
    assert talk.failure.detail == f"{method} in place of {talk.owed[0]}"


@pytest.mark.parametrize(
    ("changed", "requirements"),
    [
        ({"version_minor": 8}, ["CONN-001"]),
        ({"mechanisms": "PLAIN"}, ["CONN-001"]),
        ({"mechanisms": "EXTERNAL AMQPLAIN PLAIN"}, []),
        ({"locales": "de_DE"}, ["CONN-001"]),
        ({"server_properties": {}}, ["CONN-025", "CAP-001"]),
    ],
    ids=str,
)
def test_what_connection_start_says(changed: Table, requirements: list[str]) -> None:
    talk = Talk().see("connection.start", **{**start(), **changed})
    assert [failure.requirement for failure in talk.acceptor.failures] == requirements
    if "version_minor" not in changed:
        assert talk.say("connection.start-ok", **GUEST).owed == ["connection.tune"], "judging goes on"


def test_a_capability_that_is_not_advertised() -> None:
    said = start()
    said["server_properties"]["capabilities"] = {**said["server_properties"]["capabilities"], "basic.nack": "true"}
    assert Talk().see("connection.start", **said).failure.detail == "not advertised: basic.nack"


@pytest.mark.parametrize("limit", TUNE_OFFER)
def test_what_connection_tune_says(limit: str) -> None:
    talk = Talk(steps=4).see("connection.tune", **{**TUNE_OFFER, limit: 7})
    assert (talk.failure.requirement, talk.failure.detail) == ("CONN-010", f"connection.tune {limit.replace('_', '-')}")
    bare = Talk(AMQP_0_9_1, 4).see("connection.tune", **{**TUNE_OFFER, limit: 4096})
    assert bare.acceptor.failures == [], "the text leaves it to the server"


def test_no_less_than_the_least_frame_max_is_offered_and_who_takes_it_is_let_in() -> None:
    for frame_max in (0, 4096):
        talk = Talk(AMQP_0_9_1, 4).see("connection.tune", **{**TUNE_OFFER, "frame_max": frame_max})
        assert talk.acceptor.failures == []
    talk = Talk(AMQP_0_9_1, 4).see("connection.tune", **{**TUNE_OFFER, "frame_max": 1024})
    assert (talk.failure.requirement, talk.failure.detail) == ("CONN-012", "connection.tune frame-max")
    assert talk.say("connection.tune-ok", **{**TUNE_OFFER, "frame_max": 1024}).state is ConnectionState.OPENING
    for frame_max in (1023, 1025):
        talk = Talk(AMQP_0_9_1, 4).see("connection.tune", **{**TUNE_OFFER, "frame_max": 1024})
        assert talk.say("connection.tune-ok", **{**TUNE_OFFER, "frame_max": frame_max}).state is ConnectionState.ENDING


# ------------------------------------------------------------------------------------------------ headers


@pytest.mark.parametrize("dialect", [RABBITMQ_3, RABBITMQ_4_0, RABBITMQ_4_3], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    ("octets", "answer_of_3", "answer_of_4"),
    [
        ("414d515000000900", HEADER_0_9_1, HEADER_0_9_1),
        ("414d515000000a00", HEADER_0_9_1, HEADER_0_9_1),
        ("414d515000000800", HEADER_0_9_1, HEADER_1_0),
        ("414d515002000000", HEADER_0_9_1, HEADER_1_0),
        ("485454502f312e31", HEADER_0_9_1, HEADER_1_0),
        (HEADERS_0_8[0], None, HEADER_1_0),
        (HEADERS_0_8[1], None, HEADER_1_0),
    ],
)
def test_headers_that_are_refused(dialect: Dialect, octets: str, answer_of_3: str | None, answer_of_4: str) -> None:
    answer = answer_of_3 if dialect is RABBITMQ_3 else answer_of_4
    talk = Talk(dialect, HEADER).say("protocol.header", octets=octets)
    if answer is None:
        assert talk.owed == ["connection.start"]
        talk.see("connection.start", **{**start(dialect), "version_major": 8, "version_minor": 0})
        assert talk.acceptor.exercised["CONN-004"] == 1
        assert talk.state is ConnectionState.FOREIGN, "0-8 is not ours to judge"
        return
    assert talk.owed == ["protocol.header", "socket.closed"]
    (header, _) = talk.acceptor.broker.connections["a"].owed
    assert isinstance(header, Expected) and choose(header.arguments["octets"]) == answer
    wrong = Talk(dialect, HEADER).say("protocol.header", octets=octets).see("protocol.header", octets=HEADER_0_9)
    assert wrong.failure.detail == "protocol.header octets"
    talk.see("protocol.header", octets=answer).see("socket.closed", reason="")
    talk.acceptor.quiescent()
    assert talk.acceptor.failures == []


def test_the_header_of_0_9() -> None:
    assert Talk(steps=HEADER).say("protocol.header", octets=HEADER_0_9).owed == ["connection.start"]
    assert "protocol.header" in Talk(AMQP_0_9_1, HEADER).say("protocol.header", octets=HEADER_0_9).owed


def test_a_frame_is_no_header() -> None:
    talk = Talk(steps=HEADER).say("connection.start-ok", **GUEST)
    assert talk.owed == ["protocol.header", "socket.closed"]


# -------------------------------------------------------------------------------------------------- login


@pytest.mark.parametrize("mechanism", ["NOSUCH", "plain", ""])
def test_a_mechanism_that_was_not_offered(mechanism: str) -> None:
    Talk(steps=START_OK).say("connection.start-ok", **{**GUEST, "mechanism": mechanism}).ends_silently("CONN-007")


def test_only_what_this_broker_offers_counts() -> None:
    talk = Talk().see("connection.start", **{**start(), "mechanisms": "PLAIN AMQPLAIN"})
    talk.say("connection.start-ok", **{**GUEST, "mechanism": "ANONYMOUS"}).ends_silently("CONN-007")


def anonymous(response: str, **properties: Any) -> Talk:
    talk = Talk(steps=START_OK)
    return talk.say("connection.start-ok", **{**GUEST, **properties, "mechanism": "ANONYMOUS", "response": response})


def test_who_is_anonymous_is_let_in_as_the_user_for_it() -> None:
    talk = anonymous(MASK)
    assert talk.owed == ["connection.tune"]
    assert talk.see("socket.closed").failure.requirement == "CONN-031"


def test_whether_there_is_a_user_for_the_anonymous_nobody_knows() -> None:
    assert anonymous("").owed == []
    assert anonymous("").see("connection.tune", **TUNE_OFFER).state is ConnectionState.TUNING
    ended = anonymous("").see("socket.closed")
    closed = anonymous("", client_properties=TELLS).see("connection.close", **REFUSED_LOGIN, class_id=0, method_id=0)
    assert ended.acceptor.failures == closed.acceptor.failures == []


@pytest.mark.parametrize("properties", [{}, TELLS], ids=["without", "with capability"])
@pytest.mark.parametrize("response", ["", "guest", "x\0guest\0wrong", "\0guest\0wrong\0"])
def test_a_response_without_form(properties: Table, response: str) -> None:
    said = {**GUEST, "response": response, "client_properties": properties}
    Talk(steps=START_OK).say("connection.start-ok", **said).ends_silently("CONN-027")


def test_a_failed_login_that_is_told() -> None:
    said = {**GUEST, "response": "\0guest\0wrong", "client_properties": TELLS}
    talk = Talk(steps=START_OK).say("connection.start-ok", **said)
    assert talk.owed == ["connection.close"]
    talk.see("connection.close", **REFUSED_LOGIN).say("connection.close-ok")
    assert talk.owed == ["socket.closed"]
    talk.see("socket.closed", reason="")
    assert talk.acceptor.failures == []
    assert (talk.acceptor.exercised["CONN-005"], talk.acceptor.exercised["CONN-028"]) == (1, 1)


@pytest.mark.parametrize("capable", [{}, {"authentication_failure_close": "true"}, {"authentication_failure_close": 1}])
def test_a_failed_login_that_is_not_told(capable: Table) -> None:
    said = {**GUEST, "response": "\0guest\0wrong", "client_properties": {"capabilities": capable}}
    talk = Talk(steps=START_OK).say("connection.start-ok", **said)
    talk.say("connection.close").see("connection.close-ok").see("socket.closed", reason="")
    assert talk.acceptor.failures == [], "only the client's own close is answered"
    talk = Talk(steps=START_OK).say("connection.start-ok", **said)
    assert talk.see("connection.close", **REFUSED_LOGIN).failure.requirement == "CONN-006"
    Talk(steps=START_OK).say("connection.start-ok", **said).ends_silently("CONN-006")


def test_the_bare_text_lets_a_broker_say_why() -> None:
    said = {**GUEST, "response": "\0guest\0wrong"}
    talk = Talk(AMQP_0_9_1, START_OK).say("connection.start-ok", **said)
    talk.see("connection.close", reply_code=530, reply_text="any").say("connection.close-ok").see("socket.closed")
    talk.acceptor.quiescent()
    assert talk.acceptor.failures == []
    assert Talk(AMQP_0_9_1, START_OK).say("connection.start-ok", **said).see("connection.tune").acceptor.failures


def test_users_that_the_operator_made() -> None:
    for password, owed in (("p", "connection.tune"), ("q", "socket.closed")):
        talk = Talk(steps=START_OK)
        talk.acceptor.broker.users["lim"] = User("lim", "p")
        talk.say("connection.start-ok", **{**GUEST, "response": f"\0lim\0{password}"})
        assert talk.owed == [owed]


def test_the_owner_of_the_target_is_known_only_by_a_name_that_is_no_secret() -> None:
    assert Talk(steps=RUNNING).acceptor.broker.connections["a"].user == ""
    acceptor = acceptor_for(RABBITMQ_4_3, own_user="guest")
    for method in opening("a"):
        (acceptor.sent if method.sent else acceptor.received)(method)
    assert acceptor.broker.connections["a"].user == "guest"


# ------------------------------------------------------------------------------------- limits and virtual hosts


@pytest.mark.parametrize(
    ("said", "requirement"),
    [
        ({"frame_max": 131_073}, "CONN-011"),
        ({"frame_max": 0}, "CONN-011"),
        ({"channel_max": 2048}, "CONN-011"),
        ({"channel_max": 0}, "CONN-011"),
        ({"frame_max": 8191}, "CONN-012"),
    ],
    ids=str,
)
def test_limits_that_are_refused(said: Table, requirement: str) -> None:
    Talk(steps=TUNE_OK).say("connection.tune-ok", **{**TUNE_OFFER, **said}).ends_silently(requirement)


@pytest.mark.parametrize(
    ("dialect", "least"), [(AMQP_0_9_1, 4096), (RABBITMQ_3, 4096), (RABBITMQ_4_0, 4096), (RABBITMQ_4_3, 8192)]
)
def test_the_least_frame_max(dialect: Dialect, least: int) -> None:
    for frame_max, state in ((least, ConnectionState.OPENING), (least - 1, ConnectionState.ENDING)):
        talk = Talk(dialect, TUNE_OK).say("connection.tune-ok", **{**TUNE_OFFER, "frame_max": frame_max})
        assert talk.state is state


def test_limits_go_by_what_was_offered() -> None:
    talk = Talk(AMQP_0_9_1, 4).see("connection.tune", channel_max=0, frame_max=65_536, heartbeat=0)
    assert talk.say("connection.tune-ok", channel_max=0, frame_max=65_536).state is ConnectionState.OPENING
    talk = Talk(AMQP_0_9_1, 4).see("connection.tune", channel_max=0, frame_max=65_536, heartbeat=0)
    assert talk.say("connection.tune-ok", channel_max=0, frame_max=65_537).state is ConnectionState.ENDING


def test_virtual_hosts() -> None:
    talk = Talk(steps=OPEN).say("connection.open", virtual_host="nope")
    talk.see(
        "connection.close", reply_code=530, reply_text="NOT_ALLOWED - vhost nope not found", class_id=10, method_id=40
    )
    assert talk.acceptor.failures == []
    talk = Talk(steps=OPEN).say("connection.open", virtual_host="nope").see("connection.open-ok")
    assert talk.failure.requirement == "CONN-008"
    acceptor = acceptor_for(RABBITMQ_4_3, virtual_host="v/1")
    for method in opening("a"):
        (acceptor.sent if method.sent else acceptor.received)(method)
    assert acceptor.failures[0].requirement == "CONN-008", "the one that exists is not /"


def test_a_virtual_host_without_access() -> None:
    talk = Talk(steps=START_OK)
    talk.acceptor.broker.users["lim"] = User("lim", "p")
    talk.say("connection.start-ok", **{**GUEST, "response": "\0lim\0p"}).see("connection.tune", **TUNE_OFFER)
    talk.say("connection.tune-ok", **TUNE_OFFER).say("connection.open", virtual_host="/")
    text = "NOT_ALLOWED - access to vhost '/' refused for user 'lim'"
    talk.see("connection.close", reply_code=530, reply_text=text, class_id=10, method_id=40)
    assert talk.acceptor.failures == []
    assert talk.acceptor.exercised["CONN-009"] == 1


# ------------------------------------------------------------------------------------------------ out of turn


@pytest.mark.parametrize("steps", [START_OK, TUNE_OK])
@pytest.mark.parametrize(
    ("method", "channel"),
    [("connection.close", 0), ("connection.open", 0), ("channel.open", 1), ("channel.open", 0), ("protocol.header", 0)],
)
def test_methods_out_of_turn(steps: int, method: str, channel: int) -> None:
    Talk(steps=steps).say(method, channel).ends_silently("CONN-026")


@pytest.mark.parametrize(
    ("method", "channel", "code", "ids"),
    [
        ("connection.close", 0, 504, (10, 50)),
        ("connection.tune-ok", 0, 504, (10, 31)),
        ("channel.open", 0, 504, (20, 10)),
        ("channel.open", 1, 505, (0, 0)),
    ],
)
def test_before_open_it_is_said_why(method: str, channel: int, code: int, ids: tuple[int, int]) -> None:
    talk = Talk(steps=OPEN).say(method, channel)
    assert talk.owed == ["connection.close"]
    text = "CHANNEL_ERROR - unexpected method in connection state opening" if code == 504 else "UNEXPECTED_FRAME - any"
    talk.see("connection.close", reply_code=code, reply_text=text, class_id=ids[0], method_id=ids[1])
    assert talk.acceptor.failures == []
    assert talk.acceptor.exercised["CONN-026"] == 1


@pytest.mark.parametrize("steps", [HEADER, 2, START_OK, 4, TUNE_OK, OPEN, 7])
def test_the_broker_does_not_just_hang_up(steps: int) -> None:
    assert Talk(steps=steps).see("socket.closed", reason="").failure.shape is Shape.UNEXPECTED


@pytest.mark.parametrize("steps", [HEADER, START_OK, TUNE_OK, OPEN])
def test_the_time_for_a_handshake_is_limited(steps: int) -> None:
    late = Talk(steps=steps)
    late.time = 10.0
    assert late.see("socket.closed", reason="").acceptor.failures == []
    silent = Talk(steps=steps).say("socket.silence")
    silent.acceptor.overdue()
    assert (silent.failure.requirement, silent.failure.detail) == ("CONN-029", "socket.closed")


# ------------------------------------------------------------------------------------------------- the ends


def beating(interval: int = 2) -> Talk:
    talk = Talk(steps=TUNE_OK).say("connection.tune-ok", **{**TUNE_OFFER, "heartbeat": interval})
    return talk.say("connection.open", virtual_host="/").see("connection.open-ok")


@pytest.mark.parametrize(("at", "requirement"), [(12.9, "CONN-022"), (13.1, None), (16.0, None)])
def test_a_silent_client_is_given_two_heartbeats(at: float, requirement: str | None) -> None:
    talk = beating()
    talk.time = 11.0
    talk.say("socket.silence")
    talk.time = at
    talk.see("socket.closed", reason="")
    assert [failure.requirement for failure in talk.acceptor.failures] == ([requirement] if requirement else [])


def test_anything_that_is_sent_is_a_sign_of_life() -> None:
    talk = beating().say("socket.silence")
    talk.time = 3.9
    talk.say("connection.update-secret", new_secret=MASK).see("connection.update-secret-ok")
    talk.time = 5.0
    assert talk.see("socket.closed", reason="").failure.requirement == "CONN-022"


def test_a_silent_client_is_not_kept_for_ever() -> None:
    talk = beating().say("socket.silence")
    assert talk.acceptor.patience == 6
    talk.acceptor.overdue()
    assert (talk.failure.requirement, talk.failure.shape) == ("CONN-022", Shape.MISSING)


def test_without_heartbeats_silence_is_nothing() -> None:
    talk = Talk(steps=RUNNING)
    talk.acceptor.broker.connections["a"].heartbeat = 0
    talk.say("socket.silence").acceptor.overdue()
    assert talk.acceptor.failures == []


def test_a_broker_without_heartbeats() -> None:
    for talk in (beating(), beating().say("socket.silence")):
        talk.time = 60
        assert talk.see("socket.closed", reason=NO_HEARTBEAT).failure.requirement == "CONN-022"


def test_what_a_silent_client_had_is_given_back() -> None:
    talk = beating()
    talk.say("channel.open", 1).see("channel.open-ok", 1)
    talk.say("queue.declare", 1, queue="q", exclusive=True)
    talk.see("queue.declare-ok", 1, queue="q", message_count=0, consumer_count=0).say("socket.silence")
    talk.time = 5
    talk.see("socket.closed", reason="")
    talk.acceptor.overdue()
    assert talk.acceptor.failures == []
    assert talk.acceptor.broker.queues == {}


def test_the_queue_of_a_silent_client_may_be_there_for_a_while() -> None:
    """The end of the TCP connection waits for nothing (CONN-021)."""
    talk = beating()
    talk.say("channel.open", 1).see("channel.open-ok", 1)
    talk.say("queue.declare", 1, queue="q", exclusive=True)
    talk.see("queue.declare-ok", 1, queue="q", message_count=0, consumer_count=0).say("socket.silence")
    talk.time = 5
    talk.see("socket.closed", reason="")
    assert list(talk.acceptor.broker.queues) == ["q"]


def test_a_name_can_be_used_again() -> None:
    talk = Talk(steps=RUNNING)
    talk.say("channel.open", 1).see("channel.open-ok", 1)
    talk.say("connection.close").see("connection.close-ok")
    for method in opening("a"):
        (talk.acceptor.sent if method.sent else talk.acceptor.received)(method)
    assert talk.state is ConnectionState.OPEN
    assert talk.acceptor.broker.channels == {}
    talk.say("channel.open", 1).see("channel.open-ok", 1)
    assert talk.acceptor.failures == []


def test_after_close_ok_the_end_is_owed() -> None:
    talk = Talk(steps=RUNNING).say("connection.open", virtual_host="/")
    text = "CHANNEL_ERROR - unexpected method in connection state running"
    talk.see("connection.close", reply_code=504, reply_text=text, class_id=10, method_id=40).say("connection.close-ok")
    talk.acceptor.overdue()
    assert (talk.failure.requirement, talk.failure.detail) == ("CONN-028", "socket.closed")


def test_closes_that_cross() -> None:
    talk = Talk(steps=RUNNING).say("connection.open", virtual_host="/").say("connection.close")
    text = "CHANNEL_ERROR - unexpected method in connection state running"
    talk.see("connection.close", reply_code=504, reply_text=text, class_id=10, method_id=40).say("connection.close-ok")
    talk.see("connection.close-ok").see("socket.closed", reason="")
    talk.acceptor.quiescent()
    assert talk.acceptor.failures == []
    assert talk.acceptor.exercised["CONN-030"] == 1


# --------------------------------------------------------------------------------------------- capabilities


@pytest.mark.parametrize(
    ("advertised", "requirement"), [(True, "CAP-001"), (False, "BIND-004")], ids=["advertised", "not advertised"]
)
def test_what_is_advertised_is_kept(advertised: bool, requirement: str) -> None:
    talk = Talk(steps=RUNNING)
    talk.acceptor.broker.connections["a"].server_properties["capabilities"]["exchange_exchange_bindings"] = advertised
    talk.say("channel.open", 1).see("channel.open-ok", 1)
    talk.say("exchange.bind", 1, destination="amq.fanout", source="amq.direct")
    talk.see("connection.close", reply_code=540, reply_text="NOT_IMPLEMENTED - no", class_id=40, method_id=30)
    assert talk.failure.requirement == requirement


def test_what_is_advertised_and_not_kept_breaks_in_the_text_what_it_is_about() -> None:
    talk = Talk(dialect_named("amqp-0-9-1+exchange_exchange_bindings"), steps=RUNNING)
    talk.say("channel.open", 1).see("channel.open-ok", 1)
    talk.say("exchange.bind", 1, destination="amq.fanout", source="amq.direct")
    talk.see("channel.close", 1, reply_code=540, reply_text="no", class_id=40, method_id=30)
    assert talk.failure.requirement == "BIND-004"


@pytest.mark.parametrize(
    ("properties", "is_told", "in_vain"),
    [
        ({"capabilities": {"consumer_cancel_notify": True}}, True, False),
        ({"capabilities": {"consumer_cancel_notify": False}}, False, False),
        ({"capabilities": {"consumer_cancel_notify": "true"}}, False, True),
        ({"capabilities": {"consumer_cancel_notify": 1}}, False, True),
        ({"consumer_cancel_notify": True}, False, True),
        ({"capabilities": "consumer_cancel_notify"}, False, False),
        ({}, False, False),
    ],
    ids=str,
)
def test_who_is_told_of_cancelled_consumers(properties: Table, is_told: bool, in_vain: bool) -> None:
    talk = Talk(steps=START_OK).say("connection.start-ok", **{**GUEST, "client_properties": properties})
    connection = talk.acceptor.broker.connections["a"]
    assert (connection.is_told_of_cancels, connection.wish_in_vain) == (is_told, in_vain)
    connection.server_properties["capabilities"] = {}
    assert not connection.is_told_of_cancels, "it is not advertised"


@pytest.mark.parametrize(("octets", "type"), [("414d515000000901", 65), ("474554202f204854", 71)])
def test_a_second_header_is_read_as_a_frame_that_is_too_large(octets: str, type: int) -> None:
    """After its error the broker reads nothing more, not even the client's own close."""
    talk = Talk(steps=RUNNING).say("protocol.header", octets=octets)
    (close,) = talk.acceptor.broker.connections["a"].owed
    assert isinstance(close, Expected)
    assert close.arguments["reply_text"].startswith(f"FRAME_ERROR - type {type}, all octets = <<>>: {{frame_too_large,")
    talk.see("connection.close", **close.arguments)
    assert talk.state is ConnectionState.ENDING
    before = talk.owed
    assert talk.say("connection.close", reply_code=200, reply_text="").owed == before
