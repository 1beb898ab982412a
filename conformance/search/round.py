"""Rounds of the search: how Hypothesis is asked for sequences.

The search is made of rounds of few sequences, each with a seed of its own. In a longer one Hypothesis makes most of
what follows its first ten (those of its health checks) by copying parts of sequences to and fro: hundreds of them are
alike then, and what one did not show, none does.
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from amqpspec.conformance.search.machine import CommandSearch

#: Sequences that Hypothesis makes in one round. The first is always the same, the least of all, and left out.
MADE = 10
#: Sequences of one round that are carried out.
ROUND = MADE - 1
#: Most rounds of a run; the next seed's rounds begin behind them.
MOST_ROUNDS = 1_000_000


def run_round(machine: type[CommandSearch], first_seed: int, number: int, steps: int) -> None:
    """Let the machine carry out one round: the `number`th of the run with that seed. Raises what the machine raises."""
    machine.made = 0
    seed(first_seed * MOST_ROUNDS + number)(machine)
    run_state_machine_as_test(
        machine,
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
        ),
    )
