"""What was written on the command line with a user and a password in it is never shown, whatever was meant by it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator

from amqpspec.targets.address import login_in

#: What stands before the "@" of an argument, in each form in which a message may show it.
_logins: set[str] = set()


def remember_logins(arguments: Iterable[str]) -> None:
    for argument in arguments:
        # behind an option, behind a kind of target
        for text in (argument, argument.partition("=")[2], argument.partition(":")[2]):
            _logins.update(filter(None, _forms(login_in(text))))


def without_logins(message: str) -> str:
    """The message with what stands for user and password hidden."""
    for login in sorted(_logins, key=len, reverse=True):
        message = re.sub(re.escape(f"{login}@"), "***@", message, flags=re.IGNORECASE)
    return message


def complain(message: str) -> None:
    """One line for the user, on the standard error."""
    print("amqpspec: " + " ".join(without_logins(message).split()), file=sys.stderr)


def _forms(login: str) -> Iterator[str]:
    as_path = re.sub(r"/(\./)*/*", "/", login)
    # a place is taken apart at its last colon
    for form in (login, as_path, login.rpartition(":")[2]):
        for text in (form, " ".join(form.split())):
            # a message has it between quotes of either kind
            yield from (text, repr(text)[1:-1], repr(f"{text}'")[1:-2])
