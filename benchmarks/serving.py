"""How fast the embedded broker serves, beside a RabbitMQ in the same run, and whether it keeps its memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from amqpspec.model.protocol.methods import Content
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.resolve import running
from benchmarks.errors import Invalid
from benchmarks.plain_client import PlainClient, made
from benchmarks.tables import ResultTable, spread

#: Seconds of each measurement, and publishes between two looks at the clock.
_SECONDS = 3.0
_BODY = Content({}, b"x" * 200)
_QUEUE = "served"
_PURGE_OK, _DECLARE_OK, _SELECT_OK, _QOS_OK, _CONSUME_OK = (50, 31), (50, 11), (85, 11), (60, 11), (60, 21)
_IN_FLIGHT = 100
#: Looks at the memory.
_LOOKS = 10
_PAGE, _TICK = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")

_Workload = Callable[[Address, float], float]


def run(targets: Sequence[str], repetitions: int, messages: int) -> ResultTable:
    """The rates of each target, in turns, and the memory of the embedded broker while so many messages go through."""
    rates: dict[tuple[str, str], list[float]] = {}
    costs: dict[str, list[float]] = {}
    with ExitStack() as brokers:
        served = brokers.enter_context(_served())
        addresses = {
            target: served[0] if target == "embedded" else brokers.enter_context(running(target)) for target in targets
        }
        for _ in range(repetitions):
            for name, workload in WORKLOADS.items():
                for target, address in addresses.items():
                    spent = _processor_time(served[1])
                    rate = workload(address, _SECONDS)
                    rates.setdefault((target, name), []).append(rate)
                    if target == "embedded":
                        spent = _processor_time(served[1]) - spent
                        costs.setdefault(name, []).append(spent / (rate * _SECONDS) * 1e6)
        memory = _memory_over(served, messages) if messages else []
    rows = [(target, *(spread(rates[target, name]) for name in WORKLOADS)) for target in addresses]
    if costs:
        rows.append(("embedded, µs of processor time a message", *(spread(costs[name]) for name in WORKLOADS)))
    notes = [
        f"Messages a second, of {len(_BODY.body)} octets, transient, through a classic queue; each broker in a process "
        f"of its own, a client that costs little (`plain_client.py`), {repetitions} times {_SECONDS:g} s each, in "
        "turns. Medians, least to greatest.",
    ]
    if memory:
        told = ", ".join(f"{each:.0f}" for each in memory)
        notes.append(
            f"Resident memory of the embedded broker, MiB, before and while {messages:,} messages are published, "
            f"confirmed, delivered and acknowledged: {told}."
        )
    title = "Serving: the embedded broker beside RabbitMQ"
    return ResultTable(title, ("target", *WORKLOADS), tuple(rows), tuple(notes))


# -------------------------------------------------------------------------------------------- workloads


def _confirmed(in_flight: int) -> _Workload:
    """Confirmed publishes in a second, with so many in flight at most."""

    def measure(address: Address, seconds: float) -> float:
        publish = made("basic.publish", 1, _BODY, routing_key=_QUEUE)
        with PlainClient(address) as client:
            client.call("queue.declare", _DECLARE_OK, 1, queue=_QUEUE, exclusive=True)
            client.call("confirm.select", _SELECT_OK, 1)
            sent = confirmed = 0
            began = time.perf_counter()
            while time.perf_counter() < began + seconds:
                more = in_flight - (sent - confirmed)
                if more:
                    client.write(publish * more)
                    sent += more
                confirmed = max(client.confirmed(), confirmed)
            return confirmed / (time.perf_counter() - began)

    return measure


def _unconfirmed(address: Address, seconds: float) -> float:
    """Publishes without confirms in a second, with a round trip behind each thousand."""
    publishes = made("basic.publish", 1, _BODY, routing_key=_QUEUE) * 1000
    with PlainClient(address) as client:
        client.call("queue.declare", _DECLARE_OK, 1, queue=_QUEUE, exclusive=True)
        sent, began = 0, time.perf_counter()
        while time.perf_counter() < began + seconds:
            client.write(publishes)
            client.call("queue.purge", _PURGE_OK, 1, queue=_QUEUE)
            sent += 1000
        return sent / (time.perf_counter() - began)


def _through(address: Address, seconds: float) -> float:
    """Messages in a second that are published, confirmed, delivered and acknowledged."""
    began = time.perf_counter()
    for passed in _passed(address):
        if time.perf_counter() > began + seconds:
            return passed / (time.perf_counter() - began)
    raise Invalid("no message came")


def _passed(address: Address) -> Iterator[int]:
    """How many messages have come and gone, some in flight, without end."""
    publish = made("basic.publish", 1, _BODY, routing_key=_QUEUE)
    with PlainClient(address) as client:
        client.call("queue.declare", _DECLARE_OK, 1, queue=_QUEUE, exclusive=True)
        client.call("confirm.select", _SELECT_OK, 1)
        client.call("basic.qos", _QOS_OK, 2, prefetch_count=2 * _IN_FLIGHT)
        client.call("basic.consume", _CONSUME_OK, 2, queue=_QUEUE, consumer_tag="c")
        sent = delivered = 0
        while True:
            more = _IN_FLIGHT - (sent - delivered)
            if more:
                client.write(publish * more)
                sent += more
            latest = client.delivered()
            if latest > delivered:
                delivered = latest
                client.send("basic.ack", 2, delivery_tag=delivered, multiple=True)
                yield delivered


#: By what it is called in the table.
WORKLOADS: dict[str, _Workload] = {
    "confirmed, one by one": _confirmed(1),
    f"confirmed, {_IN_FLIGHT} in flight": _confirmed(_IN_FLIGHT),
    "without confirms": _unconfirmed,
    "published to acknowledged": _through,
}


# ----------------------------------------------------------------------------------------------- memory


@contextmanager
def _served() -> Iterator[tuple[Address, int]]:
    """The embedded broker as `amqpspec serve` has it, and its process."""
    command = [sys.executable, "-m", "amqpspec", "serve", "--port", "0"]
    environment = os.environ | {"COLUMNS": "200"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            found = re.search(r"127\.0\.0\.1:(\d+)/", line)
            if found is None:
                raise Invalid(f"amqpspec serve says {line!r}")
            yield Address("127.0.0.1", int(found[1]), "guest", "guest"), process.pid
        finally:
            process.terminate()


def _memory_over(served: tuple[Address, int], messages: int) -> list[float]:
    address, pid = served
    looks = [_resident(pid)]
    for passed in _passed(address):
        if passed >= messages * len(looks) / _LOOKS:
            looks.append(_resident(pid))
        if passed >= messages:
            return looks
    return looks


def _processor_time(pid: int) -> float:
    """Seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _resident(pid: int) -> float:
    """MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 2**20
