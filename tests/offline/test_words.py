from __future__ import annotations

import pytest

from obsidian_agent.offline.words import stem, words


@pytest.mark.parametrize(
    "forms",
    [
        "move moves moved moving",
        "tag tags tagged tagging",
        "note notes",
        "link links linked linking",
        "rename renames renamed renaming",
        "add adds added adding",
        "copy copies",
    ],
)
def test_forms_of_a_word_are_one(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


def test_different_words_stay_apart() -> None:
    assert stem("not") != stem("notes")
    assert words("Přesuň 日记 it’s") == ["přesuň", "日", "记", "it"]
