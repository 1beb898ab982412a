from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpspec.targets.address import Address, AddressError, logged_in, login_in, parse_address, without_login


def test_everything_given() -> None:
    assert parse_address("amqp://user:secret@broker.example:1234/prod") == Address(
        "broker.example", 1234, "user", "secret", "prod", False
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amqp://h", Address("h", 5672, "guest", "guest", "/", False)),
        ("amqp://h/", Address("h", 5672, "guest", "guest", "/", False)),
        ("amqp://h/%2F", Address("h", vhost="/")),
        ("amqp://h/%2Fa%2Fb", Address("h", vhost="/a/b")),
        ("amqps://h", Address("h", 5671, tls=True)),
        ("amqps://h:5672/v", Address("h", 5672, vhost="v", tls=True)),
        ("AMQP://h", Address("h")),
        ("amqp://u@h", Address("h", user="u", password="guest")),
        ("amqp://u:@h", Address("h", user="u", password="")),
        ("amqp://u:a:b%40%2F%25@h", Address("h", user="u", password="a:b@/%")),
        ("amqp://u:p@ss@h", Address("h", user="u", password="p@ss")),
        ("amqp://[::1]:5673/v", Address("::1", 5673, vhost="v")),
        ("amqp://[::1]", Address("::1")),
        ("amqp://%C3%A9:%C3%BC@h", Address("h", user="é", password="ü")),
    ],
)
def test_accepted(text: str, expected: Address) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("broker:5672", "amqp://"),
        ("http://SECRET@h", "amqp://"),
        ("amqp://", "host"),
        ("amqp://:5672", "host"),
        ("amqp://u:SECRET@/v", "host"),
        ("amqp://u:SECRET@h:port", "port"),
        ("amqp://u:SECRET@h:0", "port"),
        ("amqp://u:SECRET@h:65536", "port"),
        ("amqp://u:SECRET@h:", "port"),
        ("amqp://u:SECRET@h:٣", "port"),
        ("amqp://user:SECRET", "port"),
        ("amqp://u:SECRET/more@h", "%2F"),
        ("amqp://u:SECRET%zz@h", "password"),
        ("amqp://u:SECRET%@h", "password"),
        ("amqp://u:SECRET%ff@h", "password"),
        ("amqp://u%f:SECRET@h", "user"),
        ("amqp://u:SECRET@h/%", "virtual host"),
        ("amqp://u:SECRET@h/v?channel_max=1", "query"),
        ("amqp://u:SECRET@h/v?heartbeat=", "heartbeat"),
        ("amqp://u:SECRET@h/v?heartbeat=65536", "heartbeat"),
        ("amqps://u:SECRET@h/v?verify=no", "query"),
        ("amqp://u:SECRET@h?cacertfile=/ca.pem", "query"),
        ("amqps://u:SECRET@h?keyfile=/key.pem", "keyfile"),
        ("amqps://u:SECRET@h?cacertfile=%zz", "cacertfile"),
        ("amqps://u:SECRET@h/v?cacertfile=/ca.pem#x", "fragment"),
        ("amqp://u:SECRET@[::1", "host"),
        ("amqp://u:SECRET@[::1]x", "host"),
        ("amqp://u:SECRET@a b", "host"),
        ("amqp://u:SECRET@h\n:1", "host"),
        (f"amqp://u:SECRET@h/{'v' * 256}", "virtual host"),
    ],
)
def test_refused(text: str, part: str) -> None:
    with pytest.raises(AddressError) as caught:
        parse_address(text)
    message = str(caught.value)
    assert part in message
    assert "SECRET" not in message and "\n" not in message
    cause: BaseException | None = caught.value
    while cause is not None:
        assert "SECRET" not in str(cause)
        cause = None if cause.__suppress_context__ else cause.__context__


def test_password_is_never_shown() -> None:
    address = parse_address("amqps://user:SECRET@h/v/w")
    assert str(address) == "amqps://user@h:5671/v%2Fw"
    assert "SECRET" not in repr(address)


