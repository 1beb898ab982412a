"""The scenarios that come with the suite: a command file or several for each requirement, a directory for each chapter.

They are called ID.amqp, and ID-words.amqp where one sequence cannot show all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_file import CommandFile, CommandFileError, read_command_file
from amqpspec.conformance.session.command_sequence import CommandSequence
from amqpspec.conformance.verdicts.blame import said_by
from amqpspec.model.promises.choices import DeprecatedFeature, Dialect
from amqpspec.model.promises.dialect_names import base_of
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.features import means_something
from amqpspec.model.promises.registry import AS_STATED, DIALECT_NAMES, Requirement, with_own
from amqpspec.model.promises.settings import law_of
from amqpspec.model.protocol.methods import Content, Table
from amqpspec.model.rules.basic.message_checks import KEY_HEADERS

DIRECTORY = Path(__file__).parent

_TYPE, _CLASSIC = "x-queue-type", "classic"
#: Who logs in, where a scenario says so.
_USER = "guest"

#: What ends those values of x-match that are RabbitMQ's own.
WITH_X = "-with-x"

#: Keys of messages and of bindings by section 3.1.3.3, for topics.
_WORDS = re.compile(r"[A-Za-z0-9.]*")
_PATTERN = re.compile(r"([A-Za-z0-9]*|[*#])(\.([A-Za-z0-9]*|[*#]))*")

#: Begins the name of a scenario's sequence.
_SCENARIO = "scenario"
#: The requirement that is about queues which are neither durable nor exclusive.
_ABOUT_TRANSIENT = "QUEUE-018"

#: Chapters in the order in which they are run: what every client does comes first, how connections and consumers end
#: comes last, so that a broker that breaks down half-way has said the most.
CHAPTERS = (
    "exchange", "binding", "publish", "get", "ack", "channel", "confirm", "tx", "consume", "qos", "recover",
    "quorum", "cluster", "dlx", "overflow",
    "ttl", "policy", "timeout", "stream", "sac", "consumer-priority", "direct-reply", "queue",
    "connection",
    "capabilities", "permission", "cancel", "server", "durability",
)  # fmt: skip


def all_scenarios() -> tuple[CommandFile, ...]:
    """Every scenario, one for each queue type, in the order of chapters and requirements; then those of a user's own
    (`own_scenarios`). Raises `CommandFileError` for a file that cannot be read.
    """
    return _of_the_suite() + tuple(file for own in _own for file in own)


#: What `own_scenarios` has read, the innermost last.
_own: list[tuple[CommandFile, ...]] = []


@contextmanager
def own_scenarios(directory: Path | None) -> Iterator[None]:
    """As long as the context lasts, the files of a folder are scenarios as well, and what they are written for are
    requirements. None: there is no such folder. Raises `CommandFileError`.
    """
    files = () if directory is None else _read_own(directory)
    rules = {each.requirement: rule_of(each) for each in files if each.requirement and each.severity}
    _own.append(files)
    try:
        with with_own(rules.values()):
            yield
    finally:
        _own.pop()


def _read_own(directory: Path) -> tuple[CommandFile, ...]:
    if not directory.is_dir():
        raise CommandFileError(f"{directory}: no such folder")
    paths = sorted(directory.rglob("*.amqp"))
    if not paths:
        raise CommandFileError(f"{directory}: holds no command file (*.amqp)")
    names = {each.name: "the suite" for each in all_scenarios()}
    said: dict[str, tuple[tuple[str, str], Path]] = {}
    read: list[CommandFile] = []
    for path in paths:
        files = read_command_file(path)
        first = files[0]
        if first.requirement is None:
            raise CommandFileError(f"{path}:1:1: a scenario says by @requirement what it is written for")
        if first.name in names:
            raise CommandFileError(f"{path}: {names[first.name]} has a scenario of that name")
        names[first.name] = str(path)
        rule = (first.title, first.severity)
        known, where = said.setdefault(first.requirement, (rule, path))
        if first.severity and known != rule:
            raise CommandFileError(f"{path}:1:1: {first.requirement} has another @title or @severity in {where}")
        read += files
    return tuple(read)


def rule_of(file: CommandFile) -> Requirement:
    """What the registry says of a rule of a user's own. It holds wherever its files do not say otherwise."""
    id = file.requirement or ""
    return Requirement(
        id=id,
        area=id.rpartition("-")[0].lower(),
        title=file.title,
        statement=file.title,
        level="extension",
        source="a scenario of one's own",
        queue_types=("any",),
        dialects=dict.fromkeys(DIALECT_NAMES, AS_STATED),
        observable="as its scenarios expect",
        determinism="exact",
        verified="no",
        severity=file.severity,
    )


@cache
def _of_the_suite() -> tuple[CommandFile, ...]:
    return tuple(file for path in sorted(DIRECTORY.rglob("*.amqp"), key=_place) for file in read_command_file(path))


def _place(path: Path) -> tuple[int, Path]:
    chapter = path.parent.name
    return (CHAPTERS.index(chapter) if chapter in CHAPTERS else len(CHAPTERS), path)


def selected(prefixes: Sequence[str], dialect: str) -> list[CommandFile]:
    """Those for requirements that begin with one of `prefixes` (none: all) and that hold in the dialect.

    As in `model.promises.registry.select`, case makes no difference.
    """
    wanted = tuple(prefix.strip().upper() for prefix in prefixes)
    of_dialect = (
        scenario
        for scenario in all_scenarios()
        if (not wanted or (scenario.requirement or "").startswith(wanted))
        and (not scenario.dialects or law_of(scenario.requirement or "", dialect) in scenario.dialects)
    )
    judged_by = dialect_named(dialect)
    chosen, own = _parted(of_dialect)
    if judged_by.transient_queues is DeprecatedFeature.REFUSED:
        return [each if each.requirement == _ABOUT_TRANSIENT else _durably(each) for each in chosen] + own
    if judged_by.extensions:
        return chosen + own
    return [_in_the_text(each, judged_by) for each in chosen if not why_not_of(each, judged_by)] + own


