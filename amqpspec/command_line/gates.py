"""`--gate` and `--deviations` of what judges recordings, and the lines that say what failed."""

from __future__ import annotations

import argparse
from collections import Counter

from rich.console import Console
from rich.text import Text

from amqpspec.command_line.logins import complain
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.verdicts.acceptance import Acceptance
from amqpspec.conformance.verdicts.deviations import DeviationFileError, read_deviations
from amqpspec.pipeline.judging.found_failures import FoundFailures
from amqpspec.reports.text import plural, visible

#: Failures that are printed; more are counted.
_MOST_SHOWN = 20


def acceptance_of(options: argparse.Namespace) -> Acceptance:
    """What the options accept. Raises `UsageError`."""
    try:
        listed = read_deviations(options.deviations) if options.deviations else ()
    except DeviationFileError as error:
        raise UsageError(str(error)) from None
    return Acceptance(options.gate, listed)


def tell_stale(acceptance: Acceptance) -> bool:
    """Says which entries of the deviation file must not stay; are there any?"""
    for problem in acceptance.problems:
        complain(visible(problem))
    return bool(acceptance.problems)


def tell_failures(found: FoundFailures, console: Console) -> None:
    """A line for each failure that is not accepted, the gravest first, and one that counts the others by reason."""
    red = found.not_accepted
    for each in red[:_MOST_SHOWN]:
        many = f" and {each.sequences - 1:,} more" if each.sequences > 1 else ""
        where = f"in {each.sequence!r}{many} of {each.run}"
        line = f"{each.target.label}: {each.failure.identity} {where}: {each.failure.observed}"
        console.print(Text(visible(line), style="red"), soft_wrap=True)
    if len(red) > _MOST_SHOWN:
        console.print(Text(f"and {plural(len(red) - _MOST_SHOWN, 'failure')} more"), soft_wrap=True)
    accepted = Counter(each.accepted for each in found.distinct.values() if each.accepted is not None)
    if accepted:
        reasons = ", ".join(f"{why} ({times:,})" if times > 1 else why for why, times in sorted(accepted.items()))
        line = f"accepted: {plural(sum(accepted.values()), 'failure')}: {reasons}"
        console.print(Text(visible(line)), soft_wrap=True)
