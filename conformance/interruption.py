"""SIGINT and SIGTERM end what is under way: it deletes what it has made, and tells what it has found.

Python raises the exception of a signal wherever the main thread is. In code whose exceptions are ignored (a callback of
the garbage collector, a finalizer) it is lost. So the signal is remembered as well, and what takes long asks whether
one came.

Where Python's own library takes a lock or lets it go, starts a process or enters a context, the exception would leave
the lock taken for ever, and whoever wants it waits as long. There it is raised a moment later.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import queue
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType


class Terminated(KeyboardInterrupt):
    """What SIGTERM raises."""


#: By signal, what it raises.
_RAISED: dict[signal.Signals, type[KeyboardInterrupt]] = {
    signal.SIGINT: KeyboardInterrupt,
    signal.SIGTERM: Terminated,
}

#: Seconds until a signal is raised that came at such a place.
_MOMENT = 0.005
#: The files of those places: what begins so.
_PLACES = (
    *(str(each.__file__) for each in (threading, queue, contextlib, weakref, logging, subprocess)),
    str(Path(concurrent.futures.__file__).parent), "<frozen importlib",
)  # fmt: skip
#: But there somebody waits, for as long as it may take.
_WAITS = frozenset({"_wait_for_tstate_lock", "_wait", "_try_wait", "communicate", "_communicate"})
#: There as well, once it has let its lock go, and knows of this variable.
_CONDITION, _HAS_LET_GO = threading.Condition.wait.__code__, "gotit"

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
        _came.append(_RAISED[signal.Signals(number)])
        go_on(frame)

    def go_on(frame: FrameType | None) -> None:
        if not _undisturbed:
            if _is_in_the_middle(frame):
                _call_in_a_moment(go_on)
            else:
                raise _came[-1]

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


def _is_in_the_middle(frame: FrameType | None) -> bool:
    if frame is None or not frame.f_code.co_filename.startswith(_PLACES):
        return False
    if frame.f_code is _CONDITION:
        return _HAS_LET_GO not in frame.f_locals
    return frame.f_code.co_name not in _WAITS


def _call_in_a_moment(call: Callable[[FrameType | None], None]) -> None:
    """By a timer, which somebody else may use as well: its time and handler are put back."""

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *before)
        if _came:
            call(frame)

    handler = signal.signal(signal.SIGALRM, end)
    before = signal.setitimer(signal.ITIMER_REAL, _MOMENT)


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
