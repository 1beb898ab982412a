"""A message that a channel was handed a later one before: it is on its way to another channel, or to nobody."""

from __future__ import annotations

from dataclasses import replace

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.outputs.debts import debts
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from amqpspec.model.protocol.methods import Content, Method, event_of
from amqpspec.model.rules.inputs import process


def two_consumers() -> Broker:
    """Of q, with a limit of one each; m1 and m2 are ready, and nobody was handed anything."""
    plan = Plan(DEFAULT_DIALECT)
    for line in ("a.1 queue.declare q", "b.1 channel.open"):
        plan.carry_out(parse_command(line))
    for number in (1, 2):
        plan.carry_out(parse_command(f"a.{number} basic.qos 1"))
        plan.carry_out(parse_command(f"a.{number} basic.consume q tag=t{number}"))
    for body in ("m1", "m2"):
        take(plan.broker, f"b.1 basic.publish q body={body}")
    return plan.broker


def take(broker: Broker, line: str) -> None:
    command = parse_command(line)
    key = command.connection, command.channel
    process(broker, event_of(*key, command.method, dict(command.arguments), sent=True, content=command.content))


def deliver(number: int, body: str, tag: int = 1) -> Method:
    arguments = {
        "consumer_tag": f"t{number}", "delivery_tag": tag, "redelivered": False, "exchange": "", "routing_key": "q",
    }  # fmt: skip
    return Method("a", number, "basic.deliver", arguments, sent=False, content=Content({}, body.encode()))


def test_the_later_one_may_come_first_where_the_other_is_on_its_way_elsewhere() -> None:
    broker = two_consumers()
    assert observe(broker, deliver(2, "m2")) == ()
    assert observe(broker, deliver(1, "m1")) == ()


def test_it_is_passed_over_by_one_of_the_two_only() -> None:
    """m1 is with neither, if both were handed what comes after it."""
    broker = two_consumers()
    take(broker, "b.1 basic.publish q body=m3")
    assert observe(broker, deliver(2, "m2")) == ()
    (wrong,) = observe(broker, deliver(1, "m3"))
    assert wrong.requirement == "PUBLISH-015"


def test_a_get_does_not_bring_it() -> None:
    broker = two_consumers()
    assert observe(broker, deliver(2, "m2")) == ()
    take(broker, "a.2 basic.get q")
    (answer,) = [each for each in permitted(broker) if each.channel == 2]
    assert answer.name == "basic.get-empty"
    assert observe(broker, replace(answer)) == ()


def test_it_is_owed_where_nobody_is_left_who_may_have_it() -> None:
    broker = two_consumers()
    assert observe(broker, deliver(2, "m2")) == ()
    take(broker, "a.2 basic.ack 1")
    take(broker, "a.1 basic.cancel t1")
    (answer,) = permitted(broker)
    assert observe(broker, answer) == ()
    assert list(permitted(broker)) == []
    (debt,) = debts(broker)
    assert (debt.detail, str(debt.event)) == ("basic.deliver", str(deliver(2, "m1", 2)))
