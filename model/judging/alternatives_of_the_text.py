"""What the text of 0-9-1 leaves open: a broker may refuse what is usually done, or do what is usually refused.

The other ways are `model.rules.other_ways`. Each is an alternative as long as the dialect has not settled its choice;
where a method comes under several choices, each way of the one is tried with each of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.judging.alternative import Alternative
from amqpspec.model.promises.dialects.settled import TEXT_CHOICES, settle
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.inputs import process
from amqpspec.model.rules.other_ways import BY_METHOD


def alternatives_of_the_text(broker: Broker, method: Method) -> Iterator[Alternative]:
    """Those to the usual processing of this method, one of `BY_METHOD`, in a dialect of the text."""
    channel = broker.open_channel(method)
    if channel is None:
        return
    for values in product(*_open_choices(broker, channel, method).values()):
        chosen = [each for each in values if each is not None]
        if chosen:
            choice = TEXT_CHOICES[chosen[0][0]]
            yield Alternative(
                name=", ".join(f"{name}: {value}" for name, value in chosen),
                requirement=choice.requirements[0],
                source=choice.sentence,
                kinds=(method.name,),
                applies=lambda broker, event: True,
                process=partial(_process_otherwise, chosen=chosen),
            )


def _open_choices(
    broker: Broker, channel: Channel, method: Method
) -> Mapping[str, list[tuple[str, str] | None]]:
    """The choices that the method comes under, each with its other values; None for the usual one."""
    settled = dict(broker.dialect.text.settled)
    found: dict[str, list[tuple[str, str] | None]] = {}
    for each in BY_METHOD[method.name]:
        if each.choice not in settled and each.applies(broker, channel, method):
            found.setdefault(each.choice, [None]).append((each.choice, each.value))
    return found


def _process_otherwise(broker: Broker, method: Method, chosen: list[tuple[str, str]]) -> None:
    usual = broker.dialect
    for name, value in chosen:
        broker.dialect = settle(broker.dialect, name, value)
    process(broker, method)
    broker.dialect = usual


