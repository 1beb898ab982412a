"""Campaigns: searches on targets, spread over the tasks of a Spark job, with their traces in a store.

The rounds of a search are made by their numbers (`conformance.search.round`), without a look at the target or at each
other: so equal seeds make equal commands, however the rounds are spread. Every task has connections of its own, and
every sequence names of its own on the broker. A task writes its trace as it goes (`incoming` in the store), and adds it
to the store when it is done. A target that is lost ends the task's share only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count

from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.search.round import MOST_ROUNDS, ROUND
from amqpspec.conformance.session.cleanup import Cleaner
from amqpspec.conformance.session.command_sequence import CarriedOut, Place
from amqpspec.conformance.session.patience import Patience
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceError, TraceWriter, read_trace, sequences
from amqpspec.conformance.verdicts.acceptance import Acceptance
from amqpspec.conformance.verdicts.judgement import SuiteError
from amqpspec.conformance.workers import Round, ThisProcess
from amqpspec.model.promises.verdict import Verdict
from amqpspec.pipeline.campaign_shrinking import Shown
from amqpspec.pipeline.spark_session import spark_session
from amqpspec.pipeline.spark_tasks import Progress, run_tasks
from amqpspec.pipeline.store.adding import Adder
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.parts import Part, folder_name
from amqpspec.pipeline.store.store import Store
from amqpspec.targets.brokers.health import check_alive
from amqpspec.targets.errors import TargetError
from amqpspec.targets.suite_error import line_of

#: Rounds of a task, where their number is known.
ROUNDS_OF_ONE = 4


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is searched. `sequences`: on each target; None: as many as can be begun in `time_budget` seconds."""

    run: str
    day: str
    seed: int
    sequences: int | None = None
    time_budget: float | None = None
    steps: int = 30
    themes: tuple[str, ...] = ()
    #: what fails nothing
    acceptance: Acceptance = field(default_factory=Acceptance)


@dataclass(frozen=True, slots=True)
class Share:
    """What one task does: some rounds on one target. `number` is that of the share in its campaign."""

    number: int
    target: TargetUnderTest
    first: int
    stop: int
    step: int = 1


@dataclass(frozen=True, slots=True)
class ShareDone:
    """What came of a share. `failed`: sequences with a failure that is not accepted, `accepted`: those that failed with
    none. `lost`: why it ended early; `known`: it was done before, in the `commit`; `parts`: what
    it has added; `fatal`: no trace can be kept.
    """

    target: str
    sequences: int = 0
    frames: int = 0
    failed: int = 0
    accepted: int = 0
    inconclusive: int = 0
    lost: str | None = None
    known: bool = False
    #: of each failure the first sequence that showed it
    shown: tuple[Shown, ...] = ()
    commit: str | None = None
    parts: tuple[Part, ...] = ()
    fatal: str | None = None
    #: of this suite
    errors: tuple[SuiteError, ...] = ()


