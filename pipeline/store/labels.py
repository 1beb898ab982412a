"""One broker, one label in a store, whoever wrote the trace: `run`, `record`, `campaign`, a capture."""

from __future__ import annotations

from amqpspec.conformance.verdicts.judgement import THROUGH
from amqpspec.targets.address import AddressError, parse_address


def label_in_store(label: str) -> str:
    """A label that is an address without what is not the broker's: who logs in, the virtual host, options.

    All others stay as they are, and so does the client library that a label may end with.
    """
    address, through, library = label.partition(THROUGH)
    if "://" not in address:
        return label
    try:
        found = parse_address(address)
    except AddressError:
        return label
    host = f"[{found.host}]" if ":" in found.host else found.host
    return f"{'amqps' if found.tls else 'amqp'}://{host}:{found.port}{through}{library}"
