"""What the ledger of a soak remembers of a channel."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from amqpspec.conformance.soak.columns import Copies, Published


@dataclass(slots=True)
class ChannelAccount:
    """`number`: of the channel among all of the soak; `node`: where it is."""

    number: int
    node: int = 1
    confirms: bool = False
    is_closing: bool = False
    #: who publishes on it
    publisher: str = ""
    #: of the last publish
    tag: int = 0
    unconfirmed: dict[int, tuple[Published, int]] = field(default_factory=dict)
    #: of deliveries that are not settled; 0: there is none
    limit: int = 0
    #: consumer tag: its queue
    consumers: dict[str, str] = field(default_factory=dict)
    #: those of them that were not cancelled
    consumers_left: dict[str, str] = field(default_factory=dict)
    #: queues that were asked with basic.get, in order, and when
    gets: deque[tuple[str, float]] = field(default_factory=deque)
    #: queues that it takes messages from
    sources: set[str] = field(default_factory=set)
    #: delivery tag: what it is
    held: dict[int, tuple[Copies, int]] = field(default_factory=dict)


def up_to(tags: Mapping[int, object], tag: int, multiple: bool, *, all_if_zero: bool = False) -> list[int]:
    """Which of the outstanding `tags`, which are in order, a settlement or a confirm with that one is about."""
    if not multiple:
        return [tag] if tag in tags else []
    if not tag and all_if_zero:
        return list(tags)
    found = []
    for each in tags:
        if each > tag:
            break
        found.append(each)
    return found
