"""The changes between dialects: each has sentences, a source that can be looked up, and a rule by which it is met."""

from __future__ import annotations

from itertools import permutations

import pytest

from amqpspec.conformance.upgrade.changes import changes_between
from amqpspec.conformance.upgrade.links import links_of
from amqpspec.conformance.upgrade.meeting_rules import MEETINGS, NOT_IN_A_RECORDING
from amqpspec.conformance.upgrade.needs import NEEDS, QUORUM_NO_LIMIT, QUORUM_UNLIMITED
from amqpspec.conformance.upgrade.sentences import SENTENCES
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.versions import Version

pytestmark = pytest.mark.quick
RABBITMQ = [name for name in DIALECTS if name.startswith("rabbitmq")]


@pytest.mark.parametrize(("one", "other"), list(permutations(RABBITMQ, 2)))
def test_each_change_can_be_told_and_met(one: str, other: str) -> None:
    changes = changes_between(DIALECTS[one], DIALECTS[other])
    assert changes
    for change in changes:
        assert change.choice in SENTENCES
        assert (change.choice in MEETINGS) != (change.choice in NOT_IN_A_RECORDING)
        assert change.was != change.becomes
        assert all(text.endswith(".") for text in (change.was, change.becomes)), change.choice
        assert change.links or change.difference.source.startswith("0-9-1"), change.choice
        assert all(link.address.startswith("https://") for link in change.links)
    names = [change.name for change in changes]
    assert len(set(names)) == len(names)


def test_nothing_is_told_of_what_is_no_choice_any_more() -> None:
    differing = {
        change.choice
        for one, other in permutations(RABBITMQ, 2)
        for change in changes_between(DIALECTS[one], DIALECTS[other])
    }
    assert SENTENCES.keys() == differing
    assert {*MEETINGS, *NOT_IN_A_RECORDING} == differing


def test_a_setting_takes_a_change_away() -> None:
    def names(other: str) -> set[str]:
        return {change.name for change in changes_between(DIALECTS["rabbitmq-4.0"], dialect_named(other))}

    assert names("rabbitmq-4.3") - names("rabbitmq-4.3;global-qos=permitted") == {"channel-prefetch"}


def test_arguments_are_told_by_what_is_new() -> None:
    changes = changes_between(DIALECTS["rabbitmq-4.0"], DIALECTS["rabbitmq-4.3"])
    quorum = next(each for each in changes if each.name == "quorum-arguments")
    assert quorum.was.startswith("These are ignored: x-consumer-disconnected-timeout")
    assert "x-delivery-limit" not in quorum.becomes and "x-delayed-retry-type" in quorum.becomes


@pytest.mark.parametrize(
    ("source", "later_than", "titles"),
    [
        ("release notes of 4.2.6, 4.2.7 and 4.3.0", None, ["4.2.6", "4.2.7", "4.3.0"]),
        ("release notes of 4.2.6, 4.2.7 and 4.3.0", Version(4, 2, 6), ["4.2.7", "4.3.0"]),
        ("release notes of 3.10.0 (the tail); guide: quorum-queues, Redelivery", None, ["3.10.0", "quorum-queues"]),
        ("guide: consumers 3.13, Per-queue", None, ["consumers 3.13"]),
        ("the guide on consumer timeouts: with it", None, ["consumer timeouts"]),
        ("a text only (v4.2.0 rabbit_channel:check)", None, ["v4.2.0: rabbit_channel"]),
        ("0-9-1 class tx", None, []),
    ],
)
def test_links(source: str, later_than: Version | None, titles: list[str]) -> None:
    found = links_of(source, later_than)
    assert [each.title.partition(" of ")[2] or each.title.removeprefix("guide: ") for each in found] == titles


def test_a_delivery_limit_is_that_of_the_queue_before_that_of_the_broker() -> None:
    quorum = {"x-queue-type": "quorum"}
    assert not NEEDS[QUORUM_UNLIMITED](quorum, True) and NEEDS[QUORUM_UNLIMITED](quorum, False)
    assert NEEDS[QUORUM_UNLIMITED]({**quorum, "x-delivery-limit": -1}, True)
    assert not NEEDS[QUORUM_UNLIMITED]({**quorum, "x-delivery-limit": 3}, False)
    assert NEEDS[QUORUM_NO_LIMIT](quorum, True) and not NEEDS[QUORUM_NO_LIMIT]({}, True)
