"""The signs of a finding (`conformance.failures.signs`) as what a program by pika's own calls goes by, where it can."""

from __future__ import annotations

import re
from collections.abc import Sequence

from amqpspec.conformance.failures.plain_pika import COMPARED
from amqpspec.conformance.failures.signs import Often, Signs
from amqpspec.conformance.failures.signs_of_failure import FailureKnownBy, KnownBy
from amqpspec.conformance.language.command import Command

#: A sign such as "no b.1 < Basic.GetOk redelivered=True body=b'm1'".
_SIGN = re.compile(r"(no )?([a-z]+\.\d+) < (\w+)\.(\w+)((?: \w+=\S+)*)")
_FIELD = re.compile(r"(\w+)=b?'?([\w.$-]*)'?")
_WORD = re.compile(r"(?<!^)(?=[A-Z])")


def known_by_signs(signs: Sequence[Signs], commands: Sequence[Command]) -> tuple[FailureKnownBy, bool] | None:
    """By which frame it is told, and whether of all that come, or after the last command alone. None: by more than
    one frame, or not always: what comes by chance takes commands that wait for no answer, and pika waits.
    """
    lines = {each.lines for each in signs}
    if len(lines) != 1 or any(each.often is not Often.ALWAYS for each in signs):
        return None
    (ways,) = lines
    is_after_last = len(ways) == 2 and f"{commands[-1]} ".startswith(f"{ways[0].removeprefix('> ')} ")
    found = _SIGN.fullmatch(ways[-1])
    if found is None or len(ways) != 1 + is_after_last:
        return None
    method = f"{found[3].lower()}.{_WORD.sub('-', found[4]).lower()}"
    fields = {name.replace("_", "-"): value for name, value in _FIELD.findall(found[5])}
    if fields.keys() - COMPARED.keys():
        return None
    values = {"True": "true", "False": "false"}
    frame = KnownBy(found[2], method, {name: values.get(value, value) for name, value in fields.items()})
    known = FailureKnownBy(None, (frame,)) if found[1] else FailureKnownBy(frame, ())
    return known, not is_after_last
