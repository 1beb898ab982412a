"""What the account of a soak says of traces that were written by hand: what is wrong, and its lawful neighbour."""

import pytest

from amqpspec.conformance.soak.findings import What
from amqpspec.conformance.soak.message import Identity, content
from tests.conformance.soak.accounts import Account

pytestmark = pytest.mark.quick


@pytest.fixture
def account() -> Account:
    """One that published, and had confirmed, the messages 0, 1 and 2 to the classic queue."""
    found = Account()
    found.publisher("p")
    found.publish("p", 0, 1, 2)
    found.confirm("p", 3, multiple=True)
    found.consumer("c")
    return found


def test_what_is_confirmed_and_settled_is_accounted_for(account: Account) -> None:
    for tag in (1, 2, 3):
        account.deliver("c", tag, "p", tag - 1)
    account.ack("c", 3, multiple=True)
    account.empty()
    assert account.wrong() == []
    counts = account.ledger.tally.of_type("classic")
    assert (counts.sent, counts.confirmed, counts.delivered, counts.settled) == (3, 3, 3, 3)


def test_what_is_confirmed_and_never_delivered_is_lost(account: Account) -> None:
    account.deliver("c", 1, "p", 0)
    account.deliver("c", 2, "p", 2)
    account.ack("c", 2, multiple=True)
    account.empty()
    assert account.wrong() == [What.LOST]
    (finding,) = account.told()
    assert finding.message == "p-1"
    assert list(finding.lines) == ["published", "confirmed"]
    assert account.ledger.tally.of_type("classic").lost == 1


def test_what_was_given_back_and_does_not_come_again_is_lost(account: Account) -> None:
    for tag in (1, 2, 3):
        account.deliver("c", tag, "p", tag - 1)
    account.ack("c", 2, multiple=True)
    account.back("c", 3)
    account.empty()
    assert account.wrong() == [What.LOST]


def test_nothing_is_lost_that_was_not_confirmed() -> None:
    account = Account()
    account.publisher("p")
    account.publish("p", 0, 1)
    account.confirm("p", 1, "basic.nack")
    account.received("p", "socket.closed", reason="")
    account.empty()
    assert account.wrong() == []
    counts = account.ledger.tally.of_type("classic")
    assert (counts.refused, counts.unknown, counts.lost) == (1, 1, 0)


def test_nothing_is_lost_in_a_queue_that_nobody_found_empty(account: Account) -> None:
    assert account.wrong() == []
    assert list(account.ledger.undecided()) == ["classic"]


def test_a_persistent_message_that_is_gone_after_a_kill_is_lost(account: Account) -> None:
    account.fault("broker.kill")
    account.fault("broker.restart")
    account.empty()
    assert account.wrong() == [What.LOST_IN_RESTART]
    assert account.told()[0].fault.startswith("kill at")


@pytest.mark.parametrize("restarted", [True, False])
def test_a_transient_one_may_be_gone_after_a_restart_and_not_else(restarted: bool) -> None:
    account = Account()
    account.publisher("p")
    account.publish("p", 0, mode=1)
    account.confirm("p", 1)
    if restarted:
        account.fault("broker.stop")
        account.fault("broker.restart")
    account.empty()
    assert account.wrong() == ([] if restarted else [What.LOST])


def test_a_transient_one_that_is_there_after_a_restart_has_outlived_it() -> None:
    account = Account()
    account.publisher("p")
    account.publish("p", 0, mode=1)
    account.confirm("p", 1)
    account.fault("broker.kill")
    account.fault("broker.restart")
    account.consumer("c")
    account.deliver("c", 1, "p", 0, mode=1, redelivered=True)
    account.ack("c", 1)
    assert account.wrong() == [What.OUTLIVED]


@pytest.mark.parametrize(("node", "wrong"), [(2, []), (3, [What.LOST])])
def test_in_a_cluster_it_may_be_gone_once_the_node_of_its_queue_went_down(node: int, wrong: list[What]) -> None:
    account = Account()
    account.sent("setup@2", "queue.declare", queue="there")
    account.sent("setup@2", "queue.bind", queue="there", exchange="x", routing_key="there")
    account.publisher("p")
    account.publish("p", 0, queue="there", mode=1)
    account.confirm("p", 1)
    account.fault("broker.kill", node=node)
    account.fault("broker.restart", node=node)
    account.empty("there")
    assert account.wrong() == wrong


