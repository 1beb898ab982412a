"""SIGINT and SIGTERM end what is under way: it deletes what it has made, and tells what it has found.

Python raises the exception of a signal wherever the main thread is. In code whose exceptions are ignored (a callback of
the garbage collector, a finalizer) it is lost. So the signal is remembered as well, and what takes long asks whether
one came.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """What SIGTERM raises."""


#: By signal, what it raises.
_RAISED: dict[signal.Signals, type[KeyboardInterrupt]] = {
    signal.SIGINT: KeyboardInterrupt,
    signal.SIGTERM: Terminated,
}

_came: list[type[KeyboardInterrupt]] = []
_undisturbed: list[object] = []  # one for each block of `undisturbed` that is entered


def was_interrupted() -> bool:
    """Did a signal come, in this block of `ended_by_signals`?"""
    return bool(_came)


def times_interrupted() -> int:
    """How many signals came, in this block of `ended_by_signals`."""
    return len(_came)


def raise_if_interrupted() -> None:
    """Raise once more what a signal raised, in this block of `ended_by_signals`; nothing came: do nothing."""
    if _came:
        raise _came[-1]


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """A block that SIGTERM ends with `Terminated`, and SIGINT with `KeyboardInterrupt` where it is not ignored.

    In another thread than the first of a program, signals cannot be had; the block is carried out all the same.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raised = _RAISED[signal.Signals(number)]
        _came.append(raised)
        if not _undisturbed:
            raise raised

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [each for each in _RAISED if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, end) for each in heard}
    unraisable = sys.unraisablehook

    def unheard(lost: sys.UnraisableHookArgs) -> None:
        # what a signal raised is remembered, so a user need not read where it was lost
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            unraisable(lost)

    sys.unraisablehook = unheard
    try:
        yield
    finally:
        sys.unraisablehook = unraisable
        for each, handler in before.items():
            signal.signal(each, handler)
        _came.clear()


@contextmanager
def undisturbed() -> Iterator[None]:
    """A short block in which no signal raises anything; what comes in it is raised at its end.

    Blocking signals would not do: a mask belongs to one thread, and the system gives a signal to any thread that takes
    it. It is then still the first thread where Python raises.
    """
    block = object()
    _undisturbed.append(block)
    try:
        yield
    finally:
        _undisturbed.remove(block)
    raise_if_interrupted()
