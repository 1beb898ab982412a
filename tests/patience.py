"""How long a test waits for what should come, on a machine that may have other work as well."""

from __future__ import annotations

import os

_VARIABLE = "AMQPSPEC_TEST_PATIENCE"


def patience(seconds: float) -> float:
    """A limit for what takes a machine without other work far less than `seconds`.

    It grows with what waits for a processor at this moment, and with the environment's AMQPSPEC_TEST_PATIENCE.
    """
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return seconds * max(1.0, waiting) * float(os.environ.get(_VARIABLE, "1"))
