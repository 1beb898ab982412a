"""A badge: the result of a run as a small SVG, which needs nothing but itself."""

from __future__ import annotations

from html import escape

from amqpspec.conformance.verdicts.judgement import RunResult
from amqpspec.model.promises.verdict import Verdict
from amqpspec.reports.text import visible

_COLOURS = {0: "#2a8a4a", 1: "#c62f2f"}
_OTHER = "#8a6100"
_LEFT = "AMQP 0-9-1"
#: Of a letter at 11 pixels, about: `textLength` makes it so.
_WIDTH = 6.6


def render_badge(result: RunResult) -> str:
    """The badge goes by the exit code, so by the gate and the deviation file of the run."""
    passed, failed = (result.summary[verdict] for verdict in (Verdict.PASS, Verdict.FAIL))
    match result.exit_code:
        case 0 if failed:
            right = f"{passed} pass, {failed} accepted"
        case 0:
            right = f"{passed} pass"
        case 1 if not (result.fails or result.not_whole):
            right = "deviation file out of date"
        case 1:
            right = f"{failed} of {passed + failed} fail"
        case 3:
            right = "incomplete"
        case _:
            right = "inconclusive"
    name = visible(f"{result.target.product} {result.target.version}")
    left, whole = _room(_LEFT), _room(_LEFT) + _room(right)
    colour = _COLOURS.get(result.exit_code, _OTHER)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img"'
        f' aria-label="{_LEFT}: {right}"><title>{escape(name)}, {_LEFT}: {right}</title>'
        f'<rect width="{whole}" height="20" rx="3" fill="#444c56"/>'
        f'<path d="M{left} 0H{whole - 3}a3 3 0 0 1 3 3V17a3 3 0 0 1-3 3H{left}z" fill="{colour}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{_text(_LEFT, 6)}{_text(right, left + 6)}</g></svg>\n"
    )


def _room(text: str) -> int:
    return round(len(text) * _WIDTH) + 12


def _text(text: str, x: int) -> str:
    return f'<text x="{x}" y="14" textLength="{_room(text) - 12}">{escape(text)}</text>'
