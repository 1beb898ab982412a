"""Limits that both sides of a connection hold."""

from __future__ import annotations

from typing import NamedTuple


class Tune(NamedTuple):
    """Limits of connection.tune-ok: channels, octets per frame, seconds (0: none, none, no heartbeats)."""

    channel_max: int
    frame_max: int
    heartbeat: int
