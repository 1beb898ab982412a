"""From an application to a page: its traffic is recorded by a proxy, judged, and made into tables and a picture.

    python examples/recorded_application.py docker:rabbitmq:4.3 OUT      # or embedded, amqp://…; see amqpspec run

leaves `OUT/recorded/trace.jsonl`, the store `OUT/store` and `OUT/page.html`. The last steps need the extra `spark`.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import aio_pika

from amqpspec.targets.brokers.resolve import running

MESSAGES = 2000


async def application(url: str) -> None:
    """Orders are published with confirms, in batches, and taken by a consumer with a prefetch limit of 20."""
    async with await aio_pika.connect(url) as connection:
        publishing, consuming = await connection.channel(), await connection.channel()
        await consuming.set_qos(prefetch_count=20)
        orders = await consuming.declare_queue("example-orders", auto_delete=True)
        done = asyncio.create_task(take(orders))
        for first in range(0, MESSAGES, 100):
            batch = [aio_pika.Message(f"order {first + n}".encode()) for n in range(100)]
            await asyncio.gather(*(publishing.default_exchange.publish(each, orders.name) for each in batch))
        await done


async def take(orders: aio_pika.abc.AbstractQueue) -> None:
    taken = 0
    async with orders.iterator() as messages:
        async for message in messages:
            await message.ack()
            taken += 1
            if taken == MESSAGES:
                break


def amqpspec(*words: str) -> int:
    """What a person would type: `amqpspec WORDS`."""
    return subprocess.run([sys.executable, "-m", "amqpspec", *words], check=False).returncode


def main(target: str, out: str) -> int:
    with running(target) as address:
        record = ["record", "--upstream", f"amqp://{address.host}:{address.port}", "--listen", "127.0.0.1:0"]
        command = [sys.executable, "-m", "amqpspec", *record, "--out", f"{out}/recorded"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
            assert proxy.stdout is not None
            # "recording 127.0.0.1:PORT in front of …"
            port = proxy.stdout.readline().split()[1].rpartition(":")[2]
            try:
                asyncio.run(application(f"amqp://{address.user}:{address.password}@127.0.0.1:{port}/"))
            finally:
                proxy.send_signal(signal.SIGINT)
    store = str(Path(out, "store"))
    amqpspec("pipeline", "import", store, f"{out}/recorded", "--run", "orders")
    verdict = amqpspec("pipeline", "judge", store)
    amqpspec("pipeline", "table", "compliance", store)
    amqpspec("pipeline", "page", store, "--out", f"{out}/page.html")
    return verdict


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
