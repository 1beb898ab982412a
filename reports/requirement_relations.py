"""What belongs to a requirement beside its text: its scenarios, related requirements, and a search over all of it.

Related are requirements that name each other, and those that the same rules of the model name: each file of
`model/rules` and `model/outputs` ends its description with a list of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import permutations

from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.scenarios.scenario_files import all_scenarios
from amqpspec.model.promises.registry import IDENTIFIER, Requirement, requirements

#: Most related requirements, and most identifiers of a file that says which belong together.
MOST_RELATED, MOST_IN_FILE = 8, 16
#: Most requirements that have a word by which two are taken to be alike.
MOST_WITH_WORD = 30
_WORD = re.compile(r"[a-z0-9_.-]+")
_LISTED = re.compile(r"^\* ([A-Z-]+-\d{3}):", re.MULTILINE)


@cache
def scenarios_of() -> Mapping[str, tuple[CommandFile, ...]]:
    """By identifier the scenarios, each once, whatever the types of queues. Raises `CommandFileError`."""
    found: dict[str, dict[str, CommandFile]] = {}
    for scenario in all_scenarios():
        found.setdefault(scenario.requirement or "", {}).setdefault(scenario.name or "", scenario)
    return {id: tuple(some.values()) for id, some in found.items()}


def related(id: str) -> tuple[str, ...]:
    """Identifiers of related requirements, the nearest first."""
    return _related().get(id, ())


@cache
def _related() -> Mapping[str, tuple[str, ...]]:
    known = requirements()
    near: dict[str, Counter[str]] = {id: Counter() for id in known}
    for each in known.values():
        for other in set(IDENTIFIER.findall(_text(each))) & known.keys() - {each.id}:
            near[each.id][other] += 100
            near[other][each.id] += 100
    for folder in ("rules", "outputs"):
        for text in _texts(resources.files("amqpspec.model") / folder):
            listed = set(_LISTED.findall(text)) & known.keys()
            if len(listed) <= MOST_IN_FILE:
                for one in listed:
                    near[one].update(listed - {one})
    for one, others in _alike(known).items():
        near[one].update(others)
    places = {id: place for place, id in enumerate(known)}

    def ranked(id: str) -> tuple[str, ...]:
        others = near[id]
        order = sorted(others, key=lambda other: (-others[other], abs(places[other] - places[id])))
        return tuple(order[:MOST_RELATED])

    return {id: ranked(id) for id in known}


def _alike(known: Mapping[str, Requirement]) -> Mapping[str, Counter[str]]:
    """Others of the same area, by the number of words that they share and few requirements have."""
    words = {id: {word for word in _WORD.findall(_text(each).lower()) if len(word) > 4} for id, each in known.items()}
    often = Counter(word for some in words.values() for word in some)
    rare = {id: {word for word in some if often[word] <= MOST_WITH_WORD} for id, some in words.items()}
    alike: dict[str, Counter[str]] = {id: Counter() for id in known}
    for one, other in permutations(known, 2):
        shared = len(rare[one] & rare[other])
        if shared > 1 and known[one].area == known[other].area:
            alike[one][other] = shared
    return alike


def _texts(folder: Traversable) -> list[str]:
    found: list[str] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _texts(entry)
        elif entry.name.endswith(".py"):
            found.append(entry.read_text(encoding="utf-8"))
    return found


def _text(each: Requirement) -> str:
    return " ".join((each.title, each.statement, each.why, each.observable, *each.dialects.values()))


def search(query: str) -> list[Requirement]:
    """The requirements in which every word of the query stands, the nearest first; where none has all, those that have
    the most. A word is found where another one begins with it; a title counts more than a sentence, and that more than
    the commands of scenarios. No word at all finds nothing.
    """
    words = _WORD.findall(query.lower())
    scored: list[tuple[int, int, Requirement]] = []
    for each in requirements().values():
        fields = _fields(each)
        weights = [max((weight for weight, text in fields if _begins(word, text)), default=0) for word in words]
        found = sum(map(bool, weights))
        if found:
            scored.append((found, sum(weights), each))
    most = max((found for found, _, _ in scored), default=0)
    chosen = [(weight, each) for found, weight, each in scored if found == most]
    return [each for _, each in sorted(chosen, key=lambda one: -one[0])]


def _begins(word: str, text: str) -> bool:
    return re.search(rf"(?<![a-z0-9]){re.escape(word)}", text) is not None


def _fields(each: Requirement) -> Sequence[tuple[int, str]]:
    """Texts in which words are looked for, each with its weight."""
    of_scenarios = scenarios_of().get(each.id, ())
    titles = " ".join(scenario.title for scenario in of_scenarios)
    commands = " ".join(str(command) for scenario in of_scenarios for command in scenario.commands)
    said = ((10, f"{each.id} {each.area} {each.title}"), (6, each.statement), (4, titles), (3, _text(each)))
    return [(weight, text.lower()) for weight, text in (*said, (2, each.source), (1, commands))]
