"""What differs between two tables, such as the headers of two messages, entry by entry, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NOTHING = object()


def table_differences(expected: Any, observed: Any) -> list[str]:
    """A line for each entry that is another, missing or too much. Nothing of it is cut."""
    return [
        f"no {path}, which is {_text(came)}" if right is _NOTHING
        else f"{path}={_text(right)}, which is missing" if came is _NOTHING
        else f"{path}={_text(right)} in place of {_text(came)}"
        for path, right, came in _differing("", expected or {}, observed or {})
    ]  # fmt: skip


def _differing(path: str, expected: Any, observed: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(expected, Mapping) and isinstance(observed, Mapping):
        for name in dict.fromkeys((*expected, *observed)):
            yield from _differing(
                f"{path}.{name}" if path else str(name), expected.get(name, _NOTHING), observed.get(name, _NOTHING)
            )
    elif _is_list(expected) and _is_list(observed):
        for place in range(max(len(expected), len(observed))):
            right = expected[place] if place < len(expected) else _NOTHING
            came = observed[place] if place < len(observed) else _NOTHING
            yield from _differing(f"{path}[{place}]", right, came)
    elif expected is _NOTHING or observed is _NOTHING or expected != observed:
        yield path, expected, observed


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return repr(value) if isinstance(value, str) else str(value)
