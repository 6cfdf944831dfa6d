from __future__ import annotations

from typing import Any

import pytest

from obsidian_agent.offline.check import doubts, recipe_of_plan
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.recipe import packaged, recipe_named
from obsidian_agent.offline.values import read
from obsidian_agent.plan.model import ActionPlan


def chosen(sentence: str, around: Surroundings, name: str, **texts: str) -> tuple[str, ...]:
    """Return the doubts about a recipe with values from another source."""
    recipe = recipe_named(name, packaged())
    assert recipe is not None
    values: dict[str, Any] = {}
    for key, text in texts.items():
        values[key] = read(recipe.inputs[key], text, around, values)
    return doubts(sentence, around, (recipe, values))


def whole(sentence: str, around: Surroundings, tool: str, **args: Any) -> tuple[str, ...]:
    """Return the doubts about a whole plan of one step."""
    plan = {
        "version": "1.0",
        "goal": sentence,
        "riskLevel": "writes",
        "steps": [{"id": "a", "tool": tool, "args": args}],
    }
    return doubts(sentence, around, recipe_of_plan(ActionPlan.model_validate(plan)))


@pytest.mark.parametrize(
    ("sentence", "recipe", "texts"),
    [
        (
            "Move everything tagged #recipe into the folder Projects",
            "move",
            {"notes": "#recipe", "folder": "Projects"},
        ),
        ("Add buy milk to Inbox", "add-text", {"text": "buy milk", "notes": "Inbox"}),
        (
            "Add to Inbox: call the bank and ask what the card costs",
            "add-text",
            {"text": "call the bank and ask what the card costs", "notes": "Inbox"},
        ),
        ("Rename Sourdough to Rye", "rename", {"from": "Sourdough", "to": "Rye"}),
        (
            "Set the due date of 'x' in Inbox to tomorrow",
            "set-task-due",
            {"text": "x", "note": "Inbox", "due": "2026-03-15"},
        ),
        ("Move the note Start here to Projects", "move", {"notes": "Home", "folder": "Projects"}),
        ("Create a note Salt and Pepper", "new-note", {"path": "Salt and Pepper"}),
        (
            "Remove the property status from all notes in the folder Notes",
            "remove-properties",
            {"properties": "status", "notes": "Notes"},
        ),
        (
            "Replace 'a' with 'b' in the Notes folder",
            "replace-text",
            {"find": "a", "replace": "b", "notes": "Notes"},
        ),
        ("In Inbox mark the task 'one' as done", "mark-tasks", {"note": "Inbox", "text": "one"}),
        ("Delete Rye bread", "delete", {"notes": "Rye bread"}),
    ],
)
def test_what_was_said_and_used_is_sure(
    around: Surroundings, sentence: str, recipe: str, texts: dict[str, str]
) -> None:
    assert chosen(sentence, around, recipe, **texts) == ()


@pytest.mark.parametrize(
    ("sentence", "recipe", "texts", "doubt"),
    [
        (
            "Move notes tagged #recipe before 1 February to Projects",
            "move",
            {"notes": "#recipe", "folder": "Projects"},
            "Not used: “before 1 February”.",
        ),
        (
            "Move all notes tagged #recipe to Projects, but not Rye bread",
            "move",
            {"notes": "#recipe", "folder": "Projects"},
            "Not used: “but not Rye bread”.",
        ),
        (
            "Move Sourdough to Projects",
            "move",
            {"notes": "Sourdough", "folder": "Notes"},
            "Not used: “to Projects”.",
        ),
        (
            "Delete Sourdough (the old one)",
            "delete",
            {"notes": "Sourdough"},
            "Not used: “old one”.",
        ),
        (
            "Move Sourdough to Projects",
            "move",
            {"notes": "Sourdough", "folder": "Notes"},
            "Your message does not mention “Notes”.",
        ),
        (
            "Rename Sourdough to Vector (capital V)",
            "rename",
            {"from": "Sourdough", "to": "Vector (capital V"},
            "The name “Vector (capital V” may include too much: quote the exact name.",
        ),
        (
            "Rename the folder Empty in the Bestiary to Animals",
            "rename",
            {"from": "Empty", "to": "Bestiary to Animals"},
            "The name “Bestiary to Animals” may include too much: quote the exact name.",
        ),
        (
            "Give Sourdough a property summary with one sentence that says what it is about",
            "set-property",
            {
                "property": "summary",
                "value": "one sentence that says what it is about",
                "notes": "Sourdough",
            },
            "“one sentence that says what it is about” may describe the text to write.",
        ),
        ("Delete old stuff", "delete", {"notes": "*"}, "It would apply to all 11 notes."),
        (
            "Replace 'a' with 'b' in the folder Twin",
            "replace-text",
            {"find": "a", "replace": "b", "notes": "#twin"},
            "Not used: “folder”.",
        ),
        (
            "In Inbox mark the task 'one' as open",
            "mark-tasks",
            {"note": "Inbox", "text": "one"},
            "Not used: “as open”.",
        ),
        (
            "Přesuň Sourdough do Projects",
            "delete",
            {"notes": "Sourdough"},
            "Not used: “Přesuň” and “do Projects”.",
        ),
    ],
)
def test_what_does_not_fit_is_doubted(
    around: Surroundings, sentence: str, recipe: str, texts: dict[str, str], doubt: str
) -> None:
    assert doubt in chosen(sentence, around, recipe, **texts)