def test_what_was_settled_is_not_lost_if_it_is_read_late_and_given_back(account: Account) -> None:
    """The node of `c` was cut off: `c` reads what another client has had since."""
    account.fault("network.cut", node=1)
    account.consumer("c2@2")
    account.deliver("c2@2", 1, "p", 0, redelivered=True)
    account.ack("c2@2", 1)
    account.fault("network.heal", node=1)
    account.deliver("c", 1, "p", 0)
    account.back("c", 1)
    account.empty()
    account.ledger.end()
    assert "p-0" not in {finding.message for finding in account.told() if not finding.allowed}


def test_in_a_quorum_queue_every_message_is_persistent() -> None:
    account = Account()
    account.publisher("p")
    account.publish("p", 0, queue="quorum", mode=1)
    account.confirm("p", 1)
    account.fault("broker.kill")
    account.fault("broker.restart")
    account.empty("quorum")
    assert account.wrong() == [What.LOST_IN_RESTART]


def test_a_second_delivery_has_the_flag(account: Account) -> None:
    account.deliver("c", 1, "p", 0)
    account.back("c", 1)
    account.deliver("c", 2, "p", 0, redelivered=True)
    assert account.wrong_by_now() == []
    account.back("c", 2)
    account.deliver("c", 3, "p", 0)
    assert account.wrong() == [What.UNFLAGGED]


def test_also_after_a_kill(account: Account) -> None:
    account.deliver("c", 1, "p", 0)
    account.fault("broker.kill")
    account.received("c", "socket.closed", reason="")
    account.fault("broker.restart")
    account.consumer("c2")
    account.deliver("c2", 1, "p", 0)
    assert account.wrong() == [What.UNFLAGGED]


def test_a_first_delivery_has_no_flag_while_no_client_is_gone(account: Account) -> None:
    account.now = 60.0
    account.publish("p", 3)
    account.deliver("c", 1, "p", 3, redelivered=True)
    assert account.wrong() == [What.FLAGGED]


def test_it_may_have_it_where_a_client_is_gone_that_may_have_had_it(account: Account) -> None:
    account.consumer("gone")
    account.sent("gone", "socket.abort")
    account.deliver("c", 1, "p", 0, redelivered=True)
    assert account.wrong() == []


@pytest.mark.parametrize(("fault", "flagged", "wrong"), [("stop", 3, 0), ("stop", 4, 1), ("kill", 4, 0)])
def test_after_a_stop_no_more_have_the_flag_than_a_limit_allows(fault: str, flagged: int, wrong: int) -> None:
    """Of a limit of 4 the client had one message, so that three may have been on their way to it."""
    account = Account()
    account.publisher("p")
    account.consumer("c", limit=4)
    account.publish("p", *range(6))
    account.confirm("p", 6, multiple=True)
    account.deliver("c", 1, "p", 0)
    account.fault(f"broker.{fault}")
    account.received("c", "socket.closed", reason="")
    account.fault("broker.restart")
    account.consumer("c2")
    for number in range(6):
        account.deliver("c2", number + 1, "p", number, redelivered=number <= flagged)
    found = account.ledger.findings.wrong
    assert found == ({What.FLAGGED_BY_STOP: wrong} if wrong else {})


def test_what_was_published_after_a_client_left_was_not_on_its_way_to_it() -> None:
    account = Account()
    account.publisher("p")
    account.consumer("gone", limit=100)
    account.sent("gone", "socket.abort")
    account.now += 30.0
    account.consumer("c", limit=1)
    account.publish("p", 0, 1)
    account.fault("broker.stop")
    account.received("c", "socket.closed", reason="")
    account.fault("broker.restart")
    account.consumer("c2")
    account.deliver("c2", 1, "p", 0, redelivered=True)
    assert account.wrong_by_now() == []
    account.deliver("c2", 2, "p", 1, redelivered=True)
    assert account.wrong_by_now() == [What.FLAGGED_BY_STOP]


def test_one_message_is_held_by_one_client(account: Account) -> None:
    account.consumer("c2")
    account.deliver("c", 1, "p", 0)
    account.deliver("c2", 1, "p", 0, redelivered=True)
    assert account.wrong() == [What.HELD]


def test_what_was_settled_does_not_come_again(account: Account) -> None:
    account.deliver("c", 1, "p", 0)
    account.ack("c", 1)
    account.close_channel("c")
    account.consumer("c2")
    account.deliver("c2", 1, "p", 0, redelivered=True)
    assert account.wrong() == [What.SETTLED]
    (finding,) = account.told()
    closed = ["channel closed by its client", "channel ended in order"]
    assert list(finding.lines) == ["published", "confirmed", "settled", *closed, "delivered"]
    assert account.ledger.tally.of_type("classic").settlements_lost == 1


