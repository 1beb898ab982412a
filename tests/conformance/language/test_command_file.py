"""Command files: what their heads say, the queue type in them, and errors that name file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpspec.conformance.language.command_file import CommandFileError, parse_command_file, read_command_file
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.scenarios.scenario_files import all_scenarios

WHOLE = """\
@requirement ACK-002
@title Multiple settles everything up to the tag.
@queue-types classic quorum
@dialects rabbitmq-4.0 rabbitmq-4.3

# a comment
   # another one
a.1 queue.declare q durable x-queue-type=$type
a.1 basic.get q   # and one behind a command
"""


def test_a_file_with_everything() -> None:
    classic, quorum = parse_command_file(WHOLE, name="ACK-002")
    assert (classic.queue_type, quorum.queue_type) == ("classic", "quorum")
    for file in (classic, quorum):
        assert file.name == "ACK-002"
        assert file.requirement == "ACK-002"
        assert file.title == "Multiple settles everything up to the tag."
        assert file.dialects == ("rabbitmq-4.0", "rabbitmq-4.3")
        assert file.commands == (
            parse_command(f"a.1 queue.declare q durable x-queue-type={file.queue_type}"),
            parse_command("a.1 basic.get q"),
        )


def test_a_file_without_head_is_read_once() -> None:
    (file,) = parse_command_file("a.1 basic.get $type\n", name="x")
    assert (file.requirement, file.title, file.queue_type, file.dialects) == (None, "", None, ())
    assert file.commands == (parse_command("a.1 basic.get $type"),)


def test_a_line_stands_for_several_commands() -> None:
    (file,) = parse_command_file("1..3: a.1 basic.publish q body=m$n &\n7..7: a.1 basic.ack $n\n")
    assert [str(command) for command in file.commands] == [
        "a.1 basic.publish q body=m1 &", "a.1 basic.publish q body=m2 &", "a.1 basic.publish q body=m3 &",
        "a.1 basic.ack 7",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "the file holds no command"),
        ("# only this\n\n", "1:1", "the file holds no command"),
        ("@requirement ACK-001\n", "1:1", "the file holds no command"),
        ("a.1 basic.get q\na.1 basic.fly q\n", "2:5", "'basic.fly' is not a method"),
        ("\n\na.1 basic.get q r # c\n", "3:17", "'r' is not an argument"),
        ("a.1 basic.get q\n  @requirement ACK-001\n", "2:3", "is not a connection or channel"),
        ("@colour red\na.1 basic.get q\n", "1:2", "@colour is none of @requirement, @title"),
        ("@title a\n@title b\na.1 basic.get q\n", "2:1", "@title is given twice"),
        ("@title a\n@queue-types classic fifo\na.1 basic.get q\n", "2:22", "'fifo' is not a queue type"),
        ("@dialects rabbitmq-5\na.1 basic.get q\n", "1:11", "'rabbitmq-5' is not a dialect"),
        # the column is that of the file, in which the type is not written yet
        ("@queue-types classic\na.1 queue.declare q x-queue-type=$type bogus\n", "2:40", "'bogus' is not an argument"),
        ("@queue-types quorum stream\na.1 queue.declare $type $type\n", "2:25", "'quorum' is not an argument"),
        ("@queue-types classic\na.1 basic.fly $type\n", "2:5", "'basic.fly' is not a method"),
        ("a.1 queue.declare q\n1..3: a.1 basic.fly $n\n", "2:11", "'basic.fly' is not a method"),
        # the column is that of the file, in which the number is not written yet
        ("998..1000: a.1 basic.ack $n bogus\n", "1:29", "'bogus' is not an argument"),
        ("7..7: a.1 basic.ack $n bogus\n", "1:24", "'bogus' is not an argument"),
        ("1..9: a.1 basic.get $n $n\n", "1:24", "'1' is not an argument"),
        ("@queue-types classic\n10..19: a.1 basic.get $type$n bogus\n", "2:31", "'bogus' is not an argument"),
        ("3..1: a.1 basic.ack $n\n", "1:1", "3..1 is no range of 1 to 1000 numbers"),
        ("1..1001: a.1 basic.ack $n\n", "1:1", "1..1001 is no range"),
    ],
)
def test_errors_name_line_and_column(tmp_path: Path, text: str, place: str, message: str) -> None:
    path = tmp_path / "file.amqp"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CommandFileError) as caught:
        read_command_file(path)
    assert str(caught.value).startswith(f"{path}:{place}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CommandFileError, match=r"missing\.amqp: No such file"):
        read_command_file(tmp_path / "missing.amqp")
    with pytest.raises(CommandFileError, match="directory"):
        read_command_file(tmp_path)
    (tmp_path / "latin.amqp").write_bytes(b"a.1 basic.get q\xe9\n")
    with pytest.raises(CommandFileError, match=r"latin\.amqp: not UTF-8"):
        read_command_file(tmp_path / "latin.amqp")


def test_a_mark_of_octet_order_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "windows.amqp").write_bytes(b"\xef\xbb\xbfa.1 basic.get q\r\n")
    (file,) = read_command_file(tmp_path / "windows.amqp")
    assert [str(each) for each in file.commands] == ["a.1 basic.get q"]


def test_the_commands_of_every_scenario_can_be_printed_and_read_back() -> None:
    scenarios = all_scenarios()
    assert len(scenarios) > 100
    for scenario in scenarios:
        (again,) = parse_command_file("\n".join(map(str, scenario.commands)), name=scenario.name)
        assert again.commands == scenario.commands


@settings(deadline=None)
@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from('@$#&\n "[a.1'))))
def test_any_text_is_a_file_or_an_error_with_a_place(text: str) -> None:
    try:
        files = parse_command_file(text, "f")
    except CommandFileError as error:
        where, line, column, _ = str(error).split(":", 3)
        assert where == "f"
        assert 1 <= int(line) <= max(len(text.splitlines()), 1)
        assert int(column) >= 1
    else:
        assert all(file.commands for file in files)
