"""After a window has shown: what it has touched is open, and all else is judged as ever (`model.judging.windows`)."""

from __future__ import annotations

from amqpspec.model.broker.openness import begin_openness, spread
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.windows import SERVICE, Armed, Difference, Race, Window, touched
from amqpspec.model.outputs.observation import observe
from amqpspec.model.promises.verdict import Shape


def go_on_open(
    explanation: Explanation, window: Window | Race, difference: Difference, armed: frozenset[Armed]
) -> bool:
    """Open what the window has touched. Is the difference none with that? Else nothing more can be judged.

    `explanation`: the one that says of the difference that it is one.
    """
    if difference.part not in SERVICE:
        return False
    broker = explanation.broker
    for queue in touched(window, broker, difference, armed):
        if not queue.open_by:
            begin_openness(broker, queue, window.sentence)
    spread(broker)
    if difference.event is None or difference.shape is Shape.MISSING:
        return explanation.is_quiet
    is_unchanged = difference.mismatch is not None and difference.mismatch.fatal
    return not (is_unchanged and observe(broker, difference.event))
