"""Signs and failures as what short programs go by; `tests/end_to_end/test_programs_of_findings.py` runs these."""

from __future__ import annotations

import pytest

from amqpspec.conformance.failures.shows_by import COME, by_known, by_signs
from amqpspec.conformance.failures.signs import Often, Signs
from amqpspec.conformance.failures.signs_of_failure import FailureKnownBy, KnownBy
from amqpspec.conformance.language.command_file import parse_command_file

(FILE,) = parse_command_file("a.1 queue.declare q\nb.1 basic.publish q body=m2\na.1 basic.get q\n", "title")
DELIVERED = "a.1 <Basic.Deliver(['consumer_tag=t', 'delivery_tag=1', 'redelivered=True'])> <BasicProperties> body=b'm2'"
END = "b.0 <(end of the TCP connection: StreamLostError: ('Transport indicated EOF',)"
GOT = "b.1 <Basic.GetOk(['delivery_tag=10'])> <BasicProperties([\"headers={'text': 'v', 'n': 1}\"])> body=b'm1'"


def is_seen(came: list[str], *signs: str) -> bool:
    (way,) = by_signs([Signs(Often.ALWAYS, ("4.3",), signs)], FILE.commands).ways
    assert len(way.stages) == 1
    program: dict[str, object] = {"came": came}
    exec(f"import re\n{COME}\nseen = {way.stages[0].expression()}", program)
    return bool(program["seen"])


@pytest.mark.parametrize(
    ("signs", "seen"),
    [
        (("a.1 < Basic.Deliver",), True),
        (("a.1 < Basic.Deliver redelivered=True body=b'm2'",), True),
        (("a.1 < Basic.Deliver redelivered=False",), False),
        (("b.1 < Basic.GetOk delivery_tag=1",), False),  # it is 10
        (("b.1 < Basic.GetOk headers={'text': 'v',",), True),
        (("a.1 < Basic.Deliver", "b.1 < Basic.GetOk"), True),
        (("b.1 < Basic.GetOk", "a.1 < Basic.Deliver"), False),  # the other way round
        (("b.1 < Basic.GetOk", "no a.1 < Basic.Deliver"), True),  # not after it
        (("no a.1 < Basic.Cancel",), True),
        (("no < Basic.Deliver",), False),  # on any channel
        (("a.1 < Basic.Deliver redelivered=True", "body=b'm2'"), True),  # one line
        (("> b.1 basic.publish q body=m2", "a.1 < Basic.Deliver"), True),
        (("b.0 < (end of the TCP connection:",), True),
        (("a.0 < (end of the TCP connection:",), False),
    ],
)
def test_what_is_seen(signs: tuple[str, ...], seen: bool) -> None:
    assert is_seen([DELIVERED, GOT, END], *signs) is seen


def test_what_comes_before_a_command_that_is_named_does_not_count() -> None:
    signs = ["> a.1 queue.declare q", "a.1 < Basic.Cancel", "> a.1 basic.get q", "a.1 < Basic.GetOk"]
    (way,) = by_signs([Signs(Often.ALWAYS, ("4.3",), tuple(signs))], FILE.commands).ways
    assert [(each.place, each.lines[0].method) for each in way.stages] == [(0, "Basic.Cancel"), (2, "Basic.GetOk")]
    with pytest.raises(ValueError, match="no command is what the sign"):
        by_signs([Signs(Often.ALWAYS, ("4.3",), ("> a.1 basic.ack", "a.1 < Basic.GetOk"))], FILE.commands)


def test_what_is_left_in_a_queue_is_looked_at() -> None:
    signs = Signs(Often.ALWAYS, ("4.3",), ("> what is left in q", "Queue.DeclareOk message_count=0"))
    shown = by_signs([signs], FILE.commands)
    assert list(map(str, shown.commands[len(FILE.commands) :])) == ["z.1 queue.declare q passive"]
    assert shown.ways[0].stages[0].place == len(FILE.commands)
    signs = Signs(Often.ALWAYS, ("4.3",), ("no Basic.GetOk body=b'm2'",))
    assert [each.method for each in by_signs([signs], FILE.commands).commands[-2:]] == ["queue.declare", "basic.get"]


def test_a_failure_shows_by_what_comes_after_its_command() -> None:
    deliver = KnownBy("a.1", "basic.deliver", {"redelivered": "true", "body": "m2"})
    shown = by_known(FailureKnownBy(deliver, ()), FILE.commands)
    assert [(each.place, each.lines[0].words) for each in shown.ways[0].stages] == [
        (2, ("Basic.Deliver", "redelivered=True", "body=b'm2'"))
    ]
    missing = by_known(FailureKnownBy(None, (deliver,)), FILE.commands)
    assert missing.waits_for_nothing and missing.ways[0].stages[0].expression().startswith("not any(")
    either = by_known(FailureKnownBy(deliver, (KnownBy("a.1", "basic.return", {}),)), FILE.commands)
    assert [code for code, _ in either.told] == [1, 0] and either.otherwise == 2
