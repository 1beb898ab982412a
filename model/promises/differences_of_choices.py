"""The class and the source of each choice in which dialects differ (`model.promises.differences`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from amqpspec.model.promises.differences import Difference, DifferenceClass

_change = partial(Difference, DifferenceClass.CHANGE)
_free = partial(Difference, DifferenceClass.FREE)

_TEXT, _THREE, _FOUR, _NEWEST = "amqp-0-9-1", "rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"
_RABBITMQ = (_THREE, _FOUR, _NEWEST)
_ALL = (_TEXT, *_RABBITMQ)

#: By the name of the field of `Dialect`.
CHOICES: Mapping[str, Difference] = MappingProxyType(
    {
        # -------------------------------------------------------------------- what RabbitMQ makes of the text
        "fixed_reply_texts": _free(
            "0-9-1 leaves reply-text to the server; RabbitMQ's own test suites match on the texts",
            allowed_by="RabbitMQ's texts, as a convention (CHAN-008, de-facto); any text by the text of 0-9-1",
        ),
        "extensions": _change("guide: extensions"),
        "text": _change("guide: specification, and 0-9-1; the sentences are with each choice of `text_choices`"),
        "recover_to_original_recipient": _change(
            "guide: specification, basic.recover (only requeue=true is implemented)"
        ),
        "prefetch_is_shared": _change("guide: consumer-prefetch, the table of meanings", ("QOS-016",)),
        "exchange_type_change": _change(
            "guide: channels, Channels and Error Handling (redeclaring an exchange with other properties: 406); 0-9-1"
            " exchange.declare, type: 530",
            ("EXCHANGE-002", "EXCHANGE-006"),
        ),
        "wrong_content_class": _free(
            "0-9-1 section 4.2.6.1: 501, and 4.2.6: 505, which RabbitMQ sends (rabbit_command_assembler:process)",
            ("CHAN-014",),
            either_in=_ALL,
        ),
        "ends_silently_without_frame_end": _free(
            "0-9-1 section 4.2.3: no further data; section 1.1, of 501: a malformed frame is what it tells of, and"
            " RabbitMQ sends connection.close with it (rabbit_reader:handle_input)",
            ("CONN-015", "CONN-016"),
            either_in=_ALL,
        ),
        "accepts_0_9_header": _change("guide: man/rabbitmqctl.8 (a connection of 0-9 is treated as one of 0-9-1)"),
        "handshake_timeout": _change("guide: networking, handshake_timeout"),
        # ------------------------------------------------------------------------------- connections and frames
        "mechanisms": _change("release notes of 4.0.1 (anonymous_login_user)", ("CONN-031",)),
        "speaks_0_8": _free(
            "0-9-1 section 2.2.4 lets a server speak any further version (v4.0.5 rabbit_reader:version_negotiation)",
            ("CONN-004",),
            either_in=_ALL,
        ),
        "headers_1_0": _change("release notes of 4.0.1 (AMQP 1.0 is a core protocol)"),
        "refuses_with_1_0_header": _free(
            "0-9-1 section 4.2.2: any valid protocol header (v4.0.5 rabbit_reader:refuse_connection)",
            ("CONN-003", "CONN-004"),
            either_in=_ALL,
        ),
        "least_frame_max": _change(
            "release notes of 4.1.0 (8192 or greater)", ("CONN-012",), within="4.1.0: 8192", either_in=(_FOUR,)
        ),
        "largest_announced_body": _free(
            "no text names a limit of what may be announced (v4.2.6 rabbit_command_assembler, MAX_MSG_SIZE)",
            ("CHAN-022",),
            within="4.2.6: 536870912",
            either_in=_ALL,
        ),
        # --------------------------------------------------------------------------------- reply codes and texts
        "unknown_exchange_type": _change(
            "release notes of 3.13.3 (reported as precondition failed); 0-9-1 exchange.declare, type: 503",
            ("EXCHANGE-004",),
            within="3.13.3: 406",
            either_in=(_THREE,),
        ),
        "further_exchange_types": _change(
            "release notes of 4.0.1 (x-local-random); rabbit_exchange_type_modulus_hash (in the broker from 4.3.0 on)",
            ("EXCHANGE-011",),
        ),
        "queue_type_in_get_error": _free(
            "a text only (v4.2.0 rabbit_channel:unsupported_single_active_consumer_error)",
            ("GET-005",),
            within='4.2.0: <<"quorum">>',
            either_in=(_FOUR,),
        ),
        "default_queue_type_in_errors": _free(
            "a text only (v4.0.5 rabbit_amqqueue:augment_declare_args)", ("QUEUE-012",), either_in=_RABBITMQ
        ),
        "first_stream_texts": _free("a text only (v4.0.5 rabbit_stream_queue:consume)", either_in=_RABBITMQ),
        "refusals_name_permission": _free(
            "a text only (v3.12.0 rabbit_access_control:check_resource_access)",
            ("PERMISSION-001",),
            within="3.12.0: named",
            either_in=(_THREE,),
        ),
        "user_id_checked_first": _free(
            "of several faults of one message no text says which is told (rabbit_channel, basic.publish)",
            either_in=_RABBITMQ,
        ),
        # ------------------------------------------------------------------------------ permissions and consumers
        "passive_declare_permission": _change(
            "release notes of 4.2.6, 4.2.7, 4.3.0 and 4.3.1",
            ("PERMISSION-003",),
            within="4.2.6 and 4.3.0: configure; 4.2.7 and 4.3.1: any",
            either_in=(_FOUR, _NEWEST),
        ),
        "rechecks_consumers": _change(
            "release notes of 4.2.6 and 4.3.0 (consumer permissions are validated again)",
            ("CANCEL-018",),
            within="4.2.6: gone",
            either_in=(_FOUR,),
        ),
        "client_cancel_ok": _free(
            "no text says what becomes of a client's cancel-ok (v4.3.0 rabbit_channel:handle_method)",
            ("CANCEL-009",),
            either_in=_ALL,
        ),
        "channel_prefetch": _change(
            "release notes of 4.3.0 (global_qos is denied by default; a setting permits it, see below)",
            ("QOS-008", "QOS-009", "QOS-010", "QOS-011", "QOS-012", "QOS-013"),
        ),
        # ------------------------------------------------------------------------------------------------- queues
        "queue_arguments": _change("see the table of the arguments", ("QUEUE-010", "QUEUE-013", "QUEUE-016")),
        "transient_queues": _change(
            "release notes of 4.3.0 (denied by default, may be permitted)", ("QUEUE-018",), either_in=(_NEWEST,)
        ),
        "master_locators": _change(
            "rabbit_queue_location, deprecated feature queue_master_locator (denied by default, may be permitted)",
            ("QUEUE-030",),
            either_in=(_NEWEST,),
        ),
        "least_max_priority": _free(
            "guide: limits (x-max-priority is 1 to 255); no text says what 0 means (rabbit_priority_queue:priorities)",
            either_in=_ALL,
        ),
        "topic_wildcard_limit": _change(
            "release notes of 4.3.5", ("BIND-007",), within="4.3.5: two", either_in=(_NEWEST,)
        ),
        "headers_numbers_by_value": _free(
            "0-9-1 section 3.1.3.4 does not say when values of two types are equal (rabbit_exchange_type_headers)",
            ("PUBLISH-006",),
            within="3.13.0: not equal",
            either_in=_RABBITMQ,
        ),
        "max_message_size": _change("release notes of 4.0.1 (16 MiB from 128 MiB)", ("PUBLISH-013",)),
        "reply_address_is_routable": _change(
            "release notes of 4.2.0; guide: direct-reply-to",
            ("REPLY-003",),
            within="4.2.0: routable",
            either_in=(_FOUR,),
        ),
        "deleted_before_commit": _free(
            "0-9-1 class tx: the effect of what goes on beside a transaction is undefined", ("TX-002",), either_in=_ALL
        ),
        # ---------------------------------------------------------------------------------------- quorum queues
        "quorum_requeue": _change(
            "release notes of 3.10.0 (the tail unless there is a limit) and 4.0.1 (a limit by default); guide: quorum-"
            "queues, Redelivery of Returned Messages",
            ("ACK-017", "ACK-018", "QUORUM-004", "RECOVER-005"),
        ),
        "quorum_delivery_limit": _change("release notes of 4.0.1; guide: quorum-queues", ("QUORUM-003",)),
        "negative_delivery_limit_is_none": _change(
            "release notes of 4.0.1 (-1 disables the limit); no text before says what it means",
            ("QUORUM-004",),
            either_in=(_THREE,),
        ),
        "quorum_expires_by_policy": _change(
            "v3.13.0 rabbit_quorum_queue:ra_machine_config (the policy's), v4.0.1 (the lower one)", ("POLICY-007",)
        ),
        "quorum_nack_has_not_failed": _change(
            "release notes of 4.3.0; guide: quorum-queues, When is delivery count incremented",
            ("QUORUM-002", "QUORUM-003", "RECOVER-005"),
        ),
        "nodes_pause_themselves": _change("guide: partitions, with Khepri (cluster_partition_handling has no effect)"),
        "mirrors_classic_queues": _change(
            "release notes of 4.0.1 (mirroring is removed)", ("CANCEL-017", "CLUSTER-013", "CLUSTER-014")
        ),
        "quorum_acquired_count": _change(
            "guide: quorum-queues, Poison Message Handling", ("QUORUM-001", "RECOVER-005")
        ),
        "quorum_count_on_first_get": _change(
            "release notes of 3.12.0 (not added the first time)",
            ("QUORUM-001",),
            within="3.12.0: absent",
            either_in=(_THREE,),
        ),
        "lost_consumers_by_creation": _free(
            "no text orders what several consumers of a lost channel held (rabbit_fifo, key of a consumer)",
            ("ACK-017", "ACK-018"),
            either_in=_ALL,
        ),
        "quorum_active_by_priority": _change(
            "release notes of 4.0.1; guide: consumers, Initial SAC Selection", ("SAC-002", "SAC-004")
        ),
        "quorum_priorities": _change("guide: quorum-queues 4.0, Priorities; release notes of 4.3.0", ("QUORUM-005",)),
        "quorum_expires_by_priority": _change("guide: quorum-queues, Priority-Aware Message Expiration", ("TTL-003",)),
        "consumer_timeout_checked": _change(
            "release notes of 4.3.0 (the argument of basic.consume); the suite of v4.3.0 has the refusal",
            ("CONSUME-012",),
        ),
        "consumer_timeouts": _change(
            "release notes of 4.3.0; the guide on consumer timeouts, Changes from v4.2.x; guide: consumers 3.13, Per-"
            "queue Configuration",
            (*(f"TIMEOUT-{number:03}" for number in range(1, 33)), "QUEUE-016"),
            within="3.12.0: by queue and policy, which the model ignores up to 3.13",
        ),
        # ------------------------------------------------------------------------------------------ dead letters
        "deaths_in_headers": _change(
            "release notes of 4.0.1 (x-death is not interpreted)",
            ("DLX-003", "DLX-004"),
            within="3.13.0: with x-last-death, which the model does not expect up to 3.13",
        ),
        "carried_failures": _free(
            "no text says which counts a dead letter keeps (mc, rabbit_fifo; release notes of 4.3.0: acquired-count is"
            " preserved, and no word of the others or of 0-9-1)",
            ("DLX-010",),
            either_in=_RABBITMQ,
        ),
        # ------------------------------------------------------------------------------------------------ streams
        "stream_names_delivery_mode": _free(
            "no text says what a message without delivery-mode comes back with (v4.0.5 mc_amqpl)",
            either_in=_RABBITMQ,
        ),
    }
)

#: By the name of the field of `KnownArguments`.
ARGUMENTS: Mapping[str, Difference] = MappingProxyType(
    {
        "classic": _change("release notes of 4.0.1 (queue_leader_locator in place of queue_master_locator)"),
        "quorum": _change("release notes of 4.3.0 (delayed retry, consumer timeouts)"),
        "stream": _free(
            "no text says whether x-stream-filter-size-bytes is compared (rabbit_stream_queue:capabilities)",
            within="4.2.7 and 4.3.1: compared",
            either_in=_RABBITMQ,
        ),
        "queue_versions": _change("release notes of 4.3.0 (CQv1 is removed)"),
        "queue_modes": _change("release notes of 4.3.0 (x-queue-mode set to any value fails)", ("QUEUE-013",)),
        "leader_locators": _free(
            "guide: clustering names min-masters of x-queue-master-locator only (rabbit_queue_location)",
            ("QUEUE-013",),
            either_in=(_FOUR, _NEWEST),
        ),
        "age_is_compared_by_length": _free(
            "no text says when two ages are equal (rabbit_amqqueue:normalize_max_age, 4.3.6)",
            ("QUEUE-010",),
            within="4.3.6: by length",
            either_in=_RABBITMQ,
        ),
        "filter_size_text": _free(
            "a text only (rabbit_stream_queue:check_filter_size); the argument came with 3.13 (guide: streams 3.13)",
            ("QUEUE-013",),
            within="3.13.0: checked",
            either_in=_RABBITMQ,
        ),
    }
)
