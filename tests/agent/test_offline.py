from __future__ import annotations

import asyncio
from typing import Any

import pytest

from obsidian_agent.agent.events import NeedsInput, PlanReady, TurnEvent, TurnFailed
from obsidian_agent.agent.macros import Macro
from obsidian_agent.agent.offline import NO_SELECTION, OfflinePlanner
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.plan.binding import bind
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.validate import validate
from obsidian_agent.tools.base import RunContext, Selection
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.disk import DiskView
from offline_desk import FILES, IDEAS, NOW, Desk, effect, grow_old
from support import MakeVault


@pytest.fixture
def desk(make_vault: MakeVault) -> Desk:
    store = make_vault(FILES)
    grow_old(store, "Old/dusty.md")
    return Desk(store)


# --- context ------------------------------------------------------------------------------------------------------------------


def test_without_an_active_note_nothing_is_replaced(desk):
    found = desk.changes("create a note for each selected bullet in Projects", selected=Selection("- One\n- Two"))
    assert found == {"Projects/One.md": "# One\n", "Projects/Two.md": "# Two\n"}


def test_the_selection_stays_a_reference_so_that_the_plan_runs_again(desk):
    plan = desk.plan("create a note for each bullet in Projects", active="Ideas.md", selected=IDEAS)
    assert plan.steps[1].args == {"text": "${selection}"}
    assert plan.parameters["folder"].default == "Projects"
    assert plan.parameters["folder"].type == "path"


def test_a_selection_that_is_needed_is_asked_for(desk):
    event = desk.decide("create a note for each bullet in Projects", active="Ideas.md")
    assert event == NeedsInput(NO_SELECTION)


def test_this_note_is_the_open_one_and_follows_along(desk):
    plan = desk.plan("add 'x' to this note", active="Ideas.md")
    assert plan.steps[0].args["path"] == "${activeFile}"
    assert "note" not in plan.parameters
    assert plan.goal == "Add text to Ideas.md"


def test_this_note_without_an_open_one_is_asked_for(desk):
    event = desk.decide("add 'x' to this note")
    assert isinstance(event, NeedsInput)
    assert event.missing == ("note",)
    assert "no note is active" in event.message


def test_selected_text_can_be_what_is_added(desk):
    assert desk.changes("append the selected text to Garden", active="Ideas.md", selected=IDEAS) == {
        "Projects/Garden.md": f"colour and colour\n{IDEAS.text}\n"
    }


def test_daily_note_without_settings_is_empty_and_in_the_root(make_vault):
    assert Desk(make_vault({"a.md": ""})).changes("create today's daily note") == {"2026-03-14.md": ""}


def test_a_daily_note_that_is_there_is_not_written_over(make_vault):
    desk = Desk(make_vault({"2026-03-14.md": "mine"}))
    done = desk.preview("create today's daily note")
    assert effect(done) == {}
    assert done.warnings


def test_a_daily_note_is_found_by_its_day(make_vault):
    desk = Desk(make_vault({"Daily/2026-03-13.md": "", ".obsidian/daily-notes.json": '{"folder": "Daily"}'}))
    assert desk.changes("append 'late' to yesterday's daily note") == {"Daily/2026-03-13.md": "late\n"}


@pytest.mark.parametrize(
    ("message", "made"),
    [
        ("split Long by heading into Archive", ["Archive/A.md", "Archive/B.md"]),
        ("split Long by level 3 headings into Archive", ["Archive/Deep.md"]),
        ("split Long by H1 headings into Archive", ["Archive/Title.md"]),
    ],
)
def test_a_note_is_split_at_the_level_that_divides_it(make_vault, message, made):
    desk = Desk(make_vault({"Long.md": "# Title\n\n## A\n\na\n\n### Deep\n\n## B\n\nb\n", "Archive/": ""}))
    assert list(desk.changes(message)) == made


# --- asking back --------------------------------------------------------------------------------------------------------------


def test_a_name_of_two_notes_is_asked_about(desk):
    event = desk.decide("append 'x' to Plan")
    assert isinstance(event, NeedsInput)
    assert {candidate.values["note"] for candidate in event.candidates} == {"Twin/Plan.md", "Other/Plan.md"}
    assert all(candidate.plan is not None and not candidate.missing for candidate in event.candidates)


def test_a_name_of_no_note_is_said_and_near_ones_are_offered(desk):
    event = desk.decide("rename 'Web site' to 'Home'")
    assert isinstance(event, NeedsInput)
    assert "there is no note or folder “Web site”" in event.message
    assert event.candidates[0].values["from"] == "Projects/Website.md"


