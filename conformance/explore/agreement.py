"""Agreement: what is enumerated, what is accepted, what the judge says and what the embedded broker does are one.

In every state what `permitted` enumerates is accepted, and of all other frames that the world can form those that are
accepted are counted: a frame that a simple broker would not send first. Nothing that is permitted is left out where
something is due, and nothing at all is accepted of a broker that is at rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

from amqpspec.conformance.explore.position import Position
from amqpspec.model.outputs.permitted import permitted


def not_exact(position: Position, accepted: Collection[str], beyond: Counter[str]) -> Iterator[str]:
    """What the enumeration and the acceptance of frames disagree about in this state. `beyond`: counts what is
    accepted and not enumerated.
    """
    enumerated = {str(each): replace(each, time=position.now) for each in permitted(position.broker)}
    for text, event in enumerated.items():
        if text not in accepted and not position.explanation.is_at_no_time(event):
            yield f"{text} is enumerated, and not accepted"
    frames = [text for text in accepted if " < " in text]
    if not enumerated and frames and position.is_quiet and position.explanation.is_silent:
        yield f"all is quiet, and {frames[0]} is accepted"
    for text in frames:
        if text not in enumerated:
            beyond[text.split(" < ", 1)[1].split(" ", 1)[0]] += 1
