"""The menu as a model sees it, and what its answers choose."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.offline.chooser import MAX_ACTIONS, Chooser, InvalidChoice
from obsidian_agent.offline.recipe import packaged

CHOOSER = Chooser(packaged())


def choose(*actions: Any) -> list[tuple[str, dict[str, str]]]:
    return [
        (each.recipe.name, dict(each.texts))
        for each in CHOOSER.choices(json.dumps({"actions": list(actions)}))
    ]


def examples() -> list[str]:
    return [line for line in CHOOSER.prompt.splitlines() if line.startswith('{"actions":')]


def test_the_menu_names_every_recipe_and_is_the_same_every_time() -> None:
    assert CHOOSER.prompt == Chooser(packaged()).prompt
    assert all(f"\n{recipe.name}(" in CHOOSER.prompt for recipe in packaged())
    assert len(CHOOSER.prompt) < 12_000, "a small model reads it in half a minute"


def test_the_examples_keep_to_the_schema_and_choose_what_there_is() -> None:
    assert len(examples()) >= 8
    for example in examples():
        jsonschema.validate(json.loads(example), CHOOSER.schema)
        CHOOSER.choices(example)


def test_the_schema_has_one_alternative_an_action_and_other() -> None:
    ways = CHOOSER.schema["properties"]["actions"]["items"]["anyOf"]
    assert [way["properties"]["action"]["const"] for way in ways] == [
        *(recipe.name for recipe in packaged()),
        "other",
    ]
    jsonschema.Draft202012Validator.check_schema(dict(CHOOSER.schema))
    actions: list[list[dict[str, str]]] = [
        [],
        [{"action": "move"}],
        [{"action": "other", "why": "x"}],
    ]
    for wrong in ({"actions": each} for each in actions):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, CHOOSER.schema)


@pytest.mark.parametrize(
    ("notes", "query"),
    [
        ({"note": ["A", 'the "B"']}, r'note:A note:"the \"B\""'),
        ({"note": ["this note"]}, 'note:"this note"'),
        (
            {"folder": "My projects", "outside": "Old", "tag": "done"},
            'folder:"My projects" -folder:Old tag:#done',
        ),
        ({"value": "4", "property": "rating"}, "[rating:4]"),
        ({"property": "a:b", "value": 'say "x"'}, r'["a:b":"say \"x\""]'),
        ({"property": "status"}, "[status]"),
        (
            {"since": "2026-03-01", "before": "2026-04-01", "is": "untagged"},
            "changed:<2026-04-01 changed:>=2026-03-01 is:untagged",
        ),
        ({"all": True}, "*"),
        ({"all": True, "tag": "x"}, "tag:#x"),
    ],
)
def test_a_description_of_notes_becomes_one_that_forms_take(
    notes: dict[str, Any], query: str
) -> None:
    assert choose({"action": "delete", "notes": notes}) == [("delete", {"notes": query})]


def test_nothing_described_is_nothing_chosen_not_everything() -> None:
    assert choose({"action": "delete", "notes": {}}) == [("delete", {})]
    assert choose({"action": "delete", "notes": {"folder": ""}}) == [("delete", {})]


def test_other_chooses_nothing() -> None:
    assert choose({"action": "other"}) == []
    assert choose({"action": "list-tags"}, {"action": "other"}) == []


def test_words_around_an_answer_do_no_harm() -> None:
    for text in (
        '```json\n{"actions":[{"action":"list-tags"}]}\n```',
        '<think>{"actions":[]}</think>{"actions":[{"action":"list-tags"}]}',
        '{"action":"list-tags"}',
    ):
        assert [each.recipe.name for each in CHOOSER.choices(text)] == ["list-tags"]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I would move it.",
        "[]",
        "{",
        '{"actions": []}',
        '{"actions": [{"action": "explode"}]}',
        '{"actions": [{"action": "delete", "path": "x"}]}',
        '{"actions": [{"action": "delete", "notes": {"shell": "rm"}}]}',
        '{"actions": [{"action": "delete", "notes": {"value": "x"}}]}',
        '{"actions": [{"action": "new-folder", "folder": {"a": 1}}]}',
        json.dumps({"actions": [{"action": "list-tags"}] * (MAX_ACTIONS + 1)}),
    ],
)
def test_what_is_no_choice_is_refused(answer: str) -> None:
    with pytest.raises(InvalidChoice):
        CHOOSER.choices(answer)


@given(
    st.text(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.text(max_size=8),
        lambda x: st.lists(x) | st.dictionaries(st.text(max_size=8), x),
    ).map(json.dumps)
)
def test_any_answer_is_a_choice_or_refused(answer: str) -> None:
    with contextlib.suppress(InvalidChoice):
        CHOOSER.choices(answer)
