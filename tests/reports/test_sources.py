"""Sources of rules as links."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.registry import requirements
from amqpspec.reports.sources import source_parts


@pytest.mark.parametrize(
    ("source", "end"),
    [
        ("rabbit_channel.erl:handle_method queue.declare passive", "/blob/v4.3.5/deps/rabbit/src/rabbit_channel.erl"),
        ("rabbit_channel v4.0.5:handle_info(tick)", "/blob/v4.0.5/deps/rabbit/src/rabbit_channel.erl"),
        ("v4.3.5 rabbit_fifo:merge_consumer", "/blob/v4.3.5/deps/rabbit/src/rabbit_fifo.erl"),
        ("rabbit_command_assembler", "/deps/rabbit_common/src/rabbit_command_assembler.erl"),
        ("AMQP 0-9-1 class queue", "amqp0-9-1.pdf"),
        ("RabbitMQ guide: consumer acknowledgements and publisher confirms", "/docs/confirms"),
        ("rabbitmq-server pull request 8260", "/pull/8260"),
        ("observed", ""),
        ("rabbit_*_queue:capabilities", ""),
    ],
)
def test_where_a_source_leads(source: str, end: str) -> None:
    (part,) = source_parts(source)
    assert part.url.endswith(end) and bool(part.url) == bool(end)


def test_the_pieces_are_the_text() -> None:
    linked = 0
    for each in requirements().values():
        parts = source_parts(each.source)
        assert "".join(part.text for part in parts) == each.source
        linked += any(part.url for part in parts)
    assert linked > 0.8 * len(requirements())
