"""Chapter handshake: from the TCP connection to connection.open-ok (0-9-1 section 2.2.4; CONN-001 to CONN-012).

RabbitMQ: rabbit_reader:version_negotiation, handle_method0, auth_phase, validate_negotiated_integer_value. Whom it does
not trust yet it refuses without a word: nothing is read any more, and some seconds later the TCP connection ends.

Requirements:

* CAP-001: Server capabilities table. connection.start capabilities: publisher_confirms, exchange_exchange_bindings,
  basic.nack, consumer_cancel_notify, connection.blocked, consumer_priorities, authentication_failure_close,
  per_consumer_qos, direct_reply_to all true. [rabbit_reader.erl:server_capabilities; RabbitMQ guide: consumer cancel
  notification]
* CAP-005: consumer_cancel_notify must be inside capabilities table as boolean true. Server-sent basic.cancel is enabled
  only by client-properties.capabilities.consumer_cancel_notify = true (field type t). Anything else means disabled.
  [rabbit_channel.erl:server_consumer_cancel_supported; RabbitMQ guide: consumer cancel notification]
* CONN-001: Protocol header accepted. Sending 8 bytes "AMQP" 0 0 9 1 makes the server answer connection.start with
  version-major 0, version-minor 9, locales "en_US" and a mechanisms list that contains PLAIN and AMQPLAIN (order not
  fixed). In amqp-0-9-1: as stated, with mechanisms and locales of the server's choice. [AMQP 0-9-1 4.2.2;
  rabbit_reader.erl:handshake]
* CONN-002: Legacy header AMQP 1 1 0 9 accepted. The 0-9 style header "AMQP" 1 1 0 9 is accepted exactly like 0-0-9-1.
  [rabbit_reader.erl:version_negotiation]
* CONN-003: Unsupported header answered with supported one. A header the server does not speak is answered with an
  8-byte protocol header and the socket is closed; no method frame is sent. For garbage, 4.x answers the AMQP 1.0 SASL
  header because 1.0 is built in; headers "AMQP 0 0 x y" are answered with 0-0-9-1. Which of the two headers it is, no
  text says, so either is right. In rabbitmq-3: always "AMQP 0 0 9 1". In rabbitmq-4.0: "AMQP 3 1 0 0" for HTTP/1.1,
  AMQP 0 0 8 0, AMQP 1 1 9 1, AMQP 2 0 0 0; "AMQP 0 0 9 1" for AMQP 0 0 9 0 and 0 0 10 0. In rabbitmq-4.3: "AMQP 3 1 0
  0" for HTTP/1.1, AMQP 0 0 8 0, AMQP 1 1 9 1, AMQP 2 0 0 0; "AMQP 0 0 9 1" for AMQP 0 0 9 0 and 0 0 10 0. In
  amqp-0-9-1: answered with a protocol header that the server does speak, then the socket is closed.
  [rabbit_reader.erl:refuse_connection; AMQP 0-9-1 class connection]
* CONN-004: 0-8 header on 3.10. On 3.10 the header "AMQP 1 1 9 1"/"AMQP 1 1 8 0" family selects AMQP 0-8 and a
  Connection.Start{8,0} is sent; on 4.x 0-8 support is gone and the connection is refused. Either is right of any
  version. In rabbitmq-3: Connection.Start{8,0}. In rabbitmq-4.0: refused, AMQP 3 1 0 0. In rabbitmq-4.3: refused, AMQP
  3 1 0 0. [rabbit_reader.erl:version_negotiation]
* CONN-005: Login failure with authentication_failure_close. If the client announced capability
  authentication_failure_close=true, a failed login is reported by connection.close before the socket is closed.
  [rabbit_reader.erl:auth_fail]
* CONN-006: Login failure without the capability. Without authentication_failure_close the server just closes the socket
  (after a delay), no connection.close frame. [rabbit_reader.erl:auth_fail; AMQP 0-9-1]
* CONN-007: Unknown SASL mechanism. start-ok naming a mechanism not offered leads to no connection.open-ok; nothing is
  sent within 2 s and the socket is closed after the silent-close delay. [rabbit_reader.erl:auth_mechanism_to_module;
  AMQP 0-9-1 class connection]
* CONN-008: Unknown vhost. connection.open for a vhost that does not exist is refused with hard error 530. In
  amqp-0-9-1: refused, with whatever code. [rabbit_reader.erl:handle_method0 connection.open]
* CONN-009: No access to vhost. connection.open by a user with no permission entry in the vhost is refused with 530.
  [rabbit_reader.erl / rabbit_access_control:check_vhost_access]
* CONN-010: Tune values. Default connection.tune offers channel-max 2047, frame-max 131072, heartbeat 60.
  [rabbit_reader.erl:start_connection/tune]
* CONN-011: tune-ok must not raise frame-max or channel-max. A tune-ok with frame-max or channel-max higher than
  offered, or 0 (unlimited) when the server offered a limit, is rejected; the socket is closed WITHOUT a
  connection.close frame. In amqp-0-9-1: as stated; 0 is no limit for frames.
  [rabbit_reader.erl:validate_negotiated_integer_value; AMQP 0-9-1 class connection]
* CONN-012: Minimum frame-max. tune-ok with frame-max below the minimum frame size is rejected with a bare socket close.
  In rabbitmq-3: minimum 4096 (4095 refused). In rabbitmq-4.0: minimum 4096 or 8192, as versions differ (8192 from 4.1.0
  on). In rabbitmq-4.3: minimum 8192 (4096 refused, 8192 accepted; since 4.1). In amqp-0-9-1: minimum 4096, in what the
  server offers as well. [rabbit_reader.erl:validate_negotiated_integer_value; FRAME_MIN_SIZE; AMQP 0-9-1 class
  connection]
* CONN-025: Server properties. connection.start server-properties contain product, version, platform, capabilities,
  cluster_name, copyright, information. In amqp-0-9-1: at least host, product, version, platform, copyright and
  information. [rabbit_reader.erl:server_properties; AMQP 0-9-1 class connection]
* CONN-026: Method out of turn in the handshake. Until connection.open-ok only the next step of the handshake is
  accepted, connection.close included. Anything else before tune-ok is the end without a frame; after it, a method on
  channel 0 is hard error 504 and a frame on another channel 505. [rabbit_reader.erl:handle_method0, handle_frame,
  handle_exception]
* CONN-027: SASL response without form. A response that does not have the form of the mechanism is no failed login: the
  socket is closed without a frame, also for a client with authentication_failure_close.
  [rabbit_auth_mechanism_plain.erl:handle_response, rabbit_auth_mechanism_amqplain.erl; rabbit_reader.erl:auth_phase]
* CONN-031: Anonymous login. Who chooses ANONYMOUS, where it is offered, is let in as the user that is configured for
  it, whatever the response: guest with the password guest, unless an operator has changed that. If there is no such
  login, it is refused as any. [rabbit_auth_mechanism_anonymous.erl; release notes of 4.0.1 (anonymous_login_user)]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.openness import note_undecided
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.survival import SET_UP
from amqpspec.model.protocol.credentials import AMQPLAIN, ANONYMOUS, PLAIN, credentials_of
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import MASK, HeaderEvent, Method, RawFrame, SocketEvent, Table, TraceEvent
from amqpspec.model.protocol.patterns import OneOf
from amqpspec.model.rules.connection.closing import fail_channel_zero
from amqpspec.model.rules.connection.ending import abandon_connection
from amqpspec.model.rules.connection.handshake_content import (
    ANY_HEADER,
    HEADER_0_9,
    HEADER_0_9_1,
    HEADER_1_0,
    HEADERS_0_8,
    START_BLAME,
    TUNE_BLAME,
    TUNE_OFFER,
    limit,
    start_arguments,
    tune_arguments,
)

#: Seconds that a client which is not trusted waits for the end, so that it cannot try one login after the other
#: (SILENT_CLOSE_DELAY in rabbit_reader).
SILENT_CLOSE_DELAY = 3.0
#: The rest of the reply text are the octets of the frame.
_UNEXPECTED_FRAME = "type 1, all octets"


def connect(broker: Broker, event: SocketEvent) -> None:
    """`socket.open`: a new connection, which takes the place of one of this name that is over.

    Its argument `assumed` says that it is not in the trace, and that credentials are not either.
    """
    before = broker.connections.get(event.connection)
    if before is not None:
        if before.state is ConnectionState.OPEN:
            abandon_connection(broker, before)  # a recording that does not show its end
        for key in [key for key in broker.channels if key[0] == event.connection]:
            del broker.channels[key]
            broker.debtors.pop(key, None)
        broker.debtors.pop((event.connection, 0), None)
    broker.connections[event.connection] = Connection(
        event.connection,
        is_assumed=bool(event.arguments.get("assumed")),
        began=event.time,
        heard=event.time,
    )


def handshake_input(broker: Broker, connection: Connection, event: TraceEvent) -> None:
    """Process what a client sends, on any channel, before its connection is open."""
    due, rule = _STEPS[connection.state]
    if connection.state is ConnectionState.AWAITING_HEADER or (event.name == due and event.channel == 0):
        rule(broker, connection, event)
    elif connection.state is not ConnectionState.OPENING:
        refuse_silently(broker, connection, "CONN-026")
    elif isinstance(event, RawFrame | HeaderEvent):
        # which of several errors it is, is the business of those who look at octets
        refuse_silently(broker, connection, "CONN-026", may_announce=True)
    elif event.channel:
        error = ProtocolError("CONN-026", 505, _UNEXPECTED_FRAME, any_text=True)
        _refuse(broker, connection, None, error)
    else:
        state = connection.state.value
        error = ProtocolError("CONN-026", 504, f"unexpected method in connection state {state}")
        _refuse(broker, connection, event, error)


def refuse_silently(broker: Broker, connection: Connection, requirement: str, *, may_announce: bool = False) -> None:
    """The end of the TCP connection is owed, and nothing else; the bare text lets a broker say why."""
    connection.state = ConnectionState.ENDING
    connection.may_end = True
    connection.may_announce_end = may_announce or not broker.dialect.fixed_reply_texts
    owe_end(broker, connection, requirement, SILENT_CLOSE_DELAY)


def owe_end(
    broker: Broker, connection: Connection, requirement: str, patience: float = 0.0, not_before: float = 0.0
) -> None:
    """The broker owes the end of the TCP connection."""
    owe(broker, connection, "socket.closed", {}, (requirement,), patience=patience, not_before=not_before)


def owe(
    broker: Broker,
    connection: Connection,
    method: str,
    arguments: Table,
    requirements: tuple[str, ...],
    blame: dict[str, str] | None = None,
    *,
    patience: float = 0.0,
    not_before: float = 0.0,
) -> None:
    """The connection owes this frame; the first requirement is broken if it does not come."""
    counted = broker.bookkeeping.counting
    connection.owed.append(
        Expected(
            method, arguments, requirements, blame=blame or {}, counted=counted, patience=patience,
            not_before=not_before,
        )
    )
    broker.debtors[(connection.name, 0)] = None
    if counted:
        broker.bookkeeping.reason = requirements[0]


def _refuse(broker: Broker, connection: Connection, event: TraceEvent | None, error: ProtocolError) -> None:
    """connection.close is owed; the bare text lets a broker end the TCP connection in place of it."""
    if broker.dialect.fixed_reply_texts:
        fail_channel_zero(broker, connection, event, error)
    else:
        refuse_silently(broker, connection, error.requirement)


# ---------------------------------------------------------------------------------------------- the four steps


def _header(broker: Broker, connection: Connection, event: TraceEvent) -> None:
    """Eight octets. Any frame in their place is a header that nobody knows."""
    dialect = broker.dialect
    octets = event.arguments.get("octets", "").lower() if isinstance(event, HeaderEvent) else ""
    if octets == HEADER_0_9_1:
        _start(broker, connection, ("CONN-001", "CONN-025", *(("CAP-001",) if dialect.extensions else ())))
    elif octets == HEADER_0_9 and dialect.accepts_0_9_header:
        _start(broker, connection, ("CONN-002",))
    elif octets in HEADERS_0_8 and dialect.speaks_0_8:
        _start(broker, connection, ("CONN-004",), (8, 0))
    elif octets in dialect.headers_1_0:
        connection.state = ConnectionState.FOREIGN
        connection.may_end = True
    else:
        connection.state = ConnectionState.ENDING
        connection.may_end = True
        requirement = "CONN-004" if octets in HEADERS_0_8 and dialect.refuses_with_1_0_header else "CONN-003"
        owe(broker, connection, "protocol.header", {"octets": _refusing_header(broker, octets)}, (requirement,))
        owe_end(broker, connection, requirement)


def _refusing_header(broker: Broker, octets: str) -> object:
    dialect = broker.dialect
    if not dialect.fixed_reply_texts:
        return ANY_HEADER
    is_0_9_or_later = octets.startswith("414d51500000") and octets[12:14] >= "09"
    says_1_0 = dialect.refuses_with_1_0_header and not is_0_9_or_later
    # which of those that it speaks nobody promises
    return OneOf((HEADER_1_0, HEADER_0_9_1) if says_1_0 else (HEADER_0_9_1, HEADER_1_0))


def _start(
    broker: Broker, connection: Connection, requirements: tuple[str, ...], version: tuple[int, int] = (0, 9)
) -> None:
    owe(broker, connection, "connection.start", start_arguments(broker.dialect, version), requirements, START_BLAME)
    connection.state = ConnectionState.STARTING


def _start_ok(broker: Broker, connection: Connection, method: Method) -> None:
    properties = method.arguments.get("client_properties")
    capabilities = properties.get("capabilities") if isinstance(properties, dict) else None
    connection.capabilities = capabilities if isinstance(capabilities, dict) else {}
    connection.wish_in_vain = _wishes_in_vain(connection, properties)
    mechanism = method.arguments.get("mechanism", PLAIN if connection.is_assumed else "")
    response = method.arguments.get("response", "")
    if mechanism not in (connection.mechanisms or broker.dialect.mechanisms):
        refuse_silently(broker, connection, "CONN-007")
        return
    if mechanism not in (PLAIN, AMQPLAIN, *broker.dialect.mechanisms):
        connection.state = ConnectionState.SECURING
        connection.may_end = True
        note_undecided(broker, f"authentication mechanism {mechanism}")
    elif response == MASK or connection.is_assumed:
        _admit(broker, connection, broker.own_user, mechanism)
    elif (credentials := credentials_of(mechanism, response)) is None:
        refuse_silently(broker, connection, "CONN-027")
    elif (user := broker.users.get(credentials.user)) is not None and user.password == credentials.password != "":
        _admit(broker, connection, user.name, mechanism)
    elif mechanism == ANONYMOUS and not broker.is_punctual:
        connection.state = ConnectionState.SECURING  # whether there is such a user nobody told
        connection.may_end = True
    else:
        _refuse_login(broker, connection, mechanism)


def let_in(broker: Broker, connection: Connection) -> None:
    """What an unknown mechanism has asked was answered: the connection goes on as any other."""
    _admit(broker, connection, "")


def _wishes_in_vain(connection: Connection, properties: object) -> bool:
    """Is consumer_cancel_notify beside the table of capabilities, or in it and neither true nor false (CAP-005)?"""
    if isinstance(properties, dict) and "consumer_cancel_notify" in properties:
        return True
    return not isinstance(connection.capabilities.get("consumer_cancel_notify", False), bool)


def _admit(broker: Broker, connection: Connection, user: str, mechanism: str = PLAIN) -> None:
    connection.user = user
    connection.state = ConnectionState.TUNING
    tune = tune_arguments(broker.dialect)
    if mechanism == ANONYMOUS:
        owe(broker, connection, "connection.tune", tune, ("CONN-031", "CONN-010"), dict.fromkeys(tune, "CONN-010"))
    else:
        owe(broker, connection, "connection.tune", tune, ("CONN-010",), {} if broker.dialect.extensions else TUNE_BLAME)


def _refuse_login(broker: Broker, connection: Connection, mechanism: str) -> None:
    told = "authentication_failure_close"
    if connection.capabilities.get(told) is True and broker.dialect.has(told):
        text = f"Login was refused using authentication mechanism {mechanism}. For details see the broker logfile."
        # class and method are 0 although it is start-ok that is refused (rabbit_reader:auth_fail)
        fail_channel_zero(broker, connection, None, ProtocolError("CONN-005", 403, text))
        return
    refuse_silently(broker, connection, "CONN-006")
    if broker.dialect.extensions:
        connection.state = ConnectionState.CLOSING  # a client's own close is answered


def _tune_ok(broker: Broker, connection: Connection, method: Method) -> None:
    """0 says that the client has no limit, which is more than any limit of the server's."""
    offered = connection.offered or TUNE_OFFER
    asked = method.arguments
    frame_max, channel_max = asked.get("frame_max", 0), asked.get("channel_max", 0)
    least: float = broker.dialect.least_frame_max
    if not broker.dialect.extensions:
        least = min(least, limit(offered["frame_max"]))  # who takes what it is offered is not refused for that
    if 0 < frame_max < least:
        refuse_silently(broker, connection, "CONN-012")
    elif not frame_max and offered["frame_max"] and broker.dialect.text.frame_max_can_be_left_open:
        _tune_ok(broker, connection, replace(method, arguments={**asked, "frame_max": offered["frame_max"]}))
    elif limit(frame_max) > limit(offered["frame_max"]) or limit(channel_max) > limit(offered["channel_max"]):
        refuse_silently(broker, connection, "CONN-011")
    else:
        connection.frame_max, connection.channel_max = frame_max, channel_max
        connection.heartbeat = asked.get("heartbeat", 0)
        connection.state = ConnectionState.OPENING
        if frame_max == broker.dialect.least_frame_max:
            broker.fired("CONN-012")


