"""The frames of a scenario as the model alone has them."""

from __future__ import annotations

from amqpspec.conformance.explore.example import example
from amqpspec.conformance.language.command_file import parse_command_file
from amqpspec.conformance.scenarios.scenario_files import all_scenarios
from amqpspec.conformance.verdicts.rung import Kind


def _example(text: str) -> list[str]:
    (file,) = parse_command_file(text, "test")
    return [f"{rung.kind} {rung.text}" for rung in example(file) if rung.kind is not Kind.SENT]


def test_frames_stand_behind_the_command_that_brings_them_about() -> None:
    assert _example("a.1 queue.declare q\na.1 basic.publish q body=m\na.1 basic.get q") == [
        "command a.1 queue.declare q",
        "received queue.declare-ok queue=q message-count=0 consumer-count=0",
        "command a.1 basic.publish q body=m",
        "command a.1 basic.get q",
        "received basic.get-ok delivery-tag=1 redelivered=false routing-key=q message-count=0 body=m",
    ]


def test_time_passes() -> None:
    rungs = _example(
        "a.1 queue.declare q x-message-ttl=10\na.1 basic.publish q body=m\nbroker clock.wait 20\na.1 basic.get q"
    )
    assert rungs[-1] == "received basic.get-empty"


def test_what_the_model_does_not_play_has_no_frames() -> None:
    assert not _example("a.1 queue.declare q\na.1 basic.publish $reply-to body=m")
    assert not _example("a@1.1 queue.declare q")


def test_all_scenarios_can_be_shown_but_some() -> None:
    first = {each.name: each for each in all_scenarios() if (each.name or "").startswith(("ACK", "CONFIRM", "TIMEOUT"))}
    assert sum(bool(example(each)) for each in first.values()) > 0.9 * len(first)
