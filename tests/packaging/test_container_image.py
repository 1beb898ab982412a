"""The container image of `Dockerfile`: it is built where an engine runs, without a network, and does a run.

Its base is made on this machine, as those of the brokers are, and the packages are put beside the sources.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException

from amqpspec.targets.brokers.images import BrokerImage, ImageBuildError, build, debian_mirror, missing_images

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
#: Debian's Python 3.11 with what an environment is made by.
BASE = BrokerImage(name="amqpspec/python:3.11", suite="bookworm", package="python3-venv", hooks=(), changes=())
MADE = "amqpspec/suite:test"


@pytest.fixture(scope="module")
def engine() -> Iterator[docker.DockerClient]:
    """With the base image."""
    try:
        client = docker.from_env()
        client.ping()
    except DockerException as error:
        pytest.skip(f"no container engine: {error}")
    try:
        if missing_images(client, [BASE]):
            build(client, BASE, debian_mirror())
    except ImageBuildError as error:
        pytest.skip(str(error))
    yield client
    client.close()


@pytest.fixture(scope="module")
def image(engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    context = tmp_path_factory.mktemp("context") / "sources"
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if not name.startswith("tests/"):
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, context / name, follow_symlinks=False)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["parquet"]]
    download = ["-m", "pip", "download", "--quiet", "--dest", str(context / "packages"), "--only-binary", ":all:"]
    version = ["--python-version", "3.11"]
    wanted = [*needed, *project["build-system"]["requires"]]
    got = subprocess.run([sys.executable, *download, *version, *wanted], capture_output=True, text=True, check=False)
    if got.returncode != 0:
        pytest.skip(f"the packages cannot be had: {got.stderr.strip().splitlines()[-1]}")
    arguments = {"BASE": BASE.name, "PIP": "--no-index --find-links /src/packages"}
    engine.images.build(path=str(context), tag=MADE, buildargs=arguments, network_mode="none", rm=True, forcerm=True)
    yield MADE
    engine.images.remove(MADE, force=True)


def test_its_entry_point_is_the_program(engine: docker.DockerClient, image: str) -> None:
    said = engine.containers.run(image, ["--version"], remove=True, network_mode="none").decode()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert said == f"amqpspec {version}\n"


def test_it_does_a_run_and_leaves_the_report_in_its_directory(
    engine: docker.DockerClient, image: str, tmp_path: Path
) -> None:
    words = ["run", "--only", "GET-001", "--sequences", "0", "--quiet", "--parquet", "trace.parquet"]
    volumes = {str(tmp_path): {"bind": "/out", "mode": "rw"}}
    said = engine.containers.run(image, words, remove=True, network_mode="none", volumes=volumes).decode()
    assert "Conforms" in said
    assert (tmp_path / "amqpspec-out" / "report.html").exists() and (tmp_path / "trace.parquet").exists()
