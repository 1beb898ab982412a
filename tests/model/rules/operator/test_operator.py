"""What the operator does, in the model: permissions, forced closes, alarms; and what a broker is blamed for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.broker.fingerprint import fingerprint
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.credentials import Credentials, plain_response
from amqpspec.model.protocol.methods import event_of
from tests.handshakes import opening

FORCED = {"reply_code": 320, "class_id": 0, "method_id": 0}
CANCELLED: Mapping[str, Any] = {"consumer_cancel_notify": True}
BLOCKABLE: Mapping[str, Any] = {"connection.blocked": True}


class Talk:
    """Frames of several clients and the broker. `a` is the broker's own user; others open connections as they are."""

    def __init__(self, dialect: str = "rabbitmq-4.3", capabilities: Mapping[str, Any] = CANCELLED) -> None:
        self.acceptor = acceptor_for(dialect_named(dialect))
        self.open("a", capabilities=capabilities)

    def open(self, name: str, user: str = "", vhost: str = "/", capabilities: Mapping[str, Any] = CANCELLED) -> Self:
        for method in opening(name, self.acceptor.dialect, capabilities):
            arguments = dict(method.arguments)
            if method.name == "connection.start-ok" and user:
                arguments["response"] = plain_response(Credentials(user, "p"))
            if method.name == "connection.open":
                arguments["virtual_host"] = vhost
            told = event_of(name, 0, method.name, arguments, method.sent)
            (self.acceptor.sent if method.sent else self.acceptor.received)(told)
        return self

    def send(self, *lines: str) -> Self:
        for line in lines:
            self.acceptor.command = line
            command = parse_command(line)
            key = (command.connection, command.channel)
            arguments = dict(command.arguments)
            self.acceptor.sent(event_of(*key, command.method, arguments, sent=True, content=command.content))
        return self

    def ask(self, line: str, **arguments: Any) -> Self:
        """A request, and its reply."""
        command = parse_command(line)
        self.send(line)
        return self.see(command.connection, command.channel, f"{command.method}-ok", **arguments)

    def see(self, connection: str, channel: int, method: str, **arguments: Any) -> Self:
        self.acceptor.received(event_of(connection, channel, method, arguments, sent=False))
        return self

    def refused(self, line: str, text: str, class_id: int, method_id: int) -> Self:
        """The request closes its channel, which is opened again."""
        command = parse_command(line)
        key = (command.connection, command.channel)
        self.send(line).see(
            *key, "channel.close",
            reply_code=403, reply_text=f"ACCESS_REFUSED - {text}", class_id=class_id, method_id=method_id,
        )  # fmt: skip
        return self.send(f"{key[0]}.{key[1]} channel.close-ok").ask(f"{key[0]}.{key[1]} channel.open")

    @property
    def blamed(self) -> str:
        (failure,) = self.acceptor.failures
        return failure.requirement

    @property
    def passes(self) -> bool:
        self.acceptor.quiescent()
        return self.acceptor.verdict is Verdict.PASS


def limited(dialect: str = "rabbitmq-4.3", permissions: str = "configure=^c write=^w read=^r") -> Talk:
    """The user `lim` has the channel b.1; there are queues and exchanges c, w, r and n."""
    talk = Talk(dialect)
    talk.send("broker operator.add-user lim password=p", f"broker operator.set-permissions lim {permissions}")
    talk.ask("a.1 channel.open")
    for name in "cwrn":
        talk.ask(f"a.1 queue.declare {name} durable", queue=name, message_count=0, consumer_count=0)
        talk.ask(f"a.1 exchange.declare {name} fanout")
    return talk.open("b", "lim").ask("b.1 channel.open")


# --------------------------------------------------------------------------------------------- permissions


