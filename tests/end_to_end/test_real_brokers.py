"""Real brokers: what fails is what docs/findings.md says, and every rule of the core chapters made a difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.deviations import DIRECTORY
from amqpspec.conformance.traces.trace import read_trace, sequences
from amqpspec.conformance.verdicts.deviations import Deviation, read_deviations, with_deviations, with_problems
from amqpspec.conformance.verdicts.gate import Gate, through
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult
from amqpspec.model.defects.known_defects import is_as_known
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.brokers.docker_broker import DockerBroker
from tests.end_to_end.runs import failed_requirements, run_suite

#: The chapters that are whole, and entries of theirs that cannot be exercised yet, with the reason.
WHOLE_AREAS = (
    "ack", "binding", "cancel", "capabilities", "channel", "confirm", "connection", "consume", "consumer-priority",
    "direct-reply", "dlx", "exchange", "get", "overflow", "permission", "publish-routing", "qos", "queue", "quorum",
    "recover", "sac", "stream", "timeout", "ttl", "tx",
)  # fmt: skip


#: What RabbitMQ does at one time and not at another, as docs/findings.md says: a scenario may show it or not. On a busy
#: machine the deliveries of TIMEOUT-017 time out before its commands are through.
BY_CHANCE = {"CANCEL-015", "PUBLISH-015", "TIMEOUT-017", "TIMEOUT-021"}


#: What versions of a dialect do or leave as they like, and the one that is here leaves: no frame shows the rule.
NOT_DONE = {("rabbitmq-4.0", "CANCEL-018")}

#: Failures that nobody has an explanation for: of the search, where two known defects meet, it may lack one; of
#: scenarios, what was seen once on a busy machine and in none of three repetitions may be a race that is not modelled.
MOST_UNEXPLAINED = 2



#: What docs/findings.md tells of Broker-J first: tags, ends of frames, loss by purge, reject and rollback that bring
#: back, a second tx.select, a close that is not answered, errors that end the connection.
THE_GRAVEST = {
    "ACK-006", "ACK-013", "CHAN-005", "CONN-015", "CONSUME-007", "GET-002", "QUEUE-019", "QUEUE-024", "TX-002",
    "TX-007",
}  # fmt: skip

#: Sequences at one time: most of what they take is waiting for the broker.
JOBS = 4


def _is_by_chance(found: FoundFailure) -> bool:
    """It was seen once, and never again when its sequence was repeated."""
    return found.rate is not None and not found.rate[0]


@pytest.fixture(params=["rabbitmq_3_10", "rabbitmq_4_0", "rabbitmq_4_3"])
def rabbitmq_version(request: pytest.FixtureRequest) -> DockerBroker:
    broker: DockerBroker = request.getfixturevalue(request.param)
    return broker


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[DockerBroker], tuple[RunResult, Path]]:
    """A whole run on a broker, and the directory with its trace; made once for each."""

    @cache
    def made(broker: DockerBroker) -> tuple[RunResult, Path]:
        directory = tmp_path_factory.mktemp("run")
        return run_suite(broker, directory, sequences=40, seed=5, jobs=JOBS), directory

    return made


def test_rabbitmq_fails_only_where_documented(
    rabbitmq_version: DockerBroker, run_of: Callable[[DockerBroker], tuple[RunResult, Path]]
) -> None:
    """Each failure is a known defect of the version; of these docs/findings.md tells (test_known_defects)."""
    result, directory = run_of(rabbitmq_version)
    assert result.lost is None
    assert result.undecided == ()
    dialect = result.target.dialect
    unexplained = [found for found in result.failures if not is_as_known(found.failure, dialect)]
    assert [found for found in unexplained if found.sequence.startswith("scenario ") and not _is_by_chance(found)] == []
    assert len(unexplained) <= MOST_UNEXPLAINED, unexplained
    exercised = {verdict.id: verdict.exercised for verdict in result.requirements}
    result_of = {verdict.id: verdict.verdict for verdict in result.requirements}.get
    never = [
        entry.id
        for entry in requirements().values()
        if entry.area in WHOLE_AREAS and entry.note_in(dialect) is not None and not exercised[entry.id]
        and entry.id not in failed_requirements(result) and entry.id not in BY_CHANCE
        and result_of(entry.id) is not Verdict.NOT_APPLICABLE
        and (dialect, entry.id) not in NOT_DONE
    ]  # fmt: skip
    assert never == []
    # what was seen live is what the recorded trace says: of each version another third of the sequences, as most are
    # the same for all
    for rows in islice(sequences(read_trace(directory)), list(DIALECTS).index(dialect) % 3, None, 3):
        live = rows[-1]
        again = judge(rows)
        said = (live["verdict"], len(live["failures"]))
        assert (str(again.verdict), len(again.failures)) == said, live["sequence"]
        assert dict(again.exercised) == live["exercised"]


def test_rabbitmq_same_verdicts_again(
    rabbitmq_4_3: DockerBroker, tmp_path: Path, run_of: Callable[[DockerBroker], tuple[RunResult, Path]]
) -> None:
    """Of the scenarios, which come first; a search with another seed may find more. What conformed is run again for
    every second requirement.
    """
    first, _ = run_of(rabbitmq_4_3)
    in_scenarios = {found.failure.requirement for found in first.failures if found.sequence.startswith("scenario ")}
    again = sorted({*in_scenarios, *list(requirements())[::2]})
    second = run_suite(rabbitmq_4_3, tmp_path, only=again, seed=2, jobs=JOBS)
    by_chance = {found.failure.requirement for found in first.failures + second.failures if _is_by_chance(found)}
    assert in_scenarios - BY_CHANCE - by_chance == failed_requirements(second) - BY_CHANCE - by_chance
    assert len(by_chance) <= MOST_UNEXPLAINED, by_chance


def test_garagemq_is_got_through(garagemq: DockerBroker, tmp_path: Path) -> None:
    """It hangs for ever on some commands and crashes on others, at one time and not at another: whoever started it
    starts it again.
    """
    only = [argument for prefix in ("ACK-015", "GET", "RECOVER") for argument in ("--only", prefix)]
    length = ["--sequences", "10", "--deadline", "0.5", "--shrinking-time", "10", "--seed", "0"]
    target = ["--quiet", f"docker:{garagemq.image}", "--dialect", "rabbitmq-4.3", "--out", str(tmp_path)]
    assert main(["run", *target, *only, *length]) in (1, 3)
    report = json.loads((tmp_path / "report.json").read_text())
    failed = {each["id"] for each in report["requirements"] if each["verdict"] == "fail"}
    assert {"ACK-015", "GET-001", "RECOVER-001"} <= failed


def test_broker_j_is_held_to_the_text(broker_j: DockerBroker, tmp_path: Path) -> None:
    """It ends connections where channels should end, and counts what is not acknowledged: judging goes on after that.

    None of what it is blamed for is a collision with the suite, whose own channel is within the 256 that it allows.
    The seed is one by which no content body comes without its header: that ends it.
    """
    result = run_suite(
        broker_j.address, tmp_path, only=["GET", "EXCHANGE-005", "QUEUE-019"], sequences=18, shrinking_time=0, seed=1,
        judged_by="amqp-0-9-1",
    )  # fmt: skip
    identities = {found.failure.identity for found in result.failures}
    assert {
        "GET-001|wrong argument|basic.get-ok message-count with the unacknowledged",
        "GET-002|unexpected frame|connection.close in place of channel.close",
        "EXCHANGE-005|unexpected frame|connection.close in place of exchange.declare-ok",
        "QUEUE-019|unexpected frame|connection.close in place of channel.close",
    } <= identities
    assert all("amqp-0-9-1" in requirements()[id].dialects for id in failed_requirements(result))
    assert not any(reply in found.failure.observed for found in result.failures for reply in ("=504", "x-queue-type"))
    assert result.search_extent.sequences == 18

def _deviations_of(name: str) -> tuple[Deviation, ...]:
    return read_deviations(DIRECTORY / name)


def _unlisted(result: RunResult, listed: tuple[Deviation, ...]) -> list[FoundFailure]:
    told = through(with_deviations(result, listed), Gate.PROMISE)
    return [found for found in told.failures if found.known is None]


def test_broker_j_deviates_where_it_is_known_to(broker_j: DockerBroker, tmp_path: Path) -> None:
    """A search with another seed may see a rule broken in another way, but no other rule."""
    listed = _deviations_of("broker-j-9.2.toml")
    result = run_suite(
        broker_j.address, tmp_path, sequences=36, seed=5, jobs=JOBS, shrinking_time=0, judged_by="amqp-0-9-1"
    )
    assert (result.lost, result.left_behind, result.not_whole) == (None, (), ())
    new = _unlisted(result, listed)
    assert [found.failure.identity for found in new if found.sequence.startswith("scenario ")] == []
    rules = {each.identity.partition("|")[0] for each in listed}
    assert len({found.failure.requirement for found in new} - rules) <= MOST_UNEXPLAINED, new
    # what is listed as steady shows again
    assert with_problems(result, listed, date.today()).problems == ()
    assert failed_requirements(result) >= THE_GRAVEST
    search = result.search_extent
    assert search.sequences == 36
    assert search.to_the_end + search.by_something_new > search.sequences / 2, search


def test_garagemq_deviates_where_it_is_known_to(garagemq: DockerBroker, tmp_path: Path) -> None:
    """In a run of half the scenarios, in which it hangs and ends again and again, and is started again. The others
    (ACK, CANCEL, DURABLE, QOS, RECOVER) take as long again, and most of that goes into waiting for one that hangs; the
    search makes their commands as well.

    What it does by chance its file names by requirement or symptom, so any seed will do.
    """
    areas = ("BIND", "CHAN", "CONFIRM", "CONN", "CONSUME", "EXCHANGE", "GET", "PUBLISH", "QUEUE", "TX")
    only = [argument for area in areas for argument in ("--only", area)]
    code = main(
        ["run", f"docker:{garagemq.image}", *only, "--seed", "5", "--sequences", "36", "--shrinking-time", "0",
         "--out", str(tmp_path), "--deviations", "builtin:garagemq"]
    )  # fmt: skip
    said = json.loads((tmp_path / "report.json").read_text())
    new = [each["identity"] for each in said["failures"] if each["known"] is None and each["strength"] != "arguable"]
    assert (said["lost"], said["problems"], new) == (None, [], [])
    assert code == (1 if said["not_whole"] else 0)  # now and then it is damaged in the end: no file can list that
    assert said["extent"]["search"]["sequences"] == 36
    assert said["target"]["dialect"].startswith("amqp-0-9-1+")
    assert {"EXCHANGE-001", "GET-001", "SERVER-001"} <= {each["requirement"] for each in said["failures"]}
    of_delete = next(each for each in said["causes"] if each["what"] == "exchange.delete")
    under = [of_delete["failure"], *of_delete["under"]]
    assert all(each.endswith(("|missing frame|exchange.delete-ok", " for exchange.delete")) for each in under), under
    # which of them were begun before it was known that there is no use in waiting is chance
    assert len(under) > 1
    assert {each.partition("|")[0] for each in under} <= {"CHAN-018", "EXCHANGE-001", "EXCHANGE-003", "EXCHANGE-007"}
