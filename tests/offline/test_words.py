from __future__ import annotations

import pytest

from obsidian_agent.offline.recipe import packaged
from obsidian_agent.offline.sentence import joined_words, meanings, stem, vocabulary, words


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


def test_the_vocabulary_leads_to_words_of_the_menu_only() -> None:
    menu = {word for recipe in packaged() for text in (recipe.title, recipe.description, *recipe.examples) for word in words(text)}
    assert {head for heads in vocabulary().values() for head in heads} <= menu


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("Verschiebe", "move"),
        ("lösche", "delet"),
        ("PŘESUŇ", "move"),
        ("štítek", "tag"),
        ("переименуй", "renam"),
        ("directories", "folder"),
    ],
)
def test_other_languages_and_forms_of_a_word_mean_one_of_the_menu(word: str, meant: str) -> None:
    assert meant in meanings(word)


def test_what_is_in_no_vocabulary_means_nothing() -> None:
    assert not meanings("sourdough")
    assert not meanings("")
    assert joined_words("把笔记移到") == ["笔记", "移到"]
