"""Which scenarios that change the broker as a whole run side by side, and what the broker keeps meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.scenarios.configured_alike import broken_alike, changes_broker, configured_alike
from amqpspec.model.protocol.methods import OPERATOR, OperatorAction
from amqpspec.targets.brokers.operator import PeerOf
from amqpspec.targets.brokers.shared_configuration import SharedConfiguration

SHORT, LONG = (f"broker operator.configure consumer-timeout={time}" for time in (500, 900))
WAIT = "broker clock.wait 2000"


def scenario(*lines: str) -> CommandFile:
    return CommandFile("/".join(lines), tuple(map(parse_command, lines)))


def test_those_that_configure_the_broker_alike_are_together() -> None:
    first, other, second = scenario(SHORT, WAIT), scenario(LONG, WAIT), scenario(SHORT, "a.1 queue.declare q", WAIT)
    assert configured_alike([first, other, second]) == [[first, second], [other]]


def test_who_changes_it_in_another_way_is_by_itself() -> None:
    together = scenario(SHORT, WAIT)
    others = [
        scenario(SHORT, "broker operator.reset-configuration", WAIT),
        scenario(SHORT, LONG, WAIT),
        scenario("a.1 channel.open", SHORT, WAIT),
        scenario("broker operator.set-alarm", WAIT),
        scenario("broker operator.set-alarm", WAIT),
    ]
    assert configured_alike([*others, together]) == [[each] for each in (*others, together)]


class Recorder:
    def __init__(self) -> None:
        self.undone: list[list[str]] = []

    def carry_out(self, actions: Sequence[OperatorAction], peer_of: PeerOf) -> None: ...

    def undo(self, actions: Sequence[OperatorAction]) -> None:
        self.undone.append([action.name for action in actions])


def test_the_configuration_stays_until_the_last_has_ended() -> None:
    configure, policy = (
        OperatorAction(OPERATOR, 0, name, {}, sent=True) for name in ("operator.configure", "operator.set-policy")
    )
    recorder = Recorder()
    with SharedConfiguration(recorder) as shared:
        shared.undo([configure, policy])
        shared.undo([configure])
        assert recorder.undone == [["operator.set-policy"]]
    assert recorder.undone[1:] == [["operator.configure"] * 2]


def test_those_to_which_the_same_happens_are_together() -> None:
    stopped = scenario("broker.stop", WAIT, "broker.restart"), scenario("a.1 queue.declare q", "broker.restart")
    end = ("broker.kill", "broker.restart")
    killed = scenario(*end), scenario("network.cut connection=a", *end)
    one_node = scenario("broker.kill node=2", "broker.restart node=2")
    others = [scenario("broker.pause", "broker.resume"), scenario("broker.stop")]
    groups = broken_alike([*stopped, *killed, one_node, *others])
    assert groups == [list(stopped), list(killed), [one_node], *([each] for each in others)]


def test_who_breaks_and_configures_the_broker_is_by_itself() -> None:
    both = [scenario(SHORT, "broker.kill"), scenario(SHORT, "broker.kill"), scenario("broker.kill")]
    assert broken_alike(both) == [[each] for each in both]


def test_a_broken_network_of_a_connection_is_nobody_elses_business() -> None:
    assert not changes_broker(scenario("network.cut connection=a").commands)
    assert changes_broker(scenario("network.cut node=1").commands)
