"""`amqpspec record`: a proxy that any client can be pointed at, and that writes a trace."""

from __future__ import annotations

import argparse
import ssl

from rich.console import Console

from amqpspec.command_line.exit_codes import CONFORMS
from amqpspec.command_line.output_files import require_place_of_trace
from amqpspec.command_line.run_directory import make_directory
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.recording.forwarder import Place, forward
from amqpspec.conformance.recording.recorder import NAME, RecorderOptions
from amqpspec.reports.text import plural
from amqpspec.targets.address import Address, AddressError, parse_address
from amqpspec.targets.client.connecting import trusting_context


def execute(options: argparse.Namespace, console: Console) -> int:
    try:
        upstream = parse_address(options.upstream)
    except AddressError as error:
        raise UsageError(f"--upstream: {error}") from None
    there = next((file for name in (NAME, "trace-000001.jsonl") if (file := options.out / name).exists()), None)
    if there is not None:
        raise UsageError(f"{there} is there already; --out takes a folder without a trace")
    host, port = options.listen
    label = options.label or _label(upstream)
    written = RecorderOptions(
        str(options.out), label, options.dialect, options.bodies == "digest", options.rotate is not None
    )

    def ready(host: str, port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        console.print(f"recording {shown}:{port} in front of {label} (Ctrl-C ends it)", soft_wrap=True)

    place, trusted = Place(host, port, _shown(options)), _trusted(upstream)
    make_directory(options.out)
    require_place_of_trace(options.out / NAME)
    connections = forward(upstream, trusted, place, written, ready, options.rotate)
    console.print(f"{plural(connections, 'connection')} recorded in {options.out}", soft_wrap=True)
    return CONFORMS


def _label(address: Address) -> str:
    """Who logs in is not the proxy's business."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'amqps' if address.tls else 'amqp'}://{host}:{address.port}"


def _trusted(upstream: Address) -> ssl.SSLContext | None:
    if not upstream.tls:
        return None
    try:
        return trusting_context(upstream)
    except AddressError as error:
        raise UsageError(f"--upstream: {error}") from None


def _shown(options: argparse.Namespace) -> ssl.SSLContext | None:
    """What clients are shown."""
    if not options.certfile:
        if options.keyfile:
            raise UsageError("--keyfile goes with --certfile")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # a key that is kept with a pass phrase is refused: nobody may be asked for it
        context.load_cert_chain(options.certfile, options.keyfile, password=lambda: b"")
    except OSError as error:
        reason = error.strerror if not isinstance(error, ssl.SSLError) and error.strerror else "not usable"
        raise UsageError(f"--certfile {options.certfile}: {reason}") from None
    return context