@pytest.mark.parametrize(
    ("line", "what", "ids"),
    [
        ("b.1 queue.declare w durable", "configure access to queue 'w'", (50, 10)),
        ("b.1 queue.delete r", "configure access to queue 'r'", (50, 40)),
        ("b.1 exchange.declare new fanout", "configure access to exchange 'new'", (40, 10)),
        ("b.1 exchange.delete r", "configure access to exchange 'r'", (40, 20)),
        ("b.1 queue.bind c r", "write access to queue 'c'", (50, 20)),
        ("b.1 queue.bind w w", "read access to exchange 'w'", (50, 20)),
        ("b.1 queue.unbind w w", "read access to exchange 'w'", (50, 50)),
        ("b.1 exchange.bind c r", "write access to exchange 'c'", (40, 30)),
        ("b.1 exchange.unbind w c", "read access to exchange 'c'", (40, 40)),
        ('b.1 exchange.bind destination="" source=r', "write access to exchange 'amq.default'", (40, 30)),
        ("b.1 basic.publish r", "write access to exchange 'amq.default'", (60, 40)),
        ("b.1 basic.publish exchange=r", "write access to exchange 'r'", (60, 40)),
        ("b.1 basic.get w", "read access to queue 'w'", (60, 70)),
        ("b.1 basic.consume c", "read access to queue 'c'", (60, 20)),
        ("b.1 queue.purge nowhere", "read access to queue 'nowhere'", (50, 30)),
        ("b.1 queue.declare c2 durable x-dead-letter-exchange=w", "read access to queue 'c2'", (50, 10)),
        ("b.1 exchange.declare c2 fanout alternate-exchange=w", "read access to exchange 'c2'", (40, 10)),
        ("b.1 queue.declare n passive", "configure access to queue 'n'", (50, 10)),
        ("b.1 exchange.declare n passive", "configure access to exchange 'n'", (40, 10)),
    ],
)
def test_what_needs_which_permission(line: str, what: str, ids: tuple[int, int]) -> None:
    talk = limited().refused(line, f"{what} in vhost '/' refused for user 'lim'", *ids)
    assert talk.passes
    assert talk.acceptor.exercised.keys() & {"PERMISSION-001", "PERMISSION-002", "PERMISSION-003"}


def test_up_to_3_the_text_need_not_name_the_permission() -> None:
    """It does from 3.12 on; but never another one."""
    refusal = "access to queue 'w' in vhost '/' refused for user 'lim'"
    assert limited("rabbitmq-3").refused("b.1 queue.declare w durable", refusal, 50, 10).passes
    assert limited("rabbitmq-3").refused("b.1 queue.declare w durable", f"configure {refusal}", 50, 10).passes
    wrong = limited("rabbitmq-3").refused("b.1 queue.declare w durable", f"write {refusal}", 50, 10)
    assert wrong.blamed == "PERMISSION-001"


def test_permitted_is_permitted_and_who_refuses_it_breaks_the_rule() -> None:
    talk = limited()
    talk.ask("b.1 queue.declare c durable", queue="c", message_count=0, consumer_count=0)
    talk.ask("b.1 queue.bind w r").ask("b.1 exchange.bind w r").ask("b.1 queue.purge r", message_count=0)
    assert talk.passes
    assert talk.acceptor.exercised["PERMISSION-002"] >= 4
    refusal = "ACCESS_REFUSED - read access to queue 'r' in vhost '/' refused for user 'lim'"
    close = {"reply_code": 403, "reply_text": refusal, "class_id": 50, "method_id": 30}
    assert talk.send("b.1 queue.purge r").see("b", 1, "channel.close", **close).blamed == "PERMISSION-002"


def test_who_lets_in_whom_he_should_not_is_blamed() -> None:
    declared = {"queue": "other", "message_count": 0, "consumer_count": 0}
    assert limited().ask("b.1 queue.declare other durable", **declared).blamed == "PERMISSION-001"
    # this user may write to it, which shows that it is not any permission that is asked for
    declared["queue"] = "w"
    assert limited().ask("b.1 queue.declare w durable", **declared).blamed == "PERMISSION-002"


