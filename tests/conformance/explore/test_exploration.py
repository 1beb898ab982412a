"""Exploring: all states of a world, merged where they compare as equal, and what is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.conformance.explore.again import with_copies, without_copies
from amqpspec.conformance.explore.counterexample import command_file
from amqpspec.conformance.explore.exploration import Bounds, Exploration, Violation
from amqpspec.conformance.explore.formable import formable
from amqpspec.conformance.explore.position import Step
from amqpspec.conformance.explore.requirements import asleep, in_reach
from amqpspec.conformance.explore.scenario_worlds import scenario_worlds
from amqpspec.conformance.explore.several import explored as explored_in
from amqpspec.conformance.explore.steps import first_position, next_steps
from amqpspec.conformance.explore.world import parse_world, read_world, worlds
from amqpspec.conformance.language.command_file import CommandFileError, parse_command_file
from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from tests.conformance.explore.small_worlds import CONFIRMED, GIVEN_BACK, GOT, explored, world

pytestmark = pytest.mark.quick

#: An empty queue, a get of it, and its answer.
ONE_GET = world(["a.1 queue.declare q durable"], ["a.1 basic.get q"])


def test_every_state_of_a_world_is_found() -> None:
    found = explored(ONE_GET)
    # nothing sent; asked; answered
    assert (found.states, found.unexplored, found.depth) == (3, 0, 2)
    assert found.kinds == {"input": 1, "output": 1}
    assert found.violations == []
    assert found.exercised["GET-001"] == 1


def test_orders_that_make_no_difference_lead_to_one_state() -> None:
    both = world(["a.1 queue.declare q"], ["a.1 basic.qos 1", "b.1 basic.qos 1"])
    one = world(["a.1 queue.declare q"], ["a.1 basic.qos 1"])
    assert explored(one).states == 3  # each qos is not sent, owed an answer, or answered
    assert explored(both).states == 9


def test_what_the_broker_may_choose_branches() -> None:
    together = world(["b.1 queue.declare q", "b.1 confirm.select"], ["2x b.1 basic.publish q"])
    position, _ = first_position(together)
    for _ in range(2):
        position = next(further for step, further in next_steps(position) if step.kind == "input")
    outputs = {step.text for step, _ in next_steps(position) if step.kind == "output"}
    assert outputs == {
        "b.1 < basic.ack delivery-tag=1 multiple=false",
        "b.1 < basic.ack delivery-tag=1 multiple=true",
        "b.1 < basic.ack delivery-tag=2 multiple=false",
        "b.1 < basic.ack delivery-tag=2 multiple=true",
    } or outputs == {
        "b.1 < basic.ack delivery-tag=1",
        "b.1 < basic.ack delivery-tag=1 multiple=true",
        "b.1 < basic.ack delivery-tag=2",
        "b.1 < basic.ack delivery-tag=2 multiple=true",
    }


def test_what_is_wrong_is_tried_as_well() -> None:
    position, _ = first_position(GOT)
    position = next(further for step, further in next_steps(position) if step.text.startswith("b.1 basic.publish"))
    position = next(further for step, further in next_steps(position) if step.text.startswith("a.1 basic.get"))
    tags = {each.arguments.get("delivery_tag") for each in formable(position)}
    assert tags == {1, 2, None}


@pytest.mark.parametrize("small", [GIVEN_BACK, CONFIRMED, GOT])
def test_the_properties_hold(small: object) -> None:
    found = explored(small)  # type: ignore[arg-type]
    assert [f"{each.name}: {each.what}" for each in found.violations] == []
    assert found.unexplored == 0
    assert found.ways > 0


def test_a_bound_is_told() -> None:
    found = explored(GOT, states=10)
    assert found.stopped_by == "10 states"
    assert found.unexplored > 0


def test_a_bound_of_time_is_told() -> None:
    found = Exploration(GOT, Bounds(seconds=1e-9)).explore()
    assert found.stopped_by == "1e-09 seconds"
    assert found.unexplored == 1


def test_a_bound_of_memory_is_told() -> None:
    assert Exploration(GOT, Bounds(memory=1)).explore().stopped_by == "1 megabytes"


def test_progress_is_told() -> None:
    told: list[tuple[object, ...]] = []
    Exploration(GOT, progress=lambda *each: told.append(each)).explore()
    assert told[0][0] == "small"


def test_a_way_can_be_gone_again_with_copies_and_without() -> None:
    exploration = Exploration(GIVEN_BACK)
    exploration.explore()
    paths = [exploration.path(place) for place in range(0, exploration.result.variants, 7)]
    assert any(len(path) > 6 for path in paths)
    for path in paths:
        alone = without_copies(GIVEN_BACK, path)
        assert alone is not None
        assert alone.state_key() == with_copies(GIVEN_BACK, path).state_key()


def test_the_counterexample_is_a_command_file() -> None:
    exploration = Exploration(GIVEN_BACK)
    exploration.explore()
    path = exploration.path(exploration.result.variants - 1)
    violation = Violation("small", "tags", "told\nin lines", path, "q: m1 ready", "q: nothing ready")
    text = command_file(GIVEN_BACK, violation)
    (file,) = parse_command_file(text)
    sent = [step for step in path if step.kind == "input"]
    assert len(file.commands) == len(GIVEN_BACK.setup) + len(sent)
    assert file.dialects == (DEFAULT_DIALECT.name,)
    assert all(command.in_flight for command in file.commands[len(GIVEN_BACK.setup) :])
    outputs = [step.text for step in path if step.kind == "output"]
    assert outputs
    assert all(f"#   {each}" in text for each in outputs)
    assert "# in lines" in text
    assert "# q: nothing ready" in text


def test_worlds_are_explored_by_several_processes_as_by_one() -> None:
    chosen = [ONE_GET, CONFIRMED]
    alone = {small.inputs: found.states for small, found in explored_in(chosen, Bounds())}
    several = {small.inputs: found.states for small, found in explored_in(chosen, Bounds(), jobs=2)}
    assert several == alone
    assert len(several) == 2


def test_the_worlds_of_the_project_can_be_read_and_begun() -> None:
    known = worlds()
    assert len({each.name.split(" ", 1)[0] for each in known}) >= 12
    for each in known:
        position, frames = first_position(each)
        assert position.is_quiet
        assert frames[-1] is None
        assert any(step.is_by_client for step, _ in next_steps(position)), each.name
        assert each.title


def test_scenarios_are_worlds_whose_commands_come_in_order() -> None:
    scenario = next(each for each in scenario_worlds(50) if each.name == "scenario ACK-001 classic")
    found = explored(scenario)
    assert found.violations == []
    assert found.exercised["ACK-001"]


def test_what_made_a_difference_in_no_world_is_told() -> None:
    dialects = {DEFAULT_DIALECT.name}
    reach = in_reach(dialects)
    assert "ACK-001" in reach
    assert "CLUSTER-001" not in reach
    assert "ACK-001" not in asleep({"ACK-001"}, dialects)
    assert len(asleep({"ACK-001"}, dialects)) == len(reach) - 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("commands = 1", "w.toml: commands must be a list of texts"),
        ("title = 'x'", "w.toml: commands are missing"),
        ("commands = ['a.1 basic.got q']", "w.toml: 'a.1 basic.got q': "),
        ("commands = ['a.1 basic.get q']\ninput = 1", "w.toml: input is none of title, "),
        ("commands = ['a.1 basic.get q']\ndialects = ['x']", "w.toml: 'x' is not a dialect"),
        ("commands = ['a.1 basic.get q']\nqueue-types = ['x']", "w.toml: 'x' is not a queue type"),
        ("commands = [", "w.toml: "),
    ],
)
def test_what_is_wrong_with_a_world_is_said(text: str, message: str) -> None:
    with pytest.raises(CommandFileError) as raised:
        parse_world(text, Path("w.toml"))
    assert str(raised.value).startswith(message)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandFileError, match="No such file"):
        read_world(tmp_path / "none.toml")


def test_a_step_knows_whose_it_is() -> None:
    assert Step("input", "a.1 basic.get q").is_by_client
    assert not Step("output", "a.1 < basic.get-empty").is_by_client
