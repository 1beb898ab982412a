"""The files for CI that are copied from docs/ci: their syntax, and that what they call is there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from amqpspec.command_line.options import build_parser

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "docs" / "ci").glob("*.yml"))


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / "docs" / "ci" / name).read_text(encoding="utf-8"))


def scripts(node: Any) -> Iterator[str]:
    """The lines that are run, wherever they stand."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "run":
                yield str(value)
            elif key == "script":
                yield from map(str, value)
            else:
                yield from scripts(value)
    elif isinstance(node, list):
        for each in node:
            yield from scripts(each)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_what_is_called_is_there(file: Path) -> None:
    called = list(scripts(read(file.name)))
    assert any(line.startswith('pip install "$AMQPSPEC"') for line in called)
    (command,) = (line for line in called if line.startswith("amqpspec "))
    words = shlex.split(re.sub(r"\$\{\{.*?\}\}|\$\w+", "7", command))
    options = build_parser().parse_args(words[1:])  # a wrong option would end this
    assert (options.command, str(options.gate), options.seed) == ("run", "known", None)
    assert str(options.junit).startswith(str(options.out))


def test_github_actions() -> None:
    workflow = read("github-actions.yml")
    # YAML 1.1 takes `on` for a truth value, and so does GitHub not
    assert set(workflow) == {"name", True, "env", "jobs"}
    (job,) = workflow["jobs"].values()
    assert "runs-on" in job and job["services"]["broker"]["ports"] == ["5672:5672"]
    assert all(("uses" in step) != ("run" in step) for step in job["steps"])
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)


def test_gitlab() -> None:
    (job,) = (value for key, value in read("gitlab-ci.yml").items() if key != "variables")
    assert job["services"][0]["alias"] == "broker" and any("amqp://broker:5672/" in line for line in job["script"])
    assert job["artifacts"]["reports"]["junit"] in job["script"][-1]
    assert job["artifacts"]["when"] == "always"


def test_container_recipe() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    words = [line.split(" ", 1)[0] for line in lines if not line.startswith("#")]
    assert words == ["FROM", "COPY", "RUN", "WORKDIR", "ENTRYPOINT"]
    (image,) = re.findall(r"^FROM python:(\d+\.\d+)-slim$", "\n".join(lines), re.MULTILINE)
    assert tuple(map(int, image.split("."))) >= (3, 11)
    assert lines[-1] == 'ENTRYPOINT ["amqpspec"]'
