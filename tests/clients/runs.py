"""Runs the tests of a client library on a broker."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

from amqpspec.targets.address import Address
from tests.clients.sources import NotToBeHad, node
from tests.clients.suites import ClientSuite

#: Seconds for one test, and for a whole suite.
_PATIENCE, _PATIENCE_WITH_ALL = 60, 900
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
#: Tests for Node connect to port 5672, and cannot be told another place.
_PLACE_FOR_NODE = """
const net = require("node:net");
const { connect } = net;
const place = { host: process.env.RABBITMQ_HOST, port: Number(process.env.RABBITMQ_5672_TCP) };
net.connect = (options, ...others) => connect(options.port === 5672 ? { ...options, ...place } : options, ...others);
"""


def run(suite: ClientSuite, sources: Path, address: Address) -> dict[str, bool]:
    """Did they pass, by the names of the tests. What was skipped is left out. Raises `NotToBeHad`."""
    host, port = address.host, str(address.port)
    place = {"RABBITMQ_HOST": host, "RABBITMQ_5672_TCP": port, "AMQP_URL": f"amqp://guest:guest@{host}:{port}/"}
    for name, (known, replacement) in suite.places.items():
        text = (sources / name).read_text(encoding="utf-8")
        (sources / name).write_text(text.replace(known, replacement.format(host=host, port=port)), encoding="utf-8")
    results = sources / "results.xml"
    if suite.is_of_node:
        _with_node(suite, sources, results, place)
    else:
        _with_pytest(suite, sources, results, place)
    passed = _read(results)
    if not passed:
        raise NotToBeHad("none of its tests was run")
    return passed


def _with_pytest(suite: ClientSuite, sources: Path, results: Path, place: Mapping[str, str]) -> None:
    container = sources / "stand-in" / "testcontainers" / "core" / "container.py"
    container.parent.mkdir(parents=True, exist_ok=True)
    container.write_text(_CONTAINER, encoding="utf-8")
    options = ["-c", os.devnull, "--rootdir", ".", "-q", "-W", "ignore", "-o", "python_classes=test_* Test*"]
    plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "--timeout", str(_PATIENCE)]
    python = _python(suite, sources / "its-environment")
    command = [python, "-m", "pytest", *options, *plugins, *suite.options, "--junit-xml", str(results), *suite.tests]
    # the sources of the package come before what is installed of it
    path = os.pathsep.join([str(sources), str(sources / "stand-in")])
    _carry_out(command, sources, {**place, "PYTHONPATH": path}, results)


def _with_node(suite: ClientSuite, sources: Path, results: Path, place: Mapping[str, str]) -> None:
    (sources / "place.js").write_text(_PLACE_FOR_NODE, encoding="utf-8")
    options = ["--require", "./place.js", "--test", "--test-timeout", str(_PATIENCE * 1000)]
    reporter = ["--test-reporter", "junit", "--test-reporter-destination", str(results)]
    _carry_out([node(), *options, *reporter, *suite.tests], sources, place, results)


def _carry_out(command: list[str], sources: Path, environment: Mapping[str, str], results: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=sources, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
            timeout=_PATIENCE_WITH_ALL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NotToBeHad(f"its tests had not ended after {_PATIENCE_WITH_ALL} s") from None
    if done.returncode not in (0, 1) or not results.exists():
        last = ((done.stdout + done.stderr).strip().splitlines() or ["they said nothing"])[-1]
        raise NotToBeHad(f"its tests cannot be run: {last}")


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


def _read(results: Path) -> dict[str, bool]:
    passed: dict[str, bool] = {}
    for groups, case in _cases(ElementTree.parse(results).getroot(), ()):
        if case.find("skipped") is None:
            module = case.get("classname", "").removeprefix("t.integration.")
            name = ".".join([*(groups or (module,)), case.get("name", "")])
            passed[name] = case.find("failure") is None and case.find("error") is None
    return passed


def _cases(
    element: ElementTree.Element, groups: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], ElementTree.Element]]:
    """Each test with the names of the groups that it is in: only Node has any."""
    for each in element:
        if each.tag == "testcase":
            yield groups, each
        else:
            name = each.get("name", "")
            yield from _cases(each, groups if name == "pytest" else (*groups, name))
