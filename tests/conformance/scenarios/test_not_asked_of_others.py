"""Which scenarios no product but RabbitMQ is asked for, though it has all features that there are, and why."""

from __future__ import annotations

from collections import Counter

from amqpspec.conformance.scenarios.scenario_files import all_scenarios, selected, why_not_of
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with

ALL = text_with(EXTENSIONS)

#: Why, and how many scenarios (one for each type of queue).
NOT_ASKED = {
    "of RabbitMQ's own requirements": 303,
    "needs x-queue-type=quorum": 228,
    "for some dialects": 163,
    "what clients hold does not count towards the limit": 8,
    "only the octets of bodies count": 7,
    "a queue may have a time of 0": 6,
    "CC that is no array is refused": 3,
    "needs x-queue-type=foo": 3,
    "offsets are numbers from 0 on": 3,
    "a limit of 0 refuses everything": 4,
    "a message that is longer than the limit drives out everything, and itself": 2,
    "a queue that refuses publishes refuses dead letters as well": 2,
    "an alternate exchange need not be there when it is named": 2,
    "needs x-queue-type=other": 2,
    "priorities of consumers do not decide who is active": 2,
    "what is given back to a full queue drives out the head": 2,
    "who follows goes by priority and registration": 2,
    "who follows goes by registration": 2,
    "whether consumers end before the broker is RabbitMQ's way": 2,
    "CC and BCC that are no arrays are refused": 1,
    "`last` is the last chunk": 1,
    "a priority above the maximum counts as the maximum, none as 0": 2,
    "a queue may have 256 priorities": 1,
    "an empty user-id is refused": 1,
    "messages that were written together are a chunk": 1,
    "times and intervals are offsets": 1,
    "what a maximum of 0 means": 1,
    "what is dropped is what would be delivered next": 1,
    "what is given back goes to its place among the messages of its priority": 1,
    "without the argument priorities are worth nothing": 1,
}


def _why(reason: str) -> str:
    if reason.endswith("is no matter of the text or of its features"):
        return "of RabbitMQ's own requirements"
    return "for some dialects" if reason.startswith("for ") else reason


def test_what_is_not_asked_and_why() -> None:
    reasons = [why for each in all_scenarios() if (why := why_not_of(each, ALL))]
    assert Counter(map(_why, reasons)) == NOT_ASKED
    assert len(selected((), ALL.name)) == len(all_scenarios()) - len(reasons) >= 340


def test_a_feature_brings_its_scenarios() -> None:
    def carried_out(dialect: str) -> set[str]:
        return {each.name for each in selected(("TTL", "DLX"), dialect)}

    assert carried_out("amqp-0-9-1") == set()
    assert {"TTL-002", "TTL-002-minimum"} & carried_out("amqp-0-9-1+x-message-ttl")
    assert not any(name.startswith("DLX") for name in carried_out("amqp-0-9-1+x-message-ttl"))


def test_what_means_nothing_to_the_broker_is_not_sent() -> None:
    def expirations(dialect: str) -> int:
        scenarios = selected((), dialect)
        return sum(
            "expiration" in each.content.properties
            for scenario in scenarios
            for each in scenario.commands
            if each.content is not None
        )

    assert expirations("amqp-0-9-1") == 0 < expirations("amqp-0-9-1+expiration")
