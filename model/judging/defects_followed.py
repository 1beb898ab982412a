"""All that a judge knows of a broker's wrong behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from amqpspec.model.broker.internal_events import Kind
from amqpspec.model.judging.known_defect import DefectTransition, OutputDefect
from amqpspec.model.judging.windows import Window


@dataclass(frozen=True, slots=True)
class DefectsFollowed:
    """The known defects of a broker, by their forms."""

    #: followed beside what is lawful
    transitions: tuple[DefectTransition, ...] = ()
    #: asked in this order about a frame that is wrong
    of_outputs: tuple[OutputDefect, ...] = ()
    #: asked in this order about what nothing else explains
    windows: tuple[Window, ...] = ()
    _by_kind: Mapping[Kind, tuple[DefectTransition, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        kinds = {kind for defect in self.transitions for kind in defect.methods}
        by_kind: dict[Kind, tuple[DefectTransition, ...]] = {
            kind: tuple(each for each in self.transitions if kind in each.methods) for kind in kinds
        }
        object.__setattr__(self, "_by_kind", by_kind)

    def of_kind(self, kind: Kind) -> tuple[DefectTransition, ...]:
        """The transitions that an input of that kind may come under."""
        return self._by_kind.get(kind, ())


#: A judge that knows of no defect.
NO_DEFECTS = DefectsFollowed()
