"""`amqpspec check`: judging recorded traces again."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.text import Text

from amqpspec.command_line.usage import UsageError
from amqpspec.model.defects.known_defects import is_as_known
from amqpspec.reports.text import plural, visible


def execute(options: argparse.Namespace, console: Console) -> int:
    from amqpspec.pipeline.spark_check import check_with_spark
    from amqpspec.pipeline.spark_session import PipelineError
    from amqpspec.pipeline.table import check_in_process, table_view, write_table

    if options.spark:
        try:
            table = check_with_spark(options.traces, options.spark)
        except PipelineError as error:
            raise UsageError(str(error)) from None
    else:
        table = check_in_process(options.traces)
    if options.out:
        write_table(table, options.out)
    if not options.quiet:
        console.print(table_view(table))
    for found in table.failures:
        failure = found.failure
        what = f"{failure.requirement} on {found.target}: {failure.shape}, {failure.detail}"
        console.print(Text(visible(what), style="red"))
        where = f"    in {found.sequence} (and {found.sequences - 1} more) after {failure.command}"
        console.print(Text(visible(where)))
        console.print(Text(visible(f"    observed {failure.observed}")))
        for allowed in failure.allowed:
            console.print(Text(visible(f"    allowed  {allowed}")))
        if failure.defect:
            whose = "" if is_as_known(failure, found.dialect) else f", not known of {found.dialect}"
            console.print(Text(f"    known as known defect {failure.defect}{whose}"))
    for each in table.defects:
        if not each.seen:
            where = f"{each.target}, though {plural(each.refuted, 'sequence')} would have shown it"
            console.print(
                Text(visible(f"known defect {each.defect} not seen on {where}: fixed?"), style="yellow")
            )
    for measured in table.accuracies:
        console.print(Text(visible(f"{measured.target}: {measured.accuracy.text}")))
    beside = f" ({table.repeats:,} that only repeat others are not counted)" if table.repeats else ""
    console.print(Text(f"{table.sequences:,} sequences{beside}, {table.frames:,} frames judged"))
    return table.exit_code
