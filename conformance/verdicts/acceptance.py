"""Which failures a team accepts, whoever found them: by the gate, by its deviation file, or as they are arguable.

`amqpspec run` has the same rules for its result; this is for what judges recordings, where many targets are in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from amqpspec.conformance.verdicts.deviations import Deviation, excuses, problems_of
from amqpspec.conformance.verdicts.gate import Gate, excuse_of
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.defects.known_defects import strength_of
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Failure


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What is accepted. It can be pickled."""

    gate: Gate = Gate.PROMISE
    listed: tuple[Deviation, ...] = ()
    _of_target: dict[TargetDescription, Callable[[str], str | None]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[object, ...]:
        return Acceptance, (self.gate, self.listed)

    @property
    def problems(self) -> list[str]:
        """Entries of the deviation file that must not stay as they are, one line each."""
        return problems_of(self.listed)

    def why(self, failure: Failure, target: TargetDescription) -> str | None:
        """Why a failure is accepted; None: it is not."""
        if target not in self._of_target:
            self._of_target[target] = excuses(self.listed, target)
        why = self._of_target[target](failure.identity) or excuse_of(failure, target, self.gate)
        return why or ("arguable" if strength_of(failure) is Strength.ARGUABLE else None)

    def is_red(self, failures: Iterable[Failure], target: TargetDescription) -> bool:
        """Is one of the failures not accepted?"""
        return any(self.why(failure, target) is None for failure in failures)
