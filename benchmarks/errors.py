"""Why a measurement may say nothing."""

from __future__ import annotations


class Invalid(Exception):
    """What was measured did not conform, or not run to its end; one line."""
