"""`python -m tests --clients`: the test suites of client libraries, on the embedded broker.

Each is taken as its authors publish it, at the version that the table names, and run as it is, with the library's own
code beside it. Whatever fails and is not in the table, and whatever is in it and passes, is told.

PyPI has the tests of py-amqp and kombu. Its archives of aiormq (6.8.1) and aio-pika (1.0.0, 6.8.2, 8.3.0, 9.5.6) hold
none. Debian's source packages, which are made of the repositories, have them. These versions want an older pamqp, so
each has an environment of its own. Of aiormq all tests are run that need no TLS, of aio-pika those of channels, queues,
messages, pools and its patterns. The embedded broker and RabbitMQ 4.3.6 passed the same ones, and failed the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen
from xml.etree import ElementTree

from amqpspec.testing import EmbeddedBroker

#: Seconds for one test, and for a whole suite.
_PATIENCE, _PATIENCE_WITH_ALL = 60, 900
#: Exit codes.
RIGHT, OTHERWISE, NOT_TO_BE_HAD = 0, 1, 3


@dataclass(frozen=True, slots=True)
class ClientSuite:
    """`known`: by a pattern of the names of tests that fail, why. `debian`: the file of Debian's pool with the tests.
    `requires`: what they need besides the package, in an environment of its own; none: this one is used.
    """

    package: str
    version: str
    tests: tuple[str, ...]
    known: Mapping[str, str] = field(default_factory=dict)
    debian: str = ""
    requires: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


_POOL = "http://deb.debian.org/debian/pool/main"
#: In place of the library by which tests start their broker in a container.
_CONTAINER = """
import os


class DockerContainer:
    def __init__(self, image):
        pass

    def with_exposed_ports(self, *ports):
        return self

    def start(self):
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *error):
        pass

    def get_container_host_ip(self):
        return os.environ["RABBITMQ_HOST"]

    def get_exposed_port(self, port):
        return os.environ["RABBITMQ_5672_TCP"]
"""
#: What the tests of aiormq and aio-pika need. Their plugin uses pkg_resources, which later versions of setuptools lack.
_AIOMISC = (
    "pytest<9", "pytest-timeout", "aiomisc>=17.5,<18", "aiomisc-pytest>=1.1.1,<2", "shortuuid", "timeout-decorator",
    "setuptools<81",
)  # fmt: skip
_NO_CERTIFICATES = "needs a broker with the certificates of t/certs, which the package does not hold"
_NO_CERTIFICATES_THERE = "needs a broker with the certificates of tests/certs"
_TOO_BIG = "publishes more than max_message_size allows, which is 16 MiB since RabbitMQ 4.0: refused by 4.3.6 as well"
#: Begins the reason of tests that may pass as well.
BY_CHANCE = "by chance: "
_TOO_BIG_UNSEEN = f"{BY_CHANCE}{_TOO_BIG}, and without confirms the test need not see it"
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
    ClientSuite(
        "aiormq", "6.8.1", ("tests",),
        {
            "*.test_big_message[[]amqp_channel[01]-*": _TOO_BIG,
            "*.test_big_message[[]amqp_channel[23]-*": _TOO_BIG_UNSEEN,
            "*.test_ssl_verification_fails_without_trusted_ca": _NO_CERTIFICATES_THERE,
            "*.test_ssl_context": _NO_CERTIFICATES_THERE,
        },
        "p/python-aiormq/python-aiormq_6.8.1.orig.tar.gz", _AIOMISC, ("-k", "not amqps"),
    ),
    ClientSuite(
        "aio-pika", "9.5.6", tuple(f"tests/test_{name}.py" for name in ("amqp", "rpc", "master", "pool")),
        {"*.test_big_message*": _TOO_BIG}, "p/python-aio-pika/python-aio-pika_9.5.6.orig.tar.gz", _AIOMISC,
    ),
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
    archive = _from_debian(suite, directory) if suite.debian else _from_pypi(suite, directory)
    with tarfile.open(archive) as opened:
        top = opened.getnames()[0].partition("/")[0]
        opened.extractall(directory)
    return directory / top


def _from_debian(suite: ClientSuite, directory: Path) -> Path:
    archive = directory / Path(suite.debian).name
    try:
        with urlopen(f"{_POOL}/{suite.debian}", timeout=_PATIENCE) as response:
            archive.write_bytes(response.read())
    except (OSError, HTTPException) as error:
        raise NotToBeHad(f"cannot be downloaded from {_POOL}/{suite.debian}: {error}") from None
    return archive


def _from_pypi(suite: ClientSuite, directory: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", suite.package]
    # as it has its tests only in the archive, nothing is built: no isolated environment is needed
    wanted = ["--no-build-isolation", "--dest", str(directory), f"{suite.package}=={suite.version}"]
    done = subprocess.run([*command, *wanted], capture_output=True, text=True, check=False)
    archives = list(directory.glob("*.tar.gz"))
    if done.returncode or not archives:
        last = (done.stderr.strip().splitlines() or ["no archive came"])[-1]
        raise NotToBeHad(f"cannot be downloaded: {last}")
    return archives[0]


def _python(suite: ClientSuite, directory: Path) -> str:
    """The Python that has what the tests need. Raises `NotToBeHad`."""
    if not suite.requires:
        return sys.executable
    venv.create(directory, with_pip=True)
    python = str(directory / "bin" / "python")
    wanted = (f"{suite.package}=={suite.version}", *suite.requires)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotToBeHad(f"what its tests need cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    return python


def run(suite: ClientSuite, sources: Path) -> dict[str, bool]:
    """Did they pass, by the names of the tests. What was skipped is left out. Raises `NotToBeHad`."""
    results = sources / "results.xml"
    python = _python(suite, sources / "its-environment")
    container = sources / "stand-in" / "testcontainers" / "core" / "container.py"
    container.parent.mkdir(parents=True, exist_ok=True)
    container.write_text(_CONTAINER, encoding="utf-8")
    with EmbeddedBroker() as broker:
        host, port = broker.address.host, str(broker.address.port)
        place = {"RABBITMQ_HOST": host, "RABBITMQ_5672_TCP": port, "AMQP_URL": f"amqp://guest:guest@{host}:{port}/"}
        options = ["-c", os.devnull, "--rootdir", ".", "-q", "-W", "ignore", "-o", "python_classes=test_* Test*"]
        plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "--timeout", str(_PATIENCE)]
        # the sources of the package come before what is installed of it
        path = os.pathsep.join([str(sources), str(sources / "stand-in")])
        environment = {**os.environ, **place, "PYTHONPATH": path}
        try:
            done = subprocess.run(
                [python, "-m", "pytest", *options, *plugins, *suite.options, "--junit-xml", str(results), *suite.tests],
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
        elif passed and reason and not reason.startswith(BY_CHANCE):
            lines.append(f"{name} passes, and is known to fail: {reason}")
    used = {pattern for pattern in known if any(fnmatchcase(name, pattern) for name in results)}
    return [*lines, *(f"no test is named {pattern}" for pattern in known if pattern not in used)]
