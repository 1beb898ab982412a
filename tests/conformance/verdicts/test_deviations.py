"""The deviation file: what it may say, what makes it unusable, and what it does to a result."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.conformance.verdicts.deviations import DeviationFileError, read_deviations, with_known
from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult, TargetDescription
from amqpspec.model.promises.verdict import Failure, Shape

IDENTITY = "QUEUE-026|wrong argument|queue.declare-ok consumer-count"
ENTRY = f"""\
[[deviation]]
identity = "{IDENTITY}"
reason = "counts consumers that were cancelled"
"""


def written(directory: Path, text: str) -> Path:
    path = directory / "deviations.toml"
    path.write_text(text, encoding="utf-8")
    return path


def result(*failures: Failure) -> RunResult:
    found = tuple(FoundFailure(failure, "s") for failure in failures)
    return RunResult("amqpspec", "0", TargetDescription("t", "p", "v", "d"), 1, "lockstep", (), found, 1, 1)


def failure(requirement: str, defect: str = "") -> Failure:
    return Failure(
        requirement, Shape.WRONG_ARGUMENT, "queue.declare-ok consumer-count", "c", "o", ("a",), (), defect
    )


def test_entries(tmp_path: Path) -> None:
    text = ENTRY + '[[deviation]]\nidentity = "ACK-001|x|y"\nreason = "r"\nissue = "https://example.org/7"\n'
    assert read_deviations(written(tmp_path, text)) == {
        IDENTITY: "counts consumers that were cancelled",
        "ACK-001|x|y": "r (https://example.org/7)",
    }
    assert read_deviations(written(tmp_path, "# none yet\n")) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[deviation]\n", "deviations.toml: "),
        ("colour = 1\n", "something else than"),
        ('[deviation]\nidentity = "x"\n', "something else than"),
        ("deviation = [1]\n", "deviation 1 "),
        ('[[deviation]]\nidentity = "x"\n', "deviation 1 needs an identity and a reason"),
        ('[[deviation]]\nreason = "x"\n', "deviation 1 needs an identity and a reason"),
        ('[[deviation]]\nidentity = "x"\nreason = "  "\n', "deviation 1 needs an identity and a reason"),
        ('[[deviation]]\nidentity = 7\nreason = "r"\n', "deviation 1 needs an identity and a reason"),
        (ENTRY + ENTRY, "deviation 2 repeats"),
    ],
)
def test_what_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DeviationFileError) as caught:
        read_deviations(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DeviationFileError, match=r"missing\.toml: No such file"):
        read_deviations(tmp_path / "missing.toml")
    with pytest.raises(DeviationFileError, match="directory"):
        read_deviations(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9\n")
    with pytest.raises(DeviationFileError, match="not UTF-8"):
        read_deviations(tmp_path / "latin.toml")


def test_known_failures_do_not_fail_the_run() -> None:
    known = {IDENTITY: "why"}
    marked, unseen = with_known(result(failure("QUEUE-026")), known)
    assert (marked.failures[0].known, marked.exit_code, unseen) == ("why", 0, [])
    assert result(failure("QUEUE-026")).exit_code == 1


def test_only_the_very_same_failure_is_known() -> None:
    known = {IDENTITY: "why", "QUEUE-026|quorum-consumer-count": "the known defect"}
    marked, unseen = with_known(result(failure("QUEUE-027")), known)
    assert (marked.failures[0].known, marked.exit_code, unseen) == (None, 1, list(known))
    # a known defect has an identity of its own, and is no excuse by itself
    defective = failure("QUEUE-026", "quorum-consumer-count")
    assert with_known(result(defective), {IDENTITY: "why"})[0].exit_code == 1
    assert with_known(result(defective), known)[0].failures[0].known == "the known defect"
