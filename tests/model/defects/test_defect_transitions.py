"""Defects that are another way to process an input: each applies where it says, leads on, and has a name."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.fingerprint import fingerprint
from amqpspec.model.defects.known_defects import TRANSITIONS, acceptor_for, followed
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.model.rules.inputs import process
from tests.model.defects.lawful_answers import input_of

STREAM = ("a.1 queue.declare s durable x-queue-type=stream", "a.1 basic.qos 1")
#: For each a way to it: commands that are answered, then the input that comes under it.
WAYS: dict[str, tuple[tuple[str, ...], str]] = {
    "infinite-header-breaks": (
        ("a.1 queue.declare q",), 'a.1 basic.publish q body=m1 headers={"far": [{"$float": "inf"}]}',
    ),
    "stream-breaks-on-decimal": (STREAM, 'a.1 basic.publish s body=m1 headers={"price": {"$decimal": "1.50"}}'),
    "queue-mode-is-taken": (("a.1 queue.declare p",), "a.1 queue.declare q durable x-queue-mode=lazy"),
    "stream-offset-text-breaks": (STREAM, "a.1 basic.consume s tag=t x-stream-offset=foo"),
    "stream-offset-of-wrong-type-breaks": (STREAM, "a.1 basic.consume s tag=t x-stream-offset=true"),
    "close-behind-error-unanswered": (("a.1 channel.open", "a.1 channel.open &"), "a connection.close"),
    "cancel-ok-for-no-consumer-breaks": (
        ("a.1 queue.declare q", "a.1 basic.consume q tag=t", "b.1 queue.delete q"), "a.1 basic.cancel-ok t",
    ),
    "server-named-unknown-type-breaks": (("a.1 channel.open",), "a.1 queue.declare exclusive x-queue-type=5"),
    "age-without-number-breaks": (
        ("a.1 channel.open",), "a.1 queue.declare q durable x-queue-type=stream x-max-age=D",
    ),
    "long-error-text-breaks": (("a.1 channel.open",), f"a.1 queue.declare {'é' * 120} passive"),
    "malformed-reply-address-breaks": (
        ("a.1 channel.open",), "a.1 queue.declare amq.rabbitmq.reply-to.nobody passive",
    ),
    "reply-to-nobody-not-returned": (
        ("a.1 basic.consume amq.rabbitmq.reply-to tag=t no-ack", "a.1 channel.close", "b.1 channel.open"),
        f"b.1 basic.publish amq.rabbitmq.reply-to.{1:022d} mandatory body=m2",
    ),
}  # fmt: skip


def brought_to(defect: DefectTransition, dialect: str) -> tuple[Broker, TraceEvent]:
    """The state in which it applies, and the input that comes under it."""
    assert defect.name in WAYS, f"{defect.name} has no way to it in this test: add one"
    before, last = WAYS[defect.name]
    plan = Plan(dialect_named(dialect))
    for line in before:
        if parse_command(line).in_flight:
            process(plan.broker, input_of(line))
            continue
        plan.carry_out(parse_command(line))
        plan.broker.come_to_rest()
    return plan.broker, input_of(last)


def everywhere() -> Iterator[tuple[DefectTransition, str]]:
    for defect in TRANSITIONS:
        for dialect in defect.dialects:
            yield defect, dialect


EVERYWHERE = pytest.mark.parametrize(
    ("defect", "dialect"), list(everywhere()), ids=lambda value: getattr(value, "name", value)
)


def test_dialects_have_theirs() -> None:
    assert set(WAYS) == {each.name for each in TRANSITIONS}
    for name in DIALECTS:
        own = {each.name for each in TRANSITIONS if name in each.dialects}
        assert {each.name for each in followed(name).transitions} == own


@EVERYWHERE
def test_it_applies_there_and_leads_elsewhere(defect: DefectTransition, dialect: str) -> None:
    broker, event = brought_to(defect, dialect)
    before = fingerprint(broker)
    assert defect.comes_under(broker, event)
    assert fingerprint(broker) == before, "to ask changes nothing"
    lawful, defective = copy.deepcopy(broker), copy.deepcopy(broker)
    process(lawful, event)
    defect.process(defective, event)
    assert fingerprint(lawful) != fingerprint(defective), "a known defect that is none"
    assert defective.dialect is broker.dialect
    # it can go on from there: everything it permits is accepted, until it is quiet
    while (answer := next(iter(permitted(defective)), None)) is not None:
        assert observe(defective, answer) == (), str(answer)
    assert defective.quiet


@EVERYWHERE
def test_the_acceptor_follows_it_and_says_so(defect: DefectTransition, dialect: str) -> None:
    """What the defective broker sends is a failure under the known defect's name; what a lawful one sends is none."""
    broker, event = brought_to(defect, dialect)
    for is_defective in (False, True):
        acceptor = acceptor_for(dialect_named(dialect))
        acceptor.explanations[0].broker = copy.deepcopy(broker)
        acceptor.sent(event)
        target = copy.deepcopy(broker)
        (defect.process if is_defective else process)(target, event)
        while (answer := next(iter(permitted(target)), None)) is not None:
            assert observe(target, answer) == ()
            acceptor.received(answer)
        acceptor.quiescent()
        if is_defective:
            assert [(each.defect, each.requirement) for each in acceptor.failures] == [
                (defect.name, defect.requirement)
            ]
            assert acceptor.verdict is Verdict.FAIL
            assert not acceptor.finished, "judging goes on"
            assert defect.name not in acceptor.refuted
        else:
            assert acceptor.failures == []
            assert defect.name in acceptor.refuted, "who upgrades wants to know"


@pytest.mark.parametrize("defect", TRANSITIONS, ids=lambda each: each.name)
def test_it_does_not_apply_to_ordinary_traffic(defect: DefectTransition) -> None:
    for dialect in defect.dialects:
        for kind in ("classic", "quorum"):
            plan = Plan(dialect_named(dialect))
            for line in (
                f"a.1 queue.declare q durable x-queue-type={kind}", "a.1 basic.qos 1", "a.1 basic.consume q tag=t",
                "b.1 basic.consume q tag=t", "b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2",
                "a.1 basic.ack 1", "a.1 basic.cancel t", "a.1 basic.consume q tag=u", "b.1 basic.get q",
                "b.1 basic.cancel nobody", "a.1 queue.delete q", "a.1 basic.publish q body=m3",
                f"a.1 queue.declare q durable x-queue-type={kind}", "a.1 basic.publish q body=m4", "a.1 basic.get q",
                "c.1 basic.cancel t", "c.1 basic.consume missing",
            ):  # fmt: skip
                command = parse_command(line)
                assert command.method not in defect.methods or not defect.applies(plan.broker, input_of(line)), line
                plan.carry_out(command)
