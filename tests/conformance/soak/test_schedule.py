import pytest

from amqpspec.conformance.soak.schedule import NEEDS, Kind, offered, schedule
from amqpspec.model.protocol.methods import FAULTS

pytestmark = pytest.mark.quick

_KINDS = [Kind.KILL, Kind.STOP, Kind.PAUSE, Kind.CLIENT]


def test_equal_seeds_make_equal_schedules() -> None:
    assert schedule(7, _KINDS, (1,), 60) == schedule(7, _KINDS, (1,), 60)
    assert schedule(7, _KINDS, (1,), 60) != schedule(8, _KINDS, (1,), 60)


@pytest.mark.parametrize("seconds", [5, 60, 1800])
def test_it_fills_the_time_with_each_kind_in_turn(seconds: float) -> None:
    found = schedule(1, _KINDS, (1,), seconds)
    assert sum(each.after + each.hold for each in found) >= seconds
    for begin in range(0, len(found) - len(_KINDS) + 1, len(_KINDS)):
        assert {each.kind for each in found[begin : begin + len(_KINDS)]} == set(_KINDS)


def test_in_a_cluster_a_node_is_chosen_and_each_has_its_turn() -> None:
    found = schedule(1, [Kind.KILL], (1, 2, 3), 3600)
    assert {each.node for each in found} == {1, 2, 3}
    assert found[0].begins().arguments == {"node": found[0].node}


def test_without_kinds_nothing_comes() -> None:
    assert schedule(1, [], (1,), 60) == []


def test_each_kind_needs_faults_that_there_are() -> None:
    assert {name for names in NEEDS.values() for name in names} <= FAULTS


def test_what_is_not_offered_is_told_apart() -> None:
    can, cannot = offered(tuple(Kind), ("broker.kill", "broker.restart"))
    assert can == [Kind.KILL, Kind.CUT, Kind.SLOW, Kind.CLIENT]  # the suite has a network of its own
    assert Kind.STOP in cannot and Kind.TRANSFER_LEADER in cannot
