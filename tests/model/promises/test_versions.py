"""Versions: compared by their numbers, verified as data, and newer ones told apart."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.dialects import DIALECTS, dialect_of
from amqpspec.model.promises.versions import (
    VERIFIED,
    Version,
    dialect_name_of,
    is_newer,
    judged_version,
    newer_sentence,
    newest_verified,
    version_of,
    versions,
)


@pytest.mark.parametrize(
    ("text", "version"),
    [("4.3.6", (4, 3, 6)), ("4.3", (4, 3, 0)), ("4.3.0-rc.1", (4, 3, 0)), ("4.10.12+1", (4, 10, 12))],
)
def test_a_version_by_its_text(text: str, version: tuple[int, ...]) -> None:
    assert version_of(text) == version


@pytest.mark.parametrize("text", ["", "unreleased", "4", "v4.3.6"])
def test_what_is_no_version(text: str) -> None:
    assert version_of(text) is None


class TestRanges:
    def test_both_ends_are_within(self) -> None:
        known = versions("4.3.0", "4.3.6")
        assert version_of("4.3.0") in known and version_of("4.3.6") in known
        for other in ("4.2.9", "4.3.7", "4.3.10"):
            assert version_of(other) not in known
        assert str(known) == "RabbitMQ 4.3.0 to 4.3.6"
        assert str(versions("3.10.8", "3.10.8")) == "RabbitMQ 3.10.8"

    def test_one_without_an_end(self) -> None:
        known = versions("4.3.5", None)
        assert version_of("4.3.4") not in known and version_of("5.0.0") in known
        assert str(known) == "RabbitMQ 4.3.5 and later"

    @pytest.mark.parametrize(("first", "last"), [("4.3.6", "4.3.0"), ("four", "4.3.0"), ("4.3.0", "later")])
    def test_what_is_no_range(self, first: str, last: str) -> None:
        with pytest.raises(ValueError, match="no versions"):
            versions(first, last)


def test_every_dialect_of_rabbitmq_has_been_verified_with_versions_of_its_own() -> None:
    assert set(VERIFIED) == {name for name in DIALECTS if name.startswith("rabbitmq")}
    for name, verified in VERIFIED.items():
        for version in (verified.first, verified.last):
            assert version is not None and dialect_name_of(version) == name
            assert dialect_of({"product": "RabbitMQ", "version": str(version)}).name == name


class TestWhoseKnownDefectsCount:
    def test_that_of_a_rabbitmq_that_is_judged_by_its_own_dialect(self) -> None:
        assert judged_version("RabbitMQ", "4.3.2", "rabbitmq-4.3") == Version(4, 3, 2)
        assert judged_version("RabbitMQ", "4.3.2", "rabbitmq-4.0") is None
        assert judged_version("RabbitMQ", "unreleased", "rabbitmq-4.3") is None
        assert judged_version("GarageMQ", "4.3.2", "rabbitmq-4.3") is None

    @pytest.mark.parametrize("text", ["4.3.9", "4.4.0", "5.0"])
    def test_what_is_newer_than_what_was_verified_is_said_to_be(self, text: str) -> None:
        version = judged_version("RabbitMQ", text, "rabbitmq-4.3")
        assert is_newer(version)
        said = newer_sentence(version)
        assert said is not None and said.startswith(f"RabbitMQ {version} is newer than what was verified (")

    def test_what_was_verified_is_not_newer(self) -> None:
        for version in (None, newest_verified(), Version(4, 0, 9), Version(3, 13, 7)):
            assert not is_newer(version) and newer_sentence(version) is None
