"""What is uploaded: the sources and the wheel that is made of them, checked, installed and used; the sources test
themselves.

`AMQPSPEC_DIST` names a folder that holds both; else they are built here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
#: Tests that the unpacked sources run: some of each kind that needs no broker.
TRIED = ("tests/conformance/language", "tests/test_directions.py", "tests/command_line/test_own_rules.py")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def build(what: str, sources: Path, directory: Path) -> Path:
    """What the build backend makes of the sources: a file in the directory."""
    program = f"from setuptools import build_meta; print(build_meta.build_{what}({str(directory)!r}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=sources, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    return directory / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("release")


@pytest.fixture(scope="module")
def dist(directory: Path) -> Path:
    """The folder with both."""
    if given := os.environ.get("AMQPSPEC_DIST"):
        return Path(given)
    copied = directory / "checkout"
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        (copied / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copied / name, follow_symlinks=False)
    made = directory / "dist"
    made.mkdir()
    build("wheel", unpacked_into(directory / "for-the-wheel", build("sdist", copied, made)), made)
    return made


def unpacked_into(directory: Path, archive: Path) -> Path:
    shutil.unpack_archive(archive, directory)
    (sources,) = directory.iterdir()
    return sources


def only(directory: Path, pattern: str) -> Path:
    (file,) = directory.glob(pattern)
    return file


def run(words: list[str], cwd: Path, packages: Path, timeout: float = 900) -> str:
    """What a Python prints for which the package is there and nowhere else."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environment | {"PYTHONPATH": str(packages)}, capture_output=True,
        text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_names_say_the_version(dist: Path) -> None:
    assert only(dist, "*.tar.gz").name == f"amqpspec-{VERSION}.tar.gz"
    assert only(dist, "*.whl").name == f"amqpspec-{VERSION}-py3-none-any.whl"
    assert f"\n## {VERSION}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_twine_finds_nothing(dist: Path) -> None:
    words = [sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(dist.iterdir()))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout + done.stderr


def test_what_is_known_of_the_wheel(dist: Path) -> None:
    with zipfile.ZipFile(only(dist, "*.whl")) as wheel:
        names = wheel.namelist()
        told = wheel.read(f"amqpspec-{VERSION}.dist-info/METADATA").decode()
    assert "License-Expression: Apache-2.0\n" in told and "Requires-Python: >=3.11\n" in told
    assert {f"3.{minor}" for minor in (11, 12, 13)} <= {
        line.rpartition(" :: ")[2] for line in told.splitlines() if line.startswith("Classifier: Programming Language")
    }
    assert {name.partition("/")[0] for name in names} == {"amqpspec", f"amqpspec-{VERSION}.dist-info"}
    assert not any("/tests/" in name or name.endswith(".pyc") for name in names)


def test_the_wheel_is_installed_and_used(dist: Path, directory: Path, tmp_path: Path) -> None:
    packages = directory / "packages"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(packages)]
    subprocess.run([sys.executable, *install, str(only(dist, "*.whl"))], check=True)
    assert run(["-m", "amqpspec", "--version"], tmp_path, packages) == f"amqpspec {VERSION}\n"
    short = ["--only", "GET-001", "--sequences", "0", "--quiet"]
    known = ["--deviations", "builtin:rabbitmq-4.3"]
    assert "Conforms" in run(["-m", "amqpspec", "run", *short], tmp_path, packages)
    run(["-m", "amqpspec", "run", *short, *known, "--out", "other"], tmp_path, packages)
    guides = packages / "amqpspec" / "guides"
    assert (guides / "own-rules.md").exists() and (guides / "ci" / "gitlab-ci.yml").exists()
    assert {each.name for each in guides.rglob("*.*")} >= {each.name for each in (ROOT / "docs").glob("*.md")}


def test_the_sources_run_their_own_tests(dist: Path, directory: Path) -> None:
    sources = unpacked_into(directory / "sources", only(dist, "*.tar.gz"))
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *TRIED]
    said = run(words, sources, sources)
    assert " passed" in said and "failed" not in said
