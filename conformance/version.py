"""The version of the suite, for reports."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def tool_version() -> str:
    try:
        return version("amqpspec")
    except PackageNotFoundError:
        return "unknown"