def test_passive_declares_need_no_permission_up_to_3() -> None:
    """What 4.x needs, as its versions differ: tests/model/judging/test_free_choices.py."""
    talk = limited("rabbitmq-3").ask("b.1 queue.declare n passive", queue="n", message_count=0, consumer_count=0)
    assert talk.passes
    assert talk.acceptor.exercised["PERMISSION-003"]
    strict = limited("rabbitmq-3").send("b.1 exchange.declare n passive")
    refusal = "ACCESS_REFUSED - access to exchange 'n' in vhost '/' refused for user 'lim'"
    close = {"reply_code": 403, "reply_text": refusal, "class_id": 40, "method_id": 10}
    assert strict.see("b", 1, "channel.close", **close).blamed == "PERMISSION-003"


def test_a_pattern_is_looked_for_anywhere_and_an_empty_one_permits_nothing() -> None:
    talk = limited(permissions="configure=ew write=amq.default")
    declared = {"message_count": 0, "consumer_count": 0}
    talk.ask("b.1 queue.declare new durable", queue="new", **declared)
    talk.send("b.1 basic.publish new body=m1")
    talk.refused("b.1 basic.get new", "read access to queue 'new' in vhost '/' refused for user 'lim'", 60, 70)
    assert talk.passes


def test_permissions_are_replaced_by_new_ones_and_hold_in_their_virtual_host() -> None:
    talk = limited().send("broker operator.set-permissions lim virtual-host=v configure=.*")
    talk.refused("b.1 queue.delete n", "configure access to queue 'n' in vhost '/' refused for user 'lim'", 50, 40)
    talk.send("broker operator.set-permissions lim configure=.*")
    talk.ask("b.1 queue.delete n", message_count=0)
    assert talk.passes


# ------------------------------------------------------------------------------------------- forced closes


def test_what_a_closed_connection_held_comes_back_and_what_was_its_own_goes() -> None:
    talk = limited().ask("a.2 channel.open")
    talk.ask("b.1 basic.qos 1")
    talk.ask("a.2 queue.declare own exclusive", queue="own", message_count=0, consumer_count=0)
    talk.send("broker operator.close-connection a reason=maintenance")
    talk.see("a", 0, "connection.close", reply_text="CONNECTION_FORCED - maintenance", **FORCED)
    talk.send("a connection.close-ok").see("a", 0, "socket.closed")
    assert talk.passes
    assert "own" not in talk.acceptor.broker.queues
    assert talk.acceptor.exercised["CONN-023"] == 1


@pytest.mark.parametrize(
    ("code", "text"), [(541, "CONNECTION_FORCED - maintenance"), (320, "CONNECTION_FORCED - something else")]
)
def test_a_wrong_close_breaks_conn_023(code: int, text: str) -> None:
    talk = Talk().send("broker operator.close-connection a reason=maintenance")
    talk.see("a", 0, "connection.close", reply_text=text, **{**FORCED, "reply_code": code})
    assert talk.blamed == "CONN-023"


def test_no_close_breaks_conn_023() -> None:
    talk = Talk().send("broker operator.close-connection a reason=maintenance")
    assert talk.acceptor.owes()
    talk.acceptor.overdue()
    assert talk.blamed == "CONN-023"


def test_a_deleted_user_loses_his_connections_and_cannot_log_in_any_more() -> None:
    talk = limited().send("broker operator.delete-user lim")
    talk.see("b", 0, "connection.close", reply_text="CONNECTION_FORCED - user 'lim' is deleted", **FORCED)
    talk.send("b connection.close-ok").see("b", 0, "socket.closed")
    talk.ask("a.1 queue.delete c", message_count=0)
    assert talk.passes
    assert "lim" not in talk.acceptor.broker.users


def in_a_vhost(queue_type: str = "classic") -> Talk:
    """b.1 has the consumer `t` of a queue in the virtual host `v`."""
    talk = Talk().send(
        "broker operator.add-user lim password=p",
        "broker operator.add-vhost v",
        "broker operator.set-permissions lim virtual-host=v configure=.* write=.* read=.*",
    )
    talk.open("b", "lim", "v").ask("b.1 channel.open")
    talk.ask(f"b.1 queue.declare q durable x-queue-type={queue_type}", queue="q", message_count=0, consumer_count=0)
    return talk.ask("b.1 basic.qos 5").ask("b.1 basic.consume q tag=t", consumer_tag="t")


