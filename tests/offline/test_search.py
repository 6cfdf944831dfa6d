from __future__ import annotations

import pytest

from obsidian_agent.offline.recipe import packaged
from obsidian_agent.offline.search import Menu
from obsidian_agent.offline.surroundings import Surroundings
from obsidian_agent.offline.values import shown

MENU = Menu(packaged())


@pytest.mark.parametrize(
    ("sentence", "recipe"),
    [
        ("relocate the notes tagged #recipe into Projects", "move"),
        ("could you tag Sourdough with #bread please", "add-tags"),
        ("tick all the tasks of Inbox", "mark-tasks"),
        ("what in my vault links to Sourdough", "backlinks"),
        ("give Sourdough the new name Rye", "rename"),
    ],
)
def test_the_right_action_is_among_the_first_three(around: Surroundings, sentence: str, recipe: str) -> None:
    assert recipe in [found.recipe.name for found in MENU.nearest(sentence, around)]


@pytest.mark.parametrize("sentence", ["", "?", "why is the sky blue", "把計画移到日记", "Přesuň Überblick do Bilder", "\x00 ${x} [[", "'"])
def test_there_are_always_three(around: Surroundings, sentence: str) -> None:
    assert len(MENU.nearest(sentence, around)) == 3


def test_names_and_quoted_texts_fill_the_form(around: Surroundings) -> None:
    found = next(each for each in MENU.nearest("kindly append 'buy milk' to Rye bread", around) if each.recipe.name == "add-text")
    assert {name: shown(found.recipe.inputs[name], value) for name, value in found.values.items()} == {
        "text": "buy milk",
        "notes": 'note:"Notes/Rye bread.md"',
    }
    assert found.missing == ()


def test_a_name_in_another_language_fills_the_form_too(around: Surroundings) -> None:
    for found in MENU.nearest("Verschiebe alle Notizen mit #recipe nach Projects", around, most=len(packaged())):
        if found.recipe.name == "move":
            assert {name: shown(found.recipe.inputs[name], value) for name, value in found.values.items()} == {
                "notes": "tag:#recipe",
                "folder": "Projects",
            }


def test_a_name_of_several_notes_is_left_open(around: Surroundings) -> None:
    found = next(each for each in MENU.nearest("rename Plan", around) if each.recipe.name == "rename")
    assert "from" not in found.values


def test_a_quoted_text_may_be_a_name(around: Surroundings) -> None:
    found = next(
        each for each in MENU.nearest("Rename the note 'Rye bread' to 'Loaf', links and all", around) if each.recipe.name == "rename"
    )
    assert dict(found.values) == {"from": "Notes/Rye bread.md", "to": "Notes/Loaf.md"}


def test_a_tag_that_no_note_has_yet_is_a_tag(around: Surroundings) -> None:
    found = next(
        each
        for each in MENU.nearest("#recipe shall be #cooking/daily from now on: rename the tag", around)
        if each.recipe.name == "rename-tag"
    )
    assert dict(found.values) == {"from": "recipe", "to": "cooking/daily"}
