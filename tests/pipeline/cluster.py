"""A standalone cluster of Spark on the loopback interface: its master, and workers in containers."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import docker
import pyspark

from amqpspec.pipeline.spark_session import ROOT

HOME = Path(pyspark.__file__).parent
_CLASSES = "org.apache.spark.deploy"


def _program(*words: str) -> list[str]:
    return [str(HOME / "bin" / "spark-class"), f"{_CLASSES}.{words[0]}", *words[1:]]


def _environment() -> dict[str, str]:
    return {**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": "/nonexistent"}


@contextmanager
def standalone_master() -> Iterator[str]:
    """The address of a master without workers."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = _program("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    master = subprocess.Popen(
        command, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    with master:
        try:
            assert master.stderr is not None
            _until(master.stderr, r"I have been elected leader")
            yield f"spark://127.0.0.1:{port}"
        finally:
            master.kill()


def _until(lines: IO[str], wanted: str) -> None:
    said = []
    for line in lines:
        said.append(line)
        if re.search(wanted, line):
            return
    raise AssertionError("".join(said))


@contextmanager
def worker_in_container(engine: docker.DockerClient, image: str, master: str) -> Iterator[Any]:
    """A worker with one core, which sees programs of this machine, to read, and nothing else of it but the network."""
    java = Path(os.path.realpath("/usr/bin/java"))
    programs = {"/usr", "/etc/alternatives", "/etc/java-17-openjdk", sys.prefix, sys.base_prefix, str(ROOT)}
    # an editable install leads elsewhere by its links
    programs |= {str(Path(os.path.realpath(ROOT / "amqpspec" / name)).parent) for name in ("pipeline", "model")}
    container = engine.containers.run(
        image, _program("worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0",
                        "--work-dir", "/tmp/work", master),
        detach=True, network_mode="host", entrypoint=[], user="root",
        environment={"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_HOME": str(java.parents[1])},
        volumes={place: {"bind": place, "mode": "ro"} for place in sorted(programs) if Path(place).exists()},
    )  # fmt: skip
    try:
        _until_logged(container, r"Successfully registered with master")
        yield container
    finally:
        container.remove(force=True)


def _until_logged(container: Any, wanted: str) -> None:
    said = b""
    for octets in container.logs(stream=True, follow=True):
        said += octets
        if re.search(wanted.encode(), said):
            return
    raise AssertionError(said.decode(errors="replace"))
