"""Stateful search: Hypothesis makes command sequences. A run carries them out and has them judged.

Each sequence has a theme, which weighs the actions: traffic, consumers, publishing, timeouts, topology, or the protocol
itself. Commands are chosen with a view to the planning broker (`conformance.session.plan`) only. Right ones and
deliberately wrong ones are made; how often which, is `tests/conformance/search/test_search_distribution.py`'s business
to show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.search.actions import QUEUES, TYPES, Draw
from amqpspec.conformance.search.consumer_mistakes import ConsumerMistakes
from amqpspec.conformance.search.consumers import CONSUMERS, SHARED_KINDS
from amqpspec.conformance.search.crossings import CrossingActions
from amqpspec.conformance.search.expiry import ExpiryActions
from amqpspec.conformance.search.left_open import judgeable
from amqpspec.conformance.search.limits import LimitActions
from amqpspec.conformance.search.protocol import PROTOCOL, ProtocolActions
from amqpspec.conformance.search.publishing import PUBLISHING
from amqpspec.conformance.search.restarts import RESTARTS, RestartActions
from amqpspec.conformance.search.seldom import SeldomActions
from amqpspec.conformance.search.timeouts import TIMED_KINDS, TIMEOUTS, TimeoutActions
from amqpspec.conformance.search.topology import TOPOLOGY, TopologyActions
from amqpspec.conformance.search.traffic import TRAFFIC
from amqpspec.conformance.session.plan import Plan
from amqpspec.conformance.verdicts.causes import Argument, without
from amqpspec.model.defects.known_defects import followed
from amqpspec.model.promises.choices import ConsumerTimeouts, Dialect
from amqpspec.targets.suite_error import line_of


@dataclass(frozen=True, slots=True)
class Theme:
    """What sequences can be about."""

    #: how many sequences are, of as many as all shares are together
    share: int
    #: how often each action is tried
    actions: Mapping[str, int]
    #: the kinds of the two queues that are there from the beginning; none: the opening makes some
    kinds: Sequence[str] = TYPES
    #: the action that everything begins with
    opening: str | None = None
    #: sequences spend their time waiting, and are carried out beside others when they have been made
    waits: bool = False
    #: only brokers have it whose consumers time out like that; none: all
    consumer_timeouts: ConsumerTimeouts | None = None
    #: only searched where it is asked for by name: a run shall not take minutes
    on_demand: bool = False

    def is_for(self, dialect: Dialect) -> bool:
        return self.consumer_timeouts in (None, dialect.consumer_timeouts)


#: The theme in which the broker is broken.
BREAKING = "restarts"

THEMES = {
    "traffic": Theme(5, TRAFFIC),
    "consumers": Theme(5, CONSUMERS, SHARED_KINDS, "set_the_stage"),
    "publishing": Theme(5, PUBLISHING, (), "set_the_targets"),
    # up to 4.2 only the server's setting counts, and a tick that is a minute long
    "timeouts": Theme(
        2, TIMEOUTS, TIMED_KINDS, "set_the_clocks", waits=True, consumer_timeouts=ConsumerTimeouts.OF_QUORUM_QUEUES,
        on_demand=True,
    ),
    "topology": Theme(3, TOPOLOGY),
    "protocol": Theme(2, PROTOCOL),
    BREAKING: Theme(2, RESTARTS, opening="set_the_disk", on_demand=True),
}


def themes_for(dialect: Dialect, chosen: tuple[str, ...] = ()) -> list[Theme]:
    """Of the themes of these names (none: of all that are not on demand) those that the dialect has."""
    names = chosen or [name for name, theme in THEMES.items() if not theme.on_demand]
    return [theme for name in names if (theme := THEMES[name]).is_for(dialect)]


@cache
def themes(dialect: Dialect, chosen: tuple[str, ...]) -> st.SearchStrategy[Theme]:
    """One of the themes, as often as it is due."""
    return st.sampled_from([theme for theme in themes_for(dialect, chosen) for _ in range(theme.share)])


#: One sequence of ten comes into the windows of known defects (`model.judging.windows`) as chance has it.
_ONE_OF_TEN = st.integers(0, 9)

#: Rules about frames between a publish and its content.
_BEFORE_THE_CONTENT = frozenset({"CHAN-012", "CHAN-013", "CHAN-014"})


@dataclass(frozen=True, slots=True)
class Made:
    """The commands of one sequence."""

    commands: tuple[Command, ...]
    #: it spends its time waiting, as its theme does
    waits: bool
    #: the error of this suite that ended it, in one line
    error: str | None = None


def _draw_from(data: st.DataObject) -> Draw:
    """The same draws as by `data.draw`, at half the cost: nobody shrinks these or is told of them, so that Hypothesis
    need not note where each begins and ends.
    """
    choices = data.conjecture_data

    def draw(strategy: st.SearchStrategy[Any]) -> Any:
        return strategy.do_draw(choices)

    return draw


class CommandSearch(
    CrossingActions,
    SeldomActions,
    LimitActions,
    ConsumerMistakes,
    ExpiryActions,
    TimeoutActions,
    TopologyActions,
    ProtocolActions,
    RestartActions,
    RuleBasedStateMachine,
):
    """One sequence, for which no target is needed. Subclassed for each round (`conformance.search.round`)."""

    #: methods that are left out, because the target does not advertise them
    absent: ClassVar[frozenset[str]] = frozenset()
    #: arguments that are left out, because the target refuses them
    refused: ClassVar[frozenset[Argument]] = frozenset()
    #: rules that the target breaks: nothing is done that comes under them (`conformance.verdicts.broken_rules`)
    avoided: ClassVar[frozenset[str]] = frozenset()
    #: names of the themes that sequences may have; none: all
    chosen_themes: ClassVar[tuple[str, ...]] = ()
    #: the sequences of the round so far
    made: ClassVar[list[Made]]

    def __init__(self) -> None:
        super().__init__()
        self.plan = Plan(self.dialect)
        #: it comes into no situation in which a known defect may spoil the rest
        self.keeps_out_of_windows = False
        self.commands: list[Command] = []
        self.theme_waits = False
        self.error: str | None = None

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        with self._ended_by_error():
            self._begin(_draw_from(data))

    def _begin(self, draw: Draw) -> None:
        theme = draw(themes(self.dialect, self.chosen_themes))
        self.keeps_out_of_windows = draw(_ONE_OF_TEN) > 0
        self.theme_waits = theme.waits
        self.actions = st.sampled_from([action for action, weight in theme.actions.items() for _ in range(weight)])
        for queue in QUEUES if theme.kinds else ():
            self.declare(("a", 1), queue, draw(st.sampled_from(theme.kinds)))
        if theme.opening is not None:
            getattr(self, theme.opening)(draw)

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """One action. A single rule, as Hypothesis leaves out some of several in every sequence."""
        if self.error is not None:
            return
        draw = _draw_from(data)
        action = draw(self.actions)
        if not self.is_over:
            with self._ended_by_error():
                getattr(self, action)(draw)

    @contextmanager
    def _ended_by_error(self) -> Iterator[None]:
        """An error of this suite, such as of the plan, ends the sequence, and no other."""
        try:
            yield
        except HypothesisException:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.error = line_of(error)

    def carry_out(self, command: Command) -> None:
        """The plan alone: what is drawn next may depend on nothing else."""
        if command.method not in self.absent:
            command = without(command, self.refused)
            if not self.dialect.extensions:
                left = judgeable(command, self.plan)
                if left is None:
                    return
                command = left
            if self.avoided and self._is_avoided(command):
                return
            if self.keeps_out_of_windows and self.plan.arms(command, followed(self.dialect.name).windows):
                return
            self.note_met(command)
            self.commands.append(command)  # first: it is to be seen what the plan came to an error by
            self.plan.carry_out(command)

    def comes_into_windows(self, commands: Sequence[Command]) -> bool:
        return self.keeps_out_of_windows and self.plan.arms_in_turn(commands, followed(self.dialect.name).windows)

    def _is_avoided(self, command: Command) -> bool:
        """Also a publish without its content, where everything that could follow it is: a barrier does as well."""
        is_unfinished = command.method == "basic.publish" and command.content is None
        if is_unfinished and not self.avoided.isdisjoint(_BEFORE_THE_CONTENT):
            return True
        return self.plan.comes_under(command, self.avoided)

    def teardown(self) -> None:
        self.made.append(Made(tuple(self.commands), self.theme_waits, self.error))
