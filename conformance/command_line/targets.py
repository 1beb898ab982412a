"""From a TARGET and its options to something that can be tested."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from conformance.command_line.usage import UsageError
from conformance.judgement import TargetDescription
from conformance.session import TargetUnderTest
from model.dialects import Dialect, dialect_named, dialect_of
from targets.address import Address
from targets.resolve import running, server_properties


@contextmanager
def target_under_test(options: argparse.Namespace) -> Iterator[TargetUnderTest]:
    """Start the target, ask what it is, choose the dialect. Raises `UsageError` and `TargetError`."""
    if options.mode != "lockstep":
        raise UsageError(f"--mode {options.mode} is not available in this version; lockstep is")
    if options.driver != "wire":
        raise UsageError(f"--driver {options.driver} is not available in this version; wire is")
    asked = dialect_named(options.dialect) if options.dialect else None
    with _address(options.target, asked) as address:
        properties = server_properties(address)
        dialect = asked or dialect_of(properties)
        product = str(properties.get("product", "unknown"))
        version = str(properties.get("version", "unknown"))
        label = options.target if "://" not in options.target else str(address)
        yield TargetUnderTest(address, TargetDescription(label, product, version, dialect.name), options.deadline)


@contextmanager
def _address(target: str, dialect: Dialect | None) -> Iterator[Address]:
    with ExitStack() as stack:
        try:
            address = stack.enter_context(running(target, dialect))
        except ValueError as error:
            raise UsageError(str(error)) from None
        yield address
