"""`python -m tests --clients`: the test suites of client libraries, on the embedded broker.

Each is taken from the registry as its authors publish it, at the version that the table names, and run as it is, with
the library's own code beside it. Whatever fails and is not in the table, and whatever is in it and passes, is told.

Of the clients that the broker is for, these publish their tests: py-amqp and kombu. The packages of pika, aiormq,
aio-pika and amqplib (JavaScript) hold none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from xml.etree import ElementTree

from amqpspec.testing import EmbeddedBroker

#: Seconds for one test, and for a whole suite.
_PATIENCE, _PATIENCE_WITH_ALL = 60, 900
#: Exit codes.
RIGHT, OTHERWISE, NOT_TO_BE_HAD = 0, 1, 3


@dataclass(frozen=True, slots=True)
class ClientSuite:
    """`known`: by a pattern of the names of tests that fail, why."""

    package: str
    version: str
    tests: tuple[str, ...]
    known: Mapping[str, str] = field(default_factory=dict)


_NO_CERTIFICATES = "needs a broker with the certificates of t/certs, which the package does not hold"
_NO_INTERNET = "connects to a host of the internet"

SUITES = (
    ClientSuite(
        "amqp", "5.4.2", ("t/integration",),
        {
            "test_rmq.*tls-*]": _NO_CERTIFICATES,
            "test_rmq.*[[]tls]": _NO_CERTIFICATES,
            "test_rmq.test_tls_connect_fails": _NO_CERTIFICATES,
            "test_rmq.test_tls_default_certs": _NO_INTERNET,
            "test_rmq.test_tls_no_default_certs_fails": _NO_INTERNET,
        },
    ),
    ClientSuite("kombu", "5.7.0", ("t/integration/test_py_amqp.py",)),
)  # fmt: skip


class NotToBeHad(Exception):
    """The package cannot be downloaded, or has no such tests; one line."""


def main() -> int:
    """Runs all, and prints a line for each suite and each test that ends otherwise than the table says."""
    codes = []
    for suite in SUITES:
        with tempfile.TemporaryDirectory() as directory:
            try:
                results = run(suite, downloaded(suite, Path(directory)))
            except NotToBeHad as error:
                print(f"{suite.package} {suite.version}: {error}", flush=True)
                codes.append(NOT_TO_BE_HAD)
                continue
        wrong = differences(results, suite.known)
        passed = sum(results.values())
        print(f"{suite.package} {suite.version}: {passed} passed, {len(results) - passed} failed, "
              f"{len(wrong)} otherwise than known", flush=True)  # fmt: skip
        for line in wrong:
            print(f"  {line}", flush=True)
        codes.append(OTHERWISE if wrong else RIGHT)
    return max(codes)


def downloaded(suite: ClientSuite, directory: Path) -> Path:
    """The folder of the package's sources. Raises `NotToBeHad`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", suite.package]
    # as it has its tests only in the archive, nothing is built: no isolated environment is needed
    wanted = ["--no-build-isolation", "--dest", str(directory), f"{suite.package}=={suite.version}"]
    done = subprocess.run([*command, *wanted], capture_output=True, text=True, check=False)
    archives = list(directory.glob("*.tar.gz"))
    if done.returncode or not archives:
        last = (done.stderr.strip().splitlines() or ["no archive came"])[-1]
        raise NotToBeHad(f"cannot be downloaded: {last}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(directory)
    return directory / archives[0].name.removesuffix(".tar.gz")


def run(suite: ClientSuite, sources: Path) -> dict[str, bool]:
    """Did they pass, by the names of the tests. What was skipped is left out. Raises `NotToBeHad`."""
    results = sources / "results.xml"
    with EmbeddedBroker() as broker:
        place = {"RABBITMQ_HOST": broker.address.host, "RABBITMQ_5672_TCP": str(broker.address.port)}
        options = ["-c", os.devnull, "--rootdir", ".", "-q", "-W", "ignore", "-o", "python_classes=test_* Test*"]
        plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "--timeout", str(_PATIENCE)]
        # the sources of the package come before what is installed of it
        environment = {**os.environ, **place, "PYTHONPATH": str(sources)}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options, *plugins, "--junit-xml", str(results), *suite.tests],
                cwd=sources, env=environment, capture_output=True, text=True, check=False, timeout=_PATIENCE_WITH_ALL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise NotToBeHad(f"its tests had not ended after {_PATIENCE_WITH_ALL} s") from None
    if done.returncode not in (0, 1) or not results.exists():
        last = ((done.stdout + done.stderr).strip().splitlines() or ["pytest said nothing"])[-1]
        raise NotToBeHad(f"its tests cannot be run: {last}")
    return _read(results)


def _read(results: Path) -> dict[str, bool]:
    passed: dict[str, bool] = {}
    for case in ElementTree.parse(results).iter("testcase"):
        if case.find("skipped") is None:
            module = case.get("classname", "").removeprefix("t.integration.")
            passed[f"{module}.{case.get('name')}"] = case.find("failure") is None and case.find("error") is None
    return passed


def differences(results: Mapping[str, bool], known: Mapping[str, str]) -> list[str]:
    """A line for each test that ended otherwise, and for each pattern that none has."""
    lines = []
    for name, passed in results.items():
        reason = next((why for pattern, why in known.items() if fnmatchcase(name, pattern)), "")
        if not passed and not reason:
            lines.append(f"{name} fails")
        elif passed and reason:
            lines.append(f"{name} passes, and is known to fail: {reason}")
    used = {pattern for pattern in known if any(fnmatchcase(name, pattern) for name in results)}
    return [*lines, *(f"no test is named {pattern}" for pattern in known if pattern not in used)]
