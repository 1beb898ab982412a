"""The deviation files of RabbitMQ in docs/deviations: an entry for each known defect of the verified version.

`python -m tests.deviation_files` writes them anew. What an entry says of chance stays as it is; a known defect that is
new there begins as one that shows by chance, until somebody has seen that it shows each time it is put to the test.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from amqpspec.conformance.verdicts.deviations import Deviation, read_deviations
from amqpspec.conformance.verdicts.deviations_to_write import as_toml
from amqpspec.model.defects.known_defects import known_defects
from amqpspec.model.promises.versions import RABBITMQ, VERIFIED

DIRECTORY = Path(__file__).parents[1] / "docs" / "deviations"

#: By file: the dialect whose known defects are in it.
DIALECTS: Mapping[str, str] = {
    "rabbitmq-3.10.toml": "rabbitmq-3", "rabbitmq-4.0.toml": "rabbitmq-4.0", "rabbitmq-4.3.toml": "rabbitmq-4.3"
}  # fmt: skip


def entries(name: str, steady: frozenset[str]) -> list[Deviation]:
    """What the file must hold. `steady`: names of the known defects that show each time they are put to the test."""
    dialect = DIALECTS[name]
    known = sorted(known_defects(dialect, VERIFIED[dialect].last), key=lambda each: (each.requirement, each.name))
    return [
        Deviation(
            f"{each.requirement}|{each.name}", each.statement, product=RABBITMQ, by_chance=each.name not in steady
        )
        for each in known
    ]


def steady_in(path: Path) -> frozenset[str]:
    """The names of the known defects that a file says nothing of chance of."""
    return frozenset(each.defect for each in read_deviations(path) if not each.by_chance)


def text_of(name: str, steady: frozenset[str]) -> str:
    title = f"# What {RABBITMQ} {VERIFIED[DIALECTS[name]].last} is known to do otherwise than it promises.\n"
    return title + "# Made by `python -m tests.deviation_files`.\n\n" + as_toml(entries(name, steady))


def main() -> None:
    for name in DIALECTS:
        path = DIRECTORY / name
        path.write_text(text_of(name, steady_in(path) if path.exists() else frozenset()), encoding="utf-8")


if __name__ == "__main__":
    main()