def shares_of(campaign: Campaign, targets: Sequence[TargetUnderTest], processors: int) -> list[Share]:
    """The tasks of a campaign, the targets in turns."""
    if campaign.sequences is None:
        # the number of rounds is not known: share K of a target takes the rounds K, K + each, K + 2 * each, …
        each = max(1, -(-processors // len(targets)))
        spans = [(number, MOST_ROUNDS, each) for number in range(each)]
    else:
        rounds = -(-campaign.sequences // ROUND)
        firsts = range(0, rounds, ROUNDS_OF_ONE)
        spans = [(first, min(first + ROUNDS_OF_ONE, rounds), 1) for first in firsts]
    numbers = count()
    return [Share(next(numbers), target, *span) for span in spans for target in targets]


def search(
    store: Store,
    campaign: Campaign,
    targets: Sequence[TargetUnderTest],
    master: str | None = None,
    progress: Progress | None = None,
) -> Iterator[ShareDone]:
    """Carry out a campaign; `master`: of Spark, None: in this process. Raises `StoreError` and `PipelineError`.

    Shares of a campaign of the same name and seed that were done before are not done again.
    """
    # whoever operates or breaks a target stays where it was started
    remote = [replace(target, operator=None, faults=None) for target in targets]
    if master is None:
        work = shares_of(campaign, remote, 1)
        began = time.time()
        for number, share in enumerate(work, start=1):
            yield from _checked(store, [_carry_out(store, campaign, share, _ends(campaign, began, number, len(work)))])
            if progress is not None:
                progress(number, len(work))
        return
    with spark_session(master) as spark:
        processors = spark.sparkContext.defaultParallelism
        work = shares_of(campaign, remote, processors)
        began, waves = time.time(), -(-len(work) // processors)

        def carry_out(share: Share) -> list[ShareDone]:
            until = _ends(campaign, began, 1 + share.number // processors, waves)
            return [_carry_out(store, campaign, share, until)]

        yield from _checked(store, run_tasks(spark, work, carry_out, progress))


def _ends(campaign: Campaign, began: float, wave: int, waves: int) -> float | None:
    """When the shares of that wave are over (of `time.time`): those that are carried out one after another have equal
    parts of the time. None: when they have done all.
    """
    return None if campaign.time_budget is None else began + campaign.time_budget * wave / waves


def _checked(store: Store, done: Sequence[ShareDone]) -> Sequence[ShareDone]:
    """Raises `StoreError` where a worker could not keep its trace, or kept it where nobody else sees it."""
    for each in done:
        if each.fatal is not None:
            raise StoreError(each.fatal)
    store.require_arrived(
        (part for each in done for part in each.parts), (each.commit for each in done if each.commit is not None)
    )
    return done


def _carry_out(store: Store, campaign: Campaign, share: Share, until: float | None) -> ShareDone:
    """Do a share, where it is done. `until`: of `time.time`."""
    label = share.target.description.label
    try:
        store.require_seen()
    except StoreError as error:
        return ShareDone(label, fatal=str(error))
    said = f"{campaign.run}\n{campaign.seed}\n{label}\n{share.first} {share.stop} {share.step}"
    # another campaign by what it does is another one, whatever its name
    many = None if campaign.sequences is None else min(share.stop * ROUND, campaign.sequences)
    said += f"\n{campaign.steps} {' '.join(campaign.themes)} {many}"
    commit = f"campaign-{sha256(said.encode()).hexdigest()[:32]}"
    if store.has_commit(commit):
        return ShareDone(label, known=True, commit=commit)
    counted = _Counted(share.target, campaign.acceptance)
    added: list[Part] = []
    try:
        with store.incoming(folder_name(campaign.run)) as folder:
            file = folder / f"share-{share.number}.jsonl"
            try:
                with TraceWriter(file) as trace:
                    _search(campaign, share, trace, until, counted.take)
            except TargetError as error:
                counted.lost = str(error)
            except TraceError:
                raise
            except Exception as error:  # noqa: BLE001 - what was found till then is kept, and other shares are done
                counted.errors.append(SuiteError("", line_of(error)))
            adder = Adder(store, campaign.day, campaign.run, label)
            for rows in sequences(read_trace(file)):
                if rows[0]["sequence"] in counted.names:
                    adder.add(rows)
            # one that was lost, or ended by an error of this suite, is done again by the next campaign of that name
            is_whole = counted.lost is None and all(each.sequence for each in counted.errors)
            if adder.has_any:
                added = adder.finish(name=commit if is_whole else None)
            file.unlink(missing_ok=True)
    except (StoreError, TraceError) as error:
        return ShareDone(label, fatal=str(error))
    except OSError as error:
        return ShareDone(label, fatal=f"{error.filename}: {error.strerror}")
    return ShareDone(
        label, len(counted.names), counted.frames, counted.failed, counted.accepted, counted.inconclusive, counted.lost,
        shown=tuple(counted.shown.values()), commit=commit if added and is_whole else None, parts=tuple(added),
        errors=tuple(counted.errors),
    )  # fmt: skip


class _Counted:
    """The sequences of a share that count: not the one in which the target was lost."""

    def __init__(self, target: TargetUnderTest, acceptance: Acceptance) -> None:
        self._target, self._acceptance = target, acceptance
        self.names: set[str] = set()
        self.frames = 0
        self.failed = self.accepted = self.inconclusive = 0
        self.lost: str | None = None
        #: by identity
        self.shown: dict[str, Shown] = {}
        self.errors: list[SuiteError] = []

    def take(self, done: CarriedOut) -> None:
        """Raises `TargetError` if the target does not answer any more."""
        judgement = done.judgement
        if judgement.verdict is Verdict.FAIL or done.overdue:
            check_alive(self._target.address)
        self.names.add(judgement.sequence)
        self.frames += judgement.frames
        if judgement.verdict is Verdict.FAIL:
            is_red = self._acceptance.is_red(judgement.failures, self._target.description)
            self.failed += is_red
            self.accepted += not is_red
        self.inconclusive += judgement.verdict is Verdict.INCONCLUSIVE
        if (line := judgement.suite_error) is not None:
            self.errors.append(SuiteError(judgement.sequence, line, tuple(map(str, done.sequence.commands))))
        label = self._target.description.label
        for failure in judgement.failures:
            commands = done.commands_until(failure.identity)
            self.shown.setdefault(failure.identity, Shown(label, failure, judgement.sequence, commands))


def _search(
    campaign: Campaign,
    share: Share,
    trace: TraceWriter,
    until: float | None,
    take: Callable[[CarriedOut], None],
) -> None:
    """The rounds of a share; what waits is carried out in its turn, as others have tasks of their own."""
    # clocks of machines are taken to agree; that of this process alone can be waited by
    ends = None if until is None else time.monotonic() + until - time.time()
    target = share.target
    options = RunOptions(seed=campaign.seed, steps=campaign.steps, themes=campaign.themes, search_only=True)
    with ExitStack() as stack:
        cleaner = stack.enter_context(Cleaner())
        patience = Patience(target.deadline, target.login_time)
        place = Place(target, trace, campaign.seed, patience=patience, cleaner=cleaner)
        worker = stack.enter_context(ThisProcess(place, options, lambda: False))
        for number in range(share.first, share.stop, share.step):
            if ends is not None and time.monotonic() > ends:
                return
            most = ROUND if campaign.sequences is None else min(ROUND, campaign.sequences - number * ROUND)
            made = (sequence for rounds in worker.made([Round(number, most)]) for one in rounds for sequence, _ in one)
            for done in worker.carried_out(made, ends):
                take(done)
