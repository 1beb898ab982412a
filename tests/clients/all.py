"""`python -m tests --clients [TARGET]`: the test suites of client libraries, on the embedded broker if nothing else is
named. See `suites`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

from amqpspec.targets.address import Address
from amqpspec.targets.brokers.readiness import BrokerUnavailable
from amqpspec.targets.brokers.resolve import TargetSyntaxError, running
from amqpspec.testing import EmbeddedBroker
from tests.clients.runs import run
from tests.clients.sources import NotToBeHad, downloaded
from tests.clients.suites import BY_CHANCE, SUITES

#: Exit codes.
RIGHT, OTHERWISE, MISUSED, NOT_TO_BE_HAD = 0, 1, 2, 3
EMBEDDED = "embedded"


def main(target: str = EMBEDDED) -> int:
    """Runs all, and prints a line for each suite and each test that ends otherwise than the table says."""
    codes = []
    for suite in SUITES:
        with tempfile.TemporaryDirectory() as directory:
            try:
                sources = downloaded(suite, Path(directory))
                with _broker(target) as address:
                    results = run(suite, sources, address)
            except NotToBeHad as error:
                print(f"{suite.package} {suite.version}: {error}", flush=True)
                codes.append(NOT_TO_BE_HAD)
                continue
            except (TargetSyntaxError, BrokerUnavailable) as error:
                print(error, file=sys.stderr, flush=True)
                return MISUSED if isinstance(error, TargetSyntaxError) else NOT_TO_BE_HAD
        wrong = differences(results, suite.known)
        passed = sum(results.values())
        print(f"{suite.package} {suite.version}: {passed} passed, {len(results) - passed} failed, "
              f"{len(wrong)} otherwise than known", flush=True)  # fmt: skip
        for line in wrong:
            print(f"  {line}", flush=True)
        codes.append(OTHERWISE if wrong else RIGHT)
    return max(codes)


@contextmanager
def _broker(target: str) -> Iterator[Address]:
    """The embedded one as tests of an application have it, or the target; fresh for each suite."""
    if target == EMBEDDED:
        with EmbeddedBroker() as broker:
            yield broker.address
    else:
        with running(target) as address:
            yield address


def differences(results: Mapping[str, bool], known: Mapping[str, str]) -> list[str]:
    """A line for each test that ended otherwise, and for each pattern that none has."""
    lines = []
    for name, passed in results.items():
        reason = next((why for pattern, why in known.items() if fnmatchcase(name, pattern)), "")
        if not passed and not reason:
            lines.append(f"{name} fails")
        elif passed and reason and not reason.startswith(BY_CHANCE):
            lines.append(f"{name} passes, and is known to fail: {reason}")
    used = {pattern for pattern in known if any(fnmatchcase(name, pattern) for name in results)}
    return [*lines, *(f"no test is named {pattern}" for pattern in known if pattern not in used)]
