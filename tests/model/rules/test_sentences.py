"""Each file of rules and of outputs shows the sentences of the requirements that it names, as the registry has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.rules.sentences import MODEL, files, with_sentences


@pytest.mark.parametrize("path", list(files()), ids=lambda path: str(path.relative_to(MODEL)))
def test_a_file_shows_its_sentences(path: Path) -> None:
    is_as_registered = path.read_text(encoding="utf-8") == with_sentences(path)
    assert is_as_registered, "the registry says otherwise: python -m tests.model.rules.sentences writes it"
