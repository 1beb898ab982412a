"""Errors of usage that only show after parsing."""

from __future__ import annotations


class UsageError(Exception):
    """Something that the user asked for cannot be; one line."""
