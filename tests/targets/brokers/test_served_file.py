"""The file of `amqpspec serve --config`: what it can say, and what is wrong with one, in a line."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from amqpspec.targets.brokers.served_file import ServedFile, ServedFileError, read_served_file
from amqpspec.targets.embedded.mishaps import MISHAPS
from tests.targets.client.test_wire import certificate  # noqa: F401  (fixture)

WHOLE = """
host = "::1"
port = 5999
dialect = "rabbitmq-4.0"
fault = "multiple-ack-ignored"
user = "admin"
password = "secret"
virtual-hosts = ["shop", "/"]

[users.app]
password = "other"
[users.app.permissions.shop]
configure = "^app"
write = ".*"

[mishaps]
confirms-late = 0.5
slow = true
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "broker.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_all_that_it_can_say(tmp_path: Path) -> None:
    said = read_served_file(written(tmp_path, WHOLE))
    assert (said.host, said.port, said.dialect, said.fault) == ("::1", 5999, "rabbitmq-4.0", "multiple-ack-ignored")
    assert (said.user, said.password, said.virtual_hosts, said.tls) == ("admin", "secret", ("shop", "/"), None)
    assert said.mishaps == {"confirms-late": 0.5, "slow": MISHAPS["slow"].default}
    assert [(each.name, each.arguments) for each in said.actions] == [
        ("operator.add-vhost", {"virtual_host": "/"}),
        ("operator.add-user", {"user": "app", "password": "other"}),
        (
            "operator.set-permissions",
            {"user": "app", "virtual_host": "shop", "configure": "^app", "write": ".*", "read": ""},
        ),
    ]
    assert "secret" not in repr(said) and "other" not in repr(said)


def test_an_empty_one_says_what_no_file_says(tmp_path: Path) -> None:
    assert read_served_file(written(tmp_path, "")) == ServedFile()


def test_the_file_that_the_page_shows(tmp_path: Path, certificate: Path) -> None:  # noqa: F811
    for name in ("server.pem", "server.key", "ca.pem"):
        (tmp_path / name).write_bytes(certificate.read_bytes())
    page = (Path(__file__).parents[3] / "docs" / "serve.md").read_text(encoding="utf-8")
    said = read_served_file(written(tmp_path, page.partition("```toml\n")[2].partition("```")[0]))
    assert said.tls is not None and said.mishaps and len(said.actions) == 3


def test_certificates_are_beside_the_file(tmp_path: Path, certificate: Path) -> None:  # noqa: F811
    (tmp_path / "both.pem").write_bytes(certificate.read_bytes())
    said = read_served_file(written(tmp_path, '[tls]\ncertfile = "both.pem"'))
    assert said.tls is not None and said.tls.verify_mode is ssl.CERT_NONE
    said = read_served_file(written(tmp_path, '[tls]\ncertfile = "both.pem"\ncafile = "both.pem"'))
    assert said.tls is not None and said.tls.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("port = ", "Invalid value (at end of document)"),
        ("ports = 1", "ports is none of host, port, dialect,"),
        ("port = 70000", "port is not a port (0 to 65535)"),
        ("port = true", "port is not a port"),
        ("host = 1", "host is not a text"),
        ('dialect = "x"', "dialect: unknown dialect 'x'"),
        ('fault = "nosuchfault"', "fault: unknown fault 'nosuchfault'"),
        ('virtual-hosts = "/"', "virtual-hosts is not a list of texts"),
        ("virtual-hosts = []", "virtual-hosts is not a list of texts"),
        ("users = 1", "users is not a table"),
        ('[users.guest]\npassword = "Sesame"', "users.guest is the user that may do everything"),
        ("[users.app]", "users.app.password is missing"),
        ("[users.app]\npassword = 4711", "users.app.password is not a text"),
        ('[users.app]\npassword = "Sesame"\ntags = []', "users.app.tags is none of password, permissions"),
        ('[users.app]\npassword = "Sesame"\n[users.app.permissions.shop]', "users.app.permissions.shop is none of /"),
        (
            '[users.app]\npassword = "Sesame"\n[users.app.permissions."/"]\nreads = ".*"',
            "users.app.permissions./.reads is none of configure, write, read",
        ),
        ('[tls]\nkeyfile = "k"', "tls.certfile is missing"),
        ('[tls]\ncertfile = "none.pem"', "tls.certfile: "),
        ('[tls]\ncertfile = "broker.toml"', "no certificate and key in PEM"),
        ("[mishaps]\nlate = 1", "mishaps.late is none of no-answer,"),
        ("[mishaps]\nslow = 0", "mishaps.slow is neither true nor a positive number"),
        ("[mishaps]\nslow = false", "mishaps.slow is neither true nor a positive number"),
    ],
)
def test_what_is_wrong_is_one_line_with_file_and_key(tmp_path: Path, text: str, wrong: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ServedFileError) as raised:
        read_served_file(path)
    line = str(raised.value)
    assert line.startswith(f"{path}: ") and wrong in line and "\n" not in line
    assert "Sesame" not in line and "4711" not in line


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ServedFileError, match=r"none\.toml: No such file or directory"):
        read_served_file(tmp_path / "none.toml")


def test_octets_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "broker.toml").write_bytes(b"\xff")
    with pytest.raises(ServedFileError, match="not UTF-8"):
        read_served_file(tmp_path / "broker.toml")
