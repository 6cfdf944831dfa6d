from __future__ import annotations

from typing import Any

import pytest

from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.note_set import ACTIVE, InvalidValue, NoteSet
from obsidian_agent.offline.recipe import Input, packaged, recipe_named
from obsidian_agent.offline.values import form_text, read


def wanted(kind: Any, **more: Any) -> Input:
    return Input(name="it", kind=kind, description="It", **more)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("note", "sourdough", "Notes/Sourdough.md"),
        ("note", "[[Sourdough|bread]]", "Notes/Sourdough.md"),
        ("note", "Start here", "Home.md"),
        ("note", "Twin/Plan", "Twin/Plan.md"),
        ("note", "this note", ACTIVE),
        ("entry", "Projects/Thesis", "Projects/Thesis"),
        ("folder", "notes", "Notes"),
        ("folder", "/", ""),
        ("folder", "New/Place", "New/Place"),
        ("newNote", "Plan B", "Plan B.md"),
        ("newNote", "Notes/Plan B.md", "Notes/Plan B.md"),
        ("tag", "#recipe", "recipe"),
        ("tag", "new/tag", "new/tag"),
        ("tags", "#a #b, c", ["a", "b", "c"]),
        ("property", "Rating", "rating"),
        ("property", "brand new", "brand new"),
        ("properties", "rating, due", ["rating", "due"]),
        ("field", "rating", "frontmatter.rating"),
        ("field", "-modified", "-modified"),
        ("date", "2026-02-01", "2026-02-01"),
        ("date", "tomorrow", "2026-03-15"),
        ("number", "2.5", 2.5),
        ("boolean", "yes", True),
        ("list", "a, b", ["a", "b"]),
        ("text", " as it is ", " as it is "),
        ("pairs", "Rating: 4; due: 2026-02-01", {"rating": 4, "due": "2026-02-01"}),
    ],
)
def test_each_kind_has_one_reader(around: Surroundings, kind: str, text: str, value: Any) -> None:
    assert read(wanted(kind), text, around) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("note", "Nowhere"),
        ("note", "Plan"),
        ("folder", "../up"),
        ("folder", ".obsidian"),
        ("newNote", "a/../../b"),
        ("tag", "two words"),
        ("pairs", "no colon"),
        ("field", "no such thing"),
        ("date", "soon"),
        ("date", "last month"),
        ("number", "many"),
        ("note", ""),
    ],
)
def test_what_is_no_value_is_refused_with_words(around: Surroundings, kind: str, text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        read(wanted(kind), text, around)
    assert caught.value.message


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("folder", "New"),
        ("newNote", "New"),
        ("tag", "new"),
        ("property", "new"),
        ("text", "words"),
        ("list", "a, b"),
    ],
)
def test_in_a_sentence_only_what_is_known_or_quoted_is_certain(
    around: Surroundings, kind: str, text: str
) -> None:
    with pytest.raises(InvalidValue):
        read(wanted(kind), text, around, known=True)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rating", "5", 5),
        ("rating", "5/5", "5/5"),
        ("due", "tomorrow", "2026-03-15"),
        ("status", "tomorrow", "tomorrow"),
        ("new", "true", True),
        ("new", "x y", "x y"),
    ],
)
def test_a_value_is_what_its_property_holds(
    around: Surroundings, name: str, text: str, value: Any
) -> None:
    assert read(wanted("value", of="property"), text, around, {"property": name}) == value


def test_a_new_name_lies_beside_the_old_one(around: Surroundings) -> None:
    to = wanted("newName", of="from")
    assert read(to, "Bread", around, {"from": "Notes/Sourdough.md"}) == "Notes/Bread.md"
    assert read(to, "Papers", around, {"from": "Projects/Thesis"}) == "Projects/Papers"
    assert read(to, "Archive/Papers", around, {"from": "Projects/Thesis"}) == "Archive/Papers"
    assert read(to, "Letters", around, {"from": ACTIVE}) == "Letters.md"


def test_a_heading_is_one_of_its_note(around: Surroundings) -> None:
    heading = wanted("heading", of="note")
    assert read(heading, "baking (hot)", around, {"note": "Notes/Sourdough.md"}) == "Baking (hot)"
    with pytest.raises(InvalidValue, match="no heading"):
        read(heading, "Icing", around, {"note": "Notes/Sourdough.md"})


def test_what_a_form_shows_reads_back(around: Surroundings) -> None:
    values: list[tuple[str, Any]] = [
        ("notes", NoteSet()),
        ("list", ["a", "b, c"]),
        ("boolean", False),
        ("number", 3),
        ("folder", ""),
        ("note", ACTIVE),
    ]
    for kind, value in values:
        assert read(wanted(kind), form_text(wanted(kind), value), around) == value


def test_a_choice_is_taken_by_value_or_label() -> None:
    recipe = next(each for each in packaged() if each.name == "shift-headings")
    assert [read(recipe.inputs["by"], text, None) for text in ("deeper", "-1")] == [1, -1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("due", "today", "2026-03-14"),
        ("reviewed", "Tomorrow", "2026-03-15"),
        ("status", "today", "today"),
        ("reviewed", "Monday", "Monday"),
    ],
)
def test_a_day_is_one_where_the_property_has_days_or_nothing_yet(
    around: Surroundings, name: str, text: str, value: str
) -> None:
    recipe = recipe_named("set-property", packaged())
    assert recipe is not None
    assert read(recipe.inputs["value"], text, around, {"property": name}) == value


def test_lists_hold_each_once(around: Surroundings) -> None:
    recipe = recipe_named("remove-properties", packaged())
    assert recipe is not None
    assert read(recipe.inputs["properties"], "status, due, status", around) == ["status", "due"]
