"""The corpus on the command line.

    python -m tests.corpus [DIR]              write the expectations anew, and print what has changed
    python -m tests.corpus check [DIR]        judge all recordings, and print what has changed; nothing is written
    python -m tests.corpus record RUNS        make the runs in the directory RUNS, and choose the corpus from them

DIR is the corpus of the project unless another directory of recordings is given.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tests.corpus.expectations import DIRECTORY, changes_in, rewrite_in


def main(arguments: list[str]) -> int:
    """Gives the exit code: 1 where a check found a change."""
    if arguments[:1] not in (["expect"], ["check"], ["record"]) and not {"-h", "--help"} & set(arguments):
        arguments = ["expect", *arguments]
    parser = argparse.ArgumentParser(
        prog="python -m tests.corpus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("expect", "check"):
        command = commands.add_parser(name)
        command.add_argument("directory", type=Path, nargs="?", default=DIRECTORY, metavar="DIR")
        command.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    command = commands.add_parser("record")
    command.add_argument("runs", type=Path, metavar="RUNS", help="runs that are there already are not made again")
    command.add_argument("--only", action="append", default=[], metavar="NAME", help="make these runs, choose nothing")
    command.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    if options.command == "record":
        return _record(options)
    began = time.monotonic()
    through = rewrite_in if options.command == "expect" else changes_in
    changed, judged = _print(through(options.directory, options.processes))
    print(f"{judged} recordings, {changed} judged otherwise, {time.monotonic() - began:.1f} s")
    return 1 if changed and options.command == "check" else 0


def _record(options: argparse.Namespace) -> int:
    from tests.corpus.runs import make
    from tests.corpus.selection import choose

    make(options.runs, options.only)
    if not options.only:
        choose(options.runs, DIRECTORY, options.processes)
        _print(rewrite_in(DIRECTORY, options.processes))
    return 0


def _print(judged: Iterable[tuple[Path, list[str]]]) -> tuple[int, int]:
    """Prints the changes of each recording; gives how many recordings have changed, and how many there are."""
    changed = total = 0
    for recording, lines in judged:
        total += 1
        changed += bool(lines)
        for line in lines:
            print(f"{recording.stem}: {line}", flush=True)
    return changed, total


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
