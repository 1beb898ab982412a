"""What a profile makes of what was seen."""

from __future__ import annotations

import pytest

from amqpspec.conformance.profile.measuring import measure
from amqpspec.conformance.profile.profile import Profile, SeenChoice, SeenExtension, choices_in_words
from amqpspec.conformance.profile.shows import shows, shows_of_extensions
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects.extensions import EXTENSIONS
from amqpspec.model.promises.dialects.settled import TEXT_CHOICES
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker


def seen(name: str, *values: str) -> SeenChoice:
    choice = TEXT_CHOICES[name]
    return SeenChoice(choice, tuple(each for each in choice.values if each.name in values))


def test_each_choice_and_extension_has_commands_that_show_it() -> None:
    assert set(shows()) == set(TEXT_CHOICES)
    # there is no seeing that a failed login is answered, for who may log in
    assert set(shows_of_extensions()) == set(EXTENSIONS) - {"authentication_failure_close"}


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
        SeenExtension("basic.nack", announced=True, works=False),
        SeenExtension("publisher_confirms", announced=False, works=True),
        SeenExtension("consumer_priorities", announced=False, works=False),
    )
    profile = Profile((), extensions, ("authentication_failure_close", "connection.blocked"))
    assert profile.held_to == ("authentication_failure_close", "basic.nack", "publisher_confirms")
    assert profile.dialect.name == "amqp-0-9-1+authentication_failure_close+basic.nack+publisher_confirms"


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
