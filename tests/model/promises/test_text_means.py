"""What a broker lacks of what it is looked at by, in words."""

from __future__ import annotations

from amqpspec.model.promises.text_means import COUNTS, GET, lacking_in_words


def test_only_what_is_lacking_is_said() -> None:
    assert lacking_in_words({COUNTS: "told", GET: "unknown", "immediate": "refused"}) == [
        "basic.get is not known to it"
    ]
    assert lacking_in_words({COUNTS: "untold"}) == [
        "the number of messages in queue.declare-ok says nothing of the queue"
    ]