def _open(broker: Broker, connection: Connection, method: Method) -> None:
    vhost = method.arguments.get("virtual_host", "")
    user = broker.users.get(connection.user)
    if not broker.vhosts.get(vhost):
        _refuse(broker, connection, method, ProtocolError("CONN-008", 530, f"vhost {vhost} not found"))
    elif user is not None and vhost not in user.permissions:
        text = f"access to vhost '{vhost}' refused for user '{user.name}'"
        _refuse(broker, connection, method, ProtocolError("CONN-009", 530, text))
    else:
        connection.vhost = vhost
        connection.state = ConnectionState.OPEN
        known = (SET_UP,) if user is not None and user.survived else ()
        owe(broker, connection, "connection.open-ok", {}, (*known, "CONN-001"))


_Step = Callable[[Broker, Connection, Any], None]

#: What is due in a state, and the rule for it.
_STEPS: dict[ConnectionState, tuple[str, _Step]] = {
    ConnectionState.AWAITING_HEADER: ("protocol.header", _header),
    ConnectionState.STARTING: ("connection.start-ok", _start_ok),
    ConnectionState.TUNING: ("connection.tune-ok", _tune_ok),
    ConnectionState.OPENING: ("connection.open", _open),
}

#: The method that is due in each state of the handshake.
DUE = {state: method for state, (method, _) in _STEPS.items()}
