from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from obsidian_agent.agent.events import Answer, NeedsInput, PlanReady, TurnFailed
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.recipe import packaged
from obsidian_agent.offline.search import Menu
from obsidian_agent.offline.values import form_text
from obsidian_agent.services.offline_planner import NEAREST, NOTHING, OfflinePlanner
from obsidian_agent.tools.core.tool import RunContext
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.views.disk import DiskView
from offline_desk import NOW
from support import MakeVault

MENU = Menu(packaged())


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@example(["Move", "#done", "\\0"])
@given(
    pieces=st.lists(
        st.one_of(
            st.sampled_from(
                [
                    "Move",
                    "to",
                    "#done",
                    "'",
                    '"',
                    "Rye bread",
                    "[[",
                    "{notes}",
                    "${x}",
                    "今日",
                    "2026-02-30",
                ]
            ),
            st.text(max_size=8),
        ),
        max_size=12,
    )
)
def test_any_sentence_leads_somewhere(around: Surroundings, pieces: list[str]) -> None:
    planner = OfflinePlanner(lambda: around.view, TOOLS)
    event = planner.decide(PlanRequest(" ".join(pieces), around.context))
    if isinstance(event, TurnFailed):
        assert event.problem.code in ("PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED"), (
            "only a place that no plan may touch is refused"
        )
    else:
        assert isinstance(event, PlanReady | Answer) or (
            isinstance(event, NeedsInput) and event.candidates
        )


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
        ('put Sourdough into "New place"', "move"),
        ("delte the note Sourdough", "delete"),
        ("Přejmenuj Sourdough", "rename"),
        ("删除笔记 Sourdough", "delete"),
        ("Zet Sourdough in Projects", "move"),
        ("Wrzuć Sourdough do Projects", "move"),
        ("quítale a Sourdough la etiqueta recipe", "remove-tags"),
        ("Kun je een notitie Rogge aanmaken in Notes?", "new-note"),
        ("Projects 폴더에 호밀이라는 노트를 만들어 주시겠어요?", "new-note"),
        ("把所有逾期的待辦延到星期一", "postpone-tasks"),
    ],
)
def test_the_right_action_is_among_the_first_three(
    around: Surroundings, sentence: str, recipe: str
) -> None:
    assert recipe in [found.recipe.name for found in MENU.nearest(sentence, around)]


def test_a_folder_that_does_not_hold_the_named_note_is_for_something_else(
    around: Surroundings,
) -> None:
    assert filled("what of Sourdough in Projects", around, "find-notes") == {
        "notes": "note:Notes/Sourdough.md"
    }


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "?",
        "why is the sky blue",
        "list all notes tagged #idea in Projects",
        "把計画移到日记",
        "Přesuň Überblick do Bilder",
        "\x00 ${x} [[",
        "'",
    ],
)
def test_there_are_always_three(around: Surroundings, sentence: str) -> None:
    assert len(MENU.nearest(sentence, around)) == 3


def test_a_name_of_several_notes_is_left_open(around: Surroundings) -> None:
    found = next(
        each for each in MENU.nearest("rename Plan", around) if each.recipe.name == "rename"
    )
    assert "from" not in found.values


def filled(sentence: str, around: Surroundings, name: str) -> dict[str, str]:
    """Return the values in the form of a recipe."""
    found = next(
        each
        for each in MENU.nearest(sentence, around, most=len(packaged()))
        if each.recipe.name == name
    )
    return {key: form_text(found.recipe.inputs[key], value) for key, value in found.values.items()}


def test_templates_are_no_targets_unless_their_folder_is_named(around: Surroundings) -> None:
    assert "notes" not in filled("Delete the meeting", around, "delete")
    assert "note" not in filled("Sort the lists of Meeting", around, "sort-list")
    assert (
        filled("Make a note from the template Meeting", around, "note-from-template")["template"]
        == "Templates/Meeting.md"
    )


@pytest.mark.parametrize(
    ("sentence", "told"),
    [("Bake me a cake", NOTHING), ("?", NOTHING), ("Wie backt man Sourdough?", NEAREST)],
)
def test_where_no_action_fits_that_is_said(around: Surroundings, sentence: str, told: str) -> None:
    event = OfflinePlanner(lambda: around.view, TOOLS).decide(PlanRequest(sentence, around.context))
    assert isinstance(event, NeedsInput)
    assert event.message == told
    if told == NOTHING:
        assert [each.recipe for each in event.candidates] == ["new-note", "add-text", "find-notes"]


def test_titles_and_lists_of_candidates_read_well(around: Surroundings) -> None:
    event = OfflinePlanner(lambda: around.view, TOOLS).decide(
        PlanRequest("Kindly rename Sourdough", around.context)
    )
    assert isinstance(event, NeedsInput)
    titles = [each.title for each in event.candidates]
    assert "Rename Sourdough to …" in titles
    assert not any("{" in title for title in titles)
    assert (
        filled(
            "Remove the properties status, due and status of Sourdough", around, "remove-properties"
        )["properties"]
        == "status"
    )


