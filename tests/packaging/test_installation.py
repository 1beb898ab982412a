"""The package as it is installed: it is whole, it has one name, and it runs beside an application of any names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent.parent.parent
#: The folders of this repository. An application may well have packages of these names.
_NAMES = ("conformance", "model", "pipeline", "reports", "targets")
_SOURCES = (*_NAMES, "amqpspec", "docs", "pyproject.toml", "README.md", "LICENSE")
#: What the tests bring along is not part of the package.
_MADE_HERE = shutil.ignore_patterns("__pycache__")


_PROGRAM = """
import pika
from amqpspec.testing import EmbeddedBroker

with EmbeddedBroker() as broker:
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
    channel.queue_declare("orders")
    channel.confirm_delivery()
    channel.basic_publish("", "orders", b"one")
    assert [message.body for message in broker.messages("orders")] == [b"one"]
    connection.close()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory as `site-packages` has it: what the build backend makes of a copy of the sources."""
    directory = tmp_path_factory.mktemp("installation")
    sources = directory / "sources"
    sources.mkdir()
    for name in _SOURCES:
        if (_ROOT / name).is_dir():
            shutil.copytree(_ROOT / name, sources / name, symlinks=True, ignore=_MADE_HERE)
        else:
            shutil.copy(_ROOT / name, sources / name)
    made = directory / "made"
    build = ["build", "--build-base", str(directory / "base"), "--build-lib", str(made)]
    subprocess.run(
        [sys.executable, "-c", "import setuptools; setuptools.setup()", "--quiet", *build], cwd=sources, check=True
    )
    return made


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """A directory with packages that are named as ours are, and a program that uses the embedded broker."""
    for name in _NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"OWNER = 'the application, {name}'\n")
    imports = "".join(f"import {name}\n" for name in _NAMES)
    checks = "".join(f"assert {name}.OWNER == 'the application, {name}'\n" for name in _NAMES)
    (tmp_path / "program.py").write_text(f"{imports}{_PROGRAM}{checks}print('done')\n")
    return tmp_path


def run(directory: Path, packages: Path, *arguments: str) -> str:
    """What a Python prints that has its packages there as well; it has to end well."""
    environment = os.environ | {"PYTHONPATH": str(packages)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def files_below(directory: Path) -> set[str]:
    found = set()
    for folder, _, names in os.walk(directory, followlinks=True):
        if not folder.endswith("__pycache__"):
            found |= {str((Path(folder) / name).relative_to(directory)) for name in names}
    return found


def test_everything_is_installed_below_one_name(installed: Path) -> None:
    assert [path.name for path in installed.iterdir()] == ["amqpspec"]
    assert files_below(installed / "amqpspec") == files_below(_ROOT / "amqpspec")
    assert not any(path.is_symlink() for path in installed.rglob("*"))


def test_the_directory_for_workers_of_spark_is_the_one_that_holds_the_package(installed: Path, tmp_path: Path) -> None:
    program = "from amqpspec.pipeline.spark_session import ROOT; print(ROOT)"
    assert run(tmp_path, installed, "-c", program) == f"{installed}\n"


@pytest.mark.parametrize("is_installed", [True, False], ids=["installed", "in its repository"])
def test_an_application_with_packages_of_the_same_names(
    is_installed: bool, installed: Path, application: Path
) -> None:
    packages = installed if is_installed else _ROOT
    assert run(application, packages, "-c", "import amqpspec; print(amqpspec.__path__[0])") == f"{packages}/amqpspec\n"
    assert run(application, packages, "program.py") == "done\n"
    command = ("-m", "amqpspec", "run", "--only", "GET-001", "--sequences", "0", "--quiet")
    assert "Conforms" in run(application, packages, *command)
    assert (application / "amqpspec-out" / "report.html").exists()
