"""A standalone cluster of two workers in containers that share nothing but a store at an address."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException

from amqpspec.command_line import main
from amqpspec.pipeline.store.store import open_store
from amqpspec.targets.brokers.images import BrokerImage, ImageBuildError, build, debian_mirror, missing_images
from tests.pipeline.cluster import standalone_master, worker_in_container
from tests.pipeline.s3_server import BUCKET, Halt, Way, s3_server, variables
from tests.pipeline.stand_in import write_trace

PLACE = f"s3://{BUCKET}/store"
#: Debian's Python 3.11, as in tests/packaging.
BASE = BrokerImage(name="amqpspec/python:3.11", suite="bookworm", package="python3-venv", hooks=(), changes=())


@pytest.fixture
def engine() -> Iterator[docker.DockerClient]:
    try:
        client = docker.from_env()
        client.ping()
        if missing_images(client, [BASE]):
            build(client, BASE, debian_mirror())
    except (DockerException, ImageBuildError) as error:
        pytest.skip(f"no container engine: {error}")
    yield client
    client.close()


def test_one_of_two_workers_is_killed(
    engine: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is killed while it writes what it has found; the other one does its work. The page is made without Spark's
    master knowing of any folder.
    """
    for name, value in variables(0).items():
        monkeypatch.setenv(name, value)
    with s3_server(tmp_path / "served") as port, Way(port, "/judgements/", Halt.HALF) as way:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        traces = [
            str(write_trace(tmp_path / f"{n}.jsonl", f"broker-{n % 2}", {f"s {n} {m}": [(1, b"m")] for m in range(5)}))
            for n in range(6)
        ]
        for night in (1, 2):
            of_night = traces[3 * night - 3 : 3 * night]
            assert main(["pipeline", "import", PLACE, *of_night, "--run", f"night-{night}", "--day",
                         f"2026-11-0{night}"]) == 0  # fmt: skip
        with standalone_master() as master, worker_in_container(engine, BASE.name, master) as first:
            to_workers = variables(way.port)
            conf = [f"--conf=spark.executorEnv.{name}={value}" for name, value in to_workers.items()]
            judging = subprocess.Popen(
                [sys.executable, "-m", "amqpspec", "pipeline", "judge", PLACE, "--spark", master, *conf,
                 "--conf=spark.executor.memory=512m", "--quiet"],
                env={**os.environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            with judging, worker_in_container(engine, BASE.name, master):
                assert way.halted.wait(500)
                first.kill()  # it or the other one has written half of a file
                out, err = judging.communicate(timeout=500)
        # as without Spark
        folder = str(tmp_path / "folder")
        for night in (1, 2):
            of_night = traces[3 * night - 3 : 3 * night]
            assert main(["pipeline", "import", folder, *of_night, "--run", f"night-{night}"]) == 0
        capsys.readouterr()
        code = main(["pipeline", "judge", folder, "--quiet"])
        assert (judging.returncode, out) == (code, capsys.readouterr().out)
        # between the two workers there may be none
        assert err in ("", f"amqpspec: waiting for executors of {master}\n")
        contents = open_store(PLACE).contents()
        assert len(contents.parts) == 6 and all(part.judged for part in contents.parts)
        assert not open_store(PLACE).foreign(contents)
        capsys.readouterr()
        assert main(["pipeline", "status", PLACE]) == 0
        assert "6 parts, 6 judged" in capsys.readouterr().out
