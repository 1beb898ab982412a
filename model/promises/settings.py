"""Settings of RabbitMQ that change what it promises: an operator sets them, and nothing that the broker says tells.

Each is a choice, as those of the text are (`model.promises.text_values`). What the broker does by itself is the dialect
of its version; a value that is otherwise stands behind the dialect's name: `rabbitmq-4.3;global-qos=permitted`.
`conformance.profile.settings` measures them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from amqpspec.model.promises.choices import DeprecatedFeature
from amqpspec.model.promises.dialect_names import base_of, choices_of
from amqpspec.model.promises.text_values import TextChoice, Value

_OLD, _FOUR, _NEWEST = "rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"
PERMITTED, DENIED = "permitted", "denied"


@dataclass(frozen=True, slots=True)
class Setting(TextChoice):
    """One setting. Its `sentence` is the documentation's, its `requirements` are those that it changes."""

    #: its key in rabbitmq.conf, or what an operator says else
    key: str = ""
    #: the dialects whose brokers have it
    brokers: tuple[str, ...] = (_OLD, _FOUR, _NEWEST)
    #: by the name of a dialect: the value that its law has; in one that is not there either is right
    usual: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: by the name of a value: the dialect whose notes and known defects the requirements have then
    holds_as: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: the value under which commands that are about something else cannot be carried out as they stand
    hinders: str = ""

    def is_worth_measuring(self, dialect_name: str) -> bool:
        """Would a broker of the dialect fail, or show less, that is set otherwise?"""
        base = base_of(dialect_name)
        return base in self.brokers and (base in self.usual or bool(self.hinders))

    def is_told(self, dialect_name: str, value: str) -> bool:
        """Does a run that has seen that value tell it by the name of the dialect?"""
        usual = self.usual.get(base_of(dialect_name))
        return value == self.hinders if usual is None else value != usual


def _deprecated(
    feature: str,
    about: str,
    does: Mapping[str, str],
    requirements: tuple[str, ...],
    fields: Mapping[str, tuple[str, object]],
    usual: Mapping[str, str],
    hinders: str = "",
) -> Setting:
    """A feature that RabbitMQ gives up, and an operator may permit or deny. `fields`: by value, one of `Dialect`."""
    return Setting(
        name=feature.replace("_", "-"),
        about=about,
        sentence='guide: deprecated features: "deprecated_features.permit.<feature>" allows it, or denies it',
        requirements=requirements,
        values=tuple(Value(name, does[name], dialect=dict([fields[name]])) for name in (PERMITTED, DENIED)),
        key=f"deprecated_features.permit.{feature}",
        usual=usual,
        holds_as={PERMITTED: _FOUR, DENIED: _NEWEST},
        hinders=hinders,
    )


#: By name.
SETTINGS: Mapping[str, Setting] = {
    each.name: each
    for each in (
        _deprecated(
            "global_qos",
            "basic.qos with global=true",
            {PERMITTED: "limits the whole channel", DENIED: "is read as global=false"},
            ("QOS-008", "QOS-005", "QOS-009", "QOS-010", "QOS-011", "QOS-012", "QOS-013"),
            {PERMITTED: ("channel_prefetch", True), DENIED: ("channel_prefetch", False)},
            {_OLD: PERMITTED, _FOUR: PERMITTED, _NEWEST: DENIED},
        ),
        _deprecated(
            "transient_nonexcl_queues",
            "a queue that is neither durable nor exclusive",
            {PERMITTED: "is made", DENIED: "is refused with 541"},
            ("QUEUE-018",),
            {
                PERMITTED: ("transient_queues", DeprecatedFeature.ALLOWED),
                DENIED: ("transient_queues", DeprecatedFeature.REFUSED),
            },
            {_OLD: PERMITTED, _FOUR: PERMITTED},
            hinders=DENIED,
        ),
        _deprecated(
            "queue_master_locator",
            "the argument x-queue-master-locator",
            {PERMITTED: "is taken", DENIED: "is refused with 541"},
            ("QUEUE-030",),
            {
                PERMITTED: ("master_locators", DeprecatedFeature.ALLOWED),
                DENIED: ("master_locators", DeprecatedFeature.REFUSED),
            },
            {_OLD: PERMITTED, _FOUR: PERMITTED},
        ),
        # nothing shows it but a restart, or nodes that are cut off
        Setting(
            name="khepri-db",
            about="the metadata store",
            sentence="release notes of 4.0.1: Khepri is a feature flag, from 4.3.0 on it is the only one",
            requirements=("DURABLE-001",),
            values=(
                Value("disabled", "is Mnesia", dialect={"nodes_pause_themselves": True}),
                Value("enabled", "is Khepri", dialect={"nodes_pause_themselves": False}),
            ),
            key="rabbitmqctl enable_feature_flag --experimental khepri_db",
            brokers=(_FOUR,),
            usual={_FOUR: "disabled"},
            holds_as={"disabled": _FOUR, "enabled": _NEWEST},
        ),
    )
}


@cache
def law_of(requirement: str, dialect_name: str) -> str:
    """The listed dialect whose notes and known defects the requirement has in a dialect of that name."""
    for name, value in choices_of(dialect_name).items():
        setting = SETTINGS.get(name)
        if setting is not None and requirement in setting.requirements:
            return setting.holds_as.get(value, base_of(dialect_name))
    return base_of(dialect_name)
