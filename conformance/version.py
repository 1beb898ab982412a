"""The version of the suite, for reports."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def tool_version() -> str:
    try:
        return version("amqpspec")
    except PackageNotFoundError:
        return "unknown"
