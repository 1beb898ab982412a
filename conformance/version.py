"""The version of the suite, for reports, and of what judges, for judgements that are kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from importlib.resources.abc import Traversable

#: What a judgement depends on, in the package.
_JUDGING = (("model",), ("conformance", "verdicts"), ("pipeline", "judging"))


@cache
def tool_version() -> str:
    try:
        return version("amqpspec")
    except PackageNotFoundError:
        return "unknown"


@cache
def judge_version() -> str:
    """Such as "0.2.0+3f1c2a9d04be": the version, and a digest of all files by which is judged.

    So a rule that is changed between two releases is another judge.
    """
    digest = sha256()
    for place in _JUDGING:
        _add(digest.update, resources.files("amqpspec").joinpath(*place))
    return f"{tool_version()}+{digest.hexdigest()[:12]}"


def _add(update: Callable[[bytes], None], place: Traversable) -> None:
    for each in sorted(place.iterdir(), key=lambda each: each.name):
        if each.is_dir() and each.name != "__pycache__":
            _add(update, each)
        elif each.name.endswith((".py", ".toml")):
            update(each.name.encode())
            update(each.read_bytes())
