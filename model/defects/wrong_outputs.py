"""Known defects that need no following, as the broker goes on as it should: a wrong argument, a frame too many or none.

The law says what is wrong. Only where something is, these are asked why (`model.judging.known_outputs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from amqpspec.model.broker.broker import Broker
from amqpspec.model.defects.channel_closing import CLOSING_DEFECTS
from amqpspec.model.defects.channel_mailbox import MAILBOX_DEFECTS
from amqpspec.model.defects.death_order import DEATH_ORDER_DEFECTS
from amqpspec.model.defects.direct_replies import DIRECT_REPLY_OUTPUT_DEFECTS
from amqpspec.model.defects.expiration_text import EXPIRATION_DEFECTS
from amqpspec.model.defects.expiry_by_priority import EXPIRY_DEFECTS
from amqpspec.model.defects.forgotten_deadlines import NEXT_DEADLINE_FORGOTTEN, is_forgotten
from amqpspec.model.defects.queue_counts import COUNT_DEFECTS
from amqpspec.model.defects.repeated_notices import REPEATED_NOTICE_DEFECTS
from amqpspec.model.defects.stream_chunks import STREAM_CHUNK_DEFECTS
from amqpspec.model.defects.stream_content import STREAM_CONTENT_DEFECTS
from amqpspec.model.defects.timeout_text import TIMEOUT_TEXT_DEFECTS
from amqpspec.model.defects.virtual_hosts import END_OF_STREAM_UNTOLD, VIRTUAL_HOST_DEFECTS, is_not_told
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.protocol.methods import Method

OUTPUT_DEFECTS: tuple[OutputDefect, ...] = (
    *COUNT_DEFECTS,
    *TIMEOUT_TEXT_DEFECTS,
    *REPEATED_NOTICE_DEFECTS,
    *CLOSING_DEFECTS,
    *VIRTUAL_HOST_DEFECTS,
    *STREAM_CONTENT_DEFECTS,
    *STREAM_CHUNK_DEFECTS,
    *DIRECT_REPLY_OUTPUT_DEFECTS,
    *MAILBOX_DEFECTS,
    *EXPIRY_DEFECTS,
    *EXPIRATION_DEFECTS,
    *DEATH_ORDER_DEFECTS,
)

#: By name: does this known defect explain that the owed frame does not come?
MISSING_OUTPUTS: Mapping[str, Callable[[Broker, Method], bool]] = {
    NEXT_DEADLINE_FORGOTTEN: is_forgotten,
    END_OF_STREAM_UNTOLD: is_not_told,
}
