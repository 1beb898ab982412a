"""Where the time of one thread goes: each moment counts for the innermost of the watched functions that runs."""

from __future__ import annotations

import functools
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self


class Stopwatch:
    """Context manager: watches functions of the thread that enters it, `watch` by `watch`, until its end."""

    #: what the time goes to outside all watched functions
    REST = "the rest"

    def __init__(self) -> None:
        #: what the time went to -> seconds
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._stack = [self.REST]
        self._since = 0.0
        self._thread = 0
        self._watched: list[tuple[Any, str, Any]] = []

    def watch(self, owner: Any, name: str, label: str) -> None:
        """Count the time in the method or function `name` of `owner` for `label`."""
        original: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(original)
        def watched(*arguments: Any, **named: Any) -> Any:
            if threading.get_ident() != self._thread:
                return original(*arguments, **named)
            self._turn()
            self._stack.append(label)
            try:
                return original(*arguments, **named)
            finally:
                self._turn()
                self._stack.pop()

        self._watched.append((owner, name, original))
        setattr(owner, name, watched)

    def __enter__(self) -> Self:
        self._thread = threading.get_ident()
        self._since = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._turn()
        for owner, name, original in self._watched:
            setattr(owner, name, original)

    def _turn(self) -> None:
        now = time.perf_counter()
        self.seconds[self._stack[-1]] += now - self._since
        self._since = now