@pytest.mark.parametrize(
    "sentence",
    [
        "Set rating to 3 on the notes in Notes whose author starts with S",
        "Setze rating auf 3 in allen Notizen in Notes, deren Name kurz ist",
        "Pon rating a 3 en las notas de Notes cuyo nombre sea corto",
        "Move everything in Notes that mum wrote to Empty",
        "Pon rating a 3 en Notes si no hay sol",
    ],
)
def test_a_change_is_not_of_all_notes_of_a_folder_if_a_clause_is_not_understood(
    around: Surroundings, sentence: str
) -> None:
    changes = [found for found in MENU.nearest(sentence, around) if found.recipe.answer is None]
    assert changes
    sets = [one.values["notes"] for one in changes if "notes" in one.values]
    assert all(len(notes.terms) > 1 or notes.terms[0].key == "note" for notes in sets)
    assert any("Notes" in text for text in changes[0].unused), "the folder is not used either"


@pytest.mark.parametrize(
    ("sentence", "recipe"),
    [
        ("elimina i doppioni nella Inbox", "unique-list"),
        ("supprime les doublons dans la liste de Inbox", "unique-list"),
        ("metti rating 4 nella nota Sourdough", "set-property"),
        ("fusionne Sourdough avec Rye bread et supprime Sourdough", "merge-into"),
        ("Merge Sourdough into Rye bread and delete Sourdough", "merge-into"),
    ],
)
def test_the_verb_of_what_is_done_counts_as_used(
    around: Surroundings, sentence: str, recipe: str
) -> None:
    found = next(one for one in MENU.nearest(sentence, around) if one.recipe.name == recipe)
    verb = sentence.split()[0]
    assert not any(verb in text or "supprime" in text for text in found.unused)


@pytest.mark.parametrize(
    ("sentence", "is_offered"),
    [
        ("Remove the tags from the notes in Notes", False),
        ("remove the empty notes", False),
        ("supprime la note vide", False),
        ("удали пустую заметку", False),
        ("Remove all tags from the notes in Notes", True),
        ("Enlève toutes les étiquettes des notes de Notes", True),
        ("Remove the tags of Sourdough", True),
    ],
)
def test_all_tags_are_removed_only_if_the_sentence_says_so(
    around: Surroundings, sentence: str, is_offered: bool
) -> None:
    found = [one for one in MENU.nearest(sentence, around) if one.recipe.name == "remove-tags"]
    assert bool(found) is is_offered


def test_an_action_that_would_change_nothing_by_its_values_shows_a_gap(
    around: Surroundings,
) -> None:
    turn = OfflinePlanner(lambda: around.view, TOOLS).turn(
        PlanRequest("turn the lists of Inbox", around.context)
    )
    candidate = next(one for one in turn.candidates if one.recipe == "turn-list")
    assert candidate.title == "Turn the lists of Inbox into …"
    assert candidate.missing == ("marker",)
    assert candidate.plan is None
    recipe = next(one for one in packaged() if one.name == "turn-list")
    assert isinstance(turn.propose(recipe, {"note": "Inbox", "checkboxes": "add"}), PlanReady)


@pytest.mark.parametrize(
    ("sentence", "value"),
    [
        ("alle Notizen in Notes sollen die Eigenschaft jahr: 2027 bekommen", "2027"),
        ("alle Notizen in Notes sollen die Eigenschaft jahr: 2027 erhalten", "2027"),
    ],
)
def test_the_verb_at_the_end_is_no_part_of_the_value(
    around: Surroundings, sentence: str, value: str
) -> None:
    assert filled(sentence, around, "set-property")["value"] == value


def test_a_condition_on_one_named_note_is_in_the_singular(around: Surroundings) -> None:
    values = filled("delete Überblick if it is empty", around, "delete")
    assert values == {"notes": "note:Bilder/Überblick.md is:empty"}
    recipe = next(one for one in packaged() if one.name == "delete")
    turn = OfflinePlanner(lambda: around.view, TOOLS).turn(PlanRequest("", around.context))
    event = turn.propose(recipe, values)
    assert isinstance(event, PlanReady)
    assert event.plan.goal == "Delete Überblick that is empty"


@pytest.mark.parametrize(
    "sentence",
    [
        "merge EXP-02 into EXP-01",
        "fusionne EXP-02 avec EXP-01",
        "führe exp-02 und exp-01 zusammen",
        "объедини EXP-02 с EXP-01",
        "把EXP-02合并到EXP-01",
    ],
)
def test_a_note_is_named_by_the_code_that_only_its_name_begins_with(
    make_vault: MakeVault, sentence: str
) -> None:
    paths = ("Lab/EXP-01 Dye.md", "Lab/EXP-02 Dye at night.md", "Lab/On EXP-03.md")
    view = DiskView(make_vault(dict.fromkeys(paths, "x\n")))
    here = Surroundings(view, RunContext("vault", NOW))
    found = next(one for one in MENU.nearest(sentence, here) if one.recipe.name == "merge-into")
    assert set(found.values.values()) == {*paths[:2]}
    rename = MENU.nearest("Rename EXP-03 to Buoy", here)[0]
    assert paths[2] not in rename.values.values(), "its name only holds the code"
