"""The requirement registry: every rule that the suite holds a broker to, by its stable identifier.

The data is `model/promises/requirements/AREA.toml`. A file has the key `prefix` (what the area's identifiers begin
with) and an array of tables `requirement`:

* `id`            PREFIX-NNN; never reused, never renumbered
* `title`         a few words
* `statement`     the rule, in our words
* `level`         "0-9-1": the 0-9-1 text states it; "extension": part of a RabbitMQ extension; "de-facto":
                  neither, it is what RabbitMQ does and clients rely on
* `source`        where the rule is written; `module:function` is rabbitmq-server v4.3.5 unless a tag is given
* `queue_types`   "classic", "quorum", "stream", or "any" alone where the queue's type makes no difference
* `observable`    what shows it on the wire; a reply is {reply-code, reply-text, class-id, method-id}, "..."
                  abbreviates
* `determinism`   "exact", "set" (several right answers) or "timing"
* `verified`      which brokers were seen doing it; "no": only the source was read
* `features`      optional: the rule holds any product that has all of these (`model.promises.features`); without them
                  it is RabbitMQ's alone, unless a capability tells of it (`model.promises.capabilities`)
* `neutral`       optional, with `features`: what such a product answers for, where that is not the whole statement:
                  what is left out is RabbitMQ's own way
* `why`           optional: why the rule is as it is, in a sentence or two, for somebody who learns it
* `dialects`      dialect to "as stated", or to what holds there instead; a dialect that is not listed is one that
                  the rule does not apply to

Texts may be wrapped in the files: a run of white space counts as one space.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from amqpspec.model.promises.capabilities import CAPABILITIES, comes_with, is_replaced
from amqpspec.model.promises.dialect_names import base_of, capabilities_of
from amqpspec.model.promises.features import FEATURES
from amqpspec.model.promises.settings import law_of
from amqpspec.model.promises.strength import Strength

LEVELS = ("0-9-1", "extension", "de-facto")
DETERMINISM = ("exact", "set", "timing")
QUEUE_TYPES = ("classic", "quorum", "stream")
DIALECT_NAMES = ("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3", "amqp-0-9-1")
AS_STATED = "as stated"

#: What an identifier looks like in prose and code.
IDENTIFIER = re.compile(r"\b[A-Z]+(?:-[A-Z]+)*-\d{3}\b")

_TEXTS = ("id", "title", "statement", "level", "source", "observable", "determinism", "verified")


#: What `with_own` has made of the registry, the innermost last.
_with_own: list[Mapping[str, Requirement]] = []


class RegistryError(ValueError):
    """The requirement data cannot be used. One line that names the file and, if known, the requirement."""


class UnknownRequirement(LookupError):
    """No requirement has this identifier or prefix. One line, with the nearest ones that exist."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One rule; the fields are described at the top of this module. `area` is the name of its file."""

    id: str
    area: str
    title: str
    statement: str
    level: str
    source: str
    queue_types: tuple[str, ...]
    dialects: Mapping[str, str]
    observable: str
    determinism: str
    verified: str
    features: tuple[str, ...] = ()
    neutral: str = AS_STATED
    why: str = ""
    #: of a rule of a user's own: what it says of its severity (`model.promises.severity`); "": by what was seen
    severity: str = ""

    def note_in(self, dialect_name: str) -> str | None:
        """What holds in the dialect: `AS_STATED`, or what holds there instead; None: the rule does not apply there."""
        if is_replaced(self.id, dialect_name):
            return None
        note = self.dialects.get(law_of(self.id, dialect_name))
        if note is None and self.features and set(self.features) <= set(capabilities_of(dialect_name)):
            return self.neutral
        return AS_STATED if note is None and comes_with(self.id, dialect_name) else note

    @property
    def strength(self) -> Strength:
        """How strong the promise is: it follows from the level."""
        return Strength.CONVENTIONAL if self.level == "de-facto" else Strength.PROMISED


