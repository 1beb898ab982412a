"""Does a routing key fit the key of a topic binding? (PUBLISH-005; rabbit_db_topic_exchange:match, AMQP 0-9-1 3.1.3.3)

A key is a list of words between dots; the empty key is the empty list, and "." is two empty words. In a binding
`*` stands for one word, which may be empty, and `#` for any number of words. Only whole words are wildcards.

Requirements:

* PUBLISH-005: topic. Words split on "."; * = exactly one word (possibly empty), # = zero or more words. "" is the empty
  word list: it matches "#" and "" but not "*"; "." is two empty words and matches "*.*". [rabbit_exchange_type_topic;
  AMQP 0-9-1 3.1.3.3]
"""

from __future__ import annotations

from functools import lru_cache

ONE_WORD, ANY_WORDS = "*", "#"


def words(key: str) -> tuple[str, ...]:
    """rabbit_db_topic_exchange:split_topic_key_binary."""
    return tuple(key.split(".")) if key else ()


@lru_cache(maxsize=4096)
def topic_matches(binding_key: str, routing_key: str) -> bool:
    """In time that is at worst the product of the two lengths: only the last `#` ever needs to take more words."""
    pattern, key = words(binding_key), words(routing_key)
    at = place = 0
    # where to go on after the last # seen, and how many words it has taken when it does
    after_any, taken_to = -1, 0
    while place < len(key):
        if at < len(pattern) and pattern[at] == ANY_WORDS:
            at += 1
            after_any, taken_to = at, place
        elif at < len(pattern) and pattern[at] in (ONE_WORD, key[place]):
            at += 1
            place += 1
        elif after_any >= 0:
            taken_to += 1
            at, place = after_any, taken_to
        else:
            return False
    return all(word == ANY_WORDS for word in pattern[at:])
