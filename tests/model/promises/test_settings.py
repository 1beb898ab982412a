"""Settings of RabbitMQ that change what it promises."""

from __future__ import annotations

import dataclasses

import pytest

from amqpspec.model.defects.known_defects import followed, known_defects
from amqpspec.model.promises.choices import DeprecatedFeature, Dialect
from amqpspec.model.promises.dialects import UnknownDialect, dialect_named, dialect_of
from amqpspec.model.promises.dialects.settled import with_settings
from amqpspec.model.promises.registry import applies, requirements
from amqpspec.model.promises.settings import SETTINGS, law_of
from amqpspec.model.promises.versions import judged_version, version_of

SHARED = "rabbitmq-4.3;global-qos=permitted"


def test_the_name_says_all() -> None:
    dialect = dialect_named(SHARED)
    assert dialect.name == SHARED and dialect.channel_prefetch and dialect.title == "RabbitMQ 4.3, global-qos permitted"
    assert dataclasses.replace(dialect, name="", title="", channel_prefetch=False) == dataclasses.replace(
        dialect_named("rabbitmq-4.3"), name="", title=""
    )
    assert dialect_of({"product": "amqpspec", "dialect": SHARED}) == dialect


def test_what_a_dialect_has_by_itself_is_no_part_of_its_name() -> None:
    assert dialect_named("rabbitmq-4.3;global-qos=denied") == dialect_named("rabbitmq-4.3")
    both = dialect_named("rabbitmq-4.3;transient-nonexcl-queues=denied")
    assert both.transient_queues is DeprecatedFeature.REFUSED
    again = with_settings(both, {"global-qos": "permitted"})
    assert again.name == "rabbitmq-4.3;global-qos=permitted;transient-nonexcl-queues=denied"
    assert again == dialect_named(again.name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rabbitmq-4.3;immediate=refused", "there is no choice 'immediate', but global-qos"),
        ("rabbitmq-4.3;global-qos=maybe", "global-qos is never 'maybe', but permitted, denied"),
        ("rabbitmq-4.3;khepri-db=enabled", "khepri-db is no setting of rabbitmq-4.3"),
        ("amqp-0-9-1;global-qos=permitted", "there is no choice 'global-qos'"),
    ],
)
def test_a_name_that_says_nothing_is_no_dialect(name: str, message: str) -> None:
    with pytest.raises(UnknownDialect, match=message):
        dialect_named(name)


def test_what_a_setting_changes_is_demanded_as_in_the_versions_that_have_it() -> None:
    registry = requirements()
    assert applies(registry["QOS-008"], SHARED) and not applies(registry["QOS-008"], "rabbitmq-4.3")
    assert not applies(registry["QOS-009"], SHARED) and applies(registry["QOS-009"], "rabbitmq-4.3")
    assert law_of("QOS-008", SHARED) == "rabbitmq-4.0" and law_of("QOS-001", SHARED) == "rabbitmq-4.3"
    # and what is known to be broken there
    added = {each.name for each in known_defects(SHARED)} - {each.name for each in known_defects("rabbitmq-4.3")}
    assert "uncounted-deliveries-make-room" in added
    assert "uncounted-deliveries-make-room" in {each.name for each in followed(SHARED).windows}
    assert judged_version("RabbitMQ", "4.3.6", SHARED) == version_of("4.3.6")


def test_settings_are_of_fields_and_requirements_that_there_are() -> None:
    fields = {each.name for each in dataclasses.fields(Dialect)}
    for name, setting in SETTINGS.items():
        assert setting.name == name and setting.key and set(setting.requirements) <= set(requirements())
        assert set(setting.usual) <= set(setting.brokers)
        assert set(setting.holds_as) == {each.name for each in setting.values}
        for base, value in setting.usual.items():
            known = dialect_named(base)
            assert all(getattr(known, field) == wanted for field, wanted in _fields(setting.value(value)).items())
        assert all(fields >= set(each.dialect) for each in setting.values)


def _fields(value: object) -> dict[str, object]:
    return dict(value.dialect)  # type: ignore[attr-defined]
