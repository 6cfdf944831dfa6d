from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from obsidian_agent.agent.events import Answer, NeedsInput, PlanReady
from obsidian_agent.agent.offline import OfflinePlanner
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.offline.recipe import packaged
from obsidian_agent.offline.search import Menu
from obsidian_agent.offline.surroundings import Surroundings
from obsidian_agent.offline.values import shown
from obsidian_agent.tools.registry import TOOLS

MENU = Menu(packaged())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    pieces=st.lists(
        st.one_of(
            st.sampled_from(["Move", "to", "#done", "'", '"', "Rye bread", "[[", "{notes}", "${x}", "今日", "2026-02-30"]),
            st.text(max_size=8),
        ),
        max_size=12,
    )
)
def test_any_sentence_leads_somewhere(around: Surroundings, pieces: list[str]) -> None:
    planner = OfflinePlanner(lambda: around.view, TOOLS)
    event = planner.decide(PlanRequest(" ".join(pieces), around.context))
    assert isinstance(event, PlanReady | Answer) or (isinstance(event, NeedsInput) and event.candidates)


def test_a_pasted_book_is_no_reason_to_wait(around: Surroundings) -> None:
    assert len(MENU.nearest("move Sourdough to Projects and so on " * 5000, around)) == 3


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
