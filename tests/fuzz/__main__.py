"""`python -m tests.fuzz --mutants 100000`: judge so many mutants, and name each error of the suite that they show."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

from amqpspec.conformance.traces.trace_row import row_line
from tests.fuzz.fuzzing import Found, fuzzed
from tests.fuzz.mutants import Mutants

#: Mutants that a process is given at a time.
_SHARE = 250


@cache
def _all() -> Mutants:
    return Mutants()


def _share(seed: int, first: int, stop: int) -> Found:
    return fuzzed(_all(), seed, range(first, stop))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a directory for the traces of the mutants that raised something")
    options = parser.parse_args()
    began, found = time.monotonic(), Found()
    stop = options.first + options.mutants
    with ProcessPoolExecutor(options.jobs) as pool:
        shares = [
            pool.submit(_share, options.seed, first, min(first + _SHARE, stop))
            for first in range(options.first, stop, _SHARE)
        ]
        for share in shares:
            found.add(share.result())
    for number, (error, (mutant, times)) in enumerate(sorted(found.raised.items(), key=lambda each: -each[1][1]), 1):
        print(f"{times:6} x {error}\n         first: mutant {mutant.number}, {' '.join(mutant.done)} of {mutant.of}")
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"{number:03}.jsonl").write_bytes(b"".join(map(row_line, mutant.rows)))
    seconds = time.monotonic() - began
    verdicts = ", ".join(f"{many:,} {verdict}" for verdict, many in sorted(found.verdicts.items()))
    print(f"{options.mutants:,} mutants with seed {options.seed} in {seconds:.0f} s: {verdicts}")
    print(f"slowest: mutant {found.slowest[1]}, {found.slowest[0]:.1f} s; {len(found.raised)} errors of the suite")
    return 1 if found.raised else 0


if __name__ == "__main__":
    sys.exit(main())
