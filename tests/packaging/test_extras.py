"""What the base does without pyarrow and pyspark, and that what needs one of them says so in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amqpspec.command_line.exit_codes import CONFORMS, USAGE

_ROOT = Path(__file__).resolve().parent.parent.parent

#: The command line in a Python for which the libraries are not installed.
_WITHOUT = """
import sys


class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {refused!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Refuses())
from amqpspec import main

sys.exit(main(sys.argv[1:]))
"""


def without(refused: set[str], directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.path.insert(0, {str(_ROOT)!r})\n" + _WITHOUT.format(refused=refused)
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=directory, capture_output=True, text=True, check=False
    )


ARROW = {"pyarrow"}
BOTH = {"pyarrow", "pyspark", "py4j"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which a run was made without pyarrow, over the traces of one with it."""
    directory = tmp_path_factory.mktemp("base")
    ran = without(BOTH, directory, "run", "--only", "GET-001", "--sequences", "0", "--quiet")
    assert (ran.returncode, ran.stderr) == (CONFORMS, "")
    return directory


def test_json_lines_are_judged_without_the_extras(recorded: Path) -> None:
    checked = without(BOTH, recorded, "check", "amqpspec-out")
    assert checked.returncode == CONFORMS, checked.stderr
    assert checked.stderr == "" and "GET-001" in checked.stdout


@pytest.mark.parametrize(
    ("refused", "arguments", "needs"),
    [
        (
            ARROW,
            ["run", "--parquet", "t.parquet"],
            "pyarrow is missing to write t.parquet: pip install 'amqpspec[parquet]'",
        ),
        (ARROW, ["check", "t.parquet"], "pyarrow is missing to read t.parquet: pip install 'amqpspec[parquet]'"),
        (
            ARROW,
            ["check", "amqpspec-out", "--out", "table.parquet"],
            "pyarrow is missing for --out table.parquet: pip install 'amqpspec[parquet]'",
        ),
        (
            ARROW,
            ["check", "amqpspec-out", "--spark", "local"],
            "pyarrow is missing for --spark: pip install 'amqpspec[spark]'",
        ),
        (
            BOTH,
            ["check", "amqpspec-out", "--spark", "local"],
            "pyspark is missing for --spark: pip install 'amqpspec[spark]'",
        ),
    ],
)
def test_what_needs_an_extra_names_it(recorded: Path, refused: set[str], arguments: list[str], needs: str) -> None:
    ended = without(refused, recorded, *arguments)
    assert (ended.returncode, ended.stdout, ended.stderr) == (USAGE, "", f"amqpspec: {needs}\n")
