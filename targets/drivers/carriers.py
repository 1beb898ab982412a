"""The carrier of each library. A library is loaded when it is asked for."""

from __future__ import annotations

from amqpspec.targets.client.carrier import Driver


def carrier_of(driver: str) -> Driver:
    """The one of that driver, whose library is installed."""
    if driver == "pika":
        from amqpspec.targets.drivers.pika_blocking import PikaCarrier

        return PikaCarrier
    if driver == "pika-select":
        from amqpspec.targets.drivers.pika_select import PikaSelectCarrier

        return PikaSelectCarrier
    if driver == "aio-pika":
        from amqpspec.targets.drivers.aio_pika_client import AioPikaCarrier

        return AioPikaCarrier
    if driver == "aio-pika-robust":
        from amqpspec.targets.drivers.aio_pika_robust import AioPikaRobustCarrier

        return AioPikaRobustCarrier
    raise ValueError(f"there is no driver {driver}")