@pytest.mark.parametrize("seconds", [1.0, 30.0])
def test_it_may_come_again_where_the_connection_was_lost_right_after(account: Account, seconds: float) -> None:
    account.deliver("c", 1, "p", 0)
    account.ack("c", 1)
    account.now += seconds
    account.sent("c", "socket.abort")
    account.consumer("c2")
    account.deliver("c2", 1, "p", 0, redelivered=True)
    assert account.wrong() == ([] if seconds < 10 else [What.SETTLED])


@pytest.mark.parametrize("seconds", [1.0, 30.0])
def test_it_may_come_again_where_the_broker_was_killed_right_after(account: Account, seconds: float) -> None:
    account.deliver("c", 1, "p", 0)
    account.ack("c", 1)
    account.now += seconds
    account.fault("broker.kill")
    account.received("c", "socket.closed", reason="")
    account.fault("broker.restart")
    account.consumer("c2")
    account.deliver("c2", 1, "p", 0, redelivered=True)
    assert account.wrong() == ([] if seconds < 10 else [What.SETTLED])


def test_what_one_consumer_takes_comes_in_the_order_of_its_channel(account: Account) -> None:
    account.deliver("c", 1, "p", 1)
    account.deliver("c", 2, "p", 0)
    assert account.wrong() == [What.MISORDERED]


def test_what_comes_again_may_come_in_any_order(account: Account) -> None:
    account.consumer("gone")
    account.deliver("gone", 1, "p", 0)
    account.sent("gone", "socket.abort")
    account.deliver("c", 1, "p", 1)
    account.deliver("c", 2, "p", 0, redelivered=True)
    assert account.wrong() == []


def test_there_is_no_order_between_two_channels(account: Account) -> None:
    account.close_channel("p")
    account.publisher("p")
    account.publish("p", 3)
    account.deliver("c", 1, "p", 3)
    account.deliver("c", 2, "p", 0)
    assert account.wrong() == []


def test_a_delivery_that_is_read_while_its_channel_is_closed_is_held_against_nobody(account: Account) -> None:
    """The broker has given the message to `c`, taken it back with the channel, and given it to `c2`, which is read
    first.
    """
    account.consumer("c2")
    account.sent("c", "channel.close")
    account.deliver("c2", 1, "p", 0, redelivered=True)
    account.ack("c2", 1)
    account.deliver("c", 1, "p", 0)
    account.received("c", "channel.close-ok")
    account.empty()
    assert What.SETTLED not in account.wrong()
    assert "p-0" not in {finding.message for finding in account.told()}


def test_what_was_never_published_or_is_changed(account: Account) -> None:
    account.deliver("c", 1, "p", 77)
    assert account.wrong_by_now() == [What.UNPUBLISHED]
    said = content(Identity("p", 0), "x", "classic", 2)
    account.received(
        "c", "basic.deliver", said, consumer_tag="t", delivery_tag=2, redelivered=False, exchange="x",
        routing_key="another",
    )  # fmt: skip
    assert account.wrong() == [What.CHANGED, What.UNPUBLISHED]


def test_what_comes_from_a_queue_that_it_was_not_for(account: Account) -> None:
    account.consumer("c2", "quorum")
    account.deliver("c2", 1, "p", 0)
    assert account.wrong() == [What.MISROUTED]


@pytest.mark.parametrize("seconds, others_are_served", [(1.0, True), (30.0, True), (30.0, False)])
def test_a_publish_is_confirmed_in_time_by_a_broker_that_is_there(seconds: float, others_are_served: bool) -> None:
    account = Account()
    account.publisher("p")
    account.publish("p", 0)
    account.now += seconds
    if others_are_served:
        account.received("other", "queue.declare-ok", queue="classic", consumer_count=0)
    account.sent("p", "socket.abort")
    assert account.wrong() == ([What.UNCONFIRMED] if seconds > 5 and others_are_served else [])


def test_a_confirm_that_a_fault_holds_up_is_not_missing() -> None:
    account = Account()
    account.publisher("p")
    account.publish("p", 0)
    account.fault("broker.pause")
    account.now += 30
    account.sent("p", "socket.abort")
    assert account.wrong() == []


def test_what_is_bound_is_not_returned(account: Account) -> None:
    account.publish("p", 3)
    account.received("p", "basic.return", content(Identity("p", 3), "x", "classic", 2), reply_code=312)
    account.confirm("p", 4)
    assert account.wrong() == [What.RETURNED]


