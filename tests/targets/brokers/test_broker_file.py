"""The file of an in-house broker: what it may say, what is wrong with others, and the commands of its operator."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.language.command_file import parse_command_file
from amqpspec.conformance.scenarios.applicability import obstacle
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.protocol.methods import OPERATOR, Fault, OperatorAction
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.broker_file import BrokerFile, BrokerFileError, read_broker_file
from amqpspec.targets.brokers.command_operator import CommandOperator
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.brokers.health import check_alive
from amqpspec.targets.brokers.in_house_broker import InHouseBroker
from amqpspec.targets.brokers.operator import Peer
from amqpspec.targets.brokers.readiness import BrokerUnavailable
from amqpspec.targets.brokers.single_node import BROKER_FAULTS
from amqpspec.targets.errors import OperatorError, OperatorMissing

ADDRESS = 'address = "amqp://me:Sesame-4711@127.0.0.1:5672/v"\n'
FREE = 'address = "amqp://me:Sesame-4711@127.0.0.1:{port}/v"\n'


def written(directory: Path, text: str) -> Path:
    path = directory / "b.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_all_that_it_may_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = read_broker_file(
        written(
            tmp_path,
            FREE + 'dialect = "amqp-0-9-1"\nstart = ["./b", "--port={port}", "{directory}"]\nstart-timeout = 2.5\n'
            '[operator]\nset-alarm = ["ctl", "{port}"]\nclear-alarm = ["ctl"]\n',
        )
    )
    assert (said.dialect, said.start, said.start_timeout) == (
        "amqp-0-9-1",
        ("./b", "--port={port}", "{directory}"),
        2.5,
    )
    assert said.operator == {"operator.set-alarm": ("ctl", "{port}"), "operator.clear-alarm": ("ctl",)}
    assert said.at(7) == Address("127.0.0.1", 7, "me", "Sesame-4711", "v")
    monkeypatch.setenv("AMQPSPEC_USER", "env")
    assert said.at(7).user == "me"
    assert read_broker_file(written(tmp_path, 'address = "amqp://h"')).at(0).user == "env"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("address = ", "Invalid value"),
        ("", "needs an address"),
        ("address = 5672", "needs an address"),
        ('address = "amqp://me:Sesame-4711@h:x/"', "the port must be a number"),
        ('address = "localhost:5672"', "must begin with amqp://"),
        (ADDRESS + 'adress = "x"', "has 'adress', which is none of address, dialect"),
        (ADDRESS + 'restart = ["./b"]', "restart belongs under [operator]"),
        (ADDRESS + '[operator]\nstop = ["./ctl"]', "has stop and no restart"),
        (ADDRESS + '[operator]\nkill = ["./ctl", "{user}"]', "none of {pid}, {directory}, {port}"),
        (ADDRESS + '[operator]\npause = ["./ctl"]', "has pause and no resume"),
        (ADDRESS + 'dialect = "rabbitmq-5"', "unknown dialect 'rabbitmq-5'"),
        (ADDRESS + "dialect = 4", "dialect is not a text"),
        (ADDRESS + 'start = "./b --port 5"', "start is not a command"),
        (ADDRESS + "start = []", "start is not a command"),
        (ADDRESS + 'start = ["./b", 5]', "start is not a command"),
        (ADDRESS + 'start = ["./b", "{prot}"]', "start has {prot}, which is none of {port}, {directory}"),
        (ADDRESS + 'start = ["./b", "{port}"]', "start has {port}, and the address has not"),
        (FREE, "there is no start"),
        (ADDRESS + 'start = ["./b"]\nstart-timeout = 0', "start-timeout is not a number of seconds"),
        (ADDRESS + 'start = ["./b"]\nstart-timeout = true', "start-timeout is not a number of seconds"),
        (ADDRESS + "start-timeout = 5", "has a start-timeout and no start"),
        (ADDRESS + "operator = 5", "[operator] is not a table"),
        (ADDRESS + '[operator]\nfly = ["x"]', "[operator] has 'fly', which is none of add-user"),
        (ADDRESS + '[operator]\nset-alarm = "x"', "[operator] set-alarm is not a command"),
        (ADDRESS + '[operator]\ndelete-user = ["x", "{password}"]', "{password}, which is none of {user}, {port}"),
        (ADDRESS + '[operator]\nadd-user = ["x"]', "has add-user and no delete-user"),
    ],
)
def test_what_is_wrong_is_one_line_without_a_password_and_exit_code_2(
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "b.toml"
    if text is not None:
        written(tmp_path, text)
    with pytest.raises(BrokerFileError) as caught:
        read_broker_file(path)
    assert str(caught.value).startswith(f"{path}: ") and message in str(caught.value)
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said == f"amqpspec: {caught.value}\n"
    assert "Sesame" not in said and said.count("\n") == 1


def test_a_fixed_port_that_is_taken_is_not_mistaken_for_the_broker(tmp_path: Path) -> None:
    with EmbeddedBroker() as other:
        address = f"amqp://127.0.0.1:{other.address.port}/"
        file = BrokerFile(tmp_path / "b.toml", address, start=(sys.executable, "-c", "import time; time.sleep(60)"))
        with pytest.raises(BrokerUnavailable, match="listens on port"), InHouseBroker(file):
            pass


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = BrokerFile(tmp_path / "b.toml", "amqp://127.0.0.1:{port}/", start=("./nothing",))
    with pytest.raises(BrokerUnavailable, match=r"cannot start .*/nothing: No such file"), InHouseBroker(file):
        pass


# ------------------------------------------------------------------------------------------ the operator

TELL = (sys.executable, "-c", "import sys; open('told', 'a').write(' '.join(sys.argv[1:]) + '\\n')")


def action(name: str, /, **arguments: object) -> OperatorAction:
    return OperatorAction(OPERATOR, 0, f"operator.{name}", dict(arguments), sent=True)


def operator(directory: Path, **commands: tuple[str, ...]) -> CommandOperator:
    named = {f"operator.{name.replace('_', '-')}": command for name, command in commands.items()}
    return CommandOperator(named, 5999, directory, {})


def peer_of(name: str) -> Peer:
    return Peer(4711, f"known-as-{name}")


def test_commands_are_given_what_they_ask_for_and_what_was_made_is_undone(tmp_path: Path) -> None:
    subject = operator(
        tmp_path,
        add_user=(*TELL, "add", "{user}", "{password}", "{port}"),
        delete_user=(*TELL, "delete", "{user}"),
        close_connection=(*TELL, "close", "{connection-name}", "{client-port}", "{reason}"),
        configure=(*TELL, "set", "{consumer-timeout}|{channel-tick-interval}"),
        reset_configuration=(*TELL, "reset"),
        set_permissions=(*TELL, "permit", "{virtual-host}", "{configure}"),
    )
    actions = [
        # what is put in is not looked at again
        action("add-user", user="lim", password="{user}"),
        action("set-permissions", user="lim", configure=".*"),
        action("close-connection", name="a", reason="because of it"),
        action("configure", consumer_timeout=500),
    ]
    subject.carry_out(actions, peer_of)
    subject.undo(actions)
    assert (tmp_path / "told").read_text().splitlines() == [
        "add lim {user} 5999",
        "permit / .*",
        "close known-as-a 4711 because of it",
        "set 500|",
        "delete lim",
        "reset",
    ]


def test_a_policy_is_told_as_a_whole_or_by_its_parts(tmp_path: Path) -> None:
    said = {"policy": "p", "queue": "q", "max_length": 3, "overflow": "drop-head"}
    whole = operator(tmp_path, set_policy=(*TELL, "{queue}", "{definition}"))
    whole.carry_out([action("set-policy", **said)], peer_of)
    parts = operator(tmp_path, set_policy=(*TELL, "{queue}", "{max-length}", "{overflow}", "{message-ttl}", "end"))
    parts.carry_out([action("set-policy", **said)], peer_of)
    told = (tmp_path / "told").read_text().splitlines()
    assert told == ['q {"max-length": 3, "overflow": "drop-head"}', "q 3 drop-head  end"]
    with pytest.raises(OperatorMissing, match=r"no command for operator.set-policy expires"):
        parts.carry_out([action("set-policy", policy="p", queue="q", expires=3)], peer_of)


def test_scenarios_whose_policies_cannot_be_told_are_not_run(tmp_path: Path) -> None:
    (scenario,) = parse_command_file("broker operator.set-policy p queue=q max-length=1 message-ttl=5\n", "x")
    description = TargetDescription("t", "p", "1", "rabbitmq-4.3")

    def why_not(*placeholders: str) -> str | None:
        subject = operator(tmp_path, set_policy=(*TELL, *placeholders))
        return obstacle(scenario, TargetUnderTest(Address("h"), description, operator=subject))

    missing = "needs operator.set-policy message-ttl, which the operator of this target does not offer"
    assert why_not("{definition}") is why_not("{max-length}", "{message-ttl}") is None
    assert why_not("{max-length}") == missing


def test_a_command_that_fails_says_so(tmp_path: Path) -> None:
    failing = (sys.executable, "-c", "import sys; sys.exit('no such user')")
    with pytest.raises(OperatorError, match=r"operator.set-alarm: .* ended with exit status 1: no such user"):
        operator(tmp_path, set_alarm=failing).carry_out([action("set-alarm")], peer_of)
    with pytest.raises(OperatorError, match=r"cannot start ./nothing: No such file"):
        operator(tmp_path, set_alarm=("./nothing",)).carry_out([action("set-alarm")], peer_of)
    with pytest.raises(OperatorMissing, match=r"no command for operator.add-vhost"):
        operator(tmp_path).carry_out([action("add-vhost", virtual_host="v")], peer_of)


def test_scenarios_that_need_another_command_are_not_run(tmp_path: Path) -> None:
    (scenario,) = parse_command_file("broker operator.set-alarm\nbroker operator.clear-alarm\n", "x")
    description = TargetDescription("t", "p", "1", "rabbitmq-4.3")

    def why_not(**commands: tuple[str, ...]) -> str | None:
        return obstacle(scenario, TargetUnderTest(Address("h"), description, operator=operator(tmp_path, **commands)))

    assert why_not(set_alarm=TELL, clear_alarm=TELL) is None
    assert why_not(set_alarm=TELL) == "needs operator.clear-alarm, which the operator of this target does not offer"
    with EmbeddedBroker() as broker:  # its operator does all of it
        assert obstacle(scenario, TargetUnderTest(broker.address, description, operator=broker.operator())) is None


# ------------------------------------------------------------------------------------------------------- faults

#: Notes what it is asked to do; what it does is nothing.
CTL = """
import pathlib, sys
with open(pathlib.Path(__file__).parent / "done", "a") as done:
    print(*sys.argv[1:], file=done)
