"""The deviation files of RabbitMQ in conformance/deviations: an entry for each known defect of the verified version.

`python -m tests.deviation_files` writes them anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from amqpspec.conformance.deviations import DIRECTORY
from amqpspec.conformance.verdicts.deviations import Deviation
from amqpspec.conformance.verdicts.deviations_to_write import as_toml
from amqpspec.model.defects.known_defects import known_defects
from amqpspec.model.promises.versions import RABBITMQ, VERIFIED

#: By file: the dialect whose known defects are in it.
DIALECTS: Mapping[str, str] = {
    "rabbitmq-3.10.toml": "rabbitmq-3", "rabbitmq-4.0.toml": "rabbitmq-4.0", "rabbitmq-4.3.toml": "rabbitmq-4.3"
}  # fmt: skip


def entries(name: str) -> list[Deviation]:
    """What the file must hold."""
    dialect = DIALECTS[name]
    known = sorted(known_defects(dialect, VERIFIED[dialect].last), key=lambda each: (each.requirement, each.name))
    return [
        Deviation(f"{each.requirement}|{each.name}", each.statement, product=RABBITMQ, by_chance=each.by_chance)
        for each in known
    ]


def text_of(name: str) -> str:
    title = f"# What {RABBITMQ} {VERIFIED[DIALECTS[name]].last} is known to do otherwise than it promises.\n"
    return title + "# Made by `python -m tests.deviation_files`.\n\n" + as_toml(entries(name))


def main() -> None:
    for name in DIALECTS:
        (DIRECTORY / name).write_text(text_of(name), encoding="utf-8")


if __name__ == "__main__":
    main()
