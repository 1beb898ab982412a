"""What the recording proxy adds: round trips and a stream of publishes, through it and beside it, in turns."""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pika

from amqpspec.targets.address import Address
from amqpspec.targets.brokers.resolve import running
from benchmarks.tables import ResultTable, spread
from tests.proxies import recording

_ROUND_TRIPS = 500
_PUBLISHES = 5_000
_BODY = b"x" * 200
_REPETITIONS = 5


def run(targets: Sequence[str]) -> ResultTable:
    """One row for each target and way."""
    rows: list[tuple[str, ...]] = []
    for target in targets:
        with running(target) as address, tempfile.TemporaryDirectory() as directory:
            before = _seconds_of_children()
            with recording(f"amqp://{address.host}:{address.port}", Path(directory)) as proxy:
                rows += _rows(target, address, proxy.port)
            frames = _REPETITIONS * (2 * _ROUND_TRIPS + _PUBLISHES)
            spent = (_seconds_of_children() - before) / frames
        label, way, *numbers, _ = rows[-1]
        rows[-1] = (label, way, *numbers, f"{spent * 1e6:.0f}")
    return ResultTable(
        "Recording: what the proxy adds",
        ("target", "way", "round trip, µs", "publishes/s", "the proxy's µs of processor time per frame"),
        tuple(rows),
        (
            f"A pika client, {_ROUND_TRIPS} publishes of {len(_BODY)} octets that are each waited for until confirmed, "
            f"then {_PUBLISHES:,} without confirms and one round trip behind them; {_REPETITIONS} times each way, in "
            "turns. Medians, least to greatest. The last column is of both processes of the proxy, with their start.",
        ),
    )


def _rows(target: str, address: Address, port: int) -> list[tuple[str, ...]]:
    ways = {"bare": (address.host, address.port), "recorded": ("127.0.0.1", port)}
    trips: dict[str, list[float]] = {way: [] for way in ways}
    rates: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(_REPETITIONS):
        for way, (host, place) in ways.items():
            trip, rate = _measured(host, place, address)
            trips[way].append(trip * 1e6)
            rates[way].append(rate)
    return [(target, way, spread(trips[way]), spread(rates[way]), "") for way in ways]


def _measured(host: str, port: int, address: Address) -> tuple[float, float]:
    """Seconds of a round trip, the median, and publishes in a second."""
    login = pika.PlainCredentials(address.user, address.password)
    with pika.BlockingConnection(pika.ConnectionParameters(host, port, credentials=login)) as connection:
        confirming, plain = connection.channel(), connection.channel()
        confirming.queue_declare("recorded", exclusive=True)
        confirming.confirm_delivery()
        trips = []
        for _ in range(_ROUND_TRIPS):
            began = time.perf_counter()
            confirming.basic_publish("", "recorded", _BODY)
            trips.append(time.perf_counter() - began)
        began = time.perf_counter()
        for _ in range(_PUBLISHES):
            plain.basic_publish("", "recorded", _BODY)
        plain.queue_purge("recorded")
        return statistics.median(trips), _PUBLISHES / (time.perf_counter() - began)


def _seconds_of_children() -> float:
    """Processor time of the processes that have ended, and theirs."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
