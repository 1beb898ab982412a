"""The deviation file: what it may say, what makes it unusable, what it does to a result, and what it is made of."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from amqpspec.conformance.verdicts.deviations import (
    Deviation,
    DeviationFileError,
    problem_of,
    read_deviations,
    with_deviations,
    with_problems,
)
from amqpspec.conformance.verdicts.deviations_to_write import as_toml, deviations_of, update
from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult, TargetDescription
from amqpspec.conformance.verdicts.known_behaviour import DefectOutcome
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.promises.versions import versions

IDENTITY = "QUEUE-026|wrong argument|queue.declare-ok consumer-count"
ENTRY = f"""\
[[deviation]]
identity = "{IDENTITY}"
reason = "counts consumers that were cancelled"
"""
#: A known defect that shows by chance.
CHANCE = "cancel-crossing-deletion-breaks"
TODAY = date(2026, 11, 23)
RABBITMQ_4_3 = TargetDescription("t", "RabbitMQ", "4.3.6", "rabbitmq-4.3")


def written(directory: Path, text: str) -> Path:
    path = directory / "deviations.toml"
    path.write_text(text, encoding="utf-8")
    return path


def result(
    *found: Failure | FoundFailure,
    target: TargetDescription = RABBITMQ_4_3,
    defects: tuple[DefectOutcome, ...] = (),
    decided: frozenset[str] = frozenset(),
) -> RunResult:
    failures = tuple(each if isinstance(each, FoundFailure) else FoundFailure(each, "s") for each in found)
    return RunResult(
        "amqpspec", "0", target, 1, "lockstep", (), failures, 1, 1, defects=defects, decided=decided
    )


def failure(requirement: str, defect: str = "") -> Failure:
    return Failure(
        requirement, Shape.WRONG_ARGUMENT, "queue.declare-ok consumer-count", "c", "o", ("a",), (), defect
    )


def test_entries(tmp_path: Path) -> None:
    text = (
        ENTRY
        + '[[deviation]]\nidentity = "ACK-001|x|y"\nreason = "r"\nissue = "https://example.org/7"\n'
        + '[[deviation]]\ndefect = "quorum-consumer-count"\nreason = "r"\nproduct = "RabbitMQ"\n'
        + 'versions = "4.3.0 to 4.3.6"\nexpires = 2027-03-01\nshown-by = "scenario X"\nby-chance = true\n'
    )
    assert read_deviations(written(tmp_path, text)) == (
        Deviation(IDENTITY, "counts consumers that were cancelled"),
        Deviation("ACK-001|x|y", "r", "https://example.org/7"),
        Deviation(
            "QUEUE-026|quorum-consumer-count", "r", "", "RabbitMQ", versions("4.3.0", "4.3.6"), date(2027, 3, 1),
            "scenario X", True,
        ),
    )  # fmt: skip
    assert read_deviations(written(tmp_path, "# none yet\n")) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[deviation]\n", "deviations.toml: "),
        ("colour = 1\n", "something else than"),
        ('[deviation]\nidentity = "x"\n', "something else than"),
        ("deviation = [1]\n", "deviation 1 is not a table"),
        ('[[deviation]]\nidentity = "x"\n', "deviation 1 needs an identity and a reason"),
        ('[[deviation]]\nreason = "x"\n', "deviation 1 needs an identity and a reason"),
        ('[[deviation]]\nidentity = "x"\nreason = "  "\n', "deviation 1 needs an identity and a reason"),
        ('[[deviation]]\nidentity = 7\nreason = "r"\n', "deviation 1 needs an identity and a reason"),
        (ENTRY + 'defect = "x"\n', "deviation 1 needs an identity and a reason"),
        (ENTRY + 'expires = "soon"\n', "deviation 1 expires is not a date"),
        (ENTRY + "expires = 2027-03-01T00:00:00\n", "deviation 1 expires is not a date"),
        (ENTRY + "by-chance = 1\n", "deviation 1 by-chance is not true or false"),
        (ENTRY + 'versions = "new"\n', "deviation 1 versions 'new' is not like"),
        (ENTRY + 'colour = "x"\n', "deviation 1 has 'colour', which is none of"),
        (ENTRY + ENTRY, "deviation 2 repeats"),
        ('[[deviation]]\nidentity = "*|*"\nreason = "r"\n', "deviation 1 accepts everything"),
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


def test_listed_failures_do_not_fail_the_run() -> None:
    marked = with_deviations(result(failure("QUEUE-026")), [Deviation(IDENTITY, "why")])
    assert (marked.failures[0].known, marked.exit_code) == ("why", 0)
    assert result(failure("QUEUE-026")).exit_code == 1


def test_only_the_very_same_failure_is_listed() -> None:
    listed = [Deviation(IDENTITY, "why"), Deviation("QUEUE-026|quorum-consumer-count", "the known defect")]
    marked = with_deviations(result(failure("QUEUE-027")), listed)
    assert (marked.failures[0].known, marked.exit_code) == (None, 1)
    # a known defect has an identity of its own, and is no excuse by itself
    defective = failure("QUEUE-026", "quorum-consumer-count")
    assert with_deviations(result(defective), listed[:1]).exit_code == 1
    assert with_deviations(result(defective), listed).failures[0].known == "the known defect"


@pytest.mark.parametrize(
    ("pattern", "is_excused"),
    [
        ("QUEUE-026|*", True),
        ("QUEUE-*|wrong argument|*", True),
        ("*|wrong argument|queue.declare-ok consumer-count", True),
        ("QUEUE-027|*", False),
        ("QUEUE-02|*", False),
        ("*|missing frame|*", False),
        ("*|wrong argument|queue.declare-ok", False),
        # nothing but the asterisk is more than itself
        ("QUEUE.026|*", False),
    ],
)
def test_an_asterisk_stands_for_any_text(pattern: str, is_excused: bool) -> None:
    marked = with_deviations(result(failure("QUEUE-026")), [Deviation(pattern, "why")])
    assert (marked.failures[0].known, marked.exit_code) == (("why", 0) if is_excused else (None, 1))


def test_the_very_identity_goes_before_a_pattern() -> None:
    listed = [Deviation("QUEUE-026|*", "all of it"), Deviation(IDENTITY, "this")]
    assert with_deviations(result(failure("QUEUE-026")), listed).failures[0].known == "this"


@pytest.mark.parametrize(
    ("changes", "is_excused"),
    [
        ({"product": "rabbitmq"}, True),
        ({"product": "LavinMQ"}, False),
        ({"versions": versions("4.3.0", "4.3.6")}, True),
        ({"versions": versions("4.3.0", "4.3.5")}, False),
    ],
)
def test_an_entry_is_for_its_product_and_versions(changes: dict[str, object], is_excused: bool) -> None:
    deviation = Deviation(IDENTITY, "why", **changes)  # type: ignore[arg-type]
    assert (with_deviations(result(failure("QUEUE-026")), [deviation]).exit_code == 0) is is_excused


# -------------------------------------------------------------------------------- entries that must not stay

DEFECT = "QUEUE-026|quorum-consumer-count"
SEEN = DefectOutcome("quorum-consumer-count", 1, 0)
GONE = DefectOutcome("quorum-consumer-count", 0, 3)
NOT_TESTED = DefectOutcome("quorum-consumer-count", 0, 0)


@pytest.mark.parametrize(
    ("deviation", "broker", "problem"),
    [
        (Deviation("NO-001|x|y", "r"), result(), "there is no requirement 'NO-001'"),
        (Deviation("|no-such", "r"), result(), "there is no known defect 'no-such'"),
        (Deviation("NO-*|x|y", "r"), result(), "there is no requirement 'NO-*'"),
        (Deviation("*|wrong argument|x", "r"), result(), None),
        (Deviation("QUEUE-*|*", "r", shown_by="scenario X"), result(failure("QUEUE-026")), None),
        (
            Deviation("ACK-*|*", "r", shown_by="scenario X"),
            result(failure("QUEUE-026"), decided=frozenset({"scenario X"})), "scenario X did not show it",
        ),
        (Deviation(IDENTITY, "r", expires=TODAY), result(failure("QUEUE-026")), "it expired on 2026-11-23"),
        (Deviation(IDENTITY, "r", expires=date(2026, 11, 24)), result(failure("QUEUE-026")), None),
        # nobody knows what would have shown it
        (Deviation(IDENTITY, "r"), result(), None),
        (Deviation(IDENTITY, "r", shown_by="scenario X"), result(), None),
        (
            Deviation(IDENTITY, "r", shown_by="scenario X"), result(decided=frozenset({"scenario X"})),
            "scenario X did not show it",
        ),
        (
            Deviation(IDENTITY, "r", shown_by="scenario X", by_chance=True),
            result(decided=frozenset({"scenario X"})), None,
        ),
        (
            Deviation(IDENTITY, "r", product="other", shown_by="scenario X"),
            result(decided=frozenset({"scenario X"})), None,
        ),
        (Deviation(DEFECT, "r"), result(defects=(GONE,)), "what would have shown it did not"),
        (Deviation(DEFECT, "r", by_chance=True), result(defects=(GONE,)), None),
        (Deviation(DEFECT, "r"), result(defects=(NOT_TESTED,)), None),
        (
            Deviation(DEFECT, "r"),
            result(failure("QUEUE-026", "quorum-consumer-count"), defects=(SEEN,)), None,
        ),
    ],
)  # fmt: skip
def test_what_must_not_stay(deviation: Deviation, broker: RunResult, problem: str | None) -> None:
    assert problem_of(deviation, broker, TODAY) == problem
    judged = with_problems(with_deviations(broker, [deviation]), [deviation], TODAY)
    assert judged.exit_code == (0 if problem is None else 1)


# ------------------------------------------------------------------------------------------- files to be made


def test_a_file_that_is_made_makes_the_run_green(tmp_path: Path) -> None:
    odd = Failure("ACK-001", Shape.UNEXPECTED, 'a "quoted" \\ back\x7fslash', "c", "o", (), ())
    run = result(
        FoundFailure(failure("QUEUE-027"), "scenario QUEUE-027 classic"),
        FoundFailure(odd, "search 4"),
        FoundFailure(failure("QUEUE-026", "quorum-consumer-count"), "search 5"),
        FoundFailure(failure("QUEUE-028"), "scenario QUEUE-028", known="listed already"),
        defects=(SEEN, DefectOutcome("cancel-crossing-deletion-breaks", 0, 1)),
    )
    read = read_deviations(written(tmp_path, as_toml(deviations_of(run, TODAY))))
    assert [(each.identity.split("|")[0], each.shown_by, each.by_chance) for each in read[:3]] == [
        ("QUEUE-027", "scenario QUEUE-027 classic", False), ("ACK-001", "", True), ("QUEUE-026", "", False),
    ]  # fmt: skip
    marked = with_problems(with_deviations(run, read), read, TODAY)
    assert (marked.exit_code, marked.problems) == (0, ())


@pytest.mark.parametrize("written_as", ["2.1.0", "2.1.0 to 2.4.9"])
def test_an_entry_that_is_kept_keeps_its_bounds(tmp_path: Path, written_as: str) -> None:
    text = '[[deviation]]\nidentity = "ACK-001|x|y"\nreason = "r"\nproduct = "B"\n'
    bounded = read_deviations(written(tmp_path, f'{text}versions = "{written_as}"\nexpires = 2027-03-01\n'))
    assert bounded[0].versions is not None
    assert read_deviations(written(tmp_path, as_toml(bounded))) == bounded


def test_known_defects_that_did_not_show_are_listed_unless_they_would_have() -> None:
    missed = (DefectOutcome(CHANCE, 0, 3), NOT_TESTED, GONE)
    listed = deviations_of(result(defects=missed[:2]), TODAY)
    assert [(each.defect, each.by_chance) for each in listed] == [(CHANCE, True), ("quorum-consumer-count", False)]
    assert deviations_of(result(defects=missed[2:]), TODAY) == [], "such an entry would fail the next run"
    # of another product nobody knows that it has them
    assert deviations_of(result(target=TargetDescription("t", "p", "1", "rabbitmq-4.3"), defects=missed), TODAY) == []


def test_what_shows_by_chance_fails_no_run_where_it_does_not_show() -> None:
    entry = Deviation(f"{KNOWN_DEFECTS[CHANCE].requirement}|{CHANCE}", "r")
    assert problem_of(entry, result(defects=(DefectOutcome(CHANCE, 0, 3),)), TODAY) is None


def test_what_is_to_change() -> None:
    stale, kept = Deviation("NO-001|x|y", "r"), Deviation(IDENTITY, "r")
    run = with_deviations(result(failure("QUEUE-026"), failure("QUEUE-027")), [stale, kept])
    said = update([stale, kept], run, TODAY)
    assert "# take out NO-001|x|y: there is no requirement 'NO-001'" in said
    assert 'identity = "QUEUE-027|' in said
    assert "QUEUE-026" not in said
    assert update([kept], with_deviations(result(failure("QUEUE-026")), [kept]), TODAY) == ""