def test_a_candidate_holds_a_plan_that_can_run(desk):
    event = desk.decide("append 'x' to Plan")
    assert isinstance(event, NeedsInput)
    plan = event.candidates[0].plan
    assert plan is not None
    assert effect(desk.dry_run(plan)) == {event.candidates[0].values["note"]: "x\n"}


def test_a_missing_value_is_asked_for_and_fills_the_plan(desk):
    event = desk.decide("rename Website")
    assert isinstance(event, NeedsInput)
    assert event.missing == ("to",)
    assert event.candidates[0].missing == ("to",)
    plan = event.candidates[0].plan
    assert plan is not None
    assert effect(desk.dry_run(plan, {"to": "Projects/Home.md"})) == {"Projects/Website.md": "-> Projects/Home.md"}


def test_a_value_given_by_name_fills_what_is_missing(desk):
    plan = desk.plan("rename Website", to="Projects/Home.md")
    assert plan.parameters["to"].default == "Projects/Home.md"


def test_a_heading_that_is_not_there_is_asked_about(desk):
    event = desk.decide("add 'x' under Bread in Groceries")
    assert isinstance(event, NeedsInput)
    assert "Groceries.md has no heading “Bread” (its headings: Dairy, Fruit)" in event.message


def test_what_no_recipe_covers_names_the_way_out(desk):
    event = desk.decide("Write a sonnet about my garden")
    assert isinstance(event, NeedsInput)
    assert event.candidates == ()
    assert "model" in event.message


def test_what_an_instruction_says_more_is_never_dropped(desk):
    event = desk.decide("rename Website to Homepage and publish it on the web")
    assert not isinstance(event, PlanReady)


@pytest.mark.parametrize(
    "aside", ["Don't touch code or any other tags.", "The notes in Projects can stay as they are!", "Leave Inbox as it is."]
)
def test_an_aside_that_the_plan_keeps_anyway_leaves_no_doubt(desk, aside):
    assert isinstance(desk.decide(f"Rename the tag done to finished. {aside}"), PlanReady)


@pytest.mark.parametrize("aside", ["Keep dusty unchanged, please.", "The soups stay.", "October was different, so don't touch that."])
def test_an_aside_about_what_would_change_or_that_is_not_understood_is_told(desk, aside):
    event = desk.decide(f"Rename the tag done to finished. {aside}")
    assert isinstance(event, NeedsInput)
    assert "Rename the tag #done to #finished" in [each.title for each in event.candidates]
    assert aside.rstrip(".") in event.message


def test_a_note_that_is_to_stay_is_not_carried_off_with_its_folder(desk):
    assert not isinstance(desk.decide("Move the folder Projects to Archive. Leave Garden as it is."), PlanReady)


def test_a_known_plugin_is_recommended_where_no_recipe_helps(make_vault):
    vault = {".obsidian/community-plugins.json": '["obsidian-kanban"]', "a.md": ""}
    desk = Desk(make_vault(vault))
    flashcards = desk.decide("Quiz me with flashcards about my reading")
    assert isinstance(flashcards, NeedsInput)
    assert "Spaced Repetition does flashcards; it can be found with /plugins spaced repetition" in flashcards.message
    board = desk.decide("I would love a kanban board of my life")
    assert isinstance(board, NeedsInput)
    assert "switched on in this vault" in board.message


# --- nothing harmful is guessed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        'Turn off "Always update internal links" in my Obsidian settings.',
        "Disable the community plugin Dataview",
        "Enable the Templater plugin",
    ],
)
def test_settings_of_obsidian_are_refused(desk, message):
    event = desk.decide(message)
    assert isinstance(event, TurnFailed)
    assert event.problem.code == "PATH_NOT_ALLOWED"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Save a copy of Garden as ../backup/Garden.md", "PATH_OUTSIDE_VAULT"),
        ("copy Garden to /etc/Garden.md", "PATH_OUTSIDE_VAULT"),
        ("create a note called .obsidian/app.md", "PATH_NOT_ALLOWED"),
    ],
)
def test_paths_out_of_bounds_end_as_errors_of_the_preview(desk, message, code):
    assert [problem.code for problem in desk.preview(message).errors] == [code]


def test_deleting_is_up_to_the_policy(desk):
    plan = desk.plan("Delete the folder Archive, I don't need it any more.")
    checked = validate(plan.to_json(), TOOLS, Policy())
    assert [problem.code for problem in checked.problems] == ["DELETE_DISABLED"]


@pytest.mark.parametrize(
    "message",
    [
        "Don't delete Garden",
        "Delete Gardn",
        "delte Garden",
        "Should I delete Garden?",
        "Delete everything except Garden",
        "Delete Garden and all notes that mention it",
        "Delete Plan",
        "clean up Garden",
    ],
)
def test_a_destructive_reading_is_never_sure_unless_plainly_said(desk, message):
    assert not isinstance(desk.decide(message), PlanReady)


