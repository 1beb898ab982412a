"""The random search of a run: its rounds, some at a time, and what comes of their sequences, in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.search.machine import themes_for
from amqpspec.conformance.search.round import ROUND
from amqpspec.conformance.session.command_sequence import CarriedOut, CommandSequence
from amqpspec.conformance.session.side_by_side import MOST_SET_ASIDE, SetAside
from amqpspec.conformance.under_way import UnderWay
from amqpspec.conformance.verdicts.broken_rules import Learned
from amqpspec.conformance.verdicts.events import Listener, SequenceStarted, tell
from amqpspec.conformance.workers import MadeRound, Round, Workers, is_over
from amqpspec.model.promises.choices import Dialect
from amqpspec.targets.clock import Clock

#: Rounds of the search after which the run looks at what the target refuses and breaks: where nothing is known of it
#: yet or there was something to learn, and else, which is all of a default run.
FIRST_ROUNDS, LATER_ROUNDS = 1, 12


class SearchOfRun:
    """`take`: is given what comes of each sequence. `is_blocked`: is that all that is said of it, before it is carried
    out? `learned`: what is known of the target by now.
    """

    def __init__(
        self,
        dialect: Dialect,
        options: RunOptions,
        listeners: Iterable[Listener],
        under_way: UnderWay,
        take: Callable[[CarriedOut], None],
        is_blocked: Callable[[CommandSequence], bool],
        is_enough: Callable[[], bool],
        learned: Callable[[], Learned],
    ) -> None:
        self._dialect = dialect
        self._options = options
        self._listeners = tuple(listeners)
        self._under_way = under_way
        self._take = take
        self._is_blocked = is_blocked
        self._is_enough = is_enough
        self._learned = learned
        #: the rounds that are carried out now: the first, and what they leave out
        self._now: tuple[int, Learned | None] = (0, None)
        #: those that are made already, by whom
        self._prepared: tuple[Workers, Iterator[list[MadeRound]]] | None = None
        self._until: float | None = None
        #: the time was up before all sequences were begun
        self.is_cut_short = False
        #: rules that some round left alone, as the target breaks them again and again
        self.left_alone: frozenset[str] = frozenset()

    def prepare(self, workers: Workers) -> None:
        """Have the first rounds made while others wait. What is learned from now on is heeded by those after them."""
        if themes_for(self._dialect, self._options.themes):
            for rounds in islice(self._rounds(), 1):
                self._prepared = workers, workers.made(rounds)

    def go_on(
        self,
        workers: Workers,
        carry_out: Callable[[CommandSequence], CarriedOut],
        clock: Clock,
        until: float | None = None,
    ) -> None:
        """Search until the number of sequences is reached. Called again, it goes on after those that are over.

        `until`: nothing is begun after that (of `time.monotonic`), whatever time there is for the search.
        """
        if not themes_for(self._dialect, self._options.themes):
            return
        if self._until is None and self._options.time_budget is not None:
            self._until = time.monotonic() + self._options.time_budget
        if until is not None:
            self._until = until
        with SetAside(carry_out, clock) as waiting:
            for rounds in self._rounds():
                by, prepared = self._prepared or (None, iter(()))
                self._prepared = None
                for made in prepared if by is workers else workers.made(rounds):
                    self._carry_out(made, workers, waiting)
            for each in waiting.taken(but=0):
                if not self._is_enough():
                    self._take(each)
        self.is_cut_short = is_over(self._until) and not self._is_enough()

    def _carry_out(self, rounds: Sequence[MadeRound], workers: Workers, waiting: SetAside) -> None:
        """Begin waiting sequences at once. After each round take as many of their results as if it were the last."""
        round_of: dict[str, int] = {}
        chosen: list[CommandSequence] = []
        still_to_come = [0] * len(rounds)
        for number, made in enumerate(rounds):
            for sequence, waits in made:
                if self._under_way.is_over(sequence.name) or self._is_blocked(sequence):
                    continue
                if waits and not self._options.breaks:
                    tell(self._listeners, SequenceStarted(sequence.name))
                    waiting.begin(self._under_way.begin(sequence, waits=True))
                    still_to_come[:number] = (1 + many for many in still_to_come[:number])
                else:
                    round_of[sequence.name] = number
                    chosen.append(sequence)
        outcomes = workers.carried_out(map(self._under_way.begin, chosen), self._until)
        outcome = next(outcomes, None)
        for number in range(len(rounds)):
            while outcome is not None and round_of[outcome.sequence.name] == number:
                tell(self._listeners, SequenceStarted(outcome.sequence.name))
                self._take(outcome)
                outcome = next(outcomes, None)
            for each in waiting.taken(but=MOST_SET_ASIDE + still_to_come[number]):
                self._take(each)

    def _rounds(self) -> Iterator[Iterator[Round]]:
        """Some at a time: what was learned of the target by then is heeded by the next ones."""
        first, learned = self._now
        while first * ROUND < self._options.sequences and not is_over(self._until) and not self._is_enough():
            if learned is None:
                learned = self._learned() if self._options.learns else Learned()
            self._now = first, learned
            self.left_alone |= learned.avoided
            is_unknown = first == 0 and (self._options.search_only or bool(self._options.only))
            many = FIRST_ROUNDS if is_unknown or any(learned) else LATER_ROUNDS
            yield self._some_rounds(range(first, first + many), learned)
            first, learned = self._now = first + many, None

    def _some_rounds(self, numbers: Iterable[int], learned: Learned) -> Iterator[Round]:
        for number in numbers:
            left = self._options.sequences - number * ROUND
            if left <= 0 or is_over(self._until) or self._is_enough():
                return
            yield Round(number, min(left, ROUND), *learned)
