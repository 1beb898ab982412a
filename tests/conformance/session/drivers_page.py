"""The table of docs/drivers.md: what a driver has no words for, and some scenario needs.

`python -m tests.conformance.session.drivers_page` prints it.
"""

from __future__ import annotations

from amqpspec.conformance.scenarios.applicability import not_said
from amqpspec.conformance.scenarios.scenario_files import selected
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.targets.address import Address
from amqpspec.targets.drivers.library import DISTRIBUTIONS, Library


def reasons(driver: str) -> set[str]:
    """Why some scenarios are not applicable, without the name of the driver."""
    found: set[str] = set()
    for dialect in DIALECTS:
        description = TargetDescription("", "", "", dialect)
        target = TargetUnderTest(Address("localhost", 5672), description, library=Library(driver, ""))
        found.update(why for each in selected((), dialect) if (why := not_said(each, target)))
    return {why.removeprefix("not applicable for this driver: ").replace(driver, "it") for why in found}


def table() -> str:
    """Markdown."""
    of_driver = {driver: reasons(driver) for driver in DISTRIBUTIONS}
    lines = [f"| not applicable, as | {' | '.join(f'`{driver}`' for driver in of_driver)} |"]
    lines.append("|---" * (1 + len(of_driver)) + "|")
    for reason in sorted(set().union(*of_driver.values())):
        cells = ("✗" if reason in some else "" for some in of_driver.values())
        lines.append(f"| {reason} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
