"""Text that came from a broker, made safe to show."""

from __future__ import annotations

import re

#: Control characters (line feed and tab excepted), directional overrides, lone surrogates and non-characters:
#: what could steer a terminal, hide text, or make a file that is not XML.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
    + "]"
)


def visible(text: str) -> str:
    """`text` with every character that cannot be seen replaced by its escape, such as `\\x1b`."""
    return _INVISIBLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plural(number: int, noun: str) -> str:
    """`1 sequence`, `2 sequences`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
