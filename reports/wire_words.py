"""What shows a requirement on the wire, as the registry notes it (`Requirement.observable`), with AMQP's own names."""

from __future__ import annotations

import re

from amqpspec.model.protocol.methods import METHOD_IDS

_NAMES = {ids: name for name, ids in METHOD_IDS.items()}
#: `{404,"NOT_FOUND - …",50,10}`, with the method in front or not; the numbers are those of the methods that it answers.
_CLOSE = re.compile(
    r"(?:(Channel|Connection)\.Close)?\{(\d{3})"
    r"""(?:,\s*(?:("(?:(?!\};).)*?"(?=[,}])|'(?:(?!\};).)*?'(?=[,}]))|\.+))?(?:,([^{}"]*))?\}"""
)
_PAIR = re.compile(r"(\d+),\s*(\d+)")
_METHOD = re.compile(r"\b([A-Z][a-z]+)\.([A-Z][A-Za-z]+)\b")
_ALONE = re.compile(r"(?<![\w.])([A-Z][a-z]+)(Ok|Empty)(?!\w)")
_ARGUMENTS = re.compile(r"(?<=[a-z])\{([^{}]*)\}")
_OTHER_WORDS = ((" -> ", " → "), ("EOF", "the end of the TCP stream"), ("hdr {", "headers {"), (" | ", " or "))


def in_wire_words(noted: str) -> str:
    """The note as a sentence without its full stop: `channel.close 404 "NOT_FOUND - …", for queue.declare`."""
    said = _METHOD.sub(_method, _CLOSE.sub(_close, noted))
    said = _ARGUMENTS.sub(r" (\1)", _ALONE.sub(_alone, said))
    for old, new in _OTHER_WORDS:
        said = said.replace(old, new)
    return said if said.startswith(tuple(METHOD_IDS)) else said[:1].upper() + said[1:]


def _close(found: re.Match[str]) -> str:
    pairs = ((int(one), int(other)) for one, other in _PAIR.findall(found[4] or ""))
    about = " or ".join(_NAMES[pair] for pair in pairs if pair in _NAMES)
    method = f"{(found[1] or 'channel').lower()}.close {found[2]}"
    return f"{method}{f' {found[3]}' if found[3] else ''}{f', for {about}' if about else ''}"


def _method(found: re.Match[str]) -> str:
    name = f"{found[1].lower()}.{re.sub(r'(?<!^)(?=[A-Z])', '-', found[2]).lower()}"
    return name if name in METHOD_IDS else found[0]


def _alone(found: re.Match[str]) -> str:
    """With its class where only one has such a method."""
    ending = f"{found[1]}-{found[2]}".lower()
    named = [name for name in METHOD_IDS if name.partition(".")[2] == ending]
    return named[0] if len(named) == 1 else ending
