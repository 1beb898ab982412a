"""What a profile makes of what was seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from amqpspec.conformance.profile.measuring import measure
from amqpspec.conformance.profile.profile import Profile, SeenChoice, SeenExtension, Working, choices_in_words
from amqpspec.conformance.profile.shows import shows, shows_of_extensions, without_words
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with
from amqpspec.model.promises.dialects.settled import TEXT_CHOICES
from amqpspec.model.promises.features import FEATURES
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.clock import FastForwardClock
from amqpspec.targets.embedded.hooks import Fault, Proceed
from amqpspec.targets.embedded.served_broker import ServedBroker

ALL = text_with(EXTENSIONS)


def seen(name: str, *values: str) -> SeenChoice:
    choice = TEXT_CHOICES[name]
    return SeenChoice(choice, tuple(each for each in choice.values if each.name in values))


def test_each_choice_and_extension_has_commands_that_show_it() -> None:
    assert set(shows()) == set(TEXT_CHOICES)
    # there is no seeing that a failed login is answered, for who may log in, nor an alarm, for who has no operator
    assert set(shows_of_extensions()) == set(EXTENSIONS) - {"authentication_failure_close", "connection.blocked"}


def test_what_the_text_does_not_allow_is_no_part_of_the_dialect() -> None:
    profile = Profile((seen("channel-flow", "refused"), seen("immediate", "refused"), seen("if-empty")), ())
    assert profile.settled == {"immediate": "refused"}
    assert profile.dialect.name == "amqp-0-9-1;immediate=refused"
    assert not profile.choices[0].is_right and not profile.choices[2].is_right


def test_what_cannot_be_told_stays_open() -> None:
    assert seen("meaningless-arguments", "compared", "ignored").value is None
    assert Profile((seen("if-empty", "deletes", "refused"),), ()).settled == {}


def test_what_explains_everything_is_named_where_nothing_else_does() -> None:
    assert Profile((seen("queue-names", "any", "amq.gen"),), ()).settled == {"queue-names": "amq.gen"}
    assert Profile((seen("queue-names", "any"),), ()).settled == {"queue-names": "any"}


def test_an_extension_counts_where_it_is_announced_or_shown() -> None:
    extensions = (
        SeenExtension("basic.nack", True, Working.IN_PART),
        SeenExtension("publisher_confirms", False, Working.WORKS),
        SeenExtension("consumer_priorities", False, Working.IN_PART),
        # of what no capability tells, it counts whether it makes a difference
        SeenExtension("expiration", False, Working.IN_PART),
        SeenExtension("x-expires", False, Working.IGNORED),
        SeenExtension("streams", False, Working.REFUSED),
    )
    profile = Profile((), extensions, ("authentication_failure_close", "connection.blocked"))
    held_to = ("authentication_failure_close", "basic.nack", "connection.blocked", "publisher_confirms", "expiration")
    assert profile.held_to == held_to
    assert profile.dialect.name == "+".join(("amqp-0-9-1", *held_to))


def test_choices_in_words() -> None:
    assert choices_in_words("amqp-0-9-1;channel-flow=refused;immediate=refused") == [
        "channel.flow with active=false is refused with 540 (against the text)",
        "basic.publish with immediate is refused",
    ]
    assert choices_in_words("rabbitmq-4.3") == []


@pytest.mark.parametrize(("fault", "works"), [(None, True), ("consumer-priority-ignored", False)])
def test_an_extension_works_where_what_it_is_about_is_kept(fault: str | None, works: bool) -> None:
    with EmbeddedBroker(fault=fault) as broker:
        target = TargetUnderTest(broker.address, TargetDescription("embedded", "amqpspec", "0", "amqp-0-9-1"))
        (seen,) = measure(target, choices=(), extensions=["consumer_priorities"]).extensions
    assert seen.works is works and not seen.announced


@pytest.mark.parametrize("value", ["source", "both", "neither"])
def test_what_an_exchange_is_in_use_by_is_seen_where_exchanges_can_be_bound(value: str) -> None:
    dialect = dialect_named(f"amqp-0-9-1+exchange_exchange_bindings;use-by-exchanges={value}")
    with EmbeddedBroker(dialect) as broker:
        target = TargetUnderTest(broker.address, TargetDescription("embedded", "amqpspec", "0", "amqp-0-9-1"))
        announcing = replace(target, capabilities=frozenset({"exchange_exchange_bindings"}))
        assert measure(announcing, None, ["use-by-exchanges"], (), ways=False).settled == {"use-by-exchanges": value}
        assert measure(target, None, ["use-by-exchanges"], (), ways=False).choices == ()


def tried(feature: str, fault: str | Fault | None = None, dialect: Dialect = ALL) -> Working:
    clock = FastForwardClock()
    with EmbeddedBroker(dialect, fault=fault, clock=clock) as broker:
        description = TargetDescription("embedded", "amqpspec", "0", "amqp-0-9-1")
        target = TargetUnderTest(broker.address, description, deadline=1.0, capabilities=frozenset(), clock=clock)
        (seen,) = measure(target, choices=(), extensions=[feature]).extensions
    return seen.working


@pytest.mark.parametrize("dialect", ["rabbitmq-4.3", "rabbitmq-3", ALL.name])
@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_is_found_by_trying(feature: str, dialect: str) -> None:
    assert tried(feature, dialect=dialect_named(dialect)) is Working.WORKS


@pytest.mark.parametrize(
    ("feature", "fault", "working"),
    [
        ("expiration", "expiration-ignored", Working.IGNORED),
        ("x-max-length-bytes", "byte-limit-ignored", Working.IGNORED),
        # it makes a difference, so that it is judged
        ("x-max-length", "limit-drops-newest", Working.IN_PART),
        ("x-max-length", "length-limit-one-too-low", Working.IN_PART),
        ("x-overflow", "refused-publish-acked", Working.IN_PART),
    ],
)
def test_what_does_not_work_is_ignored_or_works_in_part(feature: str, fault: str, working: Working) -> None:
    assert tried(feature, fault) is working


def test_what_the_broker_does_not_have_is_ignored_or_refused() -> None:
    assert tried("x-message-ttl", dialect=AMQP_0_9_1) is Working.IGNORED
    assert tried("direct_reply_to", dialect=AMQP_0_9_1) is Working.REFUSED


@pytest.mark.parametrize("feature", ["x-message-ttl", "CC", "x-max-length"])
def test_what_is_as_wrong_without_the_word_shows_no_feature(feature: str) -> None:
    """A broker that gets wrong what a feature is looked at by: it is no less wrong where nothing asks for the feature.
    """

    def drop(broker: ServedBroker, publish: Any, proceed: Proceed) -> None:
        pass

    fault = Fault("publish-lost", "PUBLISH-002", ".", frozenset({"basic.publish"}), drop)
    assert tried(feature, fault, AMQP_0_9_1) is Working.IGNORED


def test_what_cannot_do_without_the_word_has_no_such_commands() -> None:
    assert without_words("publisher_confirms") is None
    file = without_words("x-overflow")
    assert file is not None and str(file.commands[0]) == "a.1 queue.declare q durable x-max-length=1"


def test_another_meaning_has_its_words_in_the_reports() -> None:
    profile = Profile((), (SeenExtension("expiration", False, Working.OTHER_MEANING),))
    assert profile.not_working == {"expiration": "expiration: tried, means something else"}
    assert all(SeenExtension("expiration", False, each).in_short for each in Working)


def test_an_expiration_may_be_a_moment() -> None:
    """As in Qpid Broker-J: a message that expires in a minute by RabbitMQ's meaning has expired in 1970."""

    def drop_what_is_over(broker: ServedBroker, publish: Any, proceed: Proceed) -> None:
        if int(publish.content.properties.get("expiration", "4102444800000")) > 10**12:
            proceed(publish)

    fault = Fault("expiration-is-a-moment", "TTL-001", ".", frozenset({"basic.publish"}), drop_what_is_over)
    assert tried("expiration", fault, AMQP_0_9_1) is Working.OTHER_MEANING
