"""The order in which the action list offers what holds the typed words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from obsidian_agent.offline.recipe import packaged
from obsidian_agent.tui.action_search import Action, ranked
from obsidian_agent.tui.screens.actions import _recipe_action

ACTIONS = [_recipe_action(recipe) for recipe in packaged()]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("tag notes", "Add tags"),
        ("del", "Delete a folder or file"),
        ("delete notes", "Delete notes"),
        ("note delete", "Delete notes"),
        ("delete fo", "Delete a folder or file"),
        ("rename tag", "Rename a tag"),
        ("table", "Table of notes with their properties"),
        ("move no", "Move notes to a folder"),
        ("merge", "Merge notes"),
        ("duplicates", "Health of the vault"),
        ("broken", "Health of the vault"),
    ],
)
def test_the_best_match_is_first(typed: str, first: str) -> None:
    assert ranked(typed, ACTIONS)[0].title == first


def test_no_word_that_does_not_name_a_delete_puts_it_before_other_actions() -> None:
    texts = [text for action in ACTIONS for text in (action.title, *action.examples)]
    words = {word.casefold().strip("{}.?") for text in texts for word in text.split()}
    for word in words | {f"{word} notes" for word in words}:
        matches = ranked(word, ACTIONS)
        named = any(len(each) > 2 and "delete".startswith(each) for each in word.split())
        if matches and matches[0].deletes and not named:
            assert all(action.deletes for action in matches), word


def test_title_words_come_before_examples_and_examples_before_descriptions() -> None:
    described = Action("a", "One", "Notes", description="about apples")
    example = Action("b", "Two", "Notes", examples=("Eat {notes} with apples",))
    alias = Action("c", "Three", "Notes", examples=("Apples of {notes}",))
    title = Action("d", "Peel apples", "Notes")
    prefix = Action("e", "Apples", "Notes")
    actions = [described, example, alias, title, prefix]
    assert [action.key for action in ranked("apple", actions)] == ["e", "d", "c", "b", "a"]


def test_own_actions_come_first_among_equals_and_then_recent_ones() -> None:
    actions = [Action(key, f"Sort {key}", "Notes") for key in "abc"]
    own = Action("own", "Sort mine", "Saved", own=True)
    found = ranked("sort", [*actions, own], recent=["c", "b"])
    assert [action.key for action in found] == ["own", "c", "b", "a"]
    deleting = replace(own, deletes=True, title="Clean up", examples=("Sort out",))
    assert ranked("sort", [deleting, *actions])[-1] is deleting
    assert ranked("clean", [deleting, *actions])[0] is deleting