@pytest.mark.parametrize("reason", ["deleted", "down"])
def test_a_deleted_virtual_host_takes_queues_and_then_connections_along(reason: str) -> None:
    talk = in_a_vhost().send("broker operator.delete-vhost v")
    talk.see("b", 1, "basic.cancel", consumer_tag="t", nowait=True)
    talk.see("b", 0, "connection.close", reply_text=f"CONNECTION_FORCED - vhost 'v' is {reason}", **FORCED)
    talk.send("b connection.close-ok").see("b", 0, "socket.closed")
    assert talk.passes
    assert talk.acceptor.broker.queues == {}


STREAMS = "vhost-closes-before-stream-ends"


@pytest.mark.known_defects
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    ("queue_type", "known_as"), [("classic", ""), ("quorum", ""), ("stream", "vhost-closes-before-stream-ends")]
)
def test_consumers_in_a_deleted_virtual_host_are_told_before(queue_type: str, known_as: str, closed: bool) -> None:
    talk = in_a_vhost(queue_type).send("broker operator.delete-vhost v")
    talk.see("b", 0, "connection.close", reply_text="CONNECTION_FORCED - vhost 'v' is deleted", **FORCED)
    if closed:
        talk.send("b connection.close-ok").see("b", 0, "socket.closed")
    assert talk.acceptor.owes()
    talk.acceptor.overdue()
    assert talk.blamed == "CANCEL-015"
    assert [failure.defect for failure in talk.acceptor.failures] == [known_as]


@pytest.mark.known_defects
@pytest.mark.parametrize(("told", "known_as"), [("", STREAMS), ("t", STREAMS), ("u", STREAMS)])
def test_a_notice_that_is_known_to_be_left_out_hides_those_on_its_channel(told: str, known_as: str) -> None:
    """b.1 has `t` on a stream, of which RabbitMQ may not tell before it closes, and `u` on a classic queue."""
    talk = in_a_vhost("stream").ask("b.1 queue.declare r durable", queue="r", message_count=0, consumer_count=0)
    talk.ask("b.1 basic.consume r tag=u", consumer_tag="u").send("broker operator.delete-vhost v")
    if told:
        talk.see("b", 1, "basic.cancel", consumer_tag=told, nowait=True)
    talk.see("b", 0, "connection.close", reply_text="CONNECTION_FORCED - vhost 'v' is deleted", **FORCED)
    talk.acceptor.overdue()
    assert [failure.defect for failure in talk.acceptor.failures] == [known_as]


# -------------------------------------------------------------------------------------------------- alarms


def alarmed(capabilities: Mapping[str, Any] = BLOCKABLE) -> Talk:
    """a.1 has the queue `q`, and an alarm has been raised."""
    talk = Talk(capabilities=capabilities).ask("a.1 channel.open")
    talk.ask("a.1 queue.declare q durable", queue="q", message_count=0, consumer_count=0)
    return talk.send("broker operator.set-alarm")


def test_the_content_header_blocks_where_frames_come_one_by_one() -> None:
    """Seen on 3.10.8, 4.0.5 and 4.3.6."""
    talk = alarmed().send("a.1 basic.publish q unfinished")
    assert talk.acceptor.broker.quiet, "the method alone does not block"
    talk.send("a.1 frame.header body-size=2").see("a", 0, "connection.blocked", reason="low on memory")
    talk.send("a.1 frame.body body=m1", "a.1 queue.purge q")
    assert talk.acceptor.broker.quiet, "neither is read"
    talk.send("broker operator.clear-alarm").see("a", 0, "connection.unblocked")
    assert talk.see("a", 1, "queue.purge-ok", message_count=1).acceptor.failures == []


