"""Variants that are right by the text: the suite finds nothing wrong with them, whatever RabbitMQ does."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.conformance.profile.measuring import measure
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.dialects.settled import TEXT_CHOICES, with_choices
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.text_contradictions import CONTRADICTIONS
from amqpspec.model.promises.text_means import MEANS
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.variants import OTHERWISE, VARIANTS
from tests.end_to_end.runs import run_suite

SINGLE = [each for each in VARIANTS if each != OTHERWISE]
#: Measured where exchange bindings are announced, which the text does not have (tests/conformance/profile).
WITHIN_EXTENSIONS = ("use-by-exchanges=both", "use-by-exchanges=neither")
#: What only another choice lets be seen.
BESIDE = {"meaningless-arguments": ["queue-arguments"]}
AGAINST = [(each.name, value.name) for each in CONTRADICTIONS for value in each.values if not value.right]


def shown(dialect: Dialect, choice: str) -> str | None:
    """What a profile says that a broker of that dialect does."""
    with EmbeddedBroker(dialect) as broker:
        description = TargetDescription("embedded", "amqpspec", "0", AMQP_0_9_1.name)
        target = TargetUnderTest(broker.address, description, deadline=1.0, capabilities=frozenset())
        profile = measure(target, choices=[choice, *BESIDE.get(choice, ())], extensions=())
    value = next(each.value for each in profile.choices if each.choice.name == choice)
    return None if value is None else value.name


@pytest.mark.parametrize("name", [each for each in SINGLE if each not in WITHIN_EXTENSIONS])
def test_the_profile_tells_what_a_variant_does(name: str) -> None:
    ((choice, value),) = VARIANTS[name].choices.items()
    assert shown(VARIANTS[name].dialect, choice) == value


@pytest.mark.parametrize(("choice", "value"), AGAINST)
def test_the_profile_tells_what_the_text_forbids(choice: str, value: str) -> None:
    assert shown(with_choices(AMQP_0_9_1, {choice: value}), choice) == value


@pytest.mark.quick
@pytest.mark.parametrize("name", SINGLE)
def test_a_variant_passes_the_scenarios_of_its_requirements(name: str, tmp_path: Path) -> None:
    (choice,) = VARIANTS[name].choices
    only = TEXT_CHOICES[choice].requirements
    result = run_suite(
        f"embedded:{name}", tmp_path, only=only, judged_by=AMQP_0_9_1.name, deadline=0.5, fast_forward=True
    )
    assert [found.failure for found in result.failures] == []
    # what the text leaves open altogether may have no scenario there
    is_demanded = any(requirements()[each].note_in(AMQP_0_9_1.name) is not None for each in only)
    assert not (is_demanded and result.is_empty)
    assert result.exit_code == (4 if result.is_empty else 0)


@pytest.mark.full
def test_all_of_them_in_one_broker_pass_the_default_run(tmp_path: Path) -> None:
    result = run_suite(
        f"embedded:{OTHERWISE}", tmp_path, judged_by=AMQP_0_9_1.name, sequences=100, seed=5, deadline=1.0,
        fast_forward=True,
    )  # fmt: skip
    assert [found.failure for found in result.failures] == []
    assert result.exit_code == 0 and result.not_whole == ()


def test_there_is_a_variant_for_each_choice_in_which_rabbitmq_is_not_alone() -> None:
    assert len(TEXT_CHOICES) >= 36
    varied = {choice for each in VARIANTS.values() for choice in each.choices}
    # no right variant lacks what the suite looks at a broker by
    assert varied >= set(TEXT_CHOICES) - {each.name for each in MEANS} - {"heartbeat-with-payload"}


def test_a_variant_says_what_it_is() -> None:
    for each in VARIANTS.values():
        assert each.sentence and each.does
        assert all(value.right for name in each.choices for value in TEXT_CHOICES[name].values if value.name == each)
