"""Another way that the text of 0-9-1 leaves open, as data: `model.rules.other_ways` has all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from amqpspec.model.broker.broker import Broker, Rule
from amqpspec.model.broker.channels import Channel
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method

#: Does the method, in this state, come under the choice?
Applies = Callable[[Broker, Channel, Method], bool]
#: Processes the method; the rule is what would process it else.
Way = Callable[[Broker, Channel, Method, Rule], None]


class OtherWay(NamedTuple):
    """A value of a choice, and what is done with the methods that come under it."""

    choice: str
    value: str
    methods: tuple[str, ...]
    applies: Applies
    process: Way


def refuse(requirement: str, code: int) -> Way:
    """An error that closes what this code closes, with any code of that kind and in any words."""

    def process(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
        raise ProtocolError(requirement, code, "refused", any_text=True, any_code=True)

    return process