def requirements() -> Mapping[str, Requirement]:
    """All requirements by identifier, in the order of area, then identifier; then those of a user's own that
    `with_own` has added. Raises `RegistryError`.
    """
    return _with_own[-1] if _with_own else _registry()


def suite_requirements() -> Mapping[str, Requirement]:
    """The same without those of a user's own."""
    return _registry()


@contextmanager
def with_own(own: Iterable[Requirement]) -> Iterator[None]:
    """Rules of a user's own count as well, as long as the context lasts."""
    _with_own.append(MappingProxyType({**requirements(), **{each.id: each for each in own}}))
    try:
        yield
    finally:
        _with_own.pop()


@cache
def _registry() -> Mapping[str, Requirement]:
    with resources.as_file(resources.files("amqpspec.model.promises.requirements")) as directory:
        return MappingProxyType(load(directory))


def requirement(id: str) -> Requirement:
    """The requirement with this identifier. Raises `UnknownRequirement`."""
    found = requirements().get(id)
    if found is None:
        raise UnknownRequirement(_unknown("requirement", id, requirements()))
    return found


def select(prefixes: Sequence[str]) -> list[Requirement]:
    """The requirements whose identifier begins with one of `prefixes`, in registry order; none given: all.

    "QOS" selects QOS-001 and so on, "QOS-00" the first nine; case makes no difference. Raises
    `UnknownRequirement` for a prefix that selects nothing.
    """
    known = requirements()
    wanted = tuple(prefix.strip().upper() for prefix in prefixes)
    for given, prefix in zip(prefixes, wanted, strict=True):
        if not prefix or not any(id.startswith(prefix) for id in known):
            names = {id.rsplit("-", 1)[0] for id in known}
            raise UnknownRequirement(_unknown("requirement prefix", given, names | set(known)))
    return [each for id, each in known.items() if not wanted or id.startswith(wanted)]


def applies(requirement: Requirement, dialect_name: str, queue_type: str | None = None) -> bool:
    """Whether the rule holds a broker of this dialect to something, on a queue of this type.

    `queue_type` None: no queue is concerned, or its type is left open. Raises `ValueError` for a name that is
    no dialect or no queue type, so that a misspelt name does not pass for "not applicable".
    """
    if base_of(dialect_name) not in DIALECT_NAMES:
        raise ValueError(f"no dialect {dialect_name!r}; there are {', '.join(DIALECT_NAMES)}")
    if queue_type is not None and queue_type not in QUEUE_TYPES:
        raise ValueError(f"no queue type {queue_type!r}; there are {', '.join(QUEUE_TYPES)}")
    if requirement.note_in(dialect_name) is None:
        return False
    return queue_type is None or requirement.queue_types == ("any",) or queue_type in requirement.queue_types


