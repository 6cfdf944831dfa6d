from __future__ import annotations

import pytest

from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.reader import match_examples
from obsidian_agent.offline.recipe import Recipe, packaged
from obsidian_agent.offline.values import form_text


def read(sentence: str, around: Surroundings) -> list[tuple[str, dict[str, str]]]:
    found = match_examples(sentence, packaged(), around)
    return [
        (
            each.recipe.name,
            {
                name: form_text(each.recipe.inputs[name], value)
                for name, value in each.values.items()
            },
        )
        for each in found
    ]


@pytest.mark.parametrize(
    ("sentence", "recipe", "values"),
    [
        (
            "Move Sourdough to Projects",
            "move",
            {"notes": "note:Notes/Sourdough.md", "folder": "Projects"},
        ),
        (
            "  move   all notes TAGGED #recipe to Projects. ",
            "move",
            {"notes": "tag:#recipe", "folder": "Projects"},
        ),
        (
            'Move all notes tagged #recipe to "New place"',
            "move",
            {"notes": "tag:#recipe", "folder": "New place"},
        ),
        (
            "Move all notes with rating 5/5 to Projects",
            "move",
            {"notes": '[rating:"5/5"]', "folder": "Projects"},
        ),
        (
            "Append “Bob's call” to Inbox",
            "add-text",
            {"text": "Bob's call", "notes": "note:Inbox.md"},
        ),
        ("Append 'a to b' to Inbox", "add-text", {"text": "a to b", "notes": "note:Inbox.md"}),
        ('Rename this note to "Outbox"', "rename", {"from": "${activeFile}", "to": "Outbox.md"}),
        (
            'Remove the section "Baking (hot)" from Sourdough',
            "remove-section",
            {"heading": "Baking (hot)", "note": "Notes/Sourdough.md"},
        ),
        (
            "Rename the note Projects/Thesis to 'Book'",
            "rename",
            {"from": "Projects/Thesis.md", "to": "Projects/Book.md"},
        ),
        (
            "Rename the folder Projects/Thesis to 'Book'",
            "rename",
            {"from": "Projects/Thesis", "to": "Projects/Book"},
        ),
        (
            "Remove the section Dough from Sourdough",
            "remove-section",
            {"heading": "Dough", "note": "Notes/Sourdough.md"},
        ),
    ],
)
def test_an_example_with_known_or_quoted_values_is_certain(
    around: Surroundings, sentence: str, recipe: str, values: dict[str, str]
) -> None:
    assert read(sentence, around) == [(recipe, values)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Rename the note Sourdough to Vector (capital V)",
        "Rename the folder Projects to Animals",
        "Move Sourdough to Projects?",
        "Rename Sourdough to Bread",
        "Move all notes tagged #recipe to Elsewhere",
        "Move all notes tagged #recipe to Projects, but not Rye bread",
        "Please move Sourdough to Projects",
        "Move Plan to Projects",
        "Rename Projects/Thesis to 'Book'",
        "Rename 'Projects/Thesis' to 'Book'",
        "Rename the folder Sourdough to 'Book'",
        "Remove the section Log from Method",
        "Remove the section 'Log' from Method",
        "Move Thesis to Notes",
        "Delete Projects",
        "Append Call Ada to Inbox",
        "Append 'a' 'b' to Inbox",
        "Set a property summary with one sentence that says what it is about in Sourdough",
        "",
        "{notes}",
        "'",
        "Append \ue000 to Inbox",
    ],
)
def test_anything_else_is_no_reading_at_all(around: Surroundings, sentence: str) -> None:
    assert read(sentence, around) == []


def test_two_recipes_that_fit_are_both_told(around: Surroundings) -> None:
    plan = {"version": "1.0", "goal": "x", "riskLevel": "writes", "steps": []}
    twins = [
        Recipe(
            name=name, title=name, subject="Notes", description="", examples=("Do it",), plan=plan
        )
        for name in ("a", "b")
    ]
    assert [each.recipe.name for each in match_examples("do it!", twins, around)] == ["a", "b"]
