"""The JUnit report: one test case for each requirement, named by area, identifier and title.

| verdict | in JUnit |
|---|---|
| pass | a test case, nothing in it; where a SHOULD of the text is not followed, `<system-out>` has the warning |
| fail | `<failure>`, one for each distinct new failure; a known defect is one as well, and says so |
| fail, known deviations or arguable failures only | `<skipped>`, so that what fails a build is what fails the run |
| inconclusive | `<error>` with the reason |
| not exercised, not applicable | `<skipped>` with the reason |

Test cases with failures come first, the gravest at the head. Of failures that come from one cause the first names the
cause and the others, and these name the first. The verdict is that against the promise. How many
requirements fail against the broker as it is known is a property of the suite.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree

from junit_xml import TestCase, TestSuite, to_xml_report_string

from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult, fails_a_run
from amqpspec.model.promises.dialect_names import in_short
from amqpspec.model.promises.registry import Requirement
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.promises.versions import newer_sentence
from amqpspec.reports.accuracy import accuracy_line
from amqpspec.reports.as_known import as_known_text, broker_as_known, not_seen
from amqpspec.reports.listing import failing
from amqpspec.reports.one_cause import in_words, shown_together
from amqpspec.reports.overview import NOTHING, Entry, again, entries, notes
from amqpspec.reports.text import visible


class _TimedSuite(TestSuite):  # type: ignore[misc]
    """Sequences are carried out beside each other, so the times of the requirements do not add up to its own."""

    seconds = 0.0

    def build_xml_doc(self, encoding: str | None = None) -> ElementTree.Element:
        element: ElementTree.Element = super().build_xml_doc(encoding)
        element.set("time", f"{self.seconds:.3f}")
        return element


def render_junit(result: RunResult, registry: Mapping[str, Requirement] | None = None) -> str:
    """The report as XML text."""
    listed = entries(result, registry)
    worst = failing(listed, result)
    cases = [_case(entry, result) for entry in (*worst, *(entry for entry in listed if not entry.failures))]
    cases.append(_end(result))
    if result.undecided and result.exit_code != 0:
        cases.append(_undecided(result))
    if result.not_whole:
        case = TestCase("the broker passes the check at the end of the run", classname="target")
        said, names = "; ".join(result.not_whole), "\n".join(result.left_behind)
        case.add_failure_info(visible(said), visible(names), "check failed")
        cases.append(case)
    if result.problems:
        case = TestCase("the deviation file is up to date", classname="target")
        case.add_failure_info(visible("; ".join(result.problems)), failure_type="out of date")
        cases.append(case)
    target = result.target
    suite = _TimedSuite(
        visible(f"{result.tool}: {target.product} {target.version} ({in_short(target.dialect)})"),
        cases,
        properties={
            "tool": f"{result.tool} {result.tool_version}",
            "target": visible(target.label),
            "dialect": target.dialect,
            "seed": "" if result.seed is None else str(result.seed),
            "mode": result.mode,
            "undecided sequences": str(result.undecided_count),
            "failing against the promise": str(result.summary[Verdict.FAIL]),
            "failing as known": str(result.summary_as_known[Verdict.FAIL]),
            "broker as known": broker_as_known(result),
            "newer than verified": newer_sentence(target.judged_version) or "",
            "timeouts": accuracy_line(result) or "none measured",
            "known defects not seen": " ".join(entry.defect.name for entry in not_seen(result)),
        },
    )
    suite.seconds = result.seconds
    text: str = to_xml_report_string([suite], encoding="utf-8")
    return text


def _case(entry: Entry, result: RunResult) -> TestCase:
    name = f"{entry.id} {entry.title}".strip()
    took = result.seconds_of.get(entry.id)
    case = TestCase(visible(name), classname=visible(entry.area), elapsed_sec=took, allow_multiple_subelements=True)
    match entry.verdict:
        case Verdict.PASS:
            case.stdout = _warnings(entry, result)
        case Verdict.FAIL if entry.is_excused:
            known = "; ".join(sorted({found.known or "" for found in entry.failures} - {""}))
            excuse = f"known deviation: {known}" if known else "arguable only"
            case.add_skipped_info(visible(excuse), _texts(entry, entry.failures, result))
        case Verdict.FAIL:
            new = [found for found in entry.failures if fails_a_run(found)]
            for found in new:
                severity, _, *said = notes(found, result.target.dialect, result.target.judged_version)
                what = f"{severity}: {found.failure.shape}, {found.failure.detail}: {found.failure.observed}"
                cause = _one_cause(found, result)
                message = f"{cause}{what} ({', '.join(said)})"
                case.add_failure_info(visible(message), _texts(entry, (found,), result), str(found.failure.shape))
            if not new:
                case.add_failure_info("the requirement failed; its failures are not in the result")
        case Verdict.INCONCLUSIVE:
            case.add_error_info(visible(entry.outcome.reason or "inconclusive"), error_type="inconclusive")
        case Verdict.NOT_EXERCISED:
            why = entry.outcome.reason or "the rule never made a difference"
            case.add_skipped_info(visible(f"not exercised: {why}"))
        case Verdict.NOT_APPLICABLE:
            case.add_skipped_info(visible(f"not applicable: {entry.outcome.reason or 'no reason was recorded'}"))
    return case


def _one_cause(found: FoundFailure, result: RunResult) -> str:
    """What begins the message where failures of several requirements come from one cause: the first one names all, and
    the others name it.
    """
    for each in shown_together(result):
        if each.first.failure.identity == found.failure.identity:
            return f"one cause: {each.in_words}; "
        if any(other.failure.identity == found.failure.identity for other in each.others):
            return f"under {each.first.failure.requirement}, of one cause ({in_words(each.cause)}); "
    return ""


def _warnings(entry: Entry, result: RunResult) -> str | None:
    """The sentences that are not followed, as all reports have them, and what shows it; None: there are none."""
    dialect, version = result.target.dialect, result.target.judged_version
    said = {note for found in entry.failures for note in notes(found, dialect, version) if note.startswith("warning: ")}
    return visible("\n".join([*sorted(said), _texts(entry, entry.failures, result)])) if said else None


def _texts(entry: Entry, failures: tuple[FoundFailure, ...], result: RunResult) -> str:
    return "\n\n".join(_text(entry, found, broker_as_known(result)) for found in failures)


def _text(entry: Entry, found: FoundFailure, broker: str) -> str:
    failure = found.failure
    parts = [
        ("rule", [entry.statement, f"({entry.source})"] if entry.statement else []),
        (f"as known in {broker}", [as_known_text(each) for each in entry.defects if each.name == failure.defect]),
        ("commands", list(found.commands)),
        ("allowed", list(failure.allowed)),
        ("observed", [failure.observed]),
        ("state", list(failure.state)),
        ("to see it again", again(found).splitlines()),
    ]
    lines = [line for title, content in parts if content for line in (f"{title}:", *(f"  {it}" for it in content))]
    return visible("\n".join(lines))


def _undecided(result: RunResult) -> TestCase:
    """Those that were for no requirement in particular must not vanish from the report for that."""
    case = TestCase("sequences that could not be judged", classname="search")
    listed = "\n".join(f"{sequence}: {reason}" for sequence, reason in result.undecided)
    case.add_error_info(f"{result.undecided_count} inconclusive", visible(listed), "inconclusive")
    return case


def _end(result: RunResult) -> TestCase:
    case = TestCase("the run came to its end", classname="target")
    if result.lost is not None:
        case.add_error_info(visible(result.lost), error_type="target lost")
    elif result.is_empty:
        case.add_error_info(NOTHING, error_type="inconclusive")
    return case