@pytest.mark.parametrize("text", ["a\"b'c", "${selection}", "$steps.note.path", "$${x}", "{{date}}", "line\\nbreak", "<<note>>", "ünï ✓"])
def test_text_arrives_as_it_was_said(desk, text):
    plan = desk.plan("add a task to Garden", text=text)
    assert effect(desk.dry_run(plan)) == {"Projects/Garden.md": f"colour and colour\n- [ ] {text}\n"}


@pytest.mark.parametrize("text", ["${x} $${y} ${now}", "$steps.a.b", "$$vars.a"])
def test_a_template_is_literal_but_for_its_variables(make_vault, text):
    desk = Desk(make_vault({"Templates/T.md": text}))
    assert desk.changes("create a note 'N' from the template T") == {"N.md": text}


def test_a_property_can_have_any_name(desk):
    plan = desk.plan("set a property on the note Garden", property="${x} <<value>> ${note}", value="1")
    done = desk.dry_run(plan)
    assert not done.errors
    assert "${x} <<value>> ${note}: " in effect(done)["Projects/Garden.md"]
    assert plan.goal == "Set ${x} <<value>> ${note} of Projects/Garden.md"


# --- macros -------------------------------------------------------------------------------------------------------------------


def macro(name: str = "New project", **fields: Any) -> Macro:
    plan = {
        "version": "1.0",
        "goal": "Start a project",
        "riskLevel": "writes",
        "parameters": {"projectName": {"description": "Its name"}},
        "steps": [{"id": "n", "tool": "vault.createFile", "args": {"path": "Projects/${projectName}.md", "content": "# ${projectName}\n"}}],
    }
    return Macro(name, ActionPlan.model_validate(plan), **fields)


@pytest.mark.parametrize(
    "message",
    [
        "Run my saved macro 'New project' for 'VPN rollout'.",
        'run the macro New project with projectName="VPN rollout"',
        "New project for VPN rollout",
    ],
)
def test_a_macro_is_run_by_its_name(desk, message):
    desk.macros = [macro(), macro("Other")]
    assert desk.changes(message) == {"Projects/VPN rollout.md": "# VPN rollout\n"}


def test_a_macro_is_found_by_its_phrases(desk):
    desk.macros = [macro(phrases=("kick off {projectName}", "broken ( phrase"))]
    assert desk.changes("please kick off 'Moon base'") == {"Projects/Moon base.md": "# Moon base\n"}


def test_a_macro_whose_input_is_missing_asks_for_it(desk):
    desk.macros = [macro()]
    plan = desk.plan("run the macro New project")
    assert bind(plan, {}).missing == ("projectName",)


def test_a_macro_that_is_not_there_is_said(desk):
    event = desk.decide("run my macro Nothing")
    assert isinstance(event, NeedsInput)
    assert "there is no macro “Nothing”" in event.message


def test_the_planner_yields_one_event(desk):
    planner = OfflinePlanner(lambda: DiskView(desk.store), desk.store.obsidian_config, TOOLS)

    async def events() -> list[TurnEvent]:
        request = PlanRequest("rename Website to Home", RunContext("vault", NOW))
        return [event async for event in planner.plan(request)]

    assert [type(event) for event in asyncio.run(events())] == [PlanReady]
    assert planner.name == "offline"


def test_recipes_whose_tools_are_missing_are_left_out(desk):
    planner = OfflinePlanner(lambda: DiskView(desk.store), desk.store.obsidian_config, {"vault.createFile": TOOLS["vault.createFile"]})
    event = planner.decide(PlanRequest("rename Website to Home", RunContext("vault", NOW)))
    assert not isinstance(event, PlanReady)


INVOICES = {
    "Invoices/A.md": "---\npaid: false\ndue: 2026-03-01\ntier: gold\n---\n",
    "Invoices/B.md": "---\npaid: true\ndue: 2026-03-01\ntier: silver\n---\n",
    "Invoices/C.md": "---\npaid: false\ndue: 2026-03-13\ntier: gold\n---\n",
    "Invoices/D.md": "---\npaid: false\ndue: 2027-03-14\ntier: silver\n---\n",
}


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ("unpaid invoices", ["A", "C", "D"]),
        ("paid invoices", ["B"]),
        ("unpaid invoices with a due date before 2026-03-10", ["A"]),
        ("invoices due in March 2026 and not paid yet", ["A", "C"]),
        ("invoices that are gold tier", ["A", "C"]),
    ],
)
def test_properties_as_people_speak_of_them(make_vault, described, expected):
    found = Desk(make_vault(INVOICES)).changes(f"Move all {described} to Filed")
    assert [path for path, what in found.items() if what.startswith("-> ")] == [f"Invoices/{name}.md" for name in expected]