@given(st.text(min_size=1), st.text(), st.text(min_size=1), st.integers(1, 65535), st.booleans())
def test_any_names_survive_percent_encoding(user: str, password: str, vhost: str, port: int, tls: bool) -> None:
    scheme = "amqps" if tls else "amqp"
    text = "{}://{}:{}@h:{}/{}".format(
        scheme, quote(user, safe=""), quote(password, safe=""), port, quote(vhost, safe="")
    )
    assert parse_address(text) == Address("h", port, user, password, vhost, tls)


@given(st.text())
def test_any_text_is_an_address_or_an_error(text: str) -> None:
    for candidate in (text, "amqp://" + text):
        try:
            address = parse_address(candidate)
        except AddressError as error:
            assert "\n" not in str(error)
        else:
            assert 0 < address.port < 65536 and address.host


@pytest.mark.parametrize("text", ["amqp://u@h:5672/v?heartbeat=60", "amqps://u@h:5671/v?heartbeat=60"])
def test_heartbeat(text: str) -> None:
    address = parse_address(text)
    assert address.heartbeat == 60 and address.vhost == "v"
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("amqps://h?cacertfile=/etc/ca.pem", ("/etc/ca.pem", "", "")),
        ("amqps://u:p@h:5671/v?certfile=a%26b.pem&keyfile=/k&cacertfile=c", ("c", "a&b.pem", "/k")),
    ],
)
def test_files_for_tls(text: str, files: tuple[str, str, str]) -> None:
    address = parse_address(text)
    assert (address.cacertfile, address.certfile, address.keyfile) == files
    assert address.host == "h"


@pytest.mark.parametrize(
    ("text", "environment", "login"),
    [
        ("amqp://h", {}, ("guest", "guest")),
        ("amqp://h", {"AMQPSPEC_USER": "u", "AMQPSPEC_PASSWORD": "p"}, ("u", "p")),
        ("amqp://h", {"AMQPSPEC_USER": "u", "AMQPSPEC_PASSWORD_FILE": "FILE"}, ("u", "from the file")),
        ("amqp://h/%40", {"AMQPSPEC_PASSWORD": "p"}, ("guest", "p")),
        ("amqp://me:mine@h", {"AMQPSPEC_USER": "u", "AMQPSPEC_PASSWORD": "p"}, ("me", "mine")),
    ],
)
def test_logins_of_the_environment(
    tmp_path: Path, text: str, environment: dict[str, str], login: tuple[str, str]
) -> None:
    (tmp_path / "password").write_text("from the file\nmore\n", encoding="utf-8")
    told = {name: str(tmp_path / "password") if value == "FILE" else value for name, value in environment.items()}
    address = logged_in(parse_address(text), text, told)
    assert (address.user, address.password) == login


def test_a_password_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(AddressError, match=r"AMQPSPEC_PASSWORD_FILE: .*none: No such file"):
        logged_in(Address("h"), "amqp://h", {"AMQPSPEC_PASSWORD_FILE": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("amqps//u:p@h/", "amqps//***@h/"), ("amqp:/u:p@h", "amqp:/***@h"), ("u:p@h", "***@h"),
        ("amqp://u:a@b@h/v", "amqp://***@h/v"), ("amqp//u/p@h", "amqp//***@h"), ("//p@h", "***@h"),
        ("docker:rabbitmq:4", "docker:rabbitmq:4"), ("rabbitmq:4@sha256:0a", "rabbitmq:4@sha256:0a"),
        ("a@b/x.amqp", "a@b/x.amqp"), ("embedded", "embedded"),
    ],
)  # fmt: skip
def test_what_may_be_a_login_is_hidden_however_it_is_written(text: str, shown: str) -> None:
    assert without_login(text) == shown
    assert bool(login_in(text)) is (text != shown)
