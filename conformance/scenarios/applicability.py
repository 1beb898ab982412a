"""What of the suite cannot be run on a target, and why. Its requirements are then *not applicable*, with that reason.

An obstacle is known before the run. To add one, add a function to `_OBSTACLES`: it says why a scenario cannot be run on
a target, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.language.faults import of_broker
from amqpspec.conformance.scenarios.scenario_files import selected
from amqpspec.conformance.session.nodes import node_of
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.session.through_library import not_expressible
from amqpspec.model.promises.capabilities import METHODS, lacking
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.features import told_of
from amqpspec.model.promises.registry import requirements
from amqpspec.model.protocol.methods import FAULTS, OPERATOR
from amqpspec.targets.brokers.operator import asked_of, not_offered
from amqpspec.targets.brokers.single_node import BROKER_FAULTS

Obstacle = Callable[[CommandFile, TargetUnderTest], str | None]

NO_OPERATOR = "needs the operator of the broker, which this target does not offer"


def obstacle(scenario: CommandFile, target: TargetUnderTest) -> str | None:
    """Why the scenario cannot be run on the target; None if it can."""
    return next((reason for check in _OBSTACLES if (reason := check(scenario, target)) is not None), None)


def applicable(scenarios: Iterable[CommandFile], target: TargetUnderTest) -> list[CommandFile]:
    """Those that can be run on the target."""
    return [scenario for scenario in scenarios if obstacle(scenario, target) is None]


def not_applicable(target: TargetUnderTest) -> dict[str, str]:
    """The requirements none of whose scenarios can be run on the target, with the reason.

    Also those without a scenario that are about a capability which the target does not advertise, or about a feature
    that was tried and does not work.
    """
    reasons: dict[str, str] = {}
    for id, each in requirements().items():
        told = target.not_working.get(told_of(id))
        tried = (why for feature in each.features if (why := target.not_working.get(feature)))
        if absent := _absent(target, (), [id]):
            reasons[id] = target.not_working.get(absent, f"the broker does not advertise {absent}")
        elif each.note_in(target.description.dialect) is None and (why := next(tried, told)) is not None:
            reasons[id] = why
    runnable: set[str] = set()
    for scenario in selected((), target.description.dialect):
        if scenario.requirement is None:
            continue
        reason = obstacle(scenario, target)
        if reason is None:
            runnable.add(scenario.requirement)
        else:
            reasons.setdefault(scenario.requirement, reason)
    return {requirement: reason for requirement, reason in reasons.items() if requirement not in runnable}


def absent_methods(target: TargetUnderTest) -> frozenset[str]:
    """The methods of capabilities that the target does not advertise, and basic.get where it is not known to it: a
    search leaves them out.
    """
    absent = frozenset(method for method in METHODS if _absent(target, [method], ()))
    return absent if dialect_named(target.description.dialect).text.get_is_known else absent | {"basic.get"}


def left_out_of_search(target: TargetUnderTest, *, breaks: bool = False) -> frozenset[str]:
    """These, and faults where others would meet them. `breaks`: there are no others."""
    is_alone = breaks or target.own_broker is not None
    return absent_methods(target) if is_alone else absent_methods(target) | FAULTS


def cannot_be_broken(target: TargetUnderTest) -> str:
    """Why a search cannot stop, kill and pause it; "": it can."""
    if target.library is not None:
        return f"faults are not done to connections of {target.library.driver}"
    if len(target.nodes) > 1:
        return "a search breaks a broker of one node, and this is a cluster"
    missing = sorted(set(BROKER_FAULTS).difference(target.offered_faults))
    return f"this target does not offer {missing[0]}" if missing else ""


def needs_operator(commands: Iterable[Command]) -> bool:
    """Does something in it have to be done by the operator? The passing of time has not."""
    return any(each.connection == OPERATOR and each.method.startswith("operator.") for each in commands)


def _no_operator(scenario: CommandFile, target: TargetUnderTest) -> str | None:
    if not needs_operator(scenario.commands):
        return None
    if target.operator is None:
        return NO_OPERATOR
    commands = [each for each in scenario.commands if each.method.startswith("operator.")]
    asked = (what for each in commands for what in asked_of(each.method, dict(each.arguments)))
    missing = not_offered(target.operator, asked)
    return f"needs {missing}, which the operator of this target does not offer" if missing else None


def no_faults(scenario: CommandFile, target: TargetUnderTest) -> str | None:
    """What happens to a connection the suite does by itself, in between."""
    if target.library is not None and any(each.method in FAULTS for each in scenario.commands):
        return f"faults are not done to connections of {target.library.driver}"
    for each in scenario.commands:
        if (node := node_of(each.connection)) not in target.nodes:
            return f"needs node {node}, which this target does not have"
    for fault in of_broker(scenario.commands):
        if fault.method not in target.offered_faults:
            return f"needs {fault.method}, which this target does not offer"
        node = fault.arguments.get("node", 1)
        if node not in target.nodes:
            return f"needs node {node}, which this target does not have"
    return None


def _not_advertised(scenario: CommandFile, target: TargetUnderTest) -> str | None:
    """An extension that is not advertised is asked for by nobody."""
    methods = {command.method for command in scenario.commands}
    absent = _absent(target, methods, [scenario.requirement] if scenario.requirement else [])
    return target.not_working.get(absent, f"the broker does not advertise {absent}") if absent else None


def _not_answered(scenario: CommandFile, target: TargetUnderTest) -> str | None:
    """A broker that does not know basic.get has failed what is about it, and nothing else for that."""
    if dialect_named(target.description.dialect).text.get_is_known or (scenario.requirement or "").startswith("GET-"):
        return None
    asks = any(command.method == "basic.get" for command in scenario.commands)
    return "needs basic.get, which the broker does not answer (GET-001)" if asks else None


def not_said(scenario: CommandFile, target: TargetUnderTest) -> str | None:
    """Through a library only what it has words for can be asked."""
    return next((why for each in scenario.commands if (why := not_expressible(each, target))), None)


def _absent(target: TargetUnderTest, methods: Collection[str], requirements: Collection[str]) -> str:
    """A capability that is needed and not advertised, if there is one."""
    if target.capabilities is None:
        return ""
    return next(lacking(methods, requirements, target.capabilities), "")


_OBSTACLES: tuple[Obstacle, ...] = (_no_operator, no_faults, _not_advertised, _not_answered, not_said)
