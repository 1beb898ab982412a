"""Rounds of the search: how Hypothesis is asked for sequences.

The search is made of rounds of few sequences, each with a seed of its own. In a longer one Hypothesis makes most of
what follows its first ten (those of its health checks) by copying parts of sequences to and fro: hundreds of them are
alike then, and what one did not show, none does.

A round is made without any target, so that rounds can be made anywhere and in any order: what becomes of one makes no
difference to another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider
from hypothesis.stateful import run_state_machine_as_test

from amqpspec.conformance.search.actions import NO_LIMITS, Limits
from amqpspec.conformance.search.machine import CommandSearch, Made
from amqpspec.conformance.verdicts.causes import Argument
from amqpspec.model.promises.choices import Dialect

#: Sequences that Hypothesis makes in one round. The first is always the same, the least of all, and left out.
MADE = 10
#: Sequences of one round that are carried out.
ROUND = MADE - 1
#: Most rounds of a run; the next seed's rounds begin after them.
MOST_ROUNDS = 1_000_000


class _Provider(HypothesisProvider):
    """Draws no numbers from the literals of modules: what is drawn would depend on which of them are loaded."""

    def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:
        return None


_BACKEND = "amqpspec"
AVAILABLE_PROVIDERS[_BACKEND] = _Provider


def make_round(
    dialect: Dialect,
    first_seed: int,
    number: int,
    steps: int = 30,
    themes: Sequence[str] = (),
    absent: frozenset[str] = frozenset(),
    machine: type[CommandSearch] = CommandSearch,
    limits: Limits = NO_LIMITS,
    refused: frozenset[Argument] = frozenset(),
    avoided: frozenset[str] = frozenset(),
) -> list[Made]:
    """The sequences of one round: the `number`th of the run with that seed.

    `themes`: names of those that sequences may have; none: all but those on demand. `absent`: methods to leave out.
    `limits`: those that the target sets. `refused`: arguments to leave out. `avoided`: rules
    that nothing shall come under.
    """
    made: list[Made] = []
    members: dict[str, Any] = {"dialect": dialect, "chosen_themes": tuple(themes), "absent": absent, "made": made}
    members |= {"limits": limits, "refused": refused, "avoided": avoided, "met": Counter()}
    search: Any = type("Search", (machine,), members)
    seed(first_seed * MOST_ROUNDS + number)(search)
    run_state_machine_as_test(
        search,
        settings=settings(
            max_examples=MADE,
            stateful_step_count=steps,
            # our own shrinking works on commands, and knows what a deadline costs
            phases=(Phase.generate,),
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
            print_blob=False,
            backend=_BACKEND,
        ),
    )
    return made[1:]
