"""The deviation files that are ready made: each can be read, and those of RabbitMQ have all known defects."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from amqpspec.conformance.verdicts.deviations import problem_of, read_deviations
from amqpspec.model.promises.versions import VERIFIED
from tests.deviation_files import DIALECTS, DIRECTORY, text_of
from tests.reports.made_up import result

pytestmark = pytest.mark.quick

FILES = sorted(DIRECTORY.glob("*.toml"))


def test_there_is_one_for_each_verified_version() -> None:
    assert {file.name for file in FILES} >= set(DIALECTS)
    assert set(DIALECTS.values()) == set(VERIFIED)


@pytest.mark.parametrize("name", DIALECTS)
def test_it_has_all_known_defects_in_their_own_words(name: str) -> None:
    assert (DIRECTORY / name).read_text(encoding="utf-8") == text_of(name), "python -m tests.deviation_files"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_entry_names_something_real_and_one_product(file: Path) -> None:
    entries = read_deviations(file)
    assert entries and len({each.product for each in entries}) == 1 and entries[0].product
    elsewhere = result(failures=False)  # a run that shows none of them, nor was anything carried out there
    assert [problem_of(each, elsewhere, date(2026, 1, 1)) for each in entries if not each.defect] == [None] * sum(
        not each.defect for each in entries
    )
    assert all("no reason given" not in each.reason for each in entries)
