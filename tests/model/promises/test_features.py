"""Features: which requirements come with them, and which arguments mean something by them."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with
from amqpspec.model.promises.features import FEATURES, means_something
from amqpspec.model.promises.registry import AS_STATED, requirements


@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_has_a_requirement_that_other_products_answer_for(feature: str) -> None:
    held = [each for each in requirements().values() if feature in each.features]
    assert held
    assert all(each.note_in(text_with(EXTENSIONS).name) == each.neutral for each in held)
    assert all(each.note_in("amqp-0-9-1") is None for each in held)


def test_the_neutral_part_is_what_a_product_is_held_to() -> None:
    entry = requirements()["DLX-001"]
    assert entry.note_in("amqp-0-9-1+x-dead-letter-exchange") == entry.neutral != AS_STATED
    assert entry.note_in("rabbitmq-4.3") == AS_STATED


def test_all_features_that_it_needs_are_there() -> None:
    needs = "x-dead-letter-exchange+x-dead-letter-routing-key"
    assert requirements()["DLX-005"].note_in(f"amqp-0-9-1+{needs}") is not None
    assert requirements()["DLX-005"].note_in("amqp-0-9-1+x-dead-letter-exchange") is None


@pytest.mark.parametrize(
    ("dialect", "argument", "value", "means"),
    [
        ("amqp-0-9-1+x-max-length", "x-max-length", 3, True),
        ("amqp-0-9-1", "x-max-length", 3, False),
        ("amqp-0-9-1+x-overflow", "x-overflow", "reject-publish", True),
        # RabbitMQ's classic queues alone have it
        ("amqp-0-9-1+x-overflow", "x-overflow", "reject-publish-dlx", False),
        ("amqp-0-9-1+streams", "x-queue-type", "stream", True),
        ("amqp-0-9-1+streams", "x-queue-type", "quorum", False),
    ],
)
def test_arguments_mean_something_by_features(dialect: str, argument: str, value: object, means: bool) -> None:
    assert means_something(dialect_named(dialect), argument, value) is means