def load(directory: Path) -> dict[str, Requirement]:
    """Reads and checks every `*.toml` of `directory`. Raises `RegistryError`; reads anew each time."""
    loaded: dict[str, Requirement] = {}
    prefixes: dict[str, str] = {}
    files = sorted(directory.glob("*.toml"))
    if not files:
        raise RegistryError(f"{directory}: no requirement files")
    for file in files:
        document = _read(file)
        prefix = document.get("prefix")
        if not isinstance(prefix, str) or not re.fullmatch(r"[A-Z]+(-[A-Z]+)*", prefix):
            raise RegistryError(f'{file.name}: prefix must be capital letters, such as "ACK"')
        if prefix in prefixes:
            raise RegistryError(f"{file.name}: prefix {prefix} is already that of {prefixes[prefix]}")
        prefixes[prefix] = file.name
        for each in sorted(_entries(file, document, prefix), key=lambda entry: entry.id):
            if each.id in loaded:
                raise RegistryError(f"{file.name}: {each.id}: the identifier is used twice")
            loaded[each.id] = each
    return loaded


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RegistryError(f"{file.name}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RegistryError(f"{file.name}: not valid TOML: {_one_line(str(error))}") from error


def _entries(file: Path, document: dict[str, Any], prefix: str) -> Iterator[Requirement]:
    surplus = document.keys() - {"prefix", "requirement"}
    if surplus:
        raise RegistryError(f"{file.name}: unknown key {min(surplus)}")
    tables = document.get("requirement")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise RegistryError(f"{file.name}: there must be [[requirement]] tables")
    for position, table in enumerate(tables, start=1):
        name = table.get("id")
        subject = name if isinstance(name, str) else f"requirement number {position}"
        yield _entry(f"{file.name}: {subject}", file.stem, prefix, table)


def _entry(where: str, area: str, prefix: str, table: dict[str, Any]) -> Requirement:
    expected = {*_TEXTS, "queue_types", "dialects"}
    if missing := expected - table.keys():
        raise RegistryError(f"{where}: {min(missing)} is missing")
    if surplus := table.keys() - expected - {"features", "neutral", "why"}:
        raise RegistryError(f"{where}: unknown field {min(surplus)}")
    texts: dict[str, str] = {}
    for name in _TEXTS:
        if not isinstance(table[name], str) or not table[name].strip():
            raise RegistryError(f"{where}: {name} must be a text that is not empty")
        texts[name] = _one_line(table[name])
    if not re.fullmatch(re.escape(prefix) + r"-\d{3}", texts["id"]):
        raise RegistryError(f"{where}: the identifier must be {prefix}- and three digits")
    for name, allowed in (("level", LEVELS), ("determinism", DETERMINISM)):
        if texts[name] not in allowed:
            raise RegistryError(f"{where}: {name} must be one of {', '.join(allowed)}, not {texts[name]!r}")
    features, neutral = _part_of_others(where, table)
    why = table.get("why", "")
    if not isinstance(why, str) or ("why" in table and not why.strip()):
        raise RegistryError(f"{where}: why must be a text that is not empty")
    return Requirement(
        area=area,
        queue_types=_queue_types(where, table["queue_types"]),
        dialects=_dialects(where, table["dialects"]),
        features=features,
        neutral=neutral,
        why=_one_line(why),
        **texts,
    )


def _part_of_others(where: str, table: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    """What of it holds products that are not RabbitMQ, beside what the dialects say: `features` and `neutral`."""
    features, neutral = table.get("features", []), table.get("neutral", AS_STATED)
    known = (*FEATURES, *CAPABILITIES)
    if not isinstance(features, list) or not all(each in known for each in features):
        raise RegistryError(f"{where}: features must be a list of {', '.join(known)}")
    if not isinstance(neutral, str) or not neutral.strip() or ("neutral" in table and not features):
        raise RegistryError(f"{where}: neutral must be a text that is not empty, beside features")
    return tuple(features), _one_line(neutral)


def _queue_types(where: str, value: object) -> tuple[str, ...]:
    if value == ["any"]:
        return ("any",)
    if not isinstance(value, list) or not value or not all(each in QUEUE_TYPES for each in value):
        raise RegistryError(f'{where}: queue_types must be ["any"] or a list of {", ".join(QUEUE_TYPES)}')
    return tuple(value)


def _dialects(where: str, value: object) -> Mapping[str, str]:
    if not isinstance(value, dict) or not value:
        raise RegistryError(f"{where}: dialects must be a table that is not empty")
    texts: dict[str, str] = {}
    for name, text in value.items():
        if name not in DIALECT_NAMES:
            raise RegistryError(f"{where}: no dialect {name!r}; there are {', '.join(DIALECT_NAMES)}")
        if not isinstance(text, str) or not text.strip():
            raise RegistryError(f"{where}: dialect {name} must be a text that is not empty")
        texts[name] = _one_line(text)
    return MappingProxyType(texts)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _unknown(what: str, given: str, known: Iterable[str]) -> str:
    near = get_close_matches(given.strip().upper(), sorted(known), n=3, cutoff=0.6)
    hint = f"; did you mean {', '.join(near)}?" if near else "; see: amqpspec requirements"
    return f"no {what} {given!r}{hint}"
