"""Each command that README.md and docs/ show, as it stands there but for what it is carried out on.

Brokers are replaced by embedded ones and large numbers by small ones. Spark takes seconds to start, so that only the
first command that names it, and the one that cannot do without, have it. What a document has an own test for is left to
that: the tour, the two gates, the broker of one's own, brokers that end, clusters, the example of a recorded
application.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.brokers.resolve import is_target
from tests.command_line.test_command_line import Process
from tests.conformance.recording.captures import write_pcap, write_pcapng
from tests.conformance.recording.test_capture import whole

#: Some of the commands start Spark.
pytestmark = pytest.mark.together("spark")

ROOT = Path(__file__).parents[2]
ELSEWHERE = ("docs/tour.md", "docs/in-house-broker.md", "docs/faults.md", "docs/cluster.md")
SHOWN = [
    (str(file.relative_to(ROOT)), line)
    for file in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for line in re.findall(r"^amqpspec (?:run|replay|check|coverage|profile|diff|pipeline|campaign|record|serve|soak)"
                           r" .*$", file.read_text(encoding="utf-8"), re.MULTILINE)
    if str(file.relative_to(ROOT)) not in ELSEWHERE and "echo $?" not in line
]  # fmt: skip
#: What goes on until somebody ends it.
ENDLESS = ("record", "serve")
#: What stands there -> what it is carried out on.
IN_PLACE = (
    (r"amqp://\S+", "URL"), (r"\bdocker:amqpspec/\S+", "embedded"), (r"\bdocker:rabbitmq:4\.0", "embedded"),
    (r"\bdocker:rabbitmq:4\.3", "embedded:multiple-zero-ignored"), (r"TARGET…?", "embedded"), (r"\bSTORE\b", "store"),
    (r"s3://BUCKET/amqpspec|hdfs://SERVICE/stores/amqpspec", "store"),
    (r"\bINCOMING\b", "incoming"), (r"\bDIR\b", "judged"),
    (r"sequence store NAME --run RUN", "sequence store 'scenario ACK-003 classic' --run one"),
    (r"\bNAME\b", "one"), (r" \[--spark MASTER\]", ""),
    (r"(--listen \S+:|--port )\d+", r"\g<1>0"),
    (r"--sequences \d+", "--sequences 2"), (r"--(minutes|seconds) \d+", "--seconds 1"),
    (r"--soak \d+ --soaks \d+", "--soak 1 --soaks 1"),
    (r"--out (recorded|incoming/app)", r"--out \g<1>-now"), (r"\bamqpspec-out/failures", "failing/failures"),
)  # fmt: skip
SMALL = {
    "run": ("--only", "ACK-003", "--sequences", "0", "--shrinking-time", "0"),
    "diff": ("--only", "ACK-003", "--sequences", "0"),
}


def test_there_are_some() -> None:
    assert len(SHOWN) > 30
    assert {line.split()[1] for _, line in SHOWN} >= {"run", "replay", "check", "profile", "diff", "pipeline", "serve"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A directory with all that the commands read, and a broker at an address."""
    directory = tmp_path_factory.mktemp("shown")
    with pytest.MonkeyPatch.context() as patch, EmbeddedBroker() as broker:
        patch.chdir(directory)
        Path("other").mkdir()
        small = ["--only", "ACK-003", "--sequences", "0", "--seed", "1"]
        assert main(["run", "embedded:multiple-zero-ignored", *small, "--parquet", "other/trace.parquet"]) == 1
        shutil.copytree("amqpspec-out", "failing")
        for dialect in ("rabbitmq-4.0", "rabbitmq-4.3"):
            assert main(["run", "embedded", "--dialect", dialect, *small, "--out", f"runs/{dialect}"]) == 0
        for folder in ("recorded", "incoming"):
            Path(folder).mkdir()
            shutil.copy("amqpspec-out/trace.jsonl", f"{folder}/trace.jsonl")
        write_pcap(Path("capture.pcap"), whole())
        write_pcapng(Path("capture.pcapng"), whole())
        Path("accepted.toml").write_text(_deviation_file(), encoding="utf-8")
        Path("broker.toml").write_text(_served_file(), encoding="utf-8")
        for source in ("capture.pcap", "amqpspec-out"):
            assert main(["pipeline", "import", "store", source, "--run", "one"]) == 0
        yield directory, f"amqp://guest:guest@127.0.0.1:{broker.address.port}/"


def _deviation_file() -> str:
    """The file that docs/upgrade.md shows."""
    (shown,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "upgrade.md").read_text(encoding="utf-8"), re.DOTALL)
    return str(shown)


def _served_file() -> str:
    """The file that docs/serve.md shows, on a port that is free, and without certificates, which are not here."""
    (shown,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "serve.md").read_text(encoding="utf-8"), re.DOTALL)
    return re.sub(r"\[tls\].*?(?=\[users)", "", shown.replace("5999", "0"), flags=re.DOTALL)


@pytest.mark.parametrize("line", dict.fromkeys(line.partition("  #")[0].rstrip() for _, line in SHOWN))
def test_it_does_what_is_said(
    line: str, place: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory, url = place
    monkeypatch.chdir(directory)
    text = line.removeprefix("amqpspec ").partition("  #")[0]
    for pattern, instead in IN_PLACE:
        text = re.sub(pattern, instead.replace("URL", url), text)
    words = shlex.split(text)
    if "check" not in words and "live" not in words:
        text = re.sub(r" --spark \S+", "", text)
    takes_few = words[0] != "diff" or is_target(words[1])
    arguments = [*shlex.split(text), *(SMALL.get(words[0], ()) if takes_few and "runs/" not in text else ())]
    if words[:2] == ["pipeline", "live"]:
        arguments.append("--until-done")
    if words[0] in ENDLESS:
        process = Process(directory, *arguments)
        process.wait_for(lambda: "Ctrl-C" in process.out.read_text() or "listen" in process.out.read_text())
        assert process.interrupt().code in (0, 130)
        return
    assert main(arguments) in (0, 1), capsys.readouterr().err
    told = capsys.readouterr().err
    assert not told.startswith("amqpspec: ") or "the store has the same trace as run" in told
