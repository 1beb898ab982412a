"""The scenarios that come with the suite: a command file or several for each requirement, a directory for each chapter.

They are called ID.amqp, and ID-words.amqp where one sequence cannot show all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from amqpspec.conformance.language.command_file import CommandFile, read_command_file

DIRECTORY = Path(__file__).parent

#: Begins the name of a scenario's sequence.
_SCENARIO = "scenario"

#: Chapters in the order in which they are run: what every client does comes first, how connections and consumers end
#: comes last, so that a broker that breaks down half-way has said the most.
CHAPTERS = (
    "exchange", "binding", "publish", "get", "ack", "channel", "confirm", "tx", "consume", "qos", "recover",
    "quorum", "dlx", "overflow", "ttl", "timeout", "stream", "sac", "consumer-priority", "direct-reply", "queue",
    "connection",
    "capabilities", "permission", "cancel",
)  # fmt: skip


@cache
def all_scenarios() -> tuple[CommandFile, ...]:
    """Every scenario, one for each queue type, in the order of chapters and requirements.

    Raises `CommandFileError` for a file that cannot be read.
    """
    return tuple(file for path in sorted(DIRECTORY.rglob("*.amqp"), key=_place) for file in read_command_file(path))


def _place(path: Path) -> tuple[int, Path]:
    chapter = path.parent.name
    return (CHAPTERS.index(chapter) if chapter in CHAPTERS else len(CHAPTERS), path)


def selected(prefixes: Sequence[str], dialect: str) -> list[CommandFile]:
    """Those for requirements that begin with one of `prefixes` (none: all) and that hold in the dialect.

    As in `model.promises.registry.select`, case makes no difference.
    """
    wanted = tuple(prefix.strip().upper() for prefix in prefixes)
    return [
        scenario
        for scenario in all_scenarios()
        if (not wanted or (scenario.requirement or "").startswith(wanted))
        and (not scenario.dialects or dialect in scenario.dialects)
    ]


def sequence_name(scenario: CommandFile) -> str:
    return " ".join(filter(None, (_SCENARIO, scenario.name, scenario.queue_type)))


def is_scenario(sequence: str) -> bool:
    """Is it the name of a scenario's sequence?"""
    return sequence.startswith(f"{_SCENARIO} ")
