"""Operators: what they undo, what they tell rabbitmqctl, and that brokers do it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.protocol.methods import OPERATOR, Content, Method, OperatorAction, event_of
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.docker_broker import CommandFailed, DockerBroker
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.brokers.operator import Operator, Peer, undoing
from amqpspec.targets.brokers.process_broker import ProcessBroker
from amqpspec.targets.brokers.rabbitmqctl_operator import RabbitmqctlOperator, by_hand, expression, operator_by
from amqpspec.targets.brokers.resolve import operator_of, running_broker
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.errors import OperatorError, TargetError
from tests.targets.brokers.test_process_broker import LISTENER, executable


def frames(*lines: str) -> list[Method]:
    commands = map(parse_command, lines)
    return [OperatorAction(OPERATOR, 0, each.method, dict(each.arguments), sent=True) for each in commands]


def frame(line: str) -> Method:
    return frames(line)[0]


def nobody(name: str) -> Peer:
    raise AssertionError(f"nobody is to ask for {name}")


# --------------------------------------------------------------------------------------------------- undoing


@pytest.mark.parametrize(
    ("done", "undone"),
    [
        ([], []),
        (["add-user u password=p", "set-permissions u configure=.*"], ["delete-user u"]),
        (["add-user u", "delete-user u"], []),
        (["add-user u", "delete-user u", "add-user u"], ["delete-user u"]),
        (["add-vhost v", "set-alarm", "add-user u"], ["clear-alarm", "delete-vhost v", "delete-user u"]),
        (["set-alarm", "clear-alarm", "close-connection a reason=r"], []),
        (["add-user u", "add-vhost u", "delete-user u"], ["delete-vhost u"]),
        (["set-policy p queue=q", "clear-policy p virtual-host=v"], ["clear-policy p"]),
        (
            ["set-policy p queue=q virtual-host=v", "set-policy p queue=q", "clear-policy p"],
            ["clear-policy p virtual-host=v"],
        ),
    ],
)
def test_what_was_made_is_taken_away_alarms_first(done: list[str], undone: list[str]) -> None:
    lines = [f"broker operator.{each}" for each in done]
    assert undoing(frames(*lines)) == frames(*(f"broker operator.{each}" for each in undone))


# ------------------------------------------------------------------------------------------------ rabbitmqctl


def test_names_cannot_break_out_of_what_rabbitmqctl_is_told() -> None:
    told = expression(OperatorAction(OPERATOR, 0, "operator.add-user", {"user": 'u">>), x\\ü'}, sent=True), nobody)
    assert told.startswith('ok = rabbit_auth_backend_internal:add_user(<<"u\\x{22}>>), x\\x{5c}\\x{fc}"/utf8>>, <<>>, ')


def test_a_policy_is_told_as_the_broker_keeps_it() -> None:
    told = expression(frame("broker operator.set-policy p queue=q max-length=3 dead-letter-exchange="), nobody)
    assert told == (
        'ok = rabbit_policy:set(<<"/"/utf8>>, <<"p"/utf8>>, <<"^q$"/utf8>>,'
        ' [{<<"max-length"/utf8>>, 3}, {<<"dead-letter-exchange"/utf8>>, <<>>}], 0, <<"queues">>, <<"amqpspec">>)'
    )


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("add-user u password=p", ["rabbitmqctl add_user u p"]),
        ("set-permissions u configure=^a write=.*", ["rabbitmqctl set_permissions -p / u '^a' '.*' ''"]),
        ("set-permissions u virtual-host=v read=a'b", ["rabbitmqctl set_permissions -p v u '' '' 'a'\\''b'"]),
        ("delete-user u", ["rabbitmqctl delete_user u"]),
        ("add-vhost v", ["rabbitmqctl add_vhost v"]),
        ("delete-vhost v", ["rabbitmqctl delete_vhost v"]),
        (
            "set-policy p queue=q.1 virtual-host=v priority=2 max-length=3 overflow=drop-head",
            [
                "rabbitmqctl set_policy -p v --priority 2 --apply-to queues p '^q\\.1$'"
                ' \'{"max-length": 3, "overflow": "drop-head"}\''
            ],
        ),
        (
            "set-policy p queue=q ha-mode=all",
            ["rabbitmqctl set_policy -p / --priority 0 --apply-to queues p '^q$' '{\"ha-mode\": \"all\"}'"],
        ),
        ("clear-policy p", ["rabbitmqctl clear_policy -p / p"]),
        ("set-alarm", ["rabbitmqctl eval 'rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []}).'"]),
        ("clear-alarm", ["rabbitmqctl eval 'rabbit_alarm:clear_alarm({resource_limit, memory, node()}).'"]),
    ],
)
def test_what_a_person_types(line: str, commands: list[str]) -> None:
    assert by_hand(frame(f"broker operator.{line}")) == commands


def test_a_person_finds_the_connection_by_its_name() -> None:
    find, close = by_hand(frame("broker operator.close-connection a reason=r"), "name-a")
    assert find.startswith("rabbitmqctl -q list_connections pid user_provided_name") and find.endswith("name-a")
    assert close == "rabbitmqctl close_connection PID r"


def test_a_rabbitmqctl_that_fails_or_says_something_else_is_an_error_of_the_operator() -> None:
    def fails(*arguments: str) -> str:
        raise CommandFailed("exit status 69: no node")

    with pytest.raises(OperatorError, match=r"operator\.delete-user.*no node"):
        RabbitmqctlOperator(fails).carry_out(frames("broker operator.delete-user u"), nobody)
    with pytest.raises(OperatorError, match="something else"):
        RabbitmqctlOperator(lambda *arguments: "something else").carry_out(frames("broker operator.set-alarm"), nobody)
    assert operator_by(fails) is None
    assert operator_by(lambda *arguments: "something else") is None
    assert operator_by(lambda *arguments: "42\n") is not None


# ------------------------------------------------------------------------------------------- brokers obey


def send(client: WireClient, line: str) -> None:
    command = parse_command(line)
    key = (command.connection, command.channel)
    client.send(event_of(*key, command.method, dict(command.arguments), sent=True, content=command.content))


def awaited(client: WireClient, method: str) -> Method:
    while (received := client.receive(10.0)) is not None:
        if received.name == method:
            return received
    raise AssertionError(f"no {method}")


def obeys(address: Address, operator: Operator) -> None:
    """Does the broker do all that can be asked for, and is it undone?"""
    done = frames(
        "broker operator.add-user amqpspec-test-user password=secret",
        "broker operator.add-vhost amqpspec-test-vhost",
        "broker operator.set-permissions amqpspec-test-user virtual-host=amqpspec-test-vhost configure=^mine write=.*",
    )
    with WireClient(address) as client:

        def peer(name: str) -> Peer:
            return Peer(client.local_port(name), f"test-{client.local_port(name)}")

        operator.carry_out(done, peer)
        client.open("u", user="amqpspec-test-user", password="secret", vhost="amqpspec-test-vhost")
        send(client, "u.1 channel.open")
        send(client, "u.1 queue.declare theirs durable")
        assert awaited(client, "channel.close").arguments["reply_code"] == 403
        client.open("a", client_properties={"capabilities": {"connection.blocked": True}})
        send(client, "a.1 channel.open")
        awaited(client, "channel.open-ok")
        alarm = frames("broker operator.set-alarm")
        operator.carry_out(alarm, peer)
        try:
            client.send(Method("a", 1, "basic.publish", {}, sent=True, content=Content({}, b"m1")))
            assert awaited(client, "connection.blocked").connection == "a"
        finally:
            operator.undo(alarm)
        assert awaited(client, "connection.unblocked").connection == "a"
        operator.undo(done)
        closed = awaited(client, "connection.close")
        assert (closed.connection, closed.arguments["reply_code"]) == ("u", 320)
        with pytest.raises(TargetError):
            client.open("again", user="amqpspec-test-user", password="secret", vhost="amqpspec-test-vhost")
        operator.undo(done)  # what is gone already is no error


def closes(address: Address, operator: Operator) -> None:
    """Does the broker close the connection that is meant, and no other?"""
    with WireClient(address) as client:
        for name in "abc":
            client.open(name, client_properties={"connection_name": f"amqpspec-test-{address.port}-{name}"})
        order = frames("broker operator.close-connection b reason=maintenance")
        operator.carry_out(order, lambda name: Peer(client.local_port(name), f"amqpspec-test-{address.port}-{name}"))
        closed = awaited(client, "connection.close")
        assert (closed.connection, closed.arguments["reply_text"]) == ("b", "CONNECTION_FORCED - maintenance")
        assert client.open_names() in (["a", "b", "c"], ["a", "c"])


def test_the_embedded_broker_obeys() -> None:
    with EmbeddedBroker() as broker:
        obeys(broker.address, broker.operator())
        closes(broker.address, broker.operator())


def test_rabbitmq_obeys(rabbitmq: DockerBroker) -> None:
    operator = rabbitmq.operator()
    assert operator is not None
    obeys(rabbitmq.address, operator)
    closes(rabbitmq.address, operator)
    assert "amqpspec-test" not in rabbitmq.execute("rabbitmqctl", "list_users")
    assert "amqpspec-test" not in rabbitmq.execute("rabbitmqctl", "list_vhosts")


def test_rabbitmq_obeys_several_at_one_time(rabbitmq: DockerBroker) -> None:
    operator = rabbitmq.operator()
    assert operator is not None
    added = [frames(f"broker operator.add-user amqpspec-test-{number} password=p") for number in range(8)]
    with ThreadPoolExecutor(len(added)) as pool:
        list(pool.map(lambda actions: operator.carry_out(actions, nobody), added))
        list(pool.map(operator.undo, added))
    assert "amqpspec-test" not in rabbitmq.execute("rabbitmqctl", "list_users")


def test_a_connection_that_nobody_has_cannot_be_closed() -> None:
    with EmbeddedBroker() as broker, pytest.raises(OperatorError, match="no client is connected from port 1"):
        order = frames("broker operator.close-connection a reason=r")
        broker.operator().carry_out(order, lambda name: Peer(1, "nobody"))


# ----------------------------------------------------------------------------------- who has an operator


def test_a_broker_that_runs_elsewhere_has_none() -> None:
    with EmbeddedBroker() as broker:
        assert operator_of(broker) is not None
        with running_broker(f"amqp://guest:guest@{broker.address.host}:{broker.address.port}/") as elsewhere:
            assert elsewhere.address == broker.address
            assert operator_of(elsewhere) is None


def test_a_container_without_rabbitmqctl_has_none(garagemq: DockerBroker) -> None:
    assert garagemq.operator() is None


RABBITMQCTL = """#!/bin/sh
test "$1" = -n && test "$2" = "$RABBITMQ_NODENAME" || { echo which node >&2; exit 1; }
echo "$4" >> "$(dirname "$0")/said"
case "$4" in "6 * 7.") echo 42 ;; *delete_user*) echo amqpspec_done ;; *) echo no >&2; exit 64 ;; esac
"""


def test_a_process_is_operated_by_the_rabbitmqctl_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PID_FILE", str(tmp_path / "pids"))
    with ProcessBroker(executable(tmp_path, LISTENER)) as broker:
        assert broker.operator() is None
        rabbitmqctl = tmp_path / "rabbitmqctl"
        rabbitmqctl.write_text(RABBITMQCTL)
        rabbitmqctl.chmod(0o700)
        operator = broker.operator()
        assert operator is not None
        operator.carry_out(frames("broker operator.delete-user u"), nobody)
        with pytest.raises(OperatorError, match=r"exit status 64: no$"):
            operator.carry_out(frames("broker operator.add-vhost v"), nobody)
    asked, deleted, _ = (tmp_path / "said").read_text().splitlines()
    assert asked == "6 * 7."
    assert deleted.startswith('ok = rabbit_auth_backend_internal:delete_user(<<"u"/utf8>>, ')
