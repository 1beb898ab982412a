"""An operator that asks the HTTP API of a broker's management, and all that may be wrong with that API."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from amqpspec.command_line import logins, main
from amqpspec.model.protocol.methods import OPERATOR, OperatorAction
from amqpspec.targets.address import Address, AddressError
from amqpspec.targets.brokers import management_operator
from amqpspec.targets.brokers.broker_file import read_broker_file
from amqpspec.targets.brokers.docker_broker import DockerBroker
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.brokers.in_house_broker import InHouseBroker
from amqpspec.targets.brokers.management_address import ManagementAddress, parse_management_address
from amqpspec.targets.brokers.management_operator import ManagementOperator
from amqpspec.targets.brokers.operator import Peer, nobody, not_offered
from amqpspec.targets.errors import OperatorError, OperatorMissing
from tests.targets.brokers.management import ADMINISTRATOR, Management, management
from tests.targets.brokers.test_operators import closes, frames


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "_logins", set())


BROKER = Address("broker", user="me", password="Sesame-4711")


def operator_at(api: Management, login: str = "") -> ManagementOperator:
    return ManagementOperator(parse_management_address(api.url.replace("//", f"//{login}")), BROKER)


# ------------------------------------------------------------------------------------------------- the address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://h", ManagementAddress("h", 15672)),
        ("HTTPS://h", ManagementAddress("h", 15671, tls=True)),
        ("http://u:p%40@[::1]:8/rabbit/", ManagementAddress("::1", 8, False, "/rabbit", "u", "p@")),
        ("http://u:p/@h", 'a "/" in user or password of the management address is written %2F'),
        ("https://h/?cacertfile=/a%20b", ManagementAddress("h", 15671, True, cacertfile="/a b")),
        ("amqp://h", "must begin with http:// or https://"),
        ("http://", "the host is missing"),
        ("http://h:x", "the port must be a number"),
        ("http://u@h", "a login that is not user:password"),
        ("http://h/?cacertfile=f", "a query with 'cacertfile': http:// takes none"),
        ("https://h/?certfile=f", "a query with 'certfile': https:// takes cacertfile=FILE"),
        ("http://h/#f", "fragment"),
    ],
)
def test_the_address(text: str, address: ManagementAddress | str) -> None:
    if isinstance(address, str):
        with pytest.raises(AddressError) as raised:
            parse_management_address(text)
        assert address in str(raised.value)
        return
    parsed = parse_management_address(text)
    assert parsed == address
    assert "p@" not in str(parsed) + repr(parsed)


# ------------------------------------------------------------------------------------------- what it is asked


def test_what_the_api_is_asked() -> None:
    done = frames(
        "broker operator.add-user u/1 password=p",
        "broker operator.add-vhost v/1",
        "broker operator.set-permissions u/1 virtual-host=v/1 configure=^q write=.*",
        "broker operator.set-policy p queue=q.1 max-length=3 overflow=drop-head priority=2",
        "broker operator.set-policy p queue=q virtual-host=v/1 message-ttl=5",
        "broker operator.clear-policy p",
    )
    with management() as api:
        operator = operator_at(api)
        operator.carry_out(done, nobody)
        policy = {"priority": 2, "apply-to": "queues", "definition": {"max-length": 3, "overflow": "drop-head"}}
        other = {"priority": 0, "apply-to": "queues", "definition": {"message-ttl": 5}}
        assert api.asked == [
            ("PUT /api/users/u%2F1", {"password": "p", "tags": ""}),
            ("PUT /api/vhosts/v%2F1", {}),
            ("PUT /api/permissions/v%2F1/u%2F1", {"configure": "^q", "write": ".*", "read": ""}),
            ("PUT /api/policies/%2F/p", {"pattern": "^q\\.1$", **policy}),
            ("PUT /api/policies/v%2F1/p", {"pattern": "^q$", **other}),
            ("DELETE /api/policies/%2F/p", None),
        ]
        assert api.logins == {"me:Sesame-4711"}
        api.asked.clear()
        operator.undo(done)
        assert api.asked == [
            ("DELETE /api/users/u%2F1", None),
            ("DELETE /api/vhosts/v%2F1", None),
            ("DELETE /api/policies/v%2F1/p", None),
        ]


def test_a_login_of_its_own_goes_before_that_of_the_broker() -> None:
    with management() as api:
        operator_at(api, "u:p@")
        assert api.logins == {"u:p"}


@pytest.mark.parametrize(
    ("tags", "offered", "missing"),
    [
        (["administrator"], "operator.add-user", "operator.set-alarm"),
        (["policymaker"], "operator.set-policy max-length", "operator.add-user"),
        ("monitoring,policymaker", "operator.clear-policy", "operator.delete-vhost"),
        (["management"], "operator.close-connection", "operator.set-policy"),
    ],
)
def test_what_a_user_may_is_told_by_tags(tags: object, offered: str, missing: str) -> None:
    with management({**ADMINISTRATOR, "GET /api/whoami": (200, {"name": "u", "tags": tags})}) as api:
        operator = operator_at(api)
        assert not_offered(operator, [offered, missing]) == missing
        with pytest.raises(OperatorMissing, match=missing):
            operator.carry_out([OperatorAction(OPERATOR, 0, missing, {}, sent=True)], nobody)
        assert api.asked == []


def test_a_connection_is_found_by_the_name_that_its_client_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [
        {"name": "1 -> 2", "user_provided_name": "another"},
        {"name": "3 -> 4", "client_properties": {"connection_name": "amqpspec-a"}},
    ]
    order = frames("broker operator.close-connection a reason=r")
    with management({**ADMINISTRATOR, "GET /api/connections": (200, known)}) as api:
        operator_at(api).carry_out(order, lambda name: Peer(7, f"amqpspec-{name}"))
        assert api.asked[-1] == ("DELETE /api/connections/3%20-%3E%204", None)
        assert api.reasons == ["r"]
        monkeypatch.setattr(management_operator, "_PATIENCE", 0.0)
        with pytest.raises(OperatorError, match="it knows no connection 'amqpspec-b' after 0 s"):
            operator_at(api).carry_out(order, lambda name: Peer(7, "amqpspec-b"))


# ----------------------------------------------------------------------------------------------- what is wrong


def test_what_the_api_refuses_says_why() -> None:
    refused = {
        "PUT /api/policies/%2F/p": (400, {"error": "bad_request", "reason": "Validation failed\n\nnot recognised\n"}),
        "DELETE /api/policies/%2F/p": (404, {"reason": "Not Found"}),
        "PUT /api/users/u": (401, {"reason": "Access refused."}),
        "DELETE /api/users/u": (500, b"<html>"),
    }
    with management({**ADMINISTRATOR, **refused}) as api:
        operator = operator_at(api)
        policy = frames("broker operator.set-policy p queue=q max-length=1")
        with pytest.raises(OperatorError) as raised:
            operator.carry_out(policy, nobody)
        assert str(raised.value) == (
            f"the operator could not do operator.set-policy: {api.url}: PUT /api/policies/%2F/p:"
            " 400 Bad Request: Validation failed not recognised"
        )
        with pytest.raises(OperatorError, match="404 Not Found"):
            operator.carry_out(frames("broker operator.clear-policy p"), nobody)
        user = frames("broker operator.add-user u password=p")
        with pytest.raises(OperatorError, match=r"user 'me' may not PUT /api/users/u: 401 Unauthorized: Access ref"):
            operator.carry_out(user, nobody)
        operator.undo(policy)  # what is gone already is no error
        with pytest.raises(OperatorError, match=r"DELETE /api/users/u: 500 Internal Server Error$"):
            operator.undo(user + policy)
        assert api.asked[-1][0] == "DELETE /api/policies/%2F/p"


WHOAMI = "GET /api/whoami"


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({WHOAMI: (401, {"reason": "Not_Authorized"})}, "user 'u' may not GET /api/whoami: 401 Unauthorized: Not_Auth"),
        ({WHOAMI: (404, b"no")}, "GET /api/whoami: 404 Not Found; there is no management API"),
        ({WHOAMI: (302, b"")}, "GET /api/whoami: 302 Found"),
        ({WHOAMI: (200, b"<html>")}, "the answer to GET /api/whoami is not JSON"),
        ({WHOAMI: (200, ["x"])}, "its answers are none of a management API"),
        ({"GET /api/overview": (200, {"cluster_name": "x"})}, "is the management of x, and amqp://u@127.0.0.1:"),
    ],
)
def test_one_line_tells_what_is_wrong(
    answers: dict[str, tuple[int, object]], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("amqpspec.command_line.targets.met", told_its_cluster)
    with EmbeddedBroker() as broker, management({**ADMINISTRATOR, **answers}) as api:
        target = f"amqp://u:Sesame-4711@127.0.0.1:{broker.address.port}/"
        code = main(["run", target, "--management", api.url, "--sequences", "0", "--out", str(tmp_path / "out")])
        error = capsys.readouterr().err
        assert (code, error.count("\n")) == (3, 1), error
        assert error.startswith(f"amqpspec: {api.url}") and said in error and "Sesame" not in error


def told_its_cluster(broker: object) -> object:
    """As a broker that says of which cluster it is."""
    from amqpspec.targets.client.handshake import Tune

    return {"product": "RabbitMQ", "version": "4.3.6", "cluster_name": "rabbit@here"}, Tune(0, 0, 0)


def test_nobody_or_somebody_else_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = ManagementAddress("127.0.0.1", server.getsockname()[1], user="u", password="p")

        def answer() -> None:
            client, _ = server.accept()
            with client:
                client.recv(1)
                client.sendall(b"AMQP\x00\x00\x09\x01")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(OperatorError, match=r":\d+: (the answer to GET /api/whoami is not HTTP|no answer)"):
            ManagementOperator(address, BROKER)
        thread.join()
    with pytest.raises(OperatorError, match=r"127.0.0.1:\d+: no answer to GET /api/whoami: Connection refused"):
        ManagementOperator(address, BROKER)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("run embedded --management http://h", "embedded is not operated by its management"),
        ("run amqp://h --management h:15672", "the management address must begin with http:// or https://"),
        ("run amqp://h amqp://i --management http://h", "--management is of one broker"),
        ("profile docker:x --management http://h", "docker:x is not operated by its management"),
        ("soak amqp://h --management http://h:0", "the port must be a number"),
    ],
)
def test_what_makes_no_sense(
    line: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


# --------------------------------------------------------------------------------------------------- in a file


def test_a_file_may_name_it_and_its_commands_go_first(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker, management() as api:
        path = tmp_path / "b.toml"
        path.write_text(
            f'address = "{broker.address}"\nmanagement = "{api.url}"\n'
            '[operator]\nadd-user = ["touch", "{user}"]\ndelete-user = ["rm", "{user}"]\n'
            'set-alarm = ["touch", "alarm"]\nclear-alarm = ["rm", "alarm"]\n'
        )
        with InHouseBroker(read_broker_file(path)) as in_house:
            operator = in_house.operator()
            assert operator is not None
            assert not_offered(operator, ["operator.set-alarm", "operator.set-policy expires"]) == ""
            policy = "broker operator.set-policy p queue=q expires=1"
            done = frames("broker operator.add-user u", "broker operator.set-alarm", policy)
            operator.carry_out(done, nobody)
            assert (tmp_path / "u").exists() and (tmp_path / "alarm").exists()
            operator.undo(done)
            assert not (tmp_path / "u").exists() and not (tmp_path / "alarm").exists()
            assert [line for line, _ in api.asked] == ["PUT /api/policies/%2F/p", "DELETE /api/policies/%2F/p"]
            with pytest.raises(OperatorMissing, match=r"operator\.configure"):
                operator.carry_out(frames("broker operator.configure consumer-timeout=1"), nobody)


# ----------------------------------------------------------------------------------------------- a real broker


@pytest.mark.full
def test_rabbitmq_is_operated_by_its_management(rabbitmq_4_3: DockerBroker, tmp_path: Path) -> None:
    """On one of its own: the plugin stays where it was enabled."""
    with DockerBroker(rabbitmq_4_3.image) as broker:
        if broker.address.port != 5672:
            pytest.skip("the container cannot be reached at its own address, and the API is not published")
        broker.execute("rabbitmq-plugins", "enable", "rabbitmq_management")
        broker.execute("rabbitmqctl", "add_vhost", "other")
        broker.execute("rabbitmqctl", "set_permissions", "-p", "other", "guest", ".*", ".*", ".*")
        url = f"http://{broker.address.host}:15672"
        closes(broker.address, ManagementOperator(parse_management_address(url), broker.address))
        # a virtual host of its own: what holds there is set there
        target = f"amqp://guest:guest@{broker.address.host}:5672/other"
        only = [word for each in ("POLICY-0", "PERMISSION", "CONN-009") for word in ("--only", each)]
        words = ["--management", url, "--sequences", "0", "--gate", "known", "--out", str(tmp_path / "out"), *only]
        assert main(["run", target, *words]) == 0
        report = (tmp_path / "out/report.json").read_text()
        assert '"POLICY-009"' in report
        assert "amqpspec" not in broker.execute("rabbitmqctl", "list_policies", "-p", "other")
