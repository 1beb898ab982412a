"""A channel that the broker closes because of an error, and what shows that elsewhere first."""

from __future__ import annotations

import pytest

from amqpspec.model.protocol.field_types import Int64
from tests.model.judging.test_acceptor import declared


@pytest.mark.parametrize("said", [True, False])
def test_what_a_queue_had_the_channel_say_may_be_read_behind_what_shows_its_end(said: bool) -> None:
    """c.1 is served what a.2 gives back by its error; a.2's answer from before that may be read later, if it was said.

    CONSUME-008: its second consume wants to be the only one.
    """
    talk = declared("quorum")
    talk.send("a.2 basic.consume q tag=t").see("a.2", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("b.1 basic.publish q body=m1").deliver("a.2", 1, "m1").rest()
    talk.send("c.1 basic.consume q tag=u").see("c.1", "basic.consume-ok", consumer_tag="u").rest()
    talk.send("a.2 basic.consume q tag=v &", "a.2 basic.consume q tag=w exclusive")
    headers = {"headers": {"x-delivery-count": Int64(1), "x-acquired-count": Int64(1)}}
    talk.see(
        "c.1", "basic.deliver", "m1", properties=headers,
        consumer_tag="u", delivery_tag=1, redelivered=True, exchange="", routing_key="q",
    )  # fmt: skip
    if said:
        talk.see("a.2", "basic.consume-ok", consumer_tag="v")
    talk.see(
        "a.2", "channel.close", reply_code=403, class_id=60, method_id=20,
        reply_text="ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use",
    )  # fmt: skip
    talk.fork().see("a.2", "basic.consume-ok", consumer_tag="v").failure  # noqa: B018 - too late now
    talk.rest()
    assert talk.acceptor.failures == []
