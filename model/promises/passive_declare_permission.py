"""What a user has to be permitted for a passive declare (PERMISSION-003)."""

from __future__ import annotations

from enum import Enum


class PassiveDeclarePermission(Enum):
    #: nothing (RabbitMQ up to 4.2.5)
    NONE = "none"
    #: to configure what is declared (4.2.6 and 4.3.0)
    CONFIGURE = "configure"
    #: to configure it, or to write or to read (from 4.2.7 and 4.3.1 on)
    ANY = "any"
