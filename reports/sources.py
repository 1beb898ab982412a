"""The source of a rule as links, where it is clear which page or file is meant."""

from __future__ import annotations

import re
from typing import NamedTuple

_SERVER = "https://github.com/rabbitmq/rabbitmq-server"
#: The tag that the registry names source files of, unless it says another one.
_TAG = "v4.3.5"
_TEXT = "https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf"
_DOCS = "https://www.rabbitmq.com/docs"
#: Guides by how the registry names them.
_GUIDES = {
    "consumer acknowledgements": "confirms",
    "consumer cancel notification": "consumer-cancel",
    "consumer timeouts": "consumers",
    "consumer prefetch": "consumer-prefetch",
    "consumer priorities": "consumer-priority",
    "consumers, single active consumer": "consumers",
    "queue length limit": "maxlength",
    "streams": "streams",
    "direct reply-to": "direct-reply-to",
}
#: Modules that are in an application of their own.
_ELSEWHERE = {
    "rabbit_misc": "rabbit_common",
    "rabbit_framing": "rabbit_common",
    "rabbit_binary_parser": "rabbit_common",
    "rabbit_binary_generator": "rabbit_common",
    "rabbit_command_assembler": "rabbit_common",
    "rabbit_heartbeat": "rabbit_common",
    "rabbit_queue_collector": "rabbit_common",
}
#: Not files of the server under that name: what is generated, wildcards, other repositories.
_NO_FILE = {"rabbit_framing", "rabbit_framing_amqp_0_9_1", "rabbit_basic"}


class Part(NamedTuple):
    """A piece of the text; `url` "": it leads nowhere."""

    text: str
    url: str


def source_parts(source: str) -> list[Part]:
    """The source of a rule in pieces, which together are the text again."""
    pieces = re.split(r"(; )", source)
    return [Part(piece, _url(piece)) for piece in pieces if piece]


def _url(piece: str) -> str:
    if re.match(r"(AMQP )?0-9-1\b", piece):
        return _TEXT
    for name, page in _GUIDES.items():
        if re.match(rf"(RabbitMQ |the )?guide(:| on) {re.escape(name)}", piece):
            return f"{_DOCS}/{page}"
    if number := re.match(r"rabbitmq-server (pull request|discussion) (\d+)", piece):
        kind = "pull" if number[1] == "pull request" else "discussions"
        return f"{_SERVER}/{kind}/{number[2]}"
    module = re.match(r"(?:(v\d+\.\d+\.\d+) )?((?:rabbit|mc)_\w+)(?: (v\d+\.\d+\.\d+))?(?=\.erl|:|,| |$)", piece)
    if module and module[2] not in _NO_FILE and "*" not in piece:
        application = _ELSEWHERE.get(module[2], "rabbit")
        return f"{_SERVER}/blob/{module[1] or module[3] or _TAG}/deps/{application}/src/{module[2]}.erl"
    return ""
