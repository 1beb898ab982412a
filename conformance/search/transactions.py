"""The part of the theme publishing about transactions: publishes and settlements on condition, and how they end."""

from __future__ import annotations

from hypothesis import strategies as st

from amqpspec.conformance.search.actions import Draw, Key, flags, picks, seldom
from amqpspec.conformance.search.publishing import PublishingActions, reached_by_commit
from amqpspec.conformance.search.targets import limit_of, some_target
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.ruling import Outcome
from amqpspec.model.protocol.methods import Table

_ends = st.sampled_from(("tx.commit", "tx.commit", "tx.commit", "tx.rollback", "tx.rollback"))


class TransactionActions(PublishingActions):
    """Actions on channels in transactions; one begins where none is."""

    def a_transacting_channel(self, draw: Draw) -> Key:
        """In a transaction, best with deliveries to settle. One in confirm mode is given up for it if need be."""
        busy = self.channel_with(draw, lambda state: state.transaction is not None and bool(state.unacknowledged))
        if self._is_transacting(busy):
            return busy
        channel = self.channel_with(draw, lambda state: state.transaction is not None)
        if not self._is_transacting(channel):
            channel = self.channel_with(draw, lambda state: not self.has_mode(state.key))
            if self.has_mode(channel):
                self.issue(channel, "channel.close", {"reply_code": 200, "reply_text": "done"})
            self.enter(channel, "transaction")
        return channel

    def _is_transacting(self, channel: Key) -> bool:
        state = self.state(channel)
        return state is not None and state.transaction is not None

    def transact(self, draw: Draw) -> None:
        """A whole transaction, with publishes and settlements in it."""
        channel = self.a_transacting_channel(draw)
        at_once = draw(flags)
        for _ in range(draw(st.integers(1, 3))):
            if draw(picks) < 5:
                self.send(draw, channel, draw(some_target) if not draw(seldom) else "nobody's", in_flight=at_once)
            else:
                self.settle_on_condition(draw, channel)
        self.end(channel, draw(_ends))

    def settle_in_transaction(self, draw: Draw) -> None:
        """Deliveries are taken and settled on condition; how that ends, comes later or never."""
        channel = self.a_transacting_channel(draw)
        state = self.state(channel)
        if state is None or not state.unsettled:
            name = self.a_filled_target(draw)
            queue = self.plan.queue(name)
            if queue is None or not queue.messages:
                # from elsewhere: what is published on the channel itself waits for the commit
                free = self.channel_with(draw, lambda each: each.transaction is None)
                self.send(draw, free, name)
            for _ in range(1 + draw(flags)):
                self.get_from(draw, name, channel)
        for _ in range(1 + draw(flags)):
            self.settle_on_condition(draw, channel)
        if draw(flags):
            self.end(channel, draw(_ends))

    def settle_on_condition(self, draw: Draw, channel: Key) -> None:
        """Something that the channel holds and has not settled yet; seldom what it has."""
        state = self.state(channel)
        tags = list(state.unsettled) if state is not None else []
        if state is not None and state.transaction is not None:
            if draw(seldom) and draw(seldom):
                tags = sorted(state.transaction.reserved) or tags
            tags = [tag for tag in tags if not self.meets_publishes(channel, {"delivery_tag": tag})]
        if not tags:
            return
        pick = draw(picks)
        arguments: Table = {"delivery_tag": draw(st.sampled_from(tags))}
        if pick < 3:
            method = "basic.ack"
        elif pick < 6 or not self.dialect.has("basic.nack"):
            method = "basic.reject"
        else:
            method = "basic.nack"
        if method != "basic.reject" and draw(seldom):
            arguments["multiple"] = True
        if method != "basic.ack" and draw(flags):
            arguments["requeue"] = True
        self.issue(channel, method, arguments)

    def end(self, channel: Key, method: str) -> None:
        """Commit or roll back; no commit whose settlements meet in a queue where nothing tells which comes first."""
        state = self.state(channel)
        if state is not None and self._settlements_meet(state):
            method = "tx.rollback"
        self.issue(channel, method, {})

    def _settlements_meet(self, channel: Channel) -> bool:
        """Would messages come to a queue with a limit from several places: given back by the channel, and as dead
        letters, which another queue sends when it comes to that?
        """
        sources: dict[str, set[str]] = {}
        for ruling, tags in channel.transaction.rulings if channel.transaction is not None else ():
            given_back = tags if ruling.outcome is not Outcome.ACKNOWLEDGED else ()
            for queue in {channel.unacknowledged[tag].queue for tag in given_back}:
                for target in self.letters_reach(queue):
                    sources.setdefault(target, set()).add(queue.name)
                if ruling.outcome is Outcome.REQUEUED:
                    sources.setdefault(queue.name, set()).add("the channel")
        return any(len(each) > 1 and limit_of(self.plan.queue(name)) is not None for name, each in sources.items())

    def end_transaction(self, draw: Draw) -> None:
        channel = self.channel_with(
            draw,
            lambda state: (
                state.transaction is not None and bool(state.transaction.publications or state.transaction.rulings)
            ),
        )
        if not self._is_transacting(channel):
            self.transact(draw)
            return
        self.end(channel, draw(_ends))
        if draw(seldom):
            # what was given back can be settled again
            self.settle_on_condition(draw, channel)

    def hurry_behind_commit(self, draw: Draw) -> None:
        """What follows a commit before that is answered breaks the connection, or comes after it (TX-010)."""
        channel = self.a_transacting_channel(draw)
        for _ in range(draw(st.integers(1, 3))):
            self.send(draw, channel, draw(some_target))
        state = self.state(channel)
        if state is None or state.transaction is None or state.transaction.rulings or self._settlements_meet(state):
            return
        refuses = any(limit_of(self.plan.queue(name)) is not None for name in reached_by_commit(state))
        self.issue(channel, "tx.commit", {}, in_flight=True)
        # a close that crosses that of a commit which is refused makes another mistake of the broker (CHAN-005)
        if refuses or draw(flags):
            self.issue(channel, "basic.qos", {"prefetch_count": 0}, as_it_stands=True)
        else:
            self.issue(channel, "channel.close", {"reply_code": 200, "reply_text": "done"}, as_it_stands=True)

    def fail_in_transaction(self, draw: Draw) -> None:
        """An error, or the client's own close, with something uncommitted."""
        channel = self.a_transacting_channel(draw)
        self.send(draw, channel, draw(some_target))
        self.settle_on_condition(draw, channel)
        pick = draw(picks)
        if pick < 3:
            self.send(draw, channel, "k", "missing")
        elif pick < 6:
            self.issue(channel, "channel.close", {"reply_code": 200, "reply_text": "done"})
        else:
            self.issue(channel, "basic.ack", {"delivery_tag": 99})