def _parted(scenarios: Iterable[CommandFile]) -> tuple[list[CommandFile], list[CommandFile]]:
    """Those of the suite, and those of a user's own, which are carried out as they are written."""
    chosen = list(scenarios)
    own = {id(each) for files in _own for each in files}
    return [each for each in chosen if id(each) not in own], [each for each in chosen if id(each) in own]


def why_not_of(scenario: CommandFile, dialect: Dialect) -> str:
    """Why a product that is held to the text and some features is not asked for the scenario; "": it is.

    The text has no types of queues: the classic one is just a queue. What the arguments of a queue mean is in no text.
    """
    id = scenario.requirement
    if scenario.own:
        return scenario.own
    if scenario.dialects and base_of(dialect.name) not in scenario.dialects:
        return f"for {', '.join(scenario.dialects)}"
    if id is not None and said_by(id, dialect) is None:
        return f"{id} is no matter of the text or of its features"
    for command in scenario.commands:
        for name, value in _arguments(command).items() if command.method == "queue.declare" else ():
            if not means_something(dialect, name, value) and (name, value) != (_TYPE, _CLASSIC):
                return f"needs {name}" if name != _TYPE else f"needs {name}={value}"
    return ""


def _durably(scenario: CommandFile) -> CommandFile:
    """The scenario, whose queues are durable if they are not exclusive: an operator has denied all others."""
    return replace(scenario, commands=tuple(map(_durable, scenario.commands)))


def _durable(command: Command) -> Command:
    if command.method != "queue.declare" or command.arguments.get("exclusive"):
        return command
    return replace(command, arguments={**command.arguments, "durable": True})


def _in_the_text(scenario: CommandFile, dialect: Dialect) -> CommandFile:
    """The scenario, whose queues have no type, whose messages have nothing that is neither in the text nor among the
    features that are there, and whose bindings are in the text. It shows what has the same there as its requirement.
    """
    topics = {_exchange(each) for each in scenario.commands if each.arguments.get("type") == "topic"}
    in_the_text = (
        each
        for each in scenario.commands
        if not _matches_otherwise(each) and (_exchange(each) not in topics or _has_key_of_topics(each))
    )
    commands = (replace(each, content=without_meaning(each.content, dialect)) for each in in_the_text)
    left = tuple(without_reserved(_without_type(each)) for each in commands)
    return replace(scenario, commands=left, requirement=scenario.requirement and said_by(scenario.requirement, dialect))


def _matches_otherwise(command: Command) -> bool:
    """Does it bind by headers in a way that is RabbitMQ's own? Section 3.1.3.4 has all and any."""
    return str(_arguments(command).get("x-match", "")).endswith(WITH_X)


def _exchange(command: Command) -> str | None:
    return command.arguments.get("exchange")


def _has_key_of_topics(command: Command) -> bool:
    """Is its key one of those that section 3.1.3.3 has for topics? Words are of letters and digits, and may be empty.
    In bindings `*` and `#` are words as well.
    """
    words = _WORDS if command.method == "basic.publish" else _PATTERN
    return words.fullmatch(str(command.arguments.get("routing_key", ""))) is not None


def without_reserved(command: Command) -> Command:
    """The exchange.declare without auto-delete and internal, which are reserved in 0-9-1; some brokers act by them."""
    if command.method != "exchange.declare":
        return command
    arguments = {n: value for n, value in command.arguments.items() if n not in ("auto_delete", "internal")}
    return command if arguments == command.arguments else replace(command, arguments=arguments)


def without_meaning(content: Content | None, dialect: Dialect = AMQP_0_9_1) -> Content | None:
    """The content without what a broker may act by though no text says how, nor that it does; but for features.

    These are the time to live, the user-id of somebody else (RabbitMQ refuses it), and further routing keys in headers.
    """
    if content is None:
        return None
    properties = dict(content.properties)
    if not dialect.has("expiration") or not properties.get("expiration", "").isdecimal():
        properties.pop("expiration", None)
    if properties.get("user_id") != _USER and not dialect.has("user-id"):
        properties.pop("user_id", None)
    unknown = [name for name in KEY_HEADERS if not dialect.has(name)]
    headers = properties.get("headers")
    if headers and not headers.keys().isdisjoint(unknown):
        properties["headers"] = {name: value for name, value in headers.items() if name not in unknown}
    return content if properties == content.properties else replace(content, properties=properties)


def _without_type(command: Command) -> Command:
    table = _arguments(command)
    if table.get(_TYPE) != _CLASSIC:
        return command
    left = {name: value for name, value in table.items() if name != _TYPE}
    others = {name: value for name, value in command.arguments.items() if name != "arguments"}
    return replace(command, arguments={**others, "arguments": left} if left else others)


def _arguments(command: Command) -> Table:
    table = command.arguments.get("arguments")
    return table if isinstance(table, dict) else {}


def sequence_name(scenario: CommandFile) -> str:
    return " ".join(filter(None, (_SCENARIO, scenario.name, scenario.queue_type)))


def sequence_of(scenario: CommandFile) -> CommandSequence:
    """What is carried out for the scenario."""
    return CommandSequence(sequence_name(scenario), scenario.commands, scenario.requirement, slow=scenario.slow)


def is_scenario(sequence: str) -> bool:
    """Is it the name of a scenario's sequence?"""
    return sequence.startswith(f"{_SCENARIO} ")
