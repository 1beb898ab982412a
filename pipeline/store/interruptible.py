"""Calls of libraries that do not look at signals while they wait: SIGINT and SIGTERM end them all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import wraps
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def interruptible(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """The function carried out by a thread, where the main thread calls it: that one waits for it, and raises meanwhile
    what a signal says. Nobody waits for the thread then.
    """

    @wraps(function)
    def carried_out(*arguments: _Given.args, **options: _Given.kwargs) -> _Result:
        if threading.current_thread() is not threading.main_thread():
            return function(*arguments, **options)
        done: SimpleQueue[Future[_Result]] = SimpleQueue()

        def work() -> None:
            future: Future[_Result] = Future()
            try:
                future.set_result(function(*arguments, **options))
            except BaseException as error:  # noqa: BLE001 - it is raised where it belongs
                future.set_exception(error)
            done.put(future)

        threading.Thread(target=work, daemon=True).start()
        return done.get().result()

    return carried_out
