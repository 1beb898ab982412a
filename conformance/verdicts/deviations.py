"""The deviation file: failures that a team knows and accepts for now. It can make a run green, and says why.

    [[deviation]]
    identity = "QUEUE-026|wrong argument|queue.declare-ok consumer-count"
    reason = "counts consumers that were cancelled"
    issue = "https://…"            # optional
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from amqpspec.conformance.verdicts.judgement import RunResult


class DeviationFileError(Exception):
    """The file cannot be used; the message names it and what is wrong."""


def read_deviations(path: Path) -> Mapping[str, str]:
    """Reasons by failure identity. Raises `DeviationFileError`."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DeviationFileError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    except tomllib.TOMLDecodeError as error:
        raise DeviationFileError(f"{path}: {error}") from None
    entries = table.get("deviation", [])
    if not isinstance(entries, list) or set(table) - {"deviation"}:
        raise DeviationFileError(f"{path}: holds something else than [[deviation]] entries")
    known: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        identity, reason = (entry.get("identity"), entry.get("reason")) if isinstance(entry, dict) else (None, None)
        if not isinstance(identity, str) or not isinstance(reason, str) or not reason.strip():
            raise DeviationFileError(f"{path}: deviation {number} needs an identity and a reason")
        if identity in known:
            raise DeviationFileError(f"{path}: deviation {number} repeats {identity!r}")
        known[identity] = f"{reason} ({entry['issue']})" if "issue" in entry else reason
    return known


def with_known(result: RunResult, known: Mapping[str, str]) -> tuple[RunResult, list[str]]:
    """The result with the known failures marked, and the identities that did not show up in this run."""
    failures = tuple(replace(found, known=known.get(found.failure.identity)) for found in result.failures)
    seen = {found.failure.identity for found in failures}
    return replace(result, failures=failures), [identity for identity in known if identity not in seen]
