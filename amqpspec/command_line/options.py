"""What each command understands."""

from __future__ import annotations

import argparse
import os
import random
import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import NoReturn

from amqpspec.command_line.exit_codes import USAGE
from amqpspec.command_line.logins import without_logins
from amqpspec.conformance.deviations import BUILTIN, builtin_file, builtin_names
from amqpspec.conformance.soak.schedule import Kind
from amqpspec.conformance.traces.local_path import is_served, not_served
from amqpspec.conformance.verdicts.gate import Gate
from amqpspec.conformance.version import tool_version
from amqpspec.model.promises.dialects import DEFAULT_DIALECT, DIALECTS, UnknownDialect
from amqpspec.model.promises.versions import VERIFIED_SEED
from amqpspec.targets.brokers.dialect_file import DialectFileError, dialect_in
from amqpspec.targets.drivers.library import DISTRIBUTIONS


class Parser(argparse.ArgumentParser):
    """Errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"amqpspec: {without_logins(message)} (see {self.prog} --help)\n")


#: What --dialect takes.
_DIALECT_HELP = (
    f"{', '.join(sorted(DIALECTS))}, the text with extensions (amqp-0-9-1+basic.nack+publisher_confirms), or"
    " FILE.toml (amqpspec profile TARGET --toml FILE.toml);"
    " default: from what the broker says of itself"
)


DEFAULT_SEQUENCES = 100

#: What --driver takes.
DRIVERS = ("wire", *DISTRIBUTIONS)

#: What --seed takes for a seed that nobody has chosen.
RANDOM = "random"

#: The most of every option that is a time: a week, which a campaign may take. Much more is beyond what the system can
#: wait for.
MOST_SECONDS = 7 * 24 * 3600.0

#: What `pipeline table` makes; they are in `pipeline.views`, which needs an extra.
TABLES = (
    "compliance", "coverage", "failures_by_identity", "latency", "flaky", "regressed", "said", "failures",
    "measurements", "difference", "conservation",
)  # fmt: skip

#: What --open means.
_OPEN_HELP = "in the open world: what others did is not known, as it is for recordings of applications in any case"


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="amqpspec", description="Conformance suite for AMQP 0-9-1 message brokers.")
    parser.add_argument("--version", action="version", version=f"amqpspec {tool_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    _run(commands.add_parser("run", help="scenarios and stateful search on a target; writes traces and reports"))
    _replay(commands.add_parser("replay", help="run a command file, show the frames and the verdict"))
    _check(commands.add_parser("check", help="judge recorded traces again, without a broker"))
    _coverage(commands.add_parser("coverage", help="in which situations commands were sent in recorded traces"))
    _profile(commands.add_parser("profile", help="what a broker chose where the text of 0-9-1 leaves a choice"))
    _diff(commands.add_parser("diff", help="the same commands on two targets: what an application would notice"))
    _report(commands.add_parser("report", help="stored runs side by side, as one HTML page"))
    _pipeline(commands.add_parser("pipeline", help="a store of recordings: judged in bulk, and its tables"))
    _campaign(commands.add_parser("campaign", help="searches or soaks on targets, spread over Spark, kept in a store"))
    _soak(commands.add_parser("soak", help="publishers and consumers under load while faults come: what is lost"))
    _requirements(commands.add_parser("requirements", help="the requirements, with their sources"))
    _faults(commands.add_parser("faults", help="the faulty variants of the embedded broker"))
    _explore(commands.add_parser("explore", help="every state of small worlds of the model: do its properties hold"))
    _serve(commands.add_parser("serve", help="the embedded broker on a port"))
    _record(commands.add_parser("record", help="a proxy in front of a broker that records what passes through"))
    return parser


def _target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        nargs="?",
        default="embedded",
        metavar="TARGET",
        help="amqp://user:password@host:port/vhost, amqps://…, embedded (default), embedded:FAULT,"
        " docker:IMAGE, cluster:IMAGE (three nodes), process:PATH, FILE.toml (docs/in-house-broker.md),"
        " or the name of an in-house target",
    )
    parser.add_argument("--dialect", type=_dialect, metavar="NAME", help=_DIALECT_HELP)
    parser.add_argument(
        "--management", metavar="URL",
        help="http://user:password@host:15672, the HTTP API of the broker's management: by it policies, users and"
        " permissions are set, and connections closed, on amqp://… and FILE.toml; without a login it has that of"
        " the broker",
    )  # fmt: skip
    parser.add_argument("--mode", choices=("lockstep", "burst"), default="lockstep")
    parser.add_argument(
        "--driver", type=_drivers, default="wire", metavar="NAME",
        help="what carries the commands: wire (default), the suite's own client; pika, pika-select, aio-pika"
        " or aio-pika-robust, with the extra drivers. `run` takes several, such as wire,pika: a run each, and a page"
        " of all",
    )  # fmt: skip
    parser.add_argument(
        "--deadline", type=_positive, default=5.0, metavar="SECONDS",
        help="the most that an owed frame may take (default 5); after three that never came, ten times the slowest"
        " answer of late, at least 1 s, and 0.3 s after twenty",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="print the verdict only")


def _scenarios(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scenarios", type=_path, metavar="DIR",
        help="command files of your own, beside those that come with the project (docs/own-rules.md)",
    )  # fmt: skip


def _run(parser: argparse.ArgumentParser) -> None:
    # `diff` sends what the target refuses again, and has a summary of its own
    parser.set_defaults(learns=True, adds_to_job_summary=True, progress_on=None)
    _target(parser)
    parser.add_argument(
        "more", nargs="*", metavar="TARGET", help="further targets, one after another with one seed, and a page of all"
    )
    parser.add_argument(
        "--no-profile", dest="profile", action="store_false",
        help="a product that is not known is not asked first what it chose where the text leaves a choice",
    )  # fmt: skip
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID-PREFIX", help="such as ACK or QOS-003; repeatable"
    )
    _scenarios(parser)
    parser.add_argument(
        "--seed", type=_seed, metavar=f"N|{RANDOM}",
        help="equal seeds make equal commands (default: a random one, which is shown; with --gate known always"
        f" {VERIFIED_SEED}, by which the versions were verified)",
    )  # fmt: skip
    parser.add_argument(
        "--sequences", type=_count, metavar="N",
        help=f"sequences of the search (default {DEFAULT_SEQUENCES}; fewer where the target was lost and the run"
        " would take more than three minutes)",
    )  # fmt: skip
    parser.add_argument(
        "--search-only", action="store_true", help="no scenarios: what is found, the search has found by itself"
    )
    parser.add_argument(
        "--theme", action="append", default=[], metavar="NAME",
        help="of the search: traffic, consumers, publishing, topology, protocol; or timeouts and restarts, which take"
        " their time; repeatable (default: all but these two)",
    )  # fmt: skip
    parser.add_argument(
        "--stop-at-first", action="store_true", help="begin nothing more once a failure that fails the run was found"
    )
    parser.add_argument("--steps", type=_positive_count, default=30, help="most steps of a sequence (default 30)")
    parser.add_argument(
        "--jobs", type=_positive_count, metavar="N",
        help="sequences that are carried out at one time (default: three for each processor, as most of the time goes"
        " into waiting for the broker; on the embedded broker, which works in the same machine, two for each)",
    )  # fmt: skip
    parser.add_argument("--time-budget", type=_positive, metavar="SECONDS", help="for the search")
    parser.add_argument(
        "--shrinking-time", type=_seconds, metavar="SECONDS",
        help="for shrinking all new failures; 0 leaves it out (default: the first three to the end, the"
        " others as long as the run took till then, at least 20 s, at most 30, and down to 10 after a long run)",
    )  # fmt: skip
    parser.add_argument("--out", type=_path, default=Path("amqpspec-out"), metavar="DIR", help="default amqpspec-out")
    parser.add_argument("--store", type=_store, metavar="STORE", help="add the trace to it (amqpspec pipeline)")
    _night(parser)
    _label(parser)
    parser.add_argument("--junit", type=_path, metavar="FILE")
    parser.add_argument("--html", type=_path, metavar="FILE", help="default DIR/report.html")
    parser.add_argument("--json", type=_path, metavar="FILE", help="default DIR/report.json")
    parser.add_argument(
        "--markdown", type=_path, metavar="FILE",
        help="a summary; where GITHUB_STEP_SUMMARY names a file, it is added to that in any case",
    )  # fmt: skip
    parser.add_argument("--parquet", type=_path, metavar="FILE", help="the trace as a table, with the extra parquet")
    parser.add_argument("--badge", type=_path, metavar="FILE", help="the result as a small SVG")
    parser.add_argument(
        "--gate", type=_gate_named, default=Gate.PROMISE, metavar="|".join(Gate),
        help="what fails the run: promise (default), everything that breaks one; known, what no known defect of the"
        " target's version explains",
    )  # fmt: skip
    parser.add_argument(
        "--deviations", type=_deviations, metavar="FILE|builtin:NAME",
        help="known deviations, which do not fail the run",
    )  # fmt: skip
    writing = parser.add_mutually_exclusive_group()
    writing.add_argument(
        "--write-deviations", type=_path, metavar="FILE", help="make such a file of what fails, and exit as with it"
    )
    writing.add_argument(
        "--update-deviations", action="store_true", help="say what to take out of the file, and what to add"
    )


def _replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=_path, metavar="FILE|ID",
        help="a command file, or what comes with the project: the scenarios of a requirement such as GET-003",
    )  # fmt: skip
    _target(parser)
    _scenarios(parser)
    parser.add_argument("--out", type=_path, metavar="DIR", help="where the trace goes (default: nowhere)")


def _check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", type=_path, nargs="+", metavar="TRACE", help="trace files or directories of runs")
    parser.add_argument("--spark", metavar="MASTER", help="in bulk on Spark, such as 'local[*]'")
    _conf(parser)
    parser.add_argument("--open", action="store_true", help=_OPEN_HELP)
    parser.add_argument(
        "--dialect", type=_dialect, metavar="NAME",
        help="judge by that one, and say which of its changes what was recorded meets, as `diff` of a recording",
    )  # fmt: skip
    parser.add_argument("--out", type=_path, metavar="FILE", help="write the table as Parquet")
    parser.add_argument("--quiet", action="store_true", help="print failures only")


def _coverage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", type=_path, nargs="+", metavar="TRACE", help="trace files or directories of runs")
    parser.add_argument("--json", action="store_true")


def _profile(parser: argparse.ArgumentParser) -> None:
    _target(parser)
    parser.add_argument("--toml", type=_path, metavar="FILE", help="write it as a file that --dialect takes")
    parser.add_argument("--json", action="store_true")


def run_options(words: Sequence[object]) -> argparse.Namespace:
    """The options of `amqpspec run` with these words."""
    parser = Parser(prog="amqpspec run")
    _run(parser)
    return parser.parse_args([str(word) for word in words])


def _diff(parser: argparse.ArgumentParser) -> None:
    what = "targets as of `run`, or directories of two runs that are there"
    parser.add_argument(
        "one", metavar="FROM",
        help=f"the broker that the application knows; {what}; or a recording of the application: a trace, a network"
        " capture, a store",
    )  # fmt: skip
    parser.add_argument("other", metavar="TO", help="the one that it is to meet; for a recording also a dialect")
    parser.add_argument("--spark", metavar="MASTER", help="a recording: read its files on Spark, such as 'local[*]'")
    parser.add_argument("--only", action="append", default=[], metavar="ID-PREFIX", help="as of `run`")
    parser.add_argument("--seed", type=_seed, metavar=f"N|{RANDOM}", help="of the search (default: random)")
    _scenarios(parser)
    # None: not given, as runs that are there do not take it
    parser.add_argument("--sequences", type=_count, help=f"sequences of the search (default {DEFAULT_SEQUENCES})")
    parser.add_argument("--steps", type=_positive_count, help="most steps of a sequence (default 30)")
    parser.add_argument("--jobs", type=_positive_count, metavar="N", help="as of `run`")
    parser.add_argument("--deadline", type=_positive, metavar="SECONDS", help="as of `run`")
    parser.add_argument("--out", type=_path, metavar="DIR", help="of the two runs (default amqpspec-diff)")
    parser.add_argument(
        "--gate", type=_gate_named, default=Gate.PROMISE, metavar="|".join(Gate),
        help="known: only what neither a change of the versions nor a known defect explains is exit code 1",
    )  # fmt: skip
    parser.add_argument(
        "--deviations", type=_deviations, metavar="FILE|builtin:NAME", help="differences that are accepted"
    )
    parser.add_argument("--html", type=_path, metavar="FILE")
    parser.add_argument("--markdown", type=_path, metavar="FILE")
    parser.add_argument("--json", type=_path, metavar="FILE")
    parser.add_argument("--quiet", action="store_true", help="print the result only")


def _report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directories", type=_path, nargs="+", metavar="DIR", help="what `run` left in --out, or its report.json"
    )
    parser.add_argument(
        "--out", type=_path, default=Path("side-by-side.html"), metavar="FILE|DIR", help="default side-by-side.html"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing")


def _pipeline(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=Parser)

    def action(name: str, help: str) -> argparse.ArgumentParser:
        found: argparse.ArgumentParser = actions.add_parser(name, help=help)
        if name == "table":
            found.add_argument("name", metavar="NAME", help=", ".join(TABLES))
        if name == "live":
            found.add_argument("store", type=_path, metavar="INCOMING", help="the folder in which trace files arrive")
        else:
            found.add_argument("store", type=_store, metavar="STORE", help="its folder, or an address such as s3://BUCKET/NAME")
        if name != "status":
            found.add_argument("--quiet", action="store_true", help="no progress")
        return found

    importing = action("import", "add recorded traces to a store, which is made if there is none")
    help_of_traces = "trace files, directories of runs, or network captures (pcap, pcapng)"
    importing.add_argument("traces", type=_path, nargs="+", metavar="TRACE", help=help_of_traces)
    importing.add_argument("--day", type=_day, metavar="YYYY-MM-DD", help="default: that of the file, in UTC")
    importing.add_argument("--run", metavar="NAME", help="default: made of the file's name and content")
    importing.add_argument("--target", type=_label_text, metavar="LABEL", help="default: what the trace says")
    help_of_port = "captures: port of a broker, for connections that had begun before (default 5672); may be repeated"
    importing.add_argument("--port", type=_port, action="append", metavar="PORT", dest="ports", help=help_of_port)
    help_of_dialect = "captures: judge by this dialect (default: as the broker says)"
    importing.add_argument("--dialect", type=_dialect, metavar="NAME", help=help_of_dialect)
    judging = action("judge", "judge what was not judged yet")
    judging.add_argument("--again", action="store_true", help="judge what was judged before as well")
    help_of_outdated = "and what other rules judged: another version, or this one before they were changed"
    judging.add_argument("--outdated", action="store_true", help=help_of_outdated)
    judging.add_argument(
        "--requirement", action="append", default=[], metavar="ID", dest="requirements",
        help="and what says something of that requirement, after it has changed; with --outdated: both (repeatable)",
    )  # fmt: skip
    judging.add_argument("--open", action="store_true", help=_OPEN_HELP)
    compacting = action("compact", "put small files together, and remove what is over")
    compacting.add_argument(
        "--grace", type=_seconds, default=3600.0, metavar="SECONDS", help="keep replaced files so long (default 3600)"
    )
    deleting = action("delete", "delete recordings, with what they were judged to be")
    deleting.add_argument("--run", action="append", metavar="NAME", dest="runs", default=[], help="may be repeated")
    deleting.add_argument("--day", type=_day, metavar="YYYY-MM-DD", help="of that day only")
    deleting.add_argument("--before", type=_day, metavar="YYYY-MM-DD", help="of earlier days only")
    deleting.add_argument("--keep-days", type=_positive_count, metavar="N", help="all but those of the last N days")
    deleting.add_argument(
        "--unnamed", action="store_true", help="files that no commit names and nobody has touched for a day"
    )
    deleting.add_argument(
        "--grace", type=_seconds, default=3600.0, metavar="SECONDS",
        help="keep the files so long for who reads them (default 3600); compact removes them later",
    )  # fmt: skip
    one = action("sequence", "one sequence: its commands, for `replay`, or its rows, for `check`")
    one.add_argument("name", metavar="SEQUENCE", help="its name")
    one.add_argument("--run", required=True, metavar="NAME", help="of the store")
    one.add_argument("--out", type=_path, metavar="FILE", help="write its commands (.amqp), or its rows (.jsonl)")
    action("status", "what a store holds, and what is wrong with it")
    table = action("table", "make a table of what was found")
    table.add_argument("--out", type=_path, metavar="FILE", help="write it, as .parquet, .csv or .json")
    help_of_before = "difference: the first run; regressed: the last night's day (default: the last that was judged)"
    table.add_argument("--before", metavar="RUN|DAY", help=help_of_before)
    help_of_after = "difference: the second run; regressed: this night's day (default: the last in the store)"
    table.add_argument("--after", metavar="RUN|DAY", help=help_of_after)
    table.add_argument("--rows", type=_positive_count, default=1000, metavar="N", help="print at most so many rows")
    conserving = action("conservation", "what became of each message, where all clients of a run were recorded")
    conserving.add_argument("--run", required=True, metavar="NAME", help="of the store")
    living = action("live", "judge recordings while they arrive in a folder, with Structured Streaming")
    place = living.add_mutually_exclusive_group(required=True)
    place.add_argument("--out", type=_path, metavar="DIR", help="of judgements and of what is kept")
    place.add_argument("--store", type=_path, metavar="STORE", dest="into", help="keep both in it, for table and page")
    living.add_argument("--run", default="live", metavar="NAME", help="with --store: of what is judged (default live)")
    living.add_argument("--until-done", action="store_true", help="end when all that is there is judged")
    page = action("page", "make an HTML page of the tables: days, versions side by side, failures, latencies")
    page.add_argument("--out", type=_path, default=Path("store.html"), metavar="FILE", help="default store.html")
    for each in (judging, conserving, living):
        _gate(each)
    for each in (importing, judging, conserving, table, page, living):
        default = "local[*]" if each is living else None
        otherwise = "by DuckDB" if each in (table, page) else "in this process"
        each.add_argument(
            "--spark", metavar="MASTER", default=default,
            help="on Spark, such as 'local[*]'" + (" (default)" if default else f"; default: {otherwise}"),
        )  # fmt: skip
        _conf(each)


def _campaign(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("targets", nargs="+", metavar="TARGET", help="as for run; workers must reach its address")
    parser.add_argument("--store", type=_store, required=True, metavar="STORE", help="made if there is none")
    _night(parser)
    parser.add_argument("--spark", metavar="MASTER", help="such as 'local[*]' (default: in this process)")
    _conf(parser)
    parser.add_argument("--driver", type=_drivers, default="wire", metavar="NAME", help="as for run, one of them")
    parser.add_argument("--sequences", type=_positive_count, metavar="N", help="on each target")
    parser.add_argument("--time-budget", type=_positive, metavar="SECONDS", help="nothing is begun after that")
    parser.add_argument(
        "--seed", type=_seed, metavar=f"N|{RANDOM}", help="equal seeds make equal commands (default: random)"
    )
    parser.add_argument(
        "--run", metavar="NAME",
        help="of the run in the store; one that was stopped goes on by it, its --seed and all else as before",
    )  # fmt: skip
    _label(parser)
    _gate(parser)
    parser.add_argument("--steps", type=_positive_count, default=30, help="most steps of a sequence (default 30)")
    parser.add_argument("--theme", action="append", default=[], metavar="NAME", help="as for run; repeatable")
    parser.add_argument("--dialect", type=_dialect, metavar="NAME", help=_DIALECT_HELP)
    parser.add_argument("--deadline", type=_positive, default=5.0, metavar="SECONDS", help="as for run")
    parser.add_argument("--shrinking-time", type=_seconds, metavar="SECONDS", help="as for run, for each target")
    parser.add_argument("--soak", type=_positive, metavar="SECONDS", help="no search, but soaks of that length")
    help_of_soaks = "with --soak: on each target (default 1), with the seeds from --seed on"
    parser.add_argument("--soaks", type=_positive_count, default=1, metavar="N", help=help_of_soaks)
    _faults_and_rate(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress")


def _label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target", type=_label_text, dest="label", metavar="LABEL",
        help="what traces and tables call the broker (default: its address, or the TARGET)",
    )  # fmt: skip


def _night(parser: argparse.ArgumentParser) -> None:
    help_of_day = "of its recordings in the store (default: today in UTC), where a night goes beyond midnight"
    parser.add_argument("--day", type=_day, metavar="YYYY-MM-DD", help=help_of_day)


def _label_text(text: str) -> str:
    if re.search(":.*@", text):
        raise argparse.ArgumentTypeError("a label is shown to everybody, and this one seems to have a login")
    return text


def _gate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gate", type=Gate, choices=tuple(Gate), default=Gate.PROMISE, help="as of `run`: what exit code 1 is for"
    )
    parser.add_argument(
        "--deviations", type=_deviations, metavar="FILE|builtin:NAME", help="failures that are accepted, as of `run`"
    )


def _faults_and_rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--faults", type=_fault_kinds, default=tuple(Kind), metavar="KIND,…",
        help=f"of a soak: {', '.join(Kind)} (default: all that the target offers), or none",
    )  # fmt: skip
    parser.add_argument(
        "--rate", type=_seconds, default=0.0, metavar="N",
        help="of a soak: messages a second that each publisher sends at most (default: as many as the machine bears)",
    )  # fmt: skip


def _soak(parser: argparse.ArgumentParser) -> None:
    _target(parser)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=_positive, default=1.0, metavar="N", help="how long clients run (default 1)")
    length.add_argument("--seconds", type=_positive, metavar="N", help="the same in seconds")
    _faults_and_rate(parser)
    parser.add_argument(
        "--seed", type=_seed, metavar=f"N|{RANDOM}", help="decides clients and faults (default: random, and shown)"
    )
    parser.add_argument(
        "--patience", type=_positive, metavar="SECONDS",
        help="the most that an answer may take, and a message that is expected at the end (default 20; embedded 10,"
        " cluster 100)",
    )  # fmt: skip
    parser.add_argument(
        "--gate", type=_gate_named, default=Gate.PROMISE, metavar="|".join(Gate),
        help="as of `run`: what exit code 1 is for",
    )
    parser.add_argument("--out", type=_path, default=Path("amqpspec-soak"), metavar="DIR", help="default amqpspec-soak")
    parser.add_argument("--html", type=_path, metavar="FILE", help="default DIR/soak.html")
    parser.add_argument("--json", type=_path, metavar="FILE", help="default DIR/soak.json")


def _requirements(parser: argparse.ArgumentParser) -> None:
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--only", action="append", default=[], metavar="ID-PREFIX")
    chosen.add_argument("--show", metavar="ID", help="everything about one requirement")
    chosen.add_argument("--search", metavar="WORDS", help="those that have all words, such as 'prefetch basic.get'")
    parser.add_argument("--json", action="store_true")


def _faults(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--right", action="store_true", help="those that are right by the text of 0-9-1 and other than RabbitMQ"
    )
    parser.add_argument("--json", action="store_true")


def _explore(parser: argparse.ArgumentParser) -> None:
    help_of_worlds = "a name, or a file that ends in .toml (default: all that come with the project)"
    parser.add_argument("world", nargs="*", metavar="WORLD", help=help_of_worlds)
    parser.add_argument("--list", action="store_true", help="the worlds that come with the project")
    parser.add_argument("--properties", action="store_true", help="the properties, with their sentences")
    parser.add_argument("--requirements", action="store_true", help="list what made a difference in no world")
    parser.add_argument("--scenarios", action="store_true", help="each scenario is a world as well")
    parser.add_argument(
        "--states", type=_count, default=0, metavar="N", help="most states of each world (default: as the world says)"
    )
    parser.add_argument("--seconds", type=_positive, metavar="N", help="most time for each world")
    parser.add_argument("--memory", type=_count, default=0, metavar="MB", help="most memory of each process")
    parser.add_argument(
        "--jobs", type=_positive_count, default=available_processors(), metavar="N",
        help="processes, each of which explores one world at a time (default: as many as processors)",
    )  # fmt: skip
    parser.add_argument("--out", type=_path, metavar="DIR", help="a command file for each violated property")
    parser.add_argument("--quiet", action="store_true", help="only what is violated, and the sum")


def _serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=_path, metavar="FILE", help="TOML, with users, virtual hosts, TLS and more")
    parser.add_argument("--host", help="default: 127.0.0.1, loopback only")
    parser.add_argument("--port", type=_port, help="default: 5672")
    parser.add_argument("--fault", metavar="NAME", help="a faulty variant; see amqpspec faults")
    parser.add_argument("--dialect", type=_dialect, metavar="NAME", help=f"default: {DEFAULT_DIALECT.name}")


def _record(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--upstream",
        required=True,
        metavar="URL",
        help="the broker, amqp://host:port or amqps://host:port?cacertfile=…",
    )
    parser.add_argument(
        "--listen", type=_place, default=("127.0.0.1", 5673), metavar="HOST:PORT",
        help="where clients connect (default 127.0.0.1:5673; port 0: any that is free)",
    )  # fmt: skip
    _label(parser)
    parser.add_argument("--out", type=_path, default=Path("amqpspec-recording"), metavar="DIR", help="of trace.jsonl")
    parser.add_argument(
        "--bodies", choices=("whole", "digest"), default="whole", help="digest: keep only size and SHA-256 of each body"
    )
    parser.add_argument(
        "--rotate", type=_positive, metavar="SECONDS",
        help="begin a new file so often: trace-000001.jsonl, …, each with its name when it is whole",
    )  # fmt: skip
    parser.add_argument("--certfile", type=_path, metavar="FILE", help="PEM: clients use TLS, and are shown this")
    parser.add_argument("--keyfile", type=_path, metavar="FILE", help="its key, if it is not in the same file")
    parser.add_argument("--dialect", type=_dialect, metavar="NAME", help=_DIALECT_HELP)


def _path(text: str) -> Path:
    """`s3a://bucket/store` would become a folder of that name."""
    problem = not_served(text)
    if problem is not None:
        raise argparse.ArgumentTypeError(problem)
    return Path(text)


def _conf(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--conf", type=_setting, action="append", metavar="KEY=VALUE", help="a setting of Spark's; may be repeated"
    )


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE, with a key that begins with spark.")
    return key, value


def _store(text: str) -> Path | str:
    """The folder of a store, or the address of one."""
    return text if is_served(text) else _path(text)


def _gate_named(text: str) -> Gate:
    if text not in tuple(Gate):
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(Gate)}")
    return Gate(text)


def _deviations(text: str) -> Path:
    """A file, also one that comes with the suite."""
    if not text.startswith(BUILTIN):
        return _path(text)
    file = builtin_file(text.removeprefix(BUILTIN))
    if file is None:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(BUILTIN + name for name in builtin_names())}")
    return file


def _place(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host, _port(port)


def _drivers(text: str) -> str:
    """Names of drivers, with commas between."""
    for name in text.split(","):
        if name not in DRIVERS:
            raise argparse.ArgumentTypeError(f"invalid choice: {name!r} (choose from {', '.join(DRIVERS)})")
    twice = [name for name, times in Counter(text.split(",")).items() if times > 1]
    if twice:
        raise argparse.ArgumentTypeError(f"{twice[0]} is there twice")
    return text


def _fault_kinds(text: str) -> tuple[Kind, ...]:
    """Kinds of faults, with commas between."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == ["none"]:
        return ()
    unknown = [name for name in names if name not in set(Kind)]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"{text!r}: choose from {', '.join(Kind)}, or none")
    return tuple(dict.fromkeys(map(Kind, names)))


