"""`python -m benchmarks [PART]`: measure, print, and keep the results in benchmarks/results.md. See README.md."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from amqpspec.targets.errors import TargetError
from benchmarks import (
    bulk,
    detection,
    generation,
    importing,
    live,
    machine,
    offline,
    open_world,
    recording_cost,
    serving,
    whole,
)
from benchmarks.errors import Invalid
from benchmarks.tables import ResultTable
from benchmarks.unjudged import ReplayError

RESULTS = Path(__file__).with_name("results.md")
PARTS = ("whole", "live", "offline", "generation", "detection", "bulk", "open-world", "recording", "serving", "import")

#: Targets of whole runs, those in the way of which there is more to find last.
WHOLE = (
    "embedded", "docker:amqpspec/rabbitmq:4.3", "docker:amqpspec/rabbitmq:4.0", "docker:amqpspec/rabbitmq:3.10",
    "docker:amqpspec/garagemq", "docker:amqpspec/broker-j:9.2",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0, or 2 where a target cannot be had or does not conform."""
    options = _options(arguments)
    # As where the package is installed: what is measured does not compile all its modules at each start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    where = machine.description()
    print(where, flush=True)
    for part in PARTS if options.part == "all" else (options.part,):
        try:
            table = _measure(part, options)
        except (TargetError, ReplayError, Invalid) as error:
            print(f"benchmarks: {part}: {error}", file=sys.stderr)
            return 2
        text = f"{table.markdown()}\nMeasured {where}.\n"
        print("\n" + text, flush=True)
        if not options.no_write:
            _keep(table.title, text)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("part", nargs="?", choices=("all", *PARTS), default="all")
    parser.add_argument(
        "--targets", nargs="+", default=["embedded", "docker:amqpspec/rabbitmq:4.3"], metavar="TARGET",
        help="of live, generation, recording and serving (default: embedded and docker:amqpspec/rabbitmq:4.3)",
    )  # fmt: skip
    parser.add_argument(
        "--whole-targets", nargs="+", default=list(WHOLE), metavar="TARGET",
        help=f"of whole (default: {', '.join(WHOLE)})",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=10.0, help="live: of each measurement (default 10)")
    parser.add_argument("--repetitions", type=int, default=3, help="live, offline, serving and import (default 3)")
    parser.add_argument(
        "--messages", type=int, default=1_000_000, help="serving: that come and go (default 1000000; 0: none)"
    )
    parser.add_argument("--sequences", type=int, default=500, help="generation (default 500)")
    parser.add_argument("--fresh", action="store_true", help="offline: record the traces anew")
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=list(bulk.LENGTHS), metavar="FRAMES", help="bulk: of the recordings"
    )
    parser.add_argument(
        "--searched", type=int, default=bulk.SEARCHED, metavar="FRAMES",
        help="bulk: of a store of plain traffic and one of searches; 0: none",
    )  # fmt: skip
    parser.add_argument("--beside", metavar="ADDRESS", help="bulk: where the same stores are made in an object store")
    parser.add_argument("--no-broker", action="store_true", help="bulk: none at full load to hold the rates against")
    parser.add_argument("--no-write", action="store_true", help="leave benchmarks/results.md alone")
    return parser.parse_args(arguments)


def _measure(part: str, options: argparse.Namespace) -> ResultTable:
    if part == "whole":
        return whole.run(options.whole_targets)
    if part == "live":
        return live.run(options.targets, options.seconds, options.repetitions)
    if part == "offline":
        return offline.run(options.repetitions, options.fresh)
    if part == "bulk":
        broker = "" if options.no_broker else bulk.BROKER
        return bulk.run(options.lengths, searched=options.searched, broker=broker, beside=options.beside)
    if part == "open-world":
        return open_world.run()
    if part == "recording":
        return recording_cost.run(options.targets)
    if part == "serving":
        return serving.run(options.targets, options.repetitions, options.messages)
    if part == "import":
        return importing.run(options.repetitions)
    if part == "detection":
        return detection.run()
    return generation.run(options.targets, options.sequences)


def _keep(title: str, text: str) -> None:
    """Put the section in place of the one with the same title, or at the end."""
    head, *sections = (RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else "# Results\n\n").split("\n## ")
    kept = {section.partition("\n")[0]: section.rstrip("\n") for section in sections}
    kept[title] = text.removeprefix("## ").rstrip("\n")
    RESULTS.write_text(head.rstrip("\n") + "\n" + "".join(f"\n## {text}\n" for text in kept.values()), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
