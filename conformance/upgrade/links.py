"""Addresses of the texts that a source of `model.promises.differences` names."""

from __future__ import annotations

import re
from typing import NamedTuple

from amqpspec.model.promises.versions import Version, version_of

_SERVER = "https://github.com/rabbitmq/rabbitmq-server/blob"
_GUIDES = "https://www.rabbitmq.com/docs"
_NOTES = re.compile(r"release notes of ([^;]*)")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
#: How sources call a guide, and its page; longer names first.
_PAGES = {
    "semantics of AMQP 0-9-1 transactions": "semantics",
    "consumer acknowledgements and publisher confirms": "confirms",
    "consumer acknowledgements": "confirms",
    "consumer cancel notification": "consumer-cancel",
    "consumer timeouts": "consumers#acknowledgement-timeout",
    "consumer priorities": "consumer-priority",
    "consumer-prefetch": "consumer-prefetch",
    "consumer prefetch": "consumer-prefetch",
    "publisher confirms": "confirms",
    "classic queue mirroring": "3.13/ha",
    "dead letter exchanges": "dlx",
    "local random exchange": "local-random-exchange",
    "deprecated features": "deprecated-features",
    "time-to-live and expiration": "ttl",
    "queue length limit": "maxlength",
    "man/rabbitmqctl.8": "man/rabbitmqctl.8",
    "direct-reply-to": "direct-reply-to",
    "specification": "specification",
    "quorum-queues": "quorum-queues",
    "quorum queues": "quorum-queues",
    "clustering": "clustering",
    "networking": "networking",
    "extensions": "extensions",
    "partitions": "partitions",
    "consumers": "consumers",
    "maxlength": "maxlength",
    "channels": "channels",
    "policies": "policies",
    "streams": "streams",
    "firehose": "firehose",
    "queues": "queues",
    "limits": "limits",
    "dlx": "dlx",
    "ttl": "ttl",
}
_GUIDE = re.compile(rf"(?:guide:|the guide on) ({'|'.join(map(re.escape, _PAGES))})( (\d+\.\d+))?")
_SOURCE = re.compile(r"(?:(v\d+\.\d+\.\d+) )?\b(rabbit_\w+|mc_amqpl)")


class Link(NamedTuple):
    """A text, and where it is."""

    title: str
    address: str


def links_of(source: str, later_than: Version | None = None) -> tuple[Link, ...]:
    """The release notes, guides and files of RabbitMQ's source that it names, each once, in their order; no release
    notes of what is not `later_than`.
    """
    found: list[tuple[int, Link]] = []
    for notes in _NOTES.finditer(source):
        for each in _VERSION.finditer(notes[1]):
            version = version_of(each[0])
            if version is None or (later_than is not None and version <= later_than):
                continue
            address = f"{_SERVER}/main/release-notes/{version}.md"
            found.append((notes.start(1) + each.start(), Link(f"release notes of {version}", address)))
    for guide in _GUIDE.finditer(source):
        address = "/".join(filter(None, (_GUIDES, guide[3], _PAGES[guide[1]])))
        found.append((guide.start(), Link(f"guide: {guide[1]}{guide[2] or ''}", address)))
    for file in _SOURCE.finditer(source):
        address = f"{_SERVER}/{file[1] or 'main'}/deps/rabbit/src/{file[2]}.erl"
        found.append((file.start(), Link(f"source{f' of {file[1]}' if file[1] else ''}: {file[2]}", address)))
    return tuple(dict.fromkeys(link for _, link in sorted(found)))
