"""Short programs: what they have in common."""

from __future__ import annotations

import statistics

from amqpspec.conformance.failures.short_program import in_loops, names_of
from mkdocs_hooks import findings, shown


def test_lines_that_are_alike_become_a_loop() -> None:
    lines = [f'a1.publish(q, b"m{n}")' for n in range(1, 6)]
    assert list(in_loops(["x", *lines, "y"])) == [
        "x", "for n in range(1, 6):", '    a1.publish(q, f"m{n}".encode())', "y"
    ]  # fmt: skip
    assert list(in_loops(["same()"] * 4)) == ["for n in range(1, 5):", "    same()"]
    assert list(in_loops(["ack(7)", "ack(8)", "ack(9)", "ack(10)"])) == ["for n in range(7, 11):", "    ack(n)"]
    few, other = ["ack(1)", "ack(2)"], ["ack(1)", "ack(3)", "ack(5)", "ack(7)"]
    assert list(in_loops(few)) == few and list(in_loops(other)) == other


def test_only_numbers_of_python_and_of_texts_become_n() -> None:
    in_names = [f"a1.declare(queue=q{n})" for n in range(1, 6)]
    assert list(in_loops(in_names)) == in_names
    assert list(in_loops(["a1.commit()", "a2.commit()"])) == ["a1.commit()", "a2.commit()"]
    assert list(in_loops([f'f(b"m1-{n}{{")' for n in range(1, 5)])) == [
        "for n in range(1, 5):", '    f(f"m1-{n}{{".encode())'
    ]  # fmt: skip
    assert list(in_loops([f'f("m{n}-{n}", {n})' for n in range(2, 6)])) == [
        "for n in range(2, 6):", '    f(f"m{n}-{n}", n)'
    ]  # fmt: skip
    zeros = [f'f("m0{n}")' for n in range(1, 6)]
    assert list(in_loops(zeros)) == zeros


def test_no_two_names_have_one_variable() -> None:
    variables = names_of(["d.1", "d_1", "a-b", "a.b", "name_1", "n", "own", "URL"], [])
    assert len(set(variables.values())) == len(variables)
    assert not {"n", "own", "URL"} & set(variables.values())


def test_names_of_the_broker_are_variables() -> None:
    assert names_of(["q", "a", "d.1", "class", "came"], ["a"]) == {
        "q": "q", "a": "name_1", "d.1": "d_1", "class": "name_3", "came": "name_4"
    }  # fmt: skip


def test_findings_have_short_programs() -> None:
    programs = [each.program for finding in findings() for each in shown(finding)]
    for each in programs:
        compile(each, "program", "exec")
    lengths = [len(each.splitlines()) for each in programs]
    by_calls = [number for number, each in zip(lengths, programs, strict=True) if "_impl" not in each and number < 100]
    assert len(by_calls) > 65 and statistics.median(by_calls) <= 42
    assert sum(number > 100 for number in lengths) < 10
