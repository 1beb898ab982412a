"""From a TARGET and its options to something that can be tested."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.profile.measuring import measure
from amqpspec.conformance.profile.shows import gentle
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.capabilities import advertised
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import dialect_named, dialect_of, is_known
from amqpspec.reports.text import visible
from amqpspec.targets.brokers.resolve import RunningBroker, dialect_said_by, introduction, operator_of, running_broker

#: Characters of a product's name or version that are shown.
_LONGEST_NAME = 100


@contextmanager
def target_under_test(options: argparse.Namespace) -> Iterator[TargetUnderTest]:
    """Start the target, ask what it is, choose the dialect. Raises `UsageError` and `TargetError`.

    Where the options want a profile, a product that is not known is judged by what it was seen to choose.
    """
    if options.mode != "lockstep":
        raise UsageError(f"--mode {options.mode} is not available in this version; lockstep is")
    if options.driver != "wire":
        raise UsageError(f"--driver {options.driver} is not available in this version; wire is")
    asked = dialect_named(options.dialect) if options.dialect else None
    with _broker(options.target, asked) as broker:
        address = broker.address
        properties, limits = introduction(address)
        said = dialect_said_by(broker)
        dialect = asked or (dialect_named(said) if said else dialect_of(properties))
        product = _shown(properties.get("product", "unknown"))
        version = _shown(properties.get("version", "unknown"))
        label = options.target if "://" not in options.target else str(address)
        target = TargetUnderTest(
            address,
            TargetDescription(label, product, version, dialect.name),
            options.deadline,
            operator_of(broker),
            advertised(properties),
            channel_max=limits.channel_max,
            frame_max=limits.frame_max,
        )
        if not asked and not said and getattr(options, "profile", False) and not is_known(properties):
            dialect = measure(target, options.out / "profile.jsonl", gentle(), gentle()).dialect
        description = replace(target.description, dialect=dialect.name)
        yield replace(target, description=description, capabilities=advertised(properties) | dialect.announced)


def _shown(said: object) -> str:
    """What a broker says of itself, fit for every report and of bounded length."""
    return visible(str(said)[:_LONGEST_NAME])


@contextmanager
def _broker(target: str, dialect: Dialect | None) -> Iterator[RunningBroker]:
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(running_broker(target, dialect))
        except ValueError as error:
            raise UsageError(str(error)) from None
        yield broker
