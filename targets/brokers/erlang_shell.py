"""A virtual machine of Erlang that stays beside a RabbitMQ in its container, and has its node evaluate expressions.

`rabbitmqctl eval` starts a virtual machine for each call, which takes a second of the processor; this one is started
once, and a call takes some milliseconds.
"""

from __future__ import annotations

import secrets
import threading
from typing import Any

from docker.errors import DockerException
from docker.models.containers import Container
from docker.utils.socket import frames_iter

from amqpspec.targets.brokers.readiness import BrokerUnavailable
from amqpspec.targets.errors import OperatorError

#: Reads an expression from each line, and answers with a line; it ends with its input. Of a node that does not answer
#: within 55 s the answer is an error. The function that reads the next line is called by its own name.
_PROGRAM = r"""
    Node = case init:get_plain_arguments() of
        [Named | _] -> list_to_atom(Named);
        [] -> list_to_atom("rabbit@" ++ element(2, inet:gethostname()))
    end,
    Evaluate = fun(Line) ->
        {ok, Tokens, _} = erl_scan:string(Line),
        {ok, Expressions} = erl_parse:parse_exprs(Tokens),
        {value, Value, _} = rpc:call(Node, erl_eval, exprs, [Expressions, []], 55000),
        Value
    end,
    Loop = fun Next() ->
        case io:get_line("") of
            Line when is_list(Line) -> io:format("~0p~n", [catch Evaluate(Line)]), Next();
            _ -> halt()
        end
    end,
    Loop().
"""

#: The cookie that lets it in is in the home directory of RabbitMQ's user. $1: a name that no other node has. What
#: follows the program is for Erlang as well: `-setcookie`, and behind `-extra` the name of the node.
_START = """
export HOME=/var/lib/rabbitmq name=$1 program=$2
shift 2
exec erl -noshell -hidden -sname "$name" -eval "$program" "$@"
"""

#: Seconds for the virtual machine to start and to evaluate something, and for any other answer.
_TIMEOUT = 60.0


class ErlangShell:
    """Evaluates one expression at a time, for any number of threads. Ends when it is closed, or with its container.

    `node`: the name of RabbitMQ's node, where it is not that of the machine, with the `cookie` of its cluster.
    Raises BrokerUnavailable where the container has no Erlang, or does not take commands.
    """

    def __init__(self, container: Container, node: str = "", cookie: str = "") -> None:
        self._lock = threading.Lock()
        name = f"amqpspec-{secrets.token_hex(6)}"
        program = " ".join(_PROGRAM.split())
        others = [*(("-setcookie", cookie) if cookie else ()), *(("-extra", node) if node else ())]
        command = ["sh", "-c", _START, "sh", name, program, *others]
        api = container.client.api
        try:
            execution = api.exec_create(container.id, command, stdin=True)
            self._stream: Any = api.exec_start(execution["Id"], socket=True)
            self._stream._sock.settimeout(_TIMEOUT)
        except (DockerException, OSError) as error:
            raise BrokerUnavailable(f"cannot start Erlang beside the broker: {error}") from error
        self._output = frames_iter(self._stream, tty=False)
        self._unread = b""

    def evaluate(self, expressions: str) -> str:
        """What the value of the last expression is, as Erlang prints it; of one that fails, the error.

        Raises OperatorError when there is no answer.
        """
        with self._lock:
            try:
                self._stream._sock.sendall(expressions.replace("\n", " ").encode() + b"\n")
                return self._line()
            except OSError as error:
                raise OperatorError(f"Erlang beside the broker does not answer: {error}") from error

    def close(self) -> None:
        """The virtual machine ends when its input does."""
        self._stream._sock.close()
        self._stream.close()

    def _line(self) -> str:
        while b"\n" not in self._unread:
            _, data = next(self._output, (0, b""))
            if not data:
                said = self._unread.decode("utf-8", errors="replace")
                raise OperatorError(f"Erlang beside the broker has ended: {' '.join(said.split())[:300]}")
            self._unread += data
        line, self._unread = self._unread.split(b"\n", 1)
        return line.decode("utf-8", errors="replace")
