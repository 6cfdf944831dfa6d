from __future__ import annotations

import pytest

from obsidian_agent.providers.offline.readings import Surroundings
from obsidian_agent.providers.offline.recipe import RecipeParameter
from obsidian_agent.providers.offline.slots import SlotReader
from obsidian_agent.providers.offline.tokens import tokenise


@pytest.fixture
def read(index, around):
    def reading(text: str, kind: str, *, free: bool = False, existing: bool = False, here: Surroundings = around):
        tokens = tokenise(text)
        reader = SlotReader(text, tokens, index, here)
        return reader.read(RecipeParameter(kind=kind, description="", existing=existing), free, 0, len(tokens))

    return reading


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Groceries", "note", "Groceries.md"),
        ("my note Groceries", "note", "Groceries.md"),
        ("[[reading list]]", "note", "Reading list.md"),
        ("the Retro page", "note", "Meetings/Retro.md"),
        ("yesterday's daily note", "note", "Daily/2026-03-13.md"),
        ("the daily note of 2026-03-13", "note", "Daily/2026-03-13.md"),
        ("the meeting notes folder", "folder", "Meetings"),
        ("folder Projects/Apollo", "folder", "Projects/Apollo"),
        ("the root of my vault", "folder", ""),
        ("all notes", "folder", ""),
        ("a new folder called Trips", "folder", "Trips"),
        ("Trips/Rome 2026", "folder", "Trips/Rome 2026"),
        ("logo.png", "entry", "Attachments/logo.png"),
        ("the folder Recipes", "entry", "Recipes"),
        ("#a/b", "tag", "a/b"),
        ("the tag done", "tag", "done"),
        ("the property 'due date'", "property", "due date"),
        ("property status", "property", "status"),
        ("true", "value", True),
        ("5", "value", 5),
        ("-2.50", "value", -2.5),
        ("007", "value", "007"),
        ("'5'", "value", "5"),
        ("today", "value", "2026-03-14"),
        ("[[Bob Stone]]", "value", "[[Bob Stone]]"),
        ("in progress", "value", None),
        ("work in progress", "value", "work in progress"),
        ("level 2", "number", 2),
        ("second", "number", 2),
        ("H3", "number", 3),
        ("tomorrow", "date", "2026-03-15"),
        ("older than 90 days", "before", "2025-12-14"),
        ("the section 'Next steps'", "heading", "Next steps"),
        ("the to-do list", "heading", "to-do"),
        ("my meeting template", "template", "Templates/Meeting.md"),
        ("my macro new project", "macro", "New project"),
        ("the line 'a b'", "text", "a b"),
        ("the line 'a b'", "line", "a b"),
        ("the bullet 'a b'", "line", "- a b"),
        ("another bullet point: 'a b'", "line", "- a b"),
        ("a new list item '* a b'", "line", "* a b"),
        ("'a b' as a bullet", "line", "- a b"),
        ("'a b' as another list item", "line", "- a b"),
        ("the note Plan in Archive", "note", "Archive/2023/Plan.md"),
        ("Plan from the Projects folder", "entry", "Projects/Apollo/Plan.md"),
        ("Holiday plans", "path", "Holiday plans"),
        ("the name 'X y'", "newName", "X y"),
    ],
)
def test_values(read, text, kind, value):
    reading = read(text, kind)
    if value is None:
        assert reading is None
    else:
        assert reading.value == value
        assert type(reading.value) is type(value)
        assert reading.issue is None


def test_this_note_follows_the_context(read, around):
    assert (read("this note", "note").value, read("this note", "note").reference) == ("Ideas.md", "activeFile")
    assert read("the current file", "entry").reference == "activeFile"
    assert read("this folder", "folder").reference == "activeFolder"
    nowhere = Surroundings(around.now)
    assert read("this note", "note", here=nowhere).issue == "inactive"
    assert read("this folder", "folder", here=nowhere).issue == "inactive"


@pytest.mark.parametrize("text", ["the selection", "selected text", "my selection", "the highlighted lines", "the text I've selected"])
def test_selected_text_is_the_selection(read, text):
    assert read(text, "text").reference == "selection"


def test_names_that_are_not_there(read):
    assert read("Nowhere", "note").issue == "unknown"
    assert read("'Nowhere'", "entry").issue == "unknown"
    assert read("Nowhere", "folder").issue is None
    assert read("Nowhere", "folder", existing=True).issue == "unknown"
    assert read("my daily note", "note").issue == "unknown"
    assert read("tomorrow's daily note", "note").issue == "unknown"


def test_a_note_of_the_name_elsewhere_is_not_the_one_in_the_folder(read):
    assert read("the note Groceries in Archive", "note").issue == "unknown"
    assert read("the note Groceries in Nowhere", "note").issue == "unknown"


def test_names_that_mean_several(read):
    assert read("Plan", "note").issue == "ambiguous"
    assert read("Plan", "note").choices == ("Projects/Apollo/Plan.md", "Archive/2023/Plan.md")


def test_quoted_names_leave_less_doubt_than_bare_ones(read):
    assert read("'Trips'", "folder").cost < read("Trips", "folder").cost < read("some trips", "folder").cost
    assert read("'buy milk'", "text").cost < read("buy milk", "text").cost < read("a funny remark", "text").cost
    assert read("'X'", "path").cost < read("X", "path").cost


@pytest.mark.parametrize(
    ("text", "kind"),
    [(", x", "text"), ("x.", "note"), ("'a' and 'b'", "note"), ("one two three", "tag"), ("12", "property"), ("12", "tag")],
)
def test_stretches_that_cannot_be_read(read, text, kind):
    assert read(text, kind) is None