def test_an_alarm_alone_blocks_nobody() -> None:
    talk = alarmed().ask("a.1 queue.purge q", message_count=0)
    assert talk.passes
    assert talk.see("a", 0, "connection.blocked", reason="low on memory").blamed == "CAP-003"


def test_who_publishes_is_told_and_not_read_until_the_alarm_is_over() -> None:
    talk = alarmed().send("a.1 basic.publish q body=m1").see("a", 0, "connection.blocked", reason="low on memory")
    talk.send("a.1 queue.purge q")
    assert not talk.acceptor.owes()
    assert len(talk.acceptor.broker.connections["a"].held) == 2
    talk.send("broker operator.clear-alarm").see("a", 0, "connection.unblocked")
    talk.see("a", 1, "queue.purge-ok", message_count=1)
    assert talk.passes
    assert talk.acceptor.exercised["CAP-003"]


def test_a_message_without_a_body_is_complete_before_the_broker_stops_reading() -> None:
    talk = alarmed().send("a.1 basic.publish q").see("a", 0, "connection.blocked", reason="low on memory")
    assert len(talk.acceptor.broker.queues["q"].messages) == 1


@pytest.mark.parametrize("capabilities", [{}, {"connection.blocked": False}, {"connection.blocked": "true"}])
def test_who_does_not_understand_it_is_told_nothing(capabilities: Mapping[str, Any]) -> None:
    talk = alarmed(capabilities).send("a.1 basic.publish q body=m1", "a.1 queue.purge q")
    assert not talk.acceptor.owes()
    talk.send("broker operator.clear-alarm").see("a", 1, "queue.purge-ok", message_count=1)
    assert talk.passes
    assert talk.acceptor.exercised["CAP-004"]
    assert "CAP-003" not in talk.acceptor.exercised


@pytest.mark.parametrize(("capabilities", "requirement"), [({}, "CAP-004"), (BLOCKABLE, "CAP-003")])
def test_who_reads_a_blocked_connection_or_forgets_what_it_said_is_blamed(
    capabilities: Mapping[str, Any], requirement: str
) -> None:
    for is_early in (True, False):
        talk = alarmed(capabilities).send("a.1 basic.publish q body=m1")
        if capabilities:
            talk.see("a", 0, "connection.blocked", reason="low on memory")
        talk.send("a.1 queue.purge q")
        if is_early:
            talk.see("a", 1, "queue.purge-ok", message_count=0)
        else:
            talk.send("broker operator.clear-alarm")
            if capabilities:
                talk.see("a", 0, "connection.unblocked")
            talk.acceptor.overdue()
        assert talk.blamed == requirement, is_early


def test_who_is_told_although_he_did_not_ask_breaks_cap_004() -> None:
    talk = alarmed({}).send("a.1 basic.publish q body=m1").see("a", 0, "connection.blocked", reason="low on memory")
    assert talk.blamed == "CAP-004"


def test_the_operator_can_close_a_blocked_connection_and_what_it_said_is_lost() -> None:
    talk = alarmed().send("a.1 basic.publish q body=m1").see("a", 0, "connection.blocked", reason="low on memory")
    talk.send("broker operator.close-connection a reason=enough")
    talk.see("a", 0, "connection.close", reply_text="CONNECTION_FORCED - enough", **FORCED)
    talk.send("a connection.close-ok").see("a", 0, "socket.closed").send("broker operator.clear-alarm")
    assert talk.passes
    assert not talk.acceptor.broker.queues["q"].messages


def test_what_the_operator_did_tells_states_apart() -> None:
    seen = [fingerprint(Talk().acceptor.broker)]
    for line in (
        "broker operator.add-user u password=p",
        "broker operator.set-permissions u configure=.*",
        "broker operator.add-vhost v",
        "broker operator.set-alarm",
    ):
        seen.append(fingerprint(Talk().send("broker operator.add-user u", line).acceptor.broker))
    assert len(set(seen)) == len(seen)