"""


def test_faults_of_a_broker_elsewhere_are_done_by_commands(tmp_path: Path) -> None:
    (tmp_path / "ctl.py").write_text(CTL)
    with EmbeddedBroker() as broker:
        lines = (f'{name} = ["{sys.executable}", "ctl.py", "{name}", "{{port}}"]' for name in ("kill", "restart"))
        text = f'address = "amqp://127.0.0.1:{broker.address.port}"\n[operator]\n' + "\n".join(lines)
        with InHouseBroker(read_broker_file(written(tmp_path, text))) as in_house:
            faults = in_house.faults()
            assert faults is not None and set(faults.offered) == {"broker.kill", "broker.restart"}
            for name in ("broker.kill", "broker.restart"):
                faults.inject(Fault(OPERATOR, 0, name, {}, sent=True))
            with pytest.raises(OperatorMissing, match=r"broker\.pause"):
                faults.inject(Fault(OPERATOR, 0, "broker.pause", {}, sent=True))
        port = broker.address.port
    assert (tmp_path / "done").read_text() == f"kill {port}\nrestart {port}\n"


def test_a_broker_elsewhere_without_commands_is_broken_by_nobody(tmp_path: Path) -> None:
    with InHouseBroker(read_broker_file(written(tmp_path, ADDRESS))) as in_house:
        assert in_house.faults() is None


def test_a_broker_that_the_suite_starts_needs_no_commands_and_one_comes_before_what_the_suite_does(
    tmp_path: Path,
) -> None:
    (tmp_path / "ctl.py").write_text(CTL)
    (tmp_path / "b.py").write_text(
        "import sys\nfrom amqpspec import EmbeddedBroker\n"
        "EmbeddedBroker(port=int(sys.argv[1])).serve_forever(lambda address: None)\n"
    )
    command = f'start = ["{sys.executable}", "b.py", "{{port}}"]\n'
    text = 'address = "amqp://127.0.0.1:{port}"\n' + command
    text += f'[operator]\npause = ["{sys.executable}", "ctl.py", "{{pid}}", "{{directory}}"]\n'
    with InHouseBroker(read_broker_file(written(tmp_path, text))) as in_house:
        faults = in_house.faults()
        assert faults is not None and set(faults.offered) == set(BROKER_FAULTS)
        for name in ("broker.pause", "broker.restart"):
            faults.inject(Fault(OPERATOR, 0, name, {}, sent=True))
        assert check_alive(in_house.address)
    pid, directory = (tmp_path / "done").read_text().split()
    assert int(pid) > 0 and Path(directory).name.startswith("amqpspec-broker-")
