"""What a search leaves out in the dialect that is the text, as nobody could judge what comes of it.

The text leaves it open, or the model does not follow it (docs/limits.md).
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.names import REPLY_ADDRESS
from amqpspec.conformance.scenarios.scenario_files import WITH_X, without_meaning, without_reserved
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import flags_of
from amqpspec.model.broker.reply_addresses import REPLY_TO
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.features import means_something
from amqpspec.model.protocol.methods import Content, Table
from amqpspec.model.rules.extensions.direct_reply import reply_consumer


def judgeable(command: Command, plan: Plan) -> Command | None:
    """The command, without what cannot be judged; None: nothing is left of it."""
    channel = plan.channel(command.connection, command.channel)
    if channel is not None and _is_mixed(command, channel):
        return None
    arguments: Table = dict(command.arguments)
    if command.method in ("queue.bind", "queue.unbind"):
        arguments |= _in_the_text(arguments)
    elif command.method == "queue.declare" and "arguments" in arguments:
        arguments |= {"arguments": _of_features(arguments["arguments"], plan.broker.dialect)}
        if not arguments["arguments"]:
            del arguments["arguments"]
    if command.method == "connection.open":
        # no sentence says what becomes of a virtual host that is not there
        arguments.pop("virtual_host", None)
    if command.method == "basic.publish":
        arguments.pop("immediate", None)
        content = _of_no_priority(without_meaning(command.content, plan.broker.dialect))
        if channel is None or reply_consumer(channel) is None:
            content = _of_no_reply(content)
        command = replace(command, content=content)
        if (channel is not None and channel.transaction is not None) or arguments.get("routing_key") == REPLY_ADDRESS:
            # class tx: with the flag its behaviour "is not defined"; and an address is no queue
            arguments.pop("mandatory", None)
    elif command.method in ("basic.ack", "basic.nack") and not arguments.get("delivery_tag"):
        # `exists` is about a non-zero delivery tag
        arguments["multiple"] = True
    elif command.method == "queue.declare" and arguments.get("passive"):
        # the flags say nothing there; some brokers compare them all the same, which scenarios show
        queue = plan.broker.queues.get(arguments.get("queue", ""))
        arguments |= {} if queue is None else flags_of(queue)
    elif command.method == "queue.declare" and arguments.get("exclusive"):
        # a broker that leaves it behind, with its connection gone, lets nobody delete it
        arguments.pop("durable", None)
    elif command.method == "basic.consume":
        arguments.pop("no_local", None)
        if arguments.get("queue") == REPLY_TO:
            arguments["no_ack"] = True
    elif command.method in ("queue.bind", "queue.unbind") and arguments.get("exchange") == "amq.headers":
        # section 3.1.3.4 names it amq.match, section 3.1.3.1 amq.headers
        arguments["exchange"] = "amq.match"
    elif command.method == "exchange.declare":
        arguments = dict(without_reserved(command).arguments)
        exchange = plan.broker.exchanges.get(arguments.get("exchange", ""))
        if exchange is not None and not arguments.get("passive"):
            # another type is an error of the channel by `equivalent`, and of the connection by `typed`
            arguments["type"] = exchange.type
    elif command.method == "channel.close-ok":
        # no sentence says what it is where nobody closes the channel; some brokers close it
        command = replace(command, method="channel.close")
        arguments = {"reply_code": 200, "reply_text": "done"}
    elif command.method == "basic.recover-async" and ("recover-async", "refused") in plan.broker.dialect.text.settled:
        command = replace(command, method="basic.recover")
    elif command.method == "basic.qos":
        arguments.pop("prefetch_size", None)
        if plan.broker.dialect.has("per_consumer_qos"):
            # guide: consumer-prefetch; newer versions of RabbitMQ, which brought it, have no limit of a channel
            arguments.pop("global_", None)
    elif command.method in ("queue.bind", "queue.unbind") and not arguments.get("exchange"):
        # the default exchange may be bound; what that brings about is not said
        arguments["exchange"] = "amq.direct"
    return command if arguments == command.arguments else replace(command, arguments=arguments)


def _is_mixed(command: Command, channel: Channel) -> bool:
    """Would the channel have transactions and confirms? RabbitMQ refuses that (CONFIRM-015)."""
    if command.method == "tx.select":
        return channel.confirming
    return command.method == "confirm.select" and channel.transaction is not None


def _of_no_reply(content: Content | None) -> Content | None:
    """A request of who awaits no reply is refused by RabbitMQ (PUBLISH-017)."""
    if content is None or content.properties.get("reply_to") != REPLY_TO:
        return content
    return replace(content, properties={n: each for n, each in content.properties.items() if n != "reply_to"})


def _of_features(table: Table, dialect: Dialect) -> Table:
    """The arguments of a queue that mean something to the broker. What none at all means is nobody's but RabbitMQ's, as
    is what counts beside bodies.
    """
    meant = {name: value for name, value in table.items() if means_something(dialect, name, value)}
    return {name: value for name, value in meant.items() if value != 0 and name != "x-max-length-bytes"}


def _of_no_priority(content: Content | None) -> Content | None:
    """Class basic: "The server MUST implement at least 2 priority levels"; whose turn that makes it is not modelled."""
    if content is None or "priority" not in content.properties:
        return content
    return replace(content, properties={n: each for n, each in content.properties.items() if n != "priority"})


def _in_the_text(arguments: Table) -> Table:
    """The table of a binding, whose x-match is `all` or `any` (section 3.1.3.4)."""
    table = arguments.get("arguments") or {}
    match = table.get("x-match")
    if not isinstance(match, str) or not match.endswith(WITH_X):
        return {}
    return {"arguments": {**table, "x-match": match.removesuffix(WITH_X)}}