def test_what_was_nacked_is_not_delivered(account: Account) -> None:
    account.publish("p", 3)
    account.confirm("p", 4, "basic.nack")
    account.deliver("c", 1, "p", 3)
    assert account.wrong() == [What.REFUSED]


def test_counts_of_a_quorum_queue_go_up() -> None:
    account = Account()
    account.publisher("p")
    account.publish("p", 0, queue="quorum")
    account.confirm("p", 1)
    account.consumer("c", "quorum")
    account.deliver("c", 1, "p", 0, queue="quorum")
    account.back("c", 1)
    account.deliver("c", 2, "p", 0, queue="quorum", redelivered=True, x_delivery_count=2)
    account.back("c", 2)
    assert account.wrong_by_now() == []
    account.deliver("c", 3, "p", 0, queue="quorum", redelivered=True, x_delivery_count=1)
    assert account.wrong() == [What.COUNT]


def of_quorum_queue() -> Account:
    """One in which `c` was handed the message 0 of a quorum queue."""
    account = Account()
    account.publisher("p")
    account.publish("p", 0, queue="quorum")
    account.confirm("p", 1)
    account.consumer("c", "quorum")
    account.deliver("c", 1, "p", 0, queue="quorum")
    return account


def restart(account: Account) -> None:
    """The broker is killed and started again; `c2` takes from the quorum queue then."""
    account.fault("broker.kill")
    account.received("c", "socket.closed", reason="")
    account.fault("broker.restart")
    account.consumer("c2", "quorum")


@pytest.mark.parametrize("headers, is_right", [({"x_delivery_count": 1}, True), ({}, False)])
def test_that_somebody_held_it_when_the_broker_went_down_counts(headers: dict[str, int], is_right: bool) -> None:
    account = of_quorum_queue()
    restart(account)
    account.deliver("c2", 1, "p", 0, queue="quorum", redelivered=True, **headers)
    assert account.wrong() == ([] if is_right else [What.COUNT_ANEW])


@pytest.mark.parametrize("arguments, wrong", [({"node": 2}, []), ({}, [What.COUNT])])
def test_that_the_node_of_a_holder_is_lost_need_not_count(arguments: dict[str, int], wrong: list[What]) -> None:
    """RabbitMQ 4.3 gives back what is held there as not failed (rabbit_fifo, consumer_disconnected_timeout)."""
    account = of_quorum_queue()
    account.back("c", 1)
    account.deliver("c", 2, "p", 0, queue="quorum", redelivered=True, x_delivery_count=1)
    account.fault("broker.kill" if "node" in arguments else "network.cut", **arguments)
    account.received("c", "socket.closed", reason="")
    account.consumer("c2", "quorum")
    account.deliver("c2", 1, "p", 0, queue="quorum", redelivered=True, x_delivery_count=1)
    assert account.wrong() == wrong


@pytest.mark.parametrize("headers, is_right", [({"x_delivery_count": 2}, True), ({}, False)])
def test_what_was_counted_before_a_restart_stays(headers: dict[str, int], is_right: bool) -> None:
    account = of_quorum_queue()
    account.back("c", 1)
    account.deliver("c", 2, "p", 0, queue="quorum", redelivered=True, x_delivery_count=2)
    account.back("c", 2)
    restart(account)
    account.deliver("c2", 1, "p", 0, queue="quorum", redelivered=True, **headers)
    assert account.wrong() == ([] if is_right else [What.COUNT_ANEW])


def test_a_first_delivery_that_is_read_late_has_no_count() -> None:
    account = of_quorum_queue()
    account.publish("p", 1, queue="quorum")
    account.consumer("c2", "quorum")
    account.fault("broker.stop")
    account.deliver("c2", 1, "p", 1, queue="quorum", redelivered=True, x_delivery_count=1)
    account.deliver("c", 2, "p", 1, queue="quorum")
    assert not {What.COUNT, What.COUNT_ANEW} & set(account.wrong())


@pytest.mark.parametrize("connection, wrong", [("c2@2", []), ("c2@3", [What.COUNT])])
def test_what_a_node_sent_before_it_was_paused_is_read_late(connection: str, wrong: list[What]) -> None:
    account = of_quorum_queue()
    account.back("c", 1)
    account.consumer(connection, "quorum")
    account.fault("broker.pause", node=2)
    for tag, count in ((2, 2), (3, 3)):
        account.deliver("c", tag, "p", 0, queue="quorum", redelivered=True, x_delivery_count=count)
        account.back("c", tag)
    account.fault("broker.resume", node=2)
    account.deliver(connection, 1, "p", 0, queue="quorum", redelivered=True, x_delivery_count=1)
    account.back(connection, 1)
    account.deliver(connection, 2, "p", 0, queue="quorum", redelivered=True, x_delivery_count=4)
    assert account.wrong_by_now() == wrong


