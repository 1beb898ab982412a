"""Channels: which numbers deliveries have had, and what forbids to settle one again."""

from __future__ import annotations

from amqpspec.model.broker.channels import Channel


def test_numbers_may_be_left_out_and_come_later_and_none_comes_twice() -> None:
    channel = Channel("a", 1)
    channel.next_tag = 100
    for number in (200, 201, 150):
        assert not channel.has_used(number)
        if number != channel.next_tag:
            channel.number_anew(number)
        assert not channel.has_used(number), "it is only the next one"
        channel.next_tag += 1
    used = [number for number in range(1, 300) if channel.has_used(number)]
    assert used == [*range(1, 100), 150, 200, 201], "however long ago"


def test_what_forbids_to_settle_a_delivery_again_is_what_was_told_last() -> None:
    channel = Channel("a", 1)
    channel.note_over(1, again="CONSUME-013")
    channel.note_over(2, again="ACK-007")
    channel.note_over(2, 3, again="RECOVER-004")
    assert [channel.forbidden_again(tag) for tag in (1, 2, 3, 4)] == ["CONSUME-013", "RECOVER-004", "RECOVER-004", ""]
    assert channel.automatic == 1
    for tag in range(4, 80):
        channel.note_over(tag, again="ACK-007")
    assert channel.forbidden_again(1) == "", "only those of late are told"
