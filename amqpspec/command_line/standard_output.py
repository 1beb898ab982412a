"""What is printed may be heard by nobody any more, as the pipe is closed or the disk is full: nothing else changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heard_or_not() -> Iterator[None]:
    """Whether anybody hears what is printed in this block makes no difference."""
    try:
        yield
    except OSError:
        be_silent()


def be_silent() -> None:
    """From now on the output goes nowhere; what is left of it is no trouble at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
