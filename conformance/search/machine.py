"""Stateful search: Hypothesis makes command sequences, the target carries them out, the model judges.

Each sequence has a theme, which weighs the actions: traffic, consumers, publishing, timeouts, topology, or the protocol
itself. Commands are chosen with a view to the planning broker (`conformance.search.plan`) only. Right ones and
deliberately wrong ones are made; how often which, is `tests/conformance/search/test_search_distribution.py`'s business
to show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.search.actions import QUEUES, TYPES
from amqpspec.conformance.search.consumer_mistakes import ConsumerMistakes
from amqpspec.conformance.search.consumers import CONSUMERS, SHARED_KINDS
from amqpspec.conformance.search.crossings import CrossingActions
from amqpspec.conformance.search.expiry import ExpiryActions
from amqpspec.conformance.search.limits import LimitActions
from amqpspec.conformance.search.plan import Plan
from amqpspec.conformance.search.protocol import PROTOCOL, ProtocolActions
from amqpspec.conformance.search.publishing import PUBLISHING
from amqpspec.conformance.search.timeouts import TIMED_KINDS, TIMEOUTS, TimeoutActions
from amqpspec.conformance.search.topology import TOPOLOGY, TopologyActions
from amqpspec.conformance.search.traffic import TRAFFIC
from amqpspec.conformance.session.session import Session
from amqpspec.model.promises.choices import ConsumerTimeouts, Dialect
from amqpspec.model.promises.verdict import Failure
from amqpspec.targets.errors import TargetError


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
}


def themes_for(dialect: Dialect, chosen: tuple[str, ...] = ()) -> list[Theme]:
    """Of the themes of these names (none: of all that are not on demand) those that the dialect has."""
    names = chosen or [name for name, theme in THEMES.items() if not theme.on_demand]
    return [theme for name in names if (theme := THEMES[name]).is_for(dialect)]


@cache
def themes(dialect: Dialect, chosen: tuple[str, ...]) -> st.SearchStrategy[Theme]:
    """One of the themes, as often as it is due."""
    return st.sampled_from([theme for theme in themes_for(dialect, chosen) for _ in range(theme.share)])


class Deviation(AssertionError):
    """A sequence showed a failure that was not known yet. One subclass for each identity, so that each is shrunk."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.identity)
        self.failure = failure


_deviations: dict[str, type[Deviation]] = {}


def deviation(failure: Failure) -> Deviation:
    kind = _deviations.get(failure.identity)
    if kind is None:
        kind = _deviations[failure.identity] = type(f"Deviation{len(_deviations) + 1}", (Deviation,), {})
    return kind(failure)


class CommandSearch(
    CrossingActions,
    LimitActions,
    ConsumerMistakes,
    ExpiryActions,
    TimeoutActions,
    TopologyActions,
    ProtocolActions,
    RuleBasedStateMachine,
):
    """One sequence. Subclassed for each run, with `open_session`, `finished`, `dialect` and what is known already."""

    #: methods that are left out, because the target does not advertise them
    absent: ClassVar[frozenset[str]] = frozenset()
    #: names of the themes that sequences may have; none: all
    chosen_themes: ClassVar[tuple[str, ...]] = ()
    #: identities of failures that need not be reported again
    known: ClassVar[set[str]]
    #: the first new failure, with the sequence that showed it and its commands
    failure: ClassVar[Failure | None]
    failing_sequence: ClassVar[str]
    failing: ClassVar[tuple[Command, ...]]
    #: sequences of the round so far (`conformance.search.round`)
    made: ClassVar[int] = 0
    #: the target was lost in some sequence: nothing that follows is carried out
    lost: ClassVar[TargetError | None] = None

    @classmethod
    def open_session(cls) -> Session | None:
        """A session for the next sequence; None when there is to be none any more."""
        raise NotImplementedError

    @classmethod
    def finished(cls, session: Session, commands: list[Command]) -> None:
        """Told of every finished sequence and its commands."""

    @classmethod
    def set_aside(cls, commands: list[Command]) -> None:
        """Given the commands of every sequence that is to be carried out beside others, as its theme waits."""

    def __init__(self) -> None:
        super().__init__()
        self.plan = Plan(self.dialect)
        self.commands: list[Command] = []
        kind = type(self)
        kind.made += 1
        #: None as well when the time is up: such sequences are not carried out
        self.session: Session | None = None
        self.is_set_aside = False

    # -------------------------------------------------------------------------------------- what is drawn

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        kind = type(self)
        theme = data.draw(themes(self.dialect, kind.chosen_themes))
        if kind.made > 1:  # the first of a round is left out
            self.is_set_aside = theme.waits
            self.session = None if theme.waits else kind.open_session()
        self.actions = st.sampled_from([action for action, weight in theme.actions.items() for _ in range(weight)])
        for queue in QUEUES if theme.kinds else ():
            self.declare(("a", 1), queue, data.draw(st.sampled_from(theme.kinds)))
        if theme.opening is not None:
            getattr(self, theme.opening)(data.draw)

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """One action. A single rule, as Hypothesis leaves out some of several in every sequence."""
        action = data.draw(self.actions)
        if not self.is_over:
            getattr(self, action)(data.draw)

    # ------------------------------------------------------------------------------------------------ steps

    def carry_out(self, command: Command) -> None:
        if command.method in self.absent:
            return
        # the plan always, whatever became of the target: what is drawn next may depend on nothing else
        self.plan.carry_out(command)
        if self.is_set_aside:
            self.commands.append(command)
            return
        if self.session is None or self.session.over or self.lost is not None:
            return
        self.commands.append(command)
        try:
            self.session.run(command)
        except TargetError as error:
            type(self).lost = error
            return
        for failure in self.session.judge.failures:
            if failure.identity not in self.known:
                raise deviation(failure)

    def teardown(self) -> None:
        if self.is_set_aside:
            type(self).set_aside(self.commands)
        elif self.session is not None:
            with self.session:
                self.session.finish(complete=self.lost is None)
            type(self).finished(self.session, self.commands)
