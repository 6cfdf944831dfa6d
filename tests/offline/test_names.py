from __future__ import annotations

import pytest

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
