"""Limits that both sides of a connection hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tune:
    """Limits of connection.tune-ok: channels, octets per frame, seconds (0: none, none, no heartbeats)."""

    channel_max: int
    frame_max: int
    heartbeat: int
