from __future__ import annotations

import pytest

from obsidian_agent.offline.names import in_context
from obsidian_agent.offline.surroundings import Surroundings


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("put sourdough next to rye bread", ["sourdough", "rye bread"]),
        ("alles mit #recipe nach Notes", ["#recipe", "Notes"]),
        ("set status to to do in Rye bread", ["status", "to do", "Rye bread"]),
        ("move Start here", ["Start here"]),
        ("Přesuň Überblick do Bilder", ["Überblick", "Bilder"]),
        ("把計画移到日记", ["計画", "日记"]),
        ("nothing of the vault", []),
        ("5 of them", []),
    ],
)
def test_the_longest_names_of_a_sentence_are_found_in_any_language(around: Surroundings, sentence: str, names: list[str]) -> None:
    assert [found.text for found in around.names.in_sentence(sentence)] == names


def test_a_name_says_all_that_it_may_be(around: Surroundings) -> None:
    assert {(name.kind, name.value) for name in around.names.find("thesis")} == {
        ("note", "Projects/Thesis.md"),
        ("folder", "Projects/Thesis"),
    }
    assert {name.value for name in around.names.find("Plan", "note")} == {"Twin/Plan.md", "Other/Plan.md"}
    assert around.names.find("Empty", "folder")[0].value == "Empty"


def test_common_words_are_names_only_where_they_are_written_so(around: Surroundings) -> None:
    common = frozenset({"notes"})
    assert around.names.in_sentence("all notes", common) == ()
    assert [found.text for found in around.names.in_sentence("all in Notes", common)] == ["Notes"]


def test_values_of_properties_keep_their_type(around: Surroundings) -> None:
    assert around.names.properties["rating"] == {"5": 5, "5/5": "5/5"}
    assert around.names.properties["finished"] == {"true": True}


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("put recipe/bread on it", []),
        ("a well-recipe or recipe-box", []),
        ("into Notes/Garten", []),
        ("into Notes/読書", []),
        ("into Projects/Thesis", ["Projects/Thesis"]),
        ("recipe - Notes / Inbox", ["recipe", "Notes", "Inbox"]),
        ("Notesフォルダの Inboxに", ["Notes", "Inbox"]),
        ("把Sourdough移到Bilder里", ["Sourdough", "Bilder"]),
    ],
)
def test_names_end_where_tokens_and_scripts_end(around: Surroundings, sentence: str, names: list[str]) -> None:
    assert [found.text for found in around.names.in_sentence(sentence)] == names


@pytest.mark.parametrize(
    ("sentence", "negated"),
    [
        ("all in Notes except Rye bread", ["except Rye bread"]),
        ("everything but Sourdough and Rye bread to Projects", ["but Sourdough", "Rye bread"]),
        ("notes not tagged #recipe", ["not tagged #recipe"]),
        ("those that aren't in the Notes folder", ["aren't in the Notes"]),
        ("alles außer Sourdough nach Projects", ["außer Sourdough"]),
        ("не Sourdough", ["не Sourdough"]),
        ("whose status is not to do", ["status is not to do"]),
        ("do not touch the order. Move Sourdough", []),
        ("not sure where Sourdough is", []),
    ],
)
def test_a_name_right_behind_a_negating_word_is_negated(around: Surroundings, sentence: str, negated: list[str]) -> None:
    found = in_context(sentence, around.names.in_sentence(sentence))
    assert [each.negated for each in found if each.negated] == negated


def test_a_property_binds_the_value_behind_it(around: Surroundings) -> None:
    sentence = "with status to do, finished: true, rating 5, and to do, 5"
    found = in_context(sentence, around.names.in_sentence(sentence))
    assert [(each.text, each.bound) for each in found] == [
        ("status to do", True),
        ("finished: true", True),
        ("rating 5", True),
        ("to do", False),
    ]
