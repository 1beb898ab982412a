"""The part of the theme consumers that is deliberately wrong: what they may not ask for, some only of some queues."""

from __future__ import annotations

from hypothesis import strategies as st

from amqpspec.conformance.search.actions import Draw, queues
from amqpspec.conformance.search.consumers import ConsumerActions, limits
from amqpspec.model.protocol.methods import Table

_mistakes = st.sampled_from(
    (
        "prefetch size", "unknown consumer", "cancel-ok", "exclusive", "no limit", "no acknowledgements", "priority",
        "offset", "timeout",
    )
)  # fmt: skip
#: Some of them of some queues only.
_WRONG_ARGUMENTS = {
    "priority": st.just({"x-priority": "high"}),
    "offset": st.just({"x-stream-offset": "first"}),
    "timeout": st.sampled_from(({"x-consumer-timeout": -1}, {"x-consumer-timeout": "soon"})),
}


class ConsumerMistakes(ConsumerActions):
    """One action, which draws the mistake."""

    def consume_wrongly(self, draw: Draw) -> None:
        """What consumers may not ask for, and what they may not be answered; some only of some queues."""
        channel = self.channel_with(draw, lambda state: bool(state.consumers))
        state = self.state(channel)
        queue, mistake = draw(queues), draw(_mistakes)
        if mistake == "prefetch size":
            self.issue(channel, "basic.qos", {"prefetch_size": 1, "prefetch_count": draw(limits)})
        elif mistake == "unknown consumer":
            self.issue(channel, "basic.cancel", {"consumer_tag": "nobody"})
        elif mistake == "cancel-ok":
            tag = next(iter(state.consumers), "nobody") if state is not None else "nobody"
            self.issue(channel, "basic.cancel-ok", {"consumer_tag": tag})
        elif mistake == "exclusive":
            self.issue(
                channel, "basic.consume", {"queue": queue, "consumer_tag": self.new_tag(draw), "exclusive": True}
            )
        elif mistake == "no limit":
            self.issue(channel, "basic.qos", {"prefetch_count": 0})
            self.issue(channel, "basic.consume", {"queue": queue, "consumer_tag": self.new_tag(draw)})
        else:
            arguments: Table = {"queue": queue, "consumer_tag": self.new_tag(draw)}
            if mistake == "no acknowledgements":
                arguments["no_ack"] = True
            elif self.dialect.extensions:
                arguments["arguments"] = draw(_WRONG_ARGUMENTS[mistake])
            self.issue(channel, "basic.consume", arguments)
