"""What `amqpspec.testing` needs: pamqp, and none of the libraries of the suite, which a test double may go without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amqpspec.command_line.exit_codes import USAGE
from tests.packaging.test_extras import without

#: All that is installed with the package, but pamqp.
SUITE = {"docker", "hypothesis", "jinja2", "junit_xml", "orjson", "rich"}

_LOADED = """
import sys
import amqpspec.testing

print(*sorted(name for name in sys.modules if name.startswith("amqpspec.")))
from amqpspec.testing import EmbeddedBroker

with EmbeddedBroker():
    pass
print(*sorted(sys.modules))
"""


def test_what_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    first, whole = (set(line.split()) for line in done.stdout.splitlines())
    assert first == {"amqpspec.testing"}, "who collects tests loads no broker"
    assert "amqpspec.model.rules.table" in whole
    assert not whole & SUITE
    assert not whole & {"pika", "pytest", "cryptography", "importlib.metadata", "tempfile"}
    assert not whole & {"ssl", "hmac", "platform", "asyncio", "tomllib"}, "they take long, and it needs none"
    assert not any(name.startswith(("amqpspec.conformance", "amqpspec.reports", "amqpspec.pipeline")) for name in whole)
    assert not any(name.startswith("amqpspec.targets.faults") for name in whole), "it has none"


_COMMANDS = [["run"], ["serve"], ["faults"], ["requirements"], ["replay", "x.amqp"], ["check", "t.jsonl"], ["--help"]]


@pytest.mark.parametrize("arguments", _COMMANDS, ids=" ".join)
def test_the_command_line_says_what_it_lacks(arguments: list[str], tmp_path: Path) -> None:
    ended = without(SUITE, tmp_path, *arguments)
    said = "amqpspec: rich is missing for the command line: pip install amqpspec\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (USAGE, "", said)


@pytest.mark.parametrize("library", sorted(SUITE - {"rich"}))
def test_a_command_says_what_it_lacks(library: str, tmp_path: Path) -> None:
    """Each that needs it does, and no other."""
    ended = without({library}, tmp_path, "run", "embedded", "--only", "GET-001", "--sequences", "0", "--quiet")
    if ended.returncode == USAGE:
        (line,) = ended.stderr.splitlines()
        assert line.startswith(f"amqpspec: {library} is missing for ") and line.endswith(": pip install amqpspec")
    else:
        assert (ended.returncode, ended.stderr) == (0, "")
