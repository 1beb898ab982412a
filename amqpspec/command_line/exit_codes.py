"""Exit codes, fixed so that scripts can rely on them."""

from __future__ import annotations

CONFORMS = 0
DEVIATES = 1
USAGE = 2
TARGET_LOST = 3
INCONCLUSIVE = 4
TRACE_UNREADABLE = 5
INTERRUPTED = 130
TERMINATED = 143
