"""The question after the last command: is in the queues what the model says, also where no command has looked?

A barrier asks only for the queues that its command touched, on the connections of the sequence. It does not look at
what a command does to other queues, or at what the end of the last connection does. So a new connection asks for every
queue once; an exclusive one is asked for on its own connection.
"""

from __future__ import annotations

from amqpspec.conformance.session.asking import ask, askers
from amqpspec.conformance.session.conversation import Conversation
from amqpspec.conformance.session.opening import open_connection
from amqpspec.conformance.session.settling import compare_counts

#: What the connection is called, if the sequence has none of that name.
_FRESH = "fresh"


def ask_at_rest(conversation: Conversation) -> None:
    """Ask for the numbers of each queue that is there, and judge them."""
    queues = conversation.questions.at_rest()
    if not queues:
        return
    fresh = _FRESH
    while conversation.questions.connection(fresh) is not None:
        fresh += "x"
    conversation.mark("barrier")
    open_connection(conversation, fresh, {})
    # what came back with the end of a connection that was the last one may be on its way yet
    compare_counts(conversation, queues)
    for queue in queues:
        if conversation.over:
            return
        if connections := askers(conversation, queue):
            ask(conversation, fresh if fresh in connections else connections[0], queue)
    conversation.drain()
    conversation.mark("quiescent")
