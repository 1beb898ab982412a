"""docs/in-house-broker.md, followed as it is written."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import docker
import pytest
from docker.errors import NotFound

from amqpspec.command_line import main
from amqpspec.conformance.language.command_arguments import ARGUMENTS
from amqpspec.targets.brokers.broker_file import read_broker_file
from amqpspec.targets.brokers.command_operator import PLACEHOLDERS
from amqpspec.targets.brokers.docker_broker import DockerBroker
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from tests.patience import patience

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "in-house-broker.md").read_text(encoding="utf-8")
#: A file of the page: its name, at the end of a paragraph, and the block after it.
FILES = dict(re.findall(r"`([\w.]+)`[^`\n]*:\n\n```\w+\n(.*?)```", PAGE, re.DOTALL))
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the page in an empty directory, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    # a program of the page runs with the Python and the packages of this test
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "mybroker").chmod(0o755)
    return tmp_path


def test_the_broker_that_is_wrong_on_purpose_is_found_to_lose_messages(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(FILES) == {"mybroker", "broker.toml"}
    (line,) = "".join(COMMANDS).strip().splitlines()
    program, *arguments = shlex.split(line)
    assert program == "amqpspec"
    assert main(arguments) == 1
    report = json.loads((page / "amqpspec-out" / "report.json").read_text(encoding="utf-8"))
    first = report["failures"][0]
    assert (first["requirement"], first["severity"]) == ("ACK-014", "messages lost")
    assert (report["target"]["label"], report["target"]["dialect"]) == ("broker.toml", "rabbitmq-4.3")
    assert report["lost"] is None
    assert "messages lost" in capsys.readouterr().out
    (file, *_) = sorted((page / "amqpspec-out" / "failures").iterdir())
    assert main(["replay", str(file), "broker.toml"]) == 1


def test_the_same_broker_as_it_should_be_conforms(page: Path) -> None:
    sound = FILES["mybroker"].replace(', fault="message-lost-on-requeue"', "")
    assert sound != FILES["mybroker"]
    (page / "mybroker").write_text(sound, encoding="utf-8")
    assert main(["run", "broker.toml", "--only", "ACK-014", "--sequences", "0"]) == 0


def test_a_broker_that_runs_is_used_as_it_is(page: Path) -> None:
    with EmbeddedBroker(password="Sesame-4711") as broker:
        address = f"amqp://guest:Sesame-4711@127.0.0.1:{broker.address.port}/"
        (page / "there.toml").write_text(f'address = "{address}"\n', encoding="utf-8")
        assert main(["run", "there.toml", "--only", "CONN-001", "--sequences", "0", "--dialect", "amqp-0-9-1"]) == 0
    written = [file for file in (page / "amqpspec-out").rglob("*") if file.is_file()]
    assert written and not any(b"Sesame" in file.read_bytes() for file in written)


def test_an_executable_with_the_contract_of_process(page: Path) -> None:
    by_environment = FILES["mybroker"].replace("int(sys.argv[1])", 'int(os.environ["AMQPSPEC_PORT"])')
    (page / "mybroker").write_text(by_environment.replace("import sys", "import os"), encoding="utf-8")
    assert main(["run", f"process:{page / 'mybroker'}", "--only", "ACK-014", "--sequences", "0"]) == 1


def test_what_the_page_says_of_the_operator_is_so(page: Path) -> None:
    for name, placeholders in PLACEHOLDERS.items():
        plain = name.partition(".")[2]
        row = next(line for line in PAGE.splitlines() if line.startswith("| ") and f"`{plain}`" in line)
        assert all(f"`{{{each}}}`" in row for each in placeholders), row
    assert set(PLACEHOLDERS) >= {name for name in ARGUMENTS if name.startswith("operator.")}
    (example,) = re.findall(r"(\[operator\]\n.*?)```", PAGE, re.DOTALL)
    (page / "operated.toml").write_text(FILES["broker.toml"] + example, encoding="utf-8")
    operator = read_broker_file(page / "operated.toml").operator
    assert operator is not None
    assert set(operator) == {"operator.add-user", "operator.delete-user", "operator.set-permissions"}


def test_a_broker_that_does_not_start_is_one_line(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (page / "mybroker").write_text("#!/bin/sh\necho no licence today\nexit 7\n", encoding="utf-8")
    assert main(["run", "broker.toml"]) == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "exit status 7" in said and "no licence today" in said


def test_the_program_of_the_page_is_valid(page: Path) -> None:
    subprocess.run([sys.executable, "-m", "py_compile", "mybroker"], check=True, cwd=page)


def test_a_broker_that_is_not_made_of_this_project_is_started_by_a_command(page: Path, garagemq: DockerBroker) -> None:
    """A process in the foreground that ends on SIGTERM: here the client of Docker, with a broker of Debian in it."""
    name = f"amqpspec-in-house-{secrets.token_hex(4)}"
    # a broker that hangs does not mind SIGTERM, as the first process of a container: a shell before it does
    served = "trap exit TERM; garagemq --config /etc/garagemq/config.yaml & wait"
    run = ["docker", "run", "--rm", "--name", name, "--publish", "127.0.0.1:{port}:5672"]
    start = [*run, garagemq.image, "sh", "-c", served]
    content = f'address = "amqp://guest:guest@127.0.0.1:{{port}}/"\nstart = {json.dumps(start)}\n'
    (page / "own.toml").write_text(content, encoding="utf-8")
    assert main(["run", "own.toml", "--only", "GET-001", "--sequences", "0"]) == 1
    report = json.loads((page / "amqpspec-out" / "report.json").read_text(encoding="utf-8"))
    assert (report["target"]["label"], report["target"]["product"]) == ("own.toml", "garagemq")
    assert "GET-001" in {each["requirement"] for each in report["failures"]}
    assert report["lost"] is None and not report["left_behind"]
    with suppress(NotFound):  # the engine removes it when it has ended, which its client does not wait for
        docker.from_env().containers.get(name).wait(condition="removed", timeout=patience(30))


def test_a_broker_whose_memory_is_short_is_found_to_end_by_a_header(page: Path, broker_j: DockerBroker) -> None:
    """docs/findings.md, "A header of 32 bits without a sign ends the broker": by a setting, not by load."""
    setting = "JAVA_TOOL_OPTIONS=-Dbroker.flowToDiskThreshold=1"
    start = ["docker", "run", "--rm", "--env", setting, "--publish", "127.0.0.1:{port}:5672", broker_j.image]
    content = f'address = "amqp://guest:guest@127.0.0.1:{{port}}/"\nstart = {json.dumps(start)}\n'
    (page / "short.toml").write_text(content, encoding="utf-8")
    run = ["run", "short.toml", "--only", "PUBLISH-016", "--sequences", "0", "--dialect", "amqp-0-9-1", "--no-profile"]
    assert main(run) == 1
    report = json.loads((page / "amqpspec-out" / "report.json").read_text(encoding="utf-8"))
    first = report["failures"][0]
    ended = "SERVER-001|missing frame|an answer behind basic.publish"
    assert (first["identity"], first["severity"]) == (ended, "messages lost")
    assert "$i" in first["commands"][-1]


@pytest.mark.parametrize("way", ["file", "process"])
def test_rabbitmq_is_started_as_a_process_of_this_machine(page: Path, rabbitmq_program: Path, way: str) -> None:
    content = f'address = "amqp://guest:guest@127.0.0.1:{{port}}/"\nstart = ["{rabbitmq_program}"]\n'
    (page / "rabbitmq.toml").write_text(content, encoding="utf-8")
    target = "rabbitmq.toml" if way == "file" else f"process:{rabbitmq_program}"
    assert main(["run", target, "--only", "GET-001", "--sequences", "0"]) == 0
    report = json.loads((page / "amqpspec-out" / "report.json").read_text(encoding="utf-8"))
    assert report["target"]["product"] == "RabbitMQ"
    assert report["lost"] is None and not report["left_behind"]