def test_a_set_that_means_nothing_is_doubted_even_when_it_was_read(around: Surroundings) -> None:
    recipe = recipe_named("delete", packaged())
    assert recipe is not None
    values = {"notes": read(recipe.inputs["notes"], "tag:nobody", around)}
    assert doubts("Delete all notes tagged #nobody", around, (recipe, values), certain=True) == (
        "No note matches: notes tagged #nobody.",
    )


def test_whole_plans_are_compared_too(around: Surroundings) -> None:
    rename = {"from": "Notes/Sourdough.md", "to": "Notes/Rye.md"}
    assert whole("Rename Sourdough to Rye", around, "vault.rename", **rename) == ()
    assert "Your message does not mention “Home.md”." in whole(
        "Rename Sourdough to Rye", around, "vault.rename", **{**rename, "from": "Home.md"}
    )
    named = whole(
        "Rename Sourdough to Rye in Notes",
        around,
        "vault.rename",
        **{**rename, "to": "Notes/Rye in Notes.md"},
    )
    assert "The name “Rye in Notes” may include too much: quote the exact name." in named
    assert "Not used: “before Friday”." in whole(
        "Rename Sourdough to Rye before Friday", around, "vault.rename", **rename
    )


def test_of_several_actions_each_covers_its_part(around: Surroundings) -> None:
    parts = []
    for name, texts in (
        ("rename", {"from": "Sourdough", "to": "Rye"}),
        ("delete", {"notes": "Home"}),
    ):
        recipe = recipe_named(name, packaged())
        assert recipe is not None
        values: dict[str, Any] = {}
        for key, text in texts.items():
            values[key] = read(recipe.inputs[key], text, around, values)
        parts.append((recipe, values))
    assert doubts("Rename Sourdough to Rye and delete Home", around, *parts) == ()
    assert doubts("Rename Sourdough to Rye and delete Home", around, parts[0]) == (
        "Not used: “delete Home”.",
    )
    assert doubts("Rename Sourdough to Rye", around, *parts) == (
        "Your message does not mention “Home.md”.",
    )


@pytest.mark.parametrize(
    ("sentence", "notes", "doubt"),
    [
        ("Delete notes in Notes except Rye bread", "Notes", "“except Rye bread” is not excluded."),
        (
            "Delete notes in Notes except Rye bread",
            'folder:Notes -note:"Rye bread"',
            "Check that “except Rye bread” excludes what you mean.",
        ),
        (
            "Delete #recipe not in Projects",
            "tag:recipe folder:Projects",
            "“not in Projects” is not excluded.",
        ),
        (
            "Delete notes with status to do",
            "[status]",
            "“status to do” is not used as a property and its value.",
        ),
        (
            "Füge « Rye bread » und «Weizen» zu",
            "Sourdough",
            "Not used: “Füge « Rye bread » und «Weizen» zu”.",
        ),
        ("Delete Sourdough «Weizen»", "Sourdough", "Not used: “Weizen”."),
        ("Delete Sourdough zu «Weizen»", "Sourdough", "Not used: “zu «Weizen»”."),
    ],
)
def test_what_stands_beside_a_name_counts(
    around: Surroundings, sentence: str, notes: str, doubt: str
) -> None:
    assert doubt in chosen(sentence, around, "delete", notes=notes)


def test_that_templates_are_left_out_need_not_be_said(around: Surroundings) -> None:
    assert (
        chosen(
            "Delete all notes tagged #done",
            around,
            "delete",
            notes="#done -folder:Templates".replace("#", "tag:"),
        )
        == ()
    )
