"""A real HDFS on the loopback interface: Hadoop's NameNode and a DataNode, of a jar that Maven gets.

The rest of Hadoop's classes are among the jars of PySpark, which is of the same version.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.hdfs_files import HdfsFiles
from tests.patience import patience

_JARS = Path(pyspark.__file__).parent / "jars"
_SERVER = "org.apache.hadoop.hdfs.server"


class NoHdfs(Exception):
    """Why there is none here; one line."""


def _settings(directory: Path, address: str) -> str:
    said = {
        "fs.defaultFS": address, "dfs.replication": "1", "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.name.dir": f"file://{directory}/names", "dfs.datanode.data.dir": f"file://{directory}/data",
        **dict.fromkeys(("dfs.namenode.http-address", "dfs.datanode.address", "dfs.datanode.ipc.address",
                         "dfs.datanode.http.address"), "127.0.0.1:0"),
    }  # fmt: skip
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in said.items())
    return f"<configuration>{''.join(lines)}</configuration>"


def _classes(directory: Path) -> str:
    (client,) = _JARS.glob("hadoop-client-api-*.jar")
    version = client.stem.rpartition("-")[2]
    command = ["mvn", "--batch-mode", "--quiet", "dependency:copy", f"-DoutputDirectory={directory}",
               f"-Dartifact=org.apache.hadoop:hadoop-client-minicluster:{version}"]  # fmt: skip
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NoHdfs("Maven is not installed") from None
    if done.returncode != 0:
        raise NoHdfs(f"Maven did not get Hadoop {version}: {done.stdout[:200]!r}")
    logging = ("hadoop-client-*.jar", "slf4j-api-*.jar", "jcl-over-slf4j-*.jar", "log4j-*.jar")
    found = [*directory.glob("*.jar"), *(jar for names in logging for jar in _JARS.glob(names))]
    return ":".join([str(directory), *map(str, found)])


@contextmanager
def hdfs(directory: Path) -> Iterator[str]:
    """Its address, `hdfs://HOST:PORT`, with nothing in it. Raises `NoHdfs`."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"hdfs://127.0.0.1:{found.getsockname()[1]}"
    java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", _classes(directory)]
    for name in ("core-site.xml", "hdfs-site.xml"):  # each is read after defaults of its own
        (directory / name).write_text(_settings(directory, address))
    formatting = [*java, f"{_SERVER}.namenode.NameNode", "-format", "-nonInteractive"]
    subprocess.run(formatting, cwd=directory, capture_output=True, check=True)
    with ExitStack() as running:
        for name in ("namenode.NameNode", "datanode.DataNode"):
            log = running.enter_context((directory / f"{name}.log").open("wb"))
            server = subprocess.Popen([*java, f"{_SERVER}.{name}"], stdout=log, stderr=log)
            running.callback(running.enter_context(server).kill)
        _until_there(address)
        yield address


def _until_there(address: str) -> None:
    """A file can be written when a DataNode has told the NameNode of itself; neither tells anybody else."""
    files = HdfsFiles(f"{address}/first")
    end = time.monotonic() + patience(120)
    while True:
        try:
            files.put("file", b"1")
        except StoreError:
            assert time.monotonic() < end
            time.sleep(0.1)
        else:
            files.remove("file")
            return
