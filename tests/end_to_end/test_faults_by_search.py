"""The defects of the consumers' and of the publishers' side are found by the search alone, which blames what is broken.

Those of `LONG` take it more sequences than the others; `python -m benchmarks detection` runs them all.

Where the first round shows nothing, the search begins with one that does (`FIRST_ROUND`): rounds know nothing of each
other. Who changes what the search makes may make these tests slow by it, but no weaker: all sequences of a search are
still made from there on. `-rP` tells the round in which each fault was found.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from amqpspec.conformance import workers
from amqpspec.conformance.search.round import ROUND, make_round
from amqpspec.targets.faults.all_faults import FAULTS
from tests.end_to_end.fault_searches import THEMES, area, search_for
from tests.end_to_end.runs import failed_requirements

#: Those of the publishers' side that more than twenty sequences were needed for: these would take the tests minutes.
LONG = frozenset({
    "body-cut-at-frame", "byte-limit-ignored", "byte-limit-one-too-low", "commit-settles-nothing",
    "commit-without-select", "dead-letters-reversed", "death-count-stays-one", "deletion-forgets-confirms",
    "dropped-by-limit-not-dead-lettered", "dropped-by-limit-said-to-be-rejected", "empty-body-filled",
    "expiration-kept", "failed-commit-hidden", "follower-expires-early", "further-keys-ignored",
    "given-back-lives-on", "header-dropped", "header-of-another-type", "headers-any-means-all",
    "message-id-lost", "quorum-refuses-at-its-limit", "refused-publish-not-dead-lettered",
    "routing-ignores-key", "several-queues-not-confirmed", "topic-hash-needs-a-word", "topic-star-is-hash",
    "tx-in-confirm-mode", "unacknowledged-expires",
})  # fmt: skip


#: The first of the seed's rounds that a search makes, where it is not the first of all.
FIRST_ROUND: dict[str, int] = {
    "cancel-lifts-limits": 4, "channel-limit-for-new-consumers": 6, "channel-limit-forgets-cancelled": 6,
    "channel-limit-per-consumer": 6, "deletion-told-to-all": 1, "delivery-limit-one-too-early": 3,
    "expiration-ignored": 2, "expired-is-rejected": 2, "expired-letter-lost": 2, "failover-drops-messages": 25,
    "fanout-misses-one": 1, "full-consumer-holds-up-queue": 17, "global-limit-ignored": 3,
    "global-limits-channel": 3, "headers-values-not-compared": 1, "held-messages-count": 3,
    "length-zero-is-no-limit": 2, "limit-drops-newest": 1, "longer-time-holds": 2, "lost-messages-come-last": 6,
    "lower-priority-never-served": 5, "message-expires-at-once": 2, "message-expires-late": 2,
    "multiple-acks-too-many": 7, "multiple-zero-ignored": 1, "nack-counts-as-failed": 1,
    "negative-limit-taken-literally": 6, "one-that-takes-it-is-enough": 1, "original-expiration-missing": 2,
    "priority-above-maximum-is-none": 1, "priority-ignored": 1, "priority-lost-on-requeue": 7,
    "priority-newest-first": 1, "queue-ttl-ignored": 2, "quorum-priority-none-is-lowest": 1, "return-missing": 1,
    "return-without-properties": 1, "select-counts-anew": 2,
    "stream-credit-never-returned": 2, "stream-last-is-next": 2, "stream-limit-ignored": 1,
    "stream-message-read-once": 1, "stream-nack-requeues": 1, "stream-offset-header-wrong": 1,
    "stream-offset-not-checked": 5, "stream-offset-off-by-one": 1, "stream-read-again-is-redelivered": 1,
    "stream-read-from-first": 2, "stream-recover-reads-again": 2, "tag-taken-after-notice": 4, "takeover-at-once": 8,
    "unknown-tag-accepted": 3, "unknown-tag-closes-connection": 3, "wrong-reply-code": 3, "zero-lives-on": 5,
}  # fmt: skip

#: Those of most faults are the same, and half the work of a search is to make them.
_made_once = cache(make_round)


@pytest.mark.parametrize("name", [name for name in FAULTS if area(name) in THEMES and name not in LONG])
def test_the_search_alone_finds_and_blames(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = FIRST_ROUND.get(name, 0)
    monkeypatch.setattr(
        workers, "make_round", lambda dialect, seed, number, *rest, **others:
        _made_once(dialect, seed, first + number, *rest, **others),
    )  # fmt: skip
    result = search_for(name, tmp_path)
    print(f"{name}: round {first + (result.sequences - 1) // ROUND}")
    assert FAULTS[name].requirement in failed_requirements(result)


def test_exceptions_are_faults() -> None:
    assert set(FAULTS) >= LONG | set(FIRST_ROUND)
    assert not LONG & set(FIRST_ROUND)