def _dialect(text: str) -> str:
    """The name of the dialect, which says all of one that is in a file."""
    try:
        return dialect_in(text).name
    except (UnknownDialect, DialectFileError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _number(text: str, kind: type, least: float, what: str) -> float:
    try:
        number: float = kind(text)
    except ValueError:
        number = least - 1
    if not least <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return number


def _count(text: str) -> int:
    return int(_number(text, int, 0, "a number of 0 or more"))


def _positive_count(text: str) -> int:
    return int(_number(text, int, 1, "a number of 1 or more"))


def _positive(text: str) -> float:
    return _time(text, 0.001, "a number of seconds above 0")


def _seconds(text: str) -> float:
    return _time(text, 0, "a number of seconds")


def _time(text: str, least: float, what: str) -> float:
    number = _number(text, float, least, what)
    if number > MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is beyond the longest time, {MOST_SECONDS:.0f} seconds (a week)")
    return number


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day, such as 2026-11-23") from None


def _port(text: str) -> int:
    number = int(_number(text, int, 0, "a port"))
    if number > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return number


def _seed(text: str) -> int:
    if text == RANDOM:
        return random_seed()
    number = int(_number(text, int, 0, f"a seed (0 or more, or {RANDOM})"))
    if number >= 2**50:
        raise argparse.ArgumentTypeError(f"{text!r} is beyond the greatest seed, {2**50 - 1}")
    return number


def available_processors() -> int:
    """How many of the machine's this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def random_seed() -> int:
    return random.SystemRandom().randrange(1_000_000)


def seed_of_run(options: argparse.Namespace) -> int:
    """The seed that was asked for; else one by which a run that fails by what is new only is the same every time, and
    any other one is not.
    """
    if options.seed is not None:
        return int(options.seed)
    return VERIFIED_SEED if options.gate is Gate.KNOWN else random_seed()
