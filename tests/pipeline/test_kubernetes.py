"""The example for Kubernetes: its files fit the schemas of Kubernetes, and so do the pods that Spark makes by them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.store import create_store
from tests.pipeline.stand_in import write_trace

FILE = Path(__file__).parents[2] / "examples" / "kubernetes" / "nightly.yaml"
VERSION = "1.31"


def objects() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(FILE.read_text(encoding="utf-8")))


def test_the_files_fit_the_schemas() -> None:
    kinds = [each["kind"] for each in objects()]
    assert kinds == ["ServiceAccount", "Role", "RoleBinding", "Service", "CronJob"]
    for each in objects():
        kubernetes_validate.validate(each, VERSION, strict=True)


class _Api(BaseHTTPRequestHandler):
    """As much of the interface of Kubernetes as Spark's driver needs to ask for executors; none of them ever runs."""

    pods: list[dict[str, Any]]

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].rpartition("/")[2]
        meta = {"name": name, "namespace": "nightly", "uid": "1", "resourceVersion": "1"}
        if name in ("pods", "configmaps", "persistentvolumeclaims"):
            self._answer(200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []})
        else:
            self._answer(200, {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "status": {"phase": "Running"}})

    def do_POST(self) -> None:
        made = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if made["kind"] == "Pod":
            self.pods.append(made)
        made["metadata"] |= {"uid": str(len(self.pods)), "resourceVersion": "1", "namespace": "nightly"}
        self._answer(201, made)

    def do_DELETE(self) -> None:
        self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    do_PATCH = do_PUT = do_DELETE

    def _answer(self, code: int, content: object) -> None:
        octets = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(octets)))
        self.end_headers()
        self.wfile.write(octets)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def api() -> Iterator[ThreadingHTTPServer]:
    _Api.pods = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def test_spark_asks_for_pods_that_can_be(api: ThreadingHTTPServer, tmp_path: Path) -> None:
    store = create_store(tmp_path / "store")
    add_trace(store, write_trace(tmp_path / "trace.jsonl", "b", {"s": [(1, b"m1")]}))
    (job,) = [each for each in objects() if each["kind"] == "CronJob"]
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    words = [re.sub(r"\$\(\w+\)", "nightly", word) for word in container["args"]]
    words = [word.replace("s3://BUCKET/amqpspec", str(store.root)) for word in words]
    at = next(n for n, word in enumerate(words) if word.startswith("--spark="))
    master = f"k8s://http://127.0.0.1:{api.server_port}"
    words[at] = f"--spark={master}"
    here = ["--conf=spark.driver.host=127.0.0.1", "--conf=spark.driver.port=0",
            "--conf=spark.driver.blockManager.port=0", "--conf=spark.amqpspec.executors.wait=4"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "amqpspec", *words, *here], env={**os.environ, "SPARK_CONF_DIR": "/nonexistent"},
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert f"no executor of {master} in 4 s" in done.stderr and "Traceback" not in done.stderr
    assert len(_Api.pods) == 4
    for pod in _Api.pods:
        kubernetes_validate.validate(pod, VERSION, strict=False)
        (of_pod,) = pod["spec"]["containers"]
        variables = {each["name"]: each for each in of_pod["env"]}
        assert of_pod["image"] == "IMAGE"
        assert variables["AWS_REGION"]["valueFrom"]["secretKeyRef"] == {"name": "amqpspec-store", "key": "AWS_REGION"}
        assert of_pod["resources"]["limits"]["memory"] == "3072Mi"
        assert pod["metadata"]["ownerReferences"][0]["name"] == "nightly"
