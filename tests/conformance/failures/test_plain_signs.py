"""Signs of findings as what short programs go by; `tests/end_to_end/test_programs_of_findings.py` runs these."""

from __future__ import annotations

import pytest

from amqpspec.conformance.failures.plain_signs import known_by_signs
from amqpspec.conformance.failures.signs import Often, Signs
from amqpspec.conformance.failures.signs_of_failure import FailureKnownBy, KnownBy
from amqpspec.conformance.language.command_file import parse_command_file
from mkdocs_hooks import findings, shown

(FILE,) = parse_command_file("a.1 queue.declare q\nb.1 basic.publish q body=m2\n", "title")


def known(*lines: str, often: Often = Often.ALWAYS) -> tuple[FailureKnownBy, bool] | None:
    return known_by_signs([Signs(often, ("4.3",), lines)], FILE.commands)


def test_a_frame_that_comes_or_does_not() -> None:
    deliver = KnownBy("a.1", "basic.deliver", {"redelivered": "true", "body": "m2"})
    assert known("a.1 < Basic.Deliver redelivered=True body=b'm2'") == (FailureKnownBy(deliver, ()), True)
    wanted = "> b.1 basic.publish q body=m2", "no a.1 < Basic.GetOk"
    assert known(*wanted) == (FailureKnownBy(None, (KnownBy("a.1", "basic.get-ok", {}),)), False)


@pytest.mark.parametrize(
    "lines",
    [
        ("a.1 < Basic.Deliver", "a.1 < Basic.Deliver"),  # two frames
        ("> a.1 queue.declare q", "a.1 < Basic.Deliver"),  # not the last command
        ("> what is left in q", "Queue.DeclareOk message_count=0"),
        ("a.1 < Basic.Deliver expiration='60000'",),  # these programs do not look at that
        ("a.1 < Channel.Close used: -1 ms.",),
    ],
)
def test_what_they_do_not_tell(lines: tuple[str, ...]) -> None:
    assert known(*lines) is None


def test_what_takes_commands_that_wait_for_no_answer() -> None:
    assert known("a.1 < Basic.Deliver", often=Often.BY_CHANCE) is None


def test_versions_that_show_it_in_other_ways() -> None:
    one, other = (Signs(Often.ALWAYS, ("4.3",), (f"a.1 < Basic.{name}",)) for name in ("GetOk", "GetEmpty"))
    assert known_by_signs([one, other], FILE.commands) is None


def test_many_findings_have_a_short_program() -> None:
    programs = [each.program for finding in findings() for each in shown(finding)]
    short = [each for each in programs if len(each.splitlines()) < 100]
    assert len(short) >= 30
    for each in short:
        compile(each, "program", "exec")
