"""Reproducers: they send what the suite sends, octet by octet, and show on a broker what the suite saw."""

from __future__ import annotations

import ast
import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from amqpspec.conformance.failures.reproducer import reproducer
from amqpspec.conformance.failures.step_by_step import stepwise
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.language.names import on_the_broker
from amqpspec.conformance.scenarios.scenario_files import all_scenarios, sequence_name
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.protocol.methods import METHOD_IDS, OPERATOR, Method, event_of
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.codec.methods_codec import PROTOCOL_HEADER, encode
from tests.patience import patience

Run = Callable[..., str]


def parsed(text: str) -> list[Command]:
    return [parse_command(line.strip()) for line in text.strip().splitlines()]


def failure(requirement: str = "ACK-006", command: str = "", shape: Shape = Shape.UNEXPECTED, **more: Any) -> Failure:
    given: dict[str, Any] = {"detail": "", "observed": "nothing", "allowed": ("a.1 < channel.close",), "state": ()}
    return Failure(requirement=requirement, shape=shape, command=command, **(given | more))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Write a program to a file and run it as a person would; gives what it prints."""

    def run_program(program: str, url: str) -> str:
        file = tmp_path / "reproducer.py"
        file.write_text(program, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(file), url], capture_output=True, text=True, timeout=patience(100), cwd=tmp_path,
            check=False,
        )  # fmt: skip
        assert done.stderr == ""
        assert done.returncode == 0
        return done.stdout

    return run_program


def url_of(broker: EmbeddedBroker) -> str:
    return f"amqp://guest:guest@{broker.address.host}:{broker.address.port}/%2F"


# ------------------------------------------------------------------------------------- what a program sends


class Sink:
    """Takes a program's connections and keeps what comes over them; says nothing."""

    def __init__(self, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.make_connection = socket.create_connection
        self.streams: list[bytearray] = []
        self.readers: list[threading.Thread] = []
        monkeypatch.setattr(sys, "argv", ["reproducer", "amqp://guest:guest@nowhere:1/%2F"])
        monkeypatch.setattr(socket, "create_connection", self.connect)
        head, tail, _ = program.partition("\n\ntry:\n")
        assert tail
        self.program: dict[str, Any] = {"__name__": "reproducer"}
        exec(compile(head, "reproducer", "exec"), self.program)
        let_go = self.program["let_go"]
        self.program.update(wait=lambda done, seconds: let_go(), settle=lambda quiet=0: let_go())
        self.program.update(abort=lambda name: None)
        self.program.update(by_hand=lambda text, *commands: None, pause=lambda text, seconds: None)

    def connect(self, address: tuple[str, int], timeout: float) -> socket.socket:
        """A connection that is read at once: what a program sends may be more than fits on the way."""
        theirs = self.make_connection(self.listener.getsockname(), timeout)
        ours, _ = self.listener.accept()
        self.streams.append(bytearray())
        self.readers.append(threading.Thread(target=self.read, args=(ours, self.streams[-1])))
        self.readers[-1].start()
        return theirs

    def read(self, stream: socket.socket, octets: bytearray) -> None:
        with stream:
            while more := stream.recv(1 << 20):
                octets += more

    def octets(self) -> dict[str, bytes]:
        """Run the sequence; what each connection has sent after the protocol header."""
        try:
            self.program["sequence"]()
            self.program["let_go"]()
        finally:
            for connection in self.program["CONNECTIONS"].values():
                connection.socket.close()
            self.listener.close()
            for reader in self.readers:
                reader.join(60)
        received = {}
        for (name, connection), everything in zip(self.program["CONNECTIONS"].items(), self.streams, strict=True):
            if type(connection).__name__ != "Stepwise":
                assert everything.startswith(PROTOCOL_HEADER)
                received[name] = bytes(everything.removeprefix(PROTOCOL_HEADER))
        return received


#: What a client says in steps of the handshake when nothing else is wished for.
USUAL: dict[str, dict[str, Any]] = {
    "connection.start-ok": {"mechanism": "PLAIN", "response": "\0guest\0guest", "locale": "en_US"},
    "connection.tune-ok": {"channel_max": 2047, "frame_max": 131_072},
    "connection.open": {"virtual_host": "/"},
}


def expected_octets(commands: Sequence[Command], prefix: str) -> dict[str, bytes]:
    """What the suite itself sends for them, if nothing is ever closed."""
    sent: dict[str, bytes] = {}
    opened = set()
    # what handshakes say step by step depends on the broker's answers
    by_steps = {each.connection for each, is_step in zip(commands, stepwise(commands), strict=True) if is_step}
    for command in commands:
        if command.connection in by_steps or command.connection == OPERATOR:
            continue
        octets = sent.setdefault(command.connection, b"")
        place = (command.connection, command.channel)
        if command.method in ("socket.abort", "socket.silence"):
            continue
        if command.method == "connection.open" and not command.as_it_stands:
            continue
        if command.method == "channel.open":
            opened.add(place)
        elif command.channel and not command.as_it_stands and place not in opened:
            opened.add(place)
            octets += encode(Method(*place, "channel.open", {}, sent=True))
        on_wire = on_the_broker(command, prefix)
        arguments = (USUAL.get(command.method, {}) if not command.channel else {}) | on_wire.arguments
        event = event_of(*place, on_wire.method, arguments, sent=True, content=on_wire.content)
        sent[command.connection] = octets + encode(event)
    return sent


def assert_sends_the_same(commands: Sequence[Command], monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(reproducer(commands, failure()), monkeypatch)
    received = sink.octets()
    assert {k: v for k, v in expected_octets(commands, sink.program["P"]).items() if v} == {
        k: v for k, v in received.items() if v
    }


@pytest.mark.parametrize("scenario", all_scenarios(), ids=sequence_name)
def test_a_program_sends_the_octets_that_the_suite_sends(scenario: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_sends_the_same(scenario.commands, monkeypatch)


def test_tables_properties_and_bodies_are_sent_as_given(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = parsed(
        r"""
        a.1 queue.declare q durable exclusive x-max-length=3 x-dead-letter-exchange=x x-dead-letter-routing-key=k
        a.1 queue.declare "" x-a={"b":[1,-1,4294967296,"é",null,true,{"c":1.5}],"d":"\"'\\"} x-e=""
        a.1 basic.publish q body="two\nlines 'and' \"quotes\"" headers={"f":0.1,"g":1e300} priority=9 delivery-mode=2
        a.1 basic.publish k exchange=x mandatory immediate body=m1 body-size=300000 type=t timestamp=1 message-id=""
        a.1 basic.publish amq.k exchange=amq.direct content-type=a content-encoding=b correlation-id=c reply-to=d
        a.1 basic.publish q expiration=10 user-id=guest app-id=f cluster-id=g body=é &
        a.2! basic.qos 1 prefetch-size=2 global
        a.1 basic.consume q tag=t no-local no-ack exclusive nowait x-priority=-5
        a.1 basic.nack 18446744073709551615 multiple requeue
        a.1 channel.close reply-code=200 reply-text=bye class-id=1 method-id=2
        a.1 channel.open
        a basic.get q no-ack
        """
    )
    assert_sends_the_same(commands, monkeypatch)


@pytest.mark.parametrize(
    "value",
    [
        {"$datetime": "2024-02-29T12:00:00+00:00"},
        {"$datetime": "2024-02-29T12:00:00+02:00"},
        {"$decimal": "1.50"},
        {"$decimal": "-7.25"},
        {"$bytes": "AP8="},
        {"$bytearray": "AP8="},
        {"$float": "nan"},
        {"$float": "-inf"},
        {"$table": [["$bytes", "mine"]]},
        -129,
    ],
    ids=str,
)
def test_values_of_every_kind_are_sent_as_given(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"k": value, "list": [value, {"deep": value}]})
    commands = parsed(f"a.1 queue.bind q amq.headers arguments={text}\na.1 basic.publish q headers={text} body=m")
    assert_sends_the_same(commands, monkeypatch)


class Written:
    """A socket, and what was written to it at once: with the connection's number."""

    def __init__(self, number: int, of: socket.socket, written: list[tuple[int, bytes]]) -> None:
        self.number, self.of, self.written = number, of, written

    def sendall(self, octets: bytes) -> None:
        self.written.append((self.number, octets))
        self.of.sendall(octets)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of, name)


def test_what_is_in_flight_together_leaves_at_once_and_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = parsed(
        """
        a.1! basic.consume q tag=t &
        b.1! basic.publish q body=m1 &
        b.1! basic.publish q body=m0 &
        b.1! basic.publish q body=m2 &
        a.1! basic.cancel t
        a.1! basic.ack 1
        """
    )
    sink = Sink(reproducer(commands, failure()), monkeypatch)
    written: list[tuple[int, bytes]] = []
    connect = sink.connect

    def recorded(*given: Any) -> Any:
        return Written(len(sink.streams), connect(*given), written)

    monkeypatch.setattr(socket, "create_connection", recorded)
    for name in "ab":
        sink.program["connect"](name)
    written.clear()
    sink.octets()
    of_a = [octets for number, octets in written if number == 0]
    (of_b,) = (octets for number, octets in written if number == 1)
    assert [number for number, _ in written] == [0, 1, 0, 0], "what b says is written at once, behind the consume"
    assert [octets[7:11].hex() for octets in of_a] == ["003c0014", "003c001e", "003c0050"], "consume, cancel, ack"
    assert [of_b.count(b"m%d\xce" % number) for number in (0, 1, 2)] == [1, 1, 1]


def test_single_frames_are_sent_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = parsed(
        """
        a.1 basic.publish q unfinished mandatory
        a.1 frame.header class-id=50 weight=7 body-size=99999999999 payload=100002
        a.1 frame.body body=abc
        a.1! frame.body body=x body-size=5000
        a.2! frame.method class-id=99 method-id=10 payload=ff
        a frame.other type=9 size=4 payload=0102 end=1
        a.3 frame.other type=8 &
        """
    )
    assert_sends_the_same(commands, monkeypatch)
    program = reproducer(commands, failure())
    assert '"2e" * 4999 + "ce"' in program


def test_a_program_leaves_a_channel_alone_that_is_within_a_content(run: Run) -> None:
    lines = """
        a.1 queue.declare q
        a.1 basic.publish q unfinished
        a.1 frame.header body-size=3
        b.1 basic.qos 1
        a.1 frame.body body=abc
        a.1 frame.body body=d
    """
    with EmbeddedBroker() as broker:
        output = run(reproducer(parsed(lines), failure()), url_of(broker))
    assert "expected method frame, got non method frame instead" in output
    assert output.count("Connection.Close") == 1


def test_every_method_can_be_sent_at_the_wrong_end(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = [parse_command(f"a.1! {method}") for method in METHOD_IDS]
    assert_sends_the_same(commands, monkeypatch)


def test_steps_of_the_handshake_can_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = parsed(
        """
        a.1 channel.open
        a! connection.open
        a! connection.open other
        a! connection.start-ok locale=C
        a! connection.tune-ok heartbeat=5
        b connection.open
        b! connection.open &
        b! connection.close
        """
    )
    assert_sends_the_same(commands, monkeypatch)


def test_connections_have_the_capabilities_and_virtual_hosts_that_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = parsed(
        """
        a connection.open consumer-cancel-notify=false virtual-host=other
        b.1 channel.open
        """
    )
    program = Sink(reproducer(commands, failure()), monkeypatch)
    program.octets()
    a, b = program.program["CONNECTIONS"].values()
    assert a.capabilities == {"consumer_cancel_notify": False}
    assert a.virtual_host == program.program["P"] + "other"
    assert b.capabilities["consumer_cancel_notify"] is True
    assert b.virtual_host == "/"


def test_a_program_makes_handshakes_step_by_step(run: Run) -> None:
    lines = """
        a socket.open
        a protocol.header 414d515000000901
        a connection.start-ok mechanism=AMQPLAIN
        a connection.tune-ok frame-max=8192
        a! connection.open
        a.1 basic.qos 1
        b connection.open password=wrong authentication-failure-close=true
        c protocol.header 414d515000000900
        d connection.tune-ok channel-max=5000
        f connection.open locale=en_US user=guest
        e connection.open mechanism=NOSUCH
        e connection.open heartbeat=1
        e.1 basic.qos 1
        e socket.silence
    """
    with EmbeddedBroker() as broker:
        output = run(reproducer(parsed(lines), failure()), url_of(broker))
    seen = [" ".join(line.split()[:4]) for line in output.splitlines() if line[1:4] == ".0 " or " < Basic" in line]
    starts = [f"{letter}.0 < Connection.Start version_major=0" for letter in "abdfe"]
    assert [line for line in seen if "Start" in line] == starts
    assert {
        "a.0 < Connection.OpenOk",
        "a.1 < Basic.QosOk",
        "b.0 < Connection.Close reply_code=403",
        "c.0 < (protocol header",
        "d.0 < (end of",
        "e.1 < Basic.QosOk",
    } <= set(seen)
    assert "f.0 < Connection.OpenOk" not in seen, "no password, so none that is right"
    assert seen.count("e.0 < (end of") == 2, "not let in, and then silent"


# ----------------------------------------------------------------------------------------- how a program reads


def test_the_head_tells_the_rule_and_what_was_seen() -> None:
    commands = parsed("a.1 queue.declare q durable\na.1 basic.ack 9")
    text = reproducer(
        commands,
        failure(
            command="a.1 basic.ack 9",
            shape=Shape.MISSING,
            detail="channel.close",
            observed="queue amqpspec-0123456789-q:\nnothing\0\u2028",
            allowed=("a.1 < channel.close reply-code=406", "silence"),
        ),
    )
    head = text[: text.index("def sequence")]
    assert all(line.startswith("# ") for line in head.splitlines() if line)
    words = " ".join(line.removeprefix("#").strip() for line in head.splitlines())
    rule = requirements()["ACK-006"]
    for part in (
        rule.statement,
        rule.source,
        "missing frame: channel.close",
        "Shows after: a.1 basic.ack 9",
        r"queue q: nothing\x00",
        "Allowed: a.1 < channel.close reply-code=406 or: silence",
    ):
        assert re.sub(r"\s+", " ", part) in re.sub(r"\s+", " ", words)
    assert "amqpspec-" not in text
    assert max(map(len, text.splitlines())) <= 120
    ast.parse(text)


def test_the_difference_is_marked_behind_its_last_command_and_a_missing_frame_gets_more_time() -> None:
    commands = parsed("a.1 basic.ack 1\na.1 basic.ack 1\na.1 basic.qos 1")
    lines = reproducer(commands, failure(command="a.1 basic.ack 1", shape=Shape.MISSING)).splitlines()
    calls = [line.strip() for line in lines if line.startswith(("    do(", "    print("))][:7]
    assert calls[0] == 'do("a.1 basic.ack 1", spec.Basic.Ack, delivery_tag=1)'
    assert calls[1] == 'do("a.1 basic.ack 1", spec.Basic.Ack, delivery_tag=1, quiet=5)'
    assert calls[2:6] == [
        f'print("  # {told}")'
        for told in (
            "reported here: ACK-006 Unknown tag",
            f"source: {requirements()['ACK-006'].source}",
            "observed: nothing",
            "allowed: a.1 < channel.close",
        )
    ]
    assert calls[6] == 'do("a.1 basic.qos 1", spec.Basic.Qos, prefetch_count=1)'


def test_programs_have_only_the_helpers_that_they_use() -> None:
    plain = reproducer(parsed("a.1 channel.open"), failure())
    for absent in ("raw", "abort", "silence", "look", "steps", "encode_float", "encode_decimal", "pause"):
        assert f"def {absent}(" not in plain
    assert "import datetime" not in plain and "import decimal" not in plain
    wanted = reproducer(
        parsed(
            """
            a.1 queue.declare q x-n=0.5 x-d={"$decimal":"0.5"} x-t={"$datetime":"2024-02-29T12:00:00+00:00"}
            a.1 frame.body body=x
            a socket.silence
            a socket.abort
            a socket.open
            broker clock.wait 10
            """
        ),
        failure(),
    )
    for present in ("raw", "abort", "silence", "look", "steps", "encode_float", "encode_decimal", "pause"):
        assert f"def {present}(" in wanted
    assert "QUIET, DEADLINE = 0.2," in plain
    assert "QUIET, DEADLINE = 0.02," in wanted, "or what has to be within a time comes too late"
    assert wanted.count("import datetime\n") == wanted.count("import decimal\n") == 1


def test_a_failure_outside_the_registry_and_before_any_command_still_gives_a_program() -> None:
    text = reproducer(parsed("a.1 channel.open"), failure("NOSUCH-001"))
    assert text.startswith("# NOSUCH-001:")
    ast.parse(text)
    ast.parse(reproducer([], failure()))


# --------------------------------------------------------------------------------------------- on brokers

UNKNOWN_TAG = """
a.1 queue.declare q durable
b.1 basic.publish q body=m1
a.1 basic.consume q tag=t
a.1 basic.ack 9
"""
REFUSAL = "a.1 < Channel.Close reply_code=406"


def test_a_program_shows_the_difference_between_a_faulty_and_a_sound_broker(run: Run) -> None:
    commands = parsed(UNKNOWN_TAG)
    program = reproducer(commands, failure(command=str(commands[-1]), shape=Shape.MISSING))
    assert "quiet=5" in program
    program = program.replace("quiet=5", "quiet=1")
    with EmbeddedBroker() as sound:
        lawful = run(program, url_of(sound))
    with EmbeddedBroker(fault="unknown-tag-accepted") as faulty:
        wrong = run(program, url_of(faulty))
    delivery = "a.1 < Basic.Deliver consumer_tag='t' delivery_tag=1 redelivered=False routing_key='q' body=b'm1'"
    assert delivery in lawful and delivery in wrong
    assert REFUSAL in lawful
    assert "Channel.Close" not in wrong
    left, wrongly_left = (output.partition("what is left in q\n")[2].splitlines() for output in (lawful, wrong))
    assert [line.partition(" queue='q' ")[2] for line in left[:1]] == ["message_count=1 consumer_count=0"]
    assert "Basic.GetOk delivery_tag=1 redelivered=True" in left[1] and left[1].endswith("body=b'm1'")
    assert [line.partition(" queue='q' ")[2] for line in wrongly_left] == ["message_count=0 consumer_count=1"]


def test_a_program_shows_octets_behind_the_arguments_of_a_method(run: Run) -> None:
    commands = parsed("a.1 queue.declare q\na.1 basic.consume q tag=t\na.1 basic.publish q body=m1")
    program = reproducer(commands, failure(command=str(commands[1])))
    shown = "a.1 < (Basic.ConsumeOk goes on after its arguments: 00)"
    with EmbeddedBroker() as sound:
        assert "goes on after" not in run(program, url_of(sound))
    with EmbeddedBroker(fault="octet-behind-arguments") as faulty:
        assert shown in run(program, url_of(faulty))


def test_a_program_does_what_clients_refuse_to_do(run: Run) -> None:
    program = reproducer(
        parsed(
            """
            a.1 confirm.select
            a.1 queue.declare
            a.1 basic.publish nosuch mandatory body=m1 headers={"n":1.5}
            a.1 basic.consume tag=t
            a.2 channel.close
            a.2 channel.open
            a.1 basic.consume tag=t
            b.1! basic.qos 1
            c connection.open
            c socket.abort
            c.1 basic.qos 1
            d.1 channel.open
            d connection.close reply-code=200
            """
        ),
        failure(),
    )
    with EmbeddedBroker() as broker:
        output = run(program, url_of(broker))
    lines = output.splitlines()
    returned = next(line for line in lines if "Basic.Return" in line)
    assert returned.endswith("routing_key='nosuch' body=b'm1' headers={'n': 1.5}")
    assert lines[lines.index(returned) + 1] == "a.1 < Basic.Ack delivery_tag=1 multiple=False"
    assert "a.2 < Channel.CloseOk" in lines
    assert any(line.startswith("a.0 < Connection.Close reply_code=530") for line in lines)
    assert any(line.startswith("b.0 < Connection.Close reply_code=504") for line in lines)
    assert lines[lines.index("> c.1 basic.qos 1") + 1] == "  (not sent)"
    assert "d.0 < Connection.CloseOk" in lines


def test_a_program_replies_to_the_latest_address(run: Run) -> None:
    lines = """
        b.1 queue.declare q exclusive
        b.1 basic.consume q tag=server no-ack
        b.1 basic.publish $reply-to mandatory body=early
        a.1 basic.consume amq.rabbitmq.reply-to tag=r no-ack
        c.1 basic.consume amq.rabbitmq.reply-to tag=s no-ack
        a.1 basic.publish q reply-to=amq.rabbitmq.reply-to body=request1
        b.1 basic.publish $reply-to body=reply1
        c.1 basic.publish q reply-to=amq.rabbitmq.reply-to body=request2
        c.1 basic.publish q reply-to=elsewhere body=request3
        b.1 basic.publish $reply-to body=reply2
        b.1 queue.declare $reply-to passive
    """
    with EmbeddedBroker() as broker:
        output = run(reproducer(parsed(lines), failure()), url_of(broker)).splitlines()
    replies = [line for line in output if "Deliver" in line and "body=b'reply" in line]
    assert [(line[:3], line.partition(" body=")[2]) for line in replies] == [("a.1", "b'reply1'"), ("c.1", "b'reply2'")]
    assert any("Basic.Return" in line and "body=b'early'" in line for line in output)
    assert any(line.startswith("b.1 < Queue.DeclareOk queue='amq.rabbitmq.reply-to.") for line in output)


def test_a_program_sends_the_headers_again_that_came(run: Run) -> None:
    lines = """
        a.1 queue.declare q exclusive
        a.1 basic.publish q headers=$last body=m1
        a.1 basic.publish q headers={"k": "v"} body=m2
        a.1 basic.get q no-ack
        a.1 basic.get q no-ack
        a.1 basic.publish q headers=$last body=m3
        a.1 basic.get q no-ack
    """
    with EmbeddedBroker() as broker:
        output = run(reproducer(parsed(lines), failure()), url_of(broker)).splitlines()
    came = [line.partition(" body=")[2] for line in output if "GetOk" in line]
    assert came == ["b'm1'", "b'm2' headers={'k': 'v'}", "b'm3' headers={'k': 'v'}"]


def test_a_program_deletes_what_it_made_and_uses_new_names_each_time(run: Run) -> None:
    commands = parsed("a.1 queue.declare q durable\na.1 exchange.declare x direct durable\na.1 queue.bind q x")
    look_again = parsed("a.1 queue.declare q passive\na.2 exchange.declare x passive")
    first, second = reproducer(commands, failure()), reproducer(look_again, failure())
    fixed = 'P = "reproducer-of-a-test-"'
    fixed_first, fixed_second = (re.sub(r"^P = .*", fixed, text, flags=re.MULTILINE) for text in (first, second))
    assert fixed in fixed_first
    with EmbeddedBroker() as broker:
        run(fixed_first, url_of(broker))
        gone = run(fixed_second, url_of(broker))
    assert gone.count("reply_code=404") >= 2


def test_a_broker_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "reproducer.py"
    file.write_text(reproducer(parsed(UNKNOWN_TAG), failure()), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    url = f"amqp://guest:guest@127.0.0.1:{port}/%2F"
    command = [sys.executable, str(file), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience(60), check=False)
    assert done.returncode == 3
    assert done.stderr.startswith(f"no connection to 127.0.0.1 port {port}")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "octets",
    [b"\x07garbage\xff\xff\xff\xff", b"AMQP\0\0\x09\x01", b"\x01\0\0\0\0\0\x04\xff\xff\0\0\xce", b"\x02\0\0", b""],
    ids=["no frame", "protocol header", "unknown method", "half a frame", "silence"],
)
def test_a_peer_that_is_no_broker_ends_a_program_in_good_order(tmp_path: Path, octets: bytes) -> None:
    file = tmp_path / "reproducer.py"
    program = reproducer(parsed("a.1 basic.qos 1"), failure()).replace("DEADLINE = 0.2, 5.0", "DEADLINE = 0.1, 0.5")
    file.write_text(program, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"amqp://guest:guest@127.0.0.1:{listener.getsockname()[1]}/%2F"
        with subprocess.Popen([sys.executable, str(file), url], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
            stream, _ = listener.accept()
            with stream:
                stream.sendall(octets)
                output, errors = done.communicate(timeout=patience(60))
    assert errors == b""
    assert b"> a.1 basic.qos 1" in output
