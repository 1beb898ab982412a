"""The files for CI that are copied from docs/ci: their syntax, and that what they call is there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
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
    words = [line.split(" ", 1)[0] for line in lines if not line.startswith(("#", " "))]
    assert words == ["ARG", "FROM", "ARG", "COPY", "RUN", "WORKDIR", "ENTRYPOINT"]
    (image,) = re.findall(r"^ARG BASE=python:(\d+\.\d+)-slim$", "\n".join(lines), re.MULTILINE)
    assert tuple(map(int, image.split("."))) >= (3, 11)
    assert lines[-1] == 'ENTRYPOINT ["amqpspec"]'


def test_the_action() -> None:
    """It installs itself, and calls what is there with what is given."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite" and action["inputs"]["target"]["required"]
    called = list(scripts(action))
    assert called[0] == 'python -m pip install "$GITHUB_ACTION_PATH"'
    named = set(re.findall(r"inputs\.([a-z]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert named == set(action["inputs"])
    assert all(step.get("uses") or step["shell"] == "bash" for step in action["runs"]["steps"])


@pytest.mark.parametrize(("deviations", "code"), [("", 1), ("accepted.toml", 0)])
def test_the_action_fails_as_the_run_does(tmp_path: Path, deviations: str, code: int) -> None:
    """Its script, as a shell runs it."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (tmp_path / "accepted.toml").write_text(
        '[[deviation]]\nidentity = "*|missing frame|basic.deliver"\nreason = "for a test"\nby-chance = true\n',
        encoding="utf-8",
    )
    (tmp_path / "amqpspec").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m amqpspec "$@"\n', encoding="utf-8")
    (tmp_path / "amqpspec").chmod(0o755)
    given = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
    given |= {"target": "embedded:multiple-zero-ignored", "gate": "promise", "deviations": deviations}
    given["arguments"] = "--only ACK-003 --sequences 0 --quiet --seed 1 --shrinking-time 0"
    step = action["runs"]["steps"][-1]
    environment = {
        name: re.sub(r"\$\{\{ inputs\.([a-z]+) \}\}", lambda found: given[found[1]], value)
        for name, value in step["env"].items()
    }
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]], cwd=tmp_path, check=False, capture_output=True, text=True,
        env=os.environ | environment | {"PATH": path, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert (tmp_path / "amqpspec-out" / "junit.xml").exists() and (tmp_path / "amqpspec-out" / "badge.svg").exists()


def test_the_component() -> None:
    head, job = yaml.safe_load_all((ROOT / "templates" / "amqpspec.yml").read_text(encoding="utf-8"))
    text = (ROOT / "templates" / "amqpspec.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\[\[ inputs\.([a-z]+) \]\]", text)) == set(head["spec"]["inputs"])
    (steps,) = job.values()
    defaults = {name: str(each["default"]) for name, each in head["spec"]["inputs"].items()}
    line = re.sub(r"\$\[\[ inputs\.([a-z]+) \]\]", lambda found: defaults[found[1]], steps["script"][-1])
    options = build_parser().parse_args(shlex.split(line)[1:])
    assert (options.command, str(options.gate)) == ("run", "known")
    assert str(options.junit) in steps["artifacts"]["reports"]["junit"]
