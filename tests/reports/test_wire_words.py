"""Notes of the registry in AMQP's own names."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.registry import requirements
from amqpspec.reports.wire_words import in_wire_words


@pytest.mark.parametrize(
    ("noted", "said"),
    [
        ('{404,"NOT_FOUND - no",50,10}', 'channel.close 404 "NOT_FOUND - no", for queue.declare'),
        ('Connection.Close{541,"INTERNAL_ERROR",0,0}', 'connection.close 541 "INTERNAL_ERROR"'),
        ('{406,"x",90,20|90,30}; y', 'channel.close 406 "x", for tx.commit or tx.rollback; y'),
        ("403 or ConsumeOk", "403 or basic.consume-ok"),
        ("DeclareOk", "Declare-ok"),  # of queues and of exchanges
        ("Basic.Cancel{tag,nowait=true}", "basic.cancel (tag,nowait=true)"),
        ("no frame; EOF later", "No frame; the end of the TCP stream later"),
    ],
)
def test_a_note_is_said_in_words(noted: str, said: str) -> None:
    assert in_wire_words(noted) == said


def test_no_note_of_the_registry_keeps_the_names_of_a_library() -> None:
    for each in requirements().values():
        said = in_wire_words(each.observable)
        assert "DeclareOk" not in said and "Channel.Close" not in said and "EOF" not in said, each.id
