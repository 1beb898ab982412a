"""Whoever deletes the folder `model/defects` has a whole, tested model left, and an embedded broker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The tests of the model itself, and those of the broker that serves it.
TESTS = ("tests/model", "tests/targets/embedded")


def test_the_law_and_the_embedded_broker_need_no_known_defects() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.law_alone", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-10_000:]
    assert "passed" in done.stdout


def test_no_module_of_the_law_names_the_folder() -> None:
    """Neither an import nor a comment: only `model/defects` itself and the public interface do."""
    law = (path for path in (ROOT / "model").rglob("*.py") if "defects" not in path.relative_to(ROOT).parts)
    named = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in law
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if "model.defects" in line or "model/defects" in line
    ]
    assert named == []
