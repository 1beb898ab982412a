"""Why a target could not be used. Each message is one line, names the target, and never holds a password."""

from __future__ import annotations


class TargetError(Exception):
    """A target cannot be reached or does not let us in."""


class TargetUnreachable(TargetError):
    """No connection, or it was lost or silent, or the peer does not speak AMQP 0-9-1."""


class ServesNoMore(TargetUnreachable):
    """It answers, and refuses each fresh connection where it served one before: a part of it is gone."""


class AccessRefused(TargetError):
    """The broker does not accept the user name and password."""


class OpenRefused(TargetError):
    """The broker accepts the user but not the connection (tuning, limits, permission on the virtual host)."""


class NotYetOpen(OpenRefused):
    """The broker forces connections to end (320): what they are for is not there yet, or not any more."""


class VhostNotFound(OpenRefused):
    """The broker has no such virtual host."""


class OperatorError(TargetError):
    """The operator's command failed."""


class OperatorMissing(OperatorError):
    """Only the operator of the broker could do this, and the target has none."""
