"""A dialect in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.targets.brokers.dialect_file import DialectFileError, dialect_file, dialect_in, read_dialect_file


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "d.toml"
    file.write_text(
        dialect_file("amqp-0-9-1", ["publisher_confirms", "basic.nack"], {"immediate": "refused"}, "MyBroker 1.2")
    )
    assert read_dialect_file(file).name == "amqp-0-9-1+basic.nack+publisher_confirms;immediate=refused"
    assert dialect_in("d.toml", tmp_path) == read_dialect_file(file)
    assert "# basic.publish with immediate: is refused" in file.read_text()


def test_a_dialect_of_rabbitmq_has_its_settings(tmp_path: Path) -> None:
    file = tmp_path / "d.toml"
    file.write_text(dialect_file("rabbitmq-4.0", (), {}, "RabbitMQ 4.0.5"))
    assert read_dialect_file(file).name == "rabbitmq-4.0"
    file.write_text(dialect_file("rabbitmq-4.3", (), {"global-qos": "permitted"}, "RabbitMQ 4.3.6"))
    assert read_dialect_file(file).name == "rabbitmq-4.3;global-qos=permitted"
    assert "# basic.qos with global=true: limits the whole channel" in file.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('base = "amqp-0-9-1"\n\n[choices]\nimmediate = "lost"\n', "d.toml:4: immediate is never 'lost'"),
        ('[choices]\nnothing = "lost"\n', "d.toml:2: there is no choice 'nothing'"),
        ("[choices]\nimmediate = true\n", "d.toml:2: immediate is no text"),
        ('base = "rabbitmq-5"\n', "d.toml:1: base is 'rabbitmq-5', and none of"),
        ('base = "rabbitmq-4.3"\n[choices]\nimmediate = "refused"\n', "d.toml:3: there is no choice 'immediate', but"),
        ('base = "rabbitmq-4.3"\n[choices]\nkhepri-db = "enabled"\n', "d.toml:3: khepri-db is no setting of"),
        ('base = "rabbitmq-4.3"\nextensions = ["basic.nack"]\n', "d.toml:2: extensions are for the base amqp-0-9-1"),
        ('extensions = ["nack"]\n', "d.toml:1: extensions has 'nack', which is none of"),
        ("extensions = 3\n", "d.toml:1: extensions is no list of texts"),
        ("choices = 3\n", "d.toml:1: choices is no table"),
        ('\ndialect = "amqp-0-9-1"\n', "d.toml:2: 'dialect' is none of base, extensions, choices"),
        ("", "d.toml:1: the file says nothing: it needs one of base, extensions, choices"),
        ("# a comment\n", "d.toml:1: the file says nothing"),
        ("base =\n", "d.toml: Invalid value"),
    ],
)
def test_an_error_is_one_line_that_names_the_place(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "d.toml"
    file.write_text(text)
    with pytest.raises(DialectFileError) as raised:
        read_dialect_file(file)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DialectFileError, match="No such file"):
        read_dialect_file(tmp_path / "none.toml")
