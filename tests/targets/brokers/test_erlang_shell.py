"""A virtual machine of Erlang in the broker's container evaluates what it is told, and its end is an error."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from amqpspec.model.protocol.methods import OperatorAction
from amqpspec.targets.brokers.docker_broker import DockerBroker
from amqpspec.targets.brokers.erlang_shell import ErlangShell
from amqpspec.targets.brokers.operator import nobody
from amqpspec.targets.errors import OperatorError

#: The code that is evaluated has its process's group leader in the virtual machine that asks: that one ends.
END = "rpc:call(node(group_leader()), erlang, halt, [])."


def shell_of(broker: DockerBroker) -> ErlangShell:
    return ErlangShell(broker._running())


def test_values_and_errors_are_answered_line_by_line(rabbitmq_4_3: DockerBroker) -> None:
    shell = shell_of(rabbitmq_4_3)
    try:
        assert shell.evaluate("6 * 7.") == "42"
        assert shell.evaluate('<<"two  spaces">>,\n [1, 2].') == "[1,2]"
        assert shell.evaluate("rabbit_vhost:list_names().") == '[<<"/">>]'
        assert "syntax error" in shell.evaluate("6 *")
        assert "no_such_thing" in shell.evaluate("exit(no_such_thing).")
        assert shell.evaluate("done.") == "done"
    finally:
        shell.close()


def test_several_threads_each_get_their_own_answer(rabbitmq_4_3: DockerBroker) -> None:
    shell = shell_of(rabbitmq_4_3)
    try:
        with ThreadPoolExecutor(8) as threads:
            answers = threads.map(lambda number: shell.evaluate(f"{number} * 2."), range(100))
            assert list(answers) == [str(2 * number) for number in range(100)]
    finally:
        shell.close()


def test_an_end_is_told(rabbitmq_4_3: DockerBroker) -> None:
    shell = shell_of(rabbitmq_4_3)
    try:
        with pytest.raises(OperatorError, match=r"Erlang beside the broker"):
            shell.evaluate(END)
    finally:
        shell.close()


def test_an_operator_whose_virtual_machine_has_ended_has_another_the_next_time(rabbitmq_4_3: DockerBroker) -> None:
    operator = rabbitmq_4_3.operator()
    assert operator is not None
    made = [OperatorAction("operator", 0, "operator.add-vhost", {"virtual_host": "amqpspec-shell"}, sent=True)]
    with pytest.raises(OperatorError):
        rabbitmq_4_3._ready_shell().evaluate(END)
    with pytest.raises(OperatorError, match=r"Erlang beside the broker"):
        operator.carry_out(made, nobody)
    operator.carry_out(made, nobody)
    operator.undo(made)