def test_where_nodes_go_down_only_a_count_that_is_there_is_judged() -> None:
    account = of_quorum_queue()
    account.fault("broker.kill", node=2)
    account.received("c", "socket.closed", reason="")
    account.consumer("c2", "quorum")
    account.deliver("c2", 1, "p", 0, queue="quorum", redelivered=True)
    assert account.wrong() == []


@pytest.fixture
def stream() -> Account:
    account = Account()
    account.publisher("p")
    account.publish("p", 0, 1, 2, queue="stream")
    account.confirm("p", 3, multiple=True)
    account.publish("end-of-d", 0, queue="stream")
    account.consumer("c", "stream")
    return account


def test_a_stream_is_read_to_its_end(stream: Account) -> None:
    for number in range(3):
        stream.deliver("c", number + 1, "p", number, queue="stream", x_stream_offset=number)
    stream.deliver("c", 4, "end-of-d", 0, queue="stream", x_stream_offset=3)
    assert stream.wrong() == []
    assert not stream.ledger.undecided()


def test_what_a_stream_leaves_out_is_lost(stream: Account) -> None:
    stream.deliver("c", 1, "p", 0, queue="stream", x_stream_offset=0)
    stream.deliver("c", 2, "p", 2, queue="stream", x_stream_offset=2)
    stream.deliver("c", 3, "end-of-d", 0, queue="stream", x_stream_offset=3)
    assert stream.wrong() == [What.GAP, What.LOST]


def test_what_was_read_once_is_lost_where_it_is_not_there_at_the_end(stream: Account) -> None:
    stream.deliver("c", 1, "p", 0, queue="stream", x_stream_offset=0)
    stream.publish("end-of-d", 0, queue="stream")
    stream.consumer("d", "stream")
    stream.deliver("d", 1, "p", 1, queue="stream", x_stream_offset=1)
    stream.deliver("d", 2, "p", 2, queue="stream", x_stream_offset=2)
    stream.deliver("d", 3, "end-of-d", 0, queue="stream", x_stream_offset=3)
    assert stream.wrong() == [What.LOST]


def test_one_message_is_in_a_stream_once(stream: Account) -> None:
    stream.deliver("c", 1, "p", 0, queue="stream", x_stream_offset=0)
    stream.deliver("c", 2, "p", 0, queue="stream", x_stream_offset=1)
    assert stream.wrong() == [What.TWICE_IN_STREAM]


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_a_confirmed_message_stays_at_its_offset(stream: Account, is_confirmed: bool) -> None:
    stream.publish("p", 3, 4, queue="stream")
    if is_confirmed:
        stream.confirm("p", 4)
    stream.deliver("c", 1, "p", 3, queue="stream", x_stream_offset=4)
    stream.fault("broker.kill")
    stream.fault("broker.restart")
    stream.consumer("c2", "stream")
    stream.deliver("c2", 1, "p", 4, queue="stream", x_stream_offset=4)
    assert (What.OFFSET in stream.wrong_by_now()) is is_confirmed


def test_two_readers_of_a_stream_read_the_same(stream: Account) -> None:
    stream.consumer("c2", "stream")
    for name in ("c", "c2"):
        stream.deliver(name, 1, "p", 0, queue="stream", x_stream_offset=0)
        stream.deliver(name, 2, "p", 1, queue="stream", x_stream_offset=1)
    assert stream.wrong() == []


def test_a_fault_counts_what_comes_after_it(account: Account) -> None:
    account.publish("p", 3)
    account.fault("broker.kill")
    account.received("p", "socket.closed", reason="")
    account.received("c", "socket.closed", reason="")
    account.fault("broker.restart")
    found = account.ledger.tally.of_fault("kill")
    assert (found.times, found.connections_lost, found.unknown) == (1, 2, 1)


def test_what_is_confirmed_or_given_back_after_a_queue_was_found_empty_is_not_lost(account: Account) -> None:
    account.deliver("c", 1, "p", 0)
    account.deliver("c", 2, "p", 1)
    account.deliver("c", 3, "p", 2)
    account.ack("c", 2, multiple=True)
    account.publish("p", 3)
    account.empty()
    account.confirm("p", 4)
    assert account.wrong() == []  # p-3 may have come since, and p-2 is held to the end
