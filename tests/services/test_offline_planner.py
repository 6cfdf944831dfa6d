from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents import played
from obsidian_agent.agent.events import AgentEvent, Answer, NeedsInput, PlanReady, TurnFailed
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.offline.recipe import packaged, recipe_named
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.services.macro import Macro
from obsidian_agent.services.offline_planner import NO_SELECTION, OfflinePlanner
from obsidian_agent.tools.core.tool import RunContext
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.views.disk import DiskView
from offline_desk import FILES, IDEAS, NOW, Desk, effect
from support import MakeVault


@pytest.fixture
def desk(make_vault: MakeVault) -> Desk:
    return Desk(make_vault(FILES))


def filled(desk: Desk, name: str, **texts: Any) -> AgentEvent:
    """Return the result of a recipe with values given as text."""
    recipe = recipe_named(name, packaged())
    assert recipe is not None
    return desk.planner.turn(desk.request("")).propose(recipe, texts)


def changes(desk: Desk, event: AgentEvent) -> dict[str, Any]:
    assert isinstance(event, PlanReady), event
    done = desk.dry_run(event.plan)
    assert not done.errors
    return effect(done)


# --- context ---


def test_the_selection_stays_a_reference_so_that_the_plan_runs_again(desk):
    plan = desk.plan("create a note for each bullet in Projects", active="Ideas.md", selected=IDEAS)
    assert plan.steps[1].args == {"text": "${selection}"}
    assert plan.parameters["folder"].default == "Projects"
    assert plan.parameters["folder"].type == "path"


def test_a_selection_that_is_needed_is_asked_for(desk):
    assert desk.decide(
        "create a note for each bullet in Projects", active="Ideas.md"
    ) == NeedsInput(NO_SELECTION)


def test_this_note_is_the_open_one_and_follows_along(desk):
    plan = desk.plan("turn the bullets in this note into tasks", active="Ideas.md")
    assert plan.steps[0].args["path"] == "${activeFile}"
    assert "note" not in plan.parameters
    assert desk.plan("add 'x' to this note", active="Ideas.md").steps[0].args == {
        "where": {"paths": ["${activeFile}"]}
    }


def test_this_note_without_an_open_one_is_asked_for(desk):
    event = filled(desk, "sort-list")
    assert isinstance(event, NeedsInput)
    assert "No note is open" in event.message


def test_daily_note_without_settings_is_empty_and_in_the_root(make_vault):
    assert Desk(make_vault({"a.md": ""})).changes("create today's daily note") == {
        "2026-03-14.md": ""
    }


def test_a_daily_note_is_made_as_the_settings_say(desk):
    assert (
        desk.changes("create today's daily note")["Daily/2026/03-14.md"] == "# 03-14\n2026-03-14\n"
    )


def test_a_daily_note_that_is_there_is_not_written_over(make_vault):
    desk = Desk(make_vault({"2026-03-14.md": "mine"}))
    event = desk.decide("create today's daily note")
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].doubt == "It would change nothing."
    assert changes(desk, filled(desk, "daily-note")) == {}


# --- what is not certain ---


@pytest.mark.parametrize(
    "message",
    [
        "Rename the note Website to Homepage (capital H)",
        "rename Website to Homepage and publish it on the web",
        "Don't delete Garden",
        "delte Garden",
        "Should I delete Garden?",
        "Delete everything except Garden",
        "Delete Plan",
        "clean up Garden",
        "Delete Projects",
        "Write a sonnet about my garden",
        "",
    ],
)
def test_what_is_no_example_is_picked_from_three_and_never_done(desk, message):
    event = desk.decide(message)
    assert isinstance(event, NeedsInput)
    assert 1 <= len(event.candidates) <= 3
    assert all(candidate.recipe and candidate.title for candidate in event.candidates)


def test_a_candidate_is_filled_in_and_says_what_is_missing_and_what_speaks_against_it(desk):
    event = desk.decide("kindly move Website into Archive before Friday")
    assert isinstance(event, NeedsInput)
    first = event.candidates[0]
    assert (first.recipe, dict(first.values), first.missing) == (
        "move",
        {"notes": "note:Projects/Website.md", "folder": "Archive"},
        (),
    )
    assert "before Friday" in first.doubt
    assert first.plan is not None


def test_a_picked_candidate_is_done_with_the_values_that_were_missing(desk):
    message = "please rename Website"
    event = desk.decide(message)
    assert isinstance(event, NeedsInput)
    number = [candidate.recipe for candidate in event.candidates].index("rename") + 1
    request = desk.request(message, to="Homepage")
    picked = desk.planner.decide(
        PlanRequest(message, request.context, params=request.params, pick=number)
    )
    assert changes(desk, picked) == {"Projects/Website.md": "-> Projects/Homepage.md"}
    lacking = desk.planner.decide(PlanRequest(message, request.context, pick=number))
    assert isinstance(lacking, NeedsInput)
    assert lacking.missing == ("to",)
    beyond = desk.planner.decide(PlanRequest(message, request.context, pick=9))
    assert isinstance(beyond, TurnFailed)


def test_values_by_name_go_along_with_a_certain_sentence(desk):
    plan = desk.plan("append 'x' to Groceries", heading="Dairy")
    assert effect(desk.dry_run(plan)) == {
        "Groceries.md": "## Dairy\n\n- milk\n- x\n\n## Fruit\n\n- apple\n"
    }


def test_a_set_that_means_no_note_is_asked_about(desk):
    event = desk.decide("Move all notes tagged #donelike to Archive")
    assert isinstance(event, PlanReady)
    event = desk.decide("Move all notes changed in Old")
    assert isinstance(event, NeedsInput)


def test_who_chose_for_a_sentence_is_doubted(desk):
    recipe = recipe_named("move", packaged())
    assert recipe is not None
    texts = {"notes": "Website", "folder": "Archive"}
    sure = desk.planner.turn(desk.request("Move Website to Archive")).propose(
        recipe, texts, doubted=True
    )
    assert isinstance(sure, PlanReady)
    doubted = desk.planner.turn(desk.request("Move Website to Archive before 1 February")).propose(
        recipe, texts, doubted=True
    )
    assert isinstance(doubted, NeedsInput)
    assert doubted.message == "Is this what you mean? Not used: “before 1 February”."


# --- questions ---


def test_an_answer_says_what_was_looked_for(desk):
    assert desk.ask("Which notes in Projects have status open?") == Answer(
        "1 note in Projects with status open:\n- [[Website]]", ("Projects/Website.md",)
    )


def test_nothing_found_is_no_fact_about_the_vault(desk):
    assert desk.ask('Which notes are tagged "nobody"?').text == "No notes tagged #nobody."


def test_an_order_is_no_question(desk):
    event = desk.planner.decide(desk.request("rename Website to 'Home'"), questions=True)
    assert isinstance(event, NeedsInput)
    assert all(recipe_named(each.recipe, packaged()).answer for each in event.candidates)  # type: ignore[union-attr]


# --- values ---


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../backup/Garden", "PATH_OUTSIDE_VAULT"),
        ("/etc/Garden", "PATH_OUTSIDE_VAULT"),
        (".obsidian/app", "PATH_NOT_ALLOWED"),
    ],
)
def test_paths_out_of_bounds_are_refused(desk, path, code):
    event = filled(desk, "copy-note", note="Garden", path=path)
    assert isinstance(event, TurnFailed)
    assert event.problem.code == code


@pytest.mark.parametrize(
    ("sentence", "code"),
    [
        ("please move Garden to ../backup/HOME.md", "PATH_OUTSIDE_VAULT"),
        ('please move Garden into the folder "/tmp/elsewhere"', "PATH_OUTSIDE_VAULT"),
        ("keep a copy of Garden as ../backup/Garden.md", "PATH_OUTSIDE_VAULT"),
        ("kindly call the note Garden .obsidian/app.json", "PATH_NOT_ALLOWED"),
    ],
)
def test_a_sentence_that_wants_a_place_out_of_bounds_is_refused_at_once(desk, sentence, code):
    event = desk.decide(sentence)
    assert isinstance(event, TurnFailed)
    assert event.problem.code == code


def test_a_path_that_is_only_a_text_refuses_nothing(desk):
    assert isinstance(desk.decide("jot 'see /etc/hosts' down at the end of Garden"), NeedsInput)


def test_a_value_that_is_none_and_an_input_that_is_none_are_told(desk):
    wrong = filled(desk, "move", notes="Nowhere", folder="Archive")
    assert isinstance(wrong, TurnFailed)
    assert wrong.problem.message.startswith("notes: “Nowhere” is not a search for notes.")
    unknown = filled(desk, "move", where="Archive")
    assert isinstance(unknown, TurnFailed)
    assert "it has notes, folder" in unknown.problem.message


@pytest.mark.parametrize(
    "text",
    [
        "a\"b'c",
        "${selection}",
        "$steps.note.path",
        "$${x}",
        "{{date}}",
        "line\\nbreak",
        "${text}",
        "[x ${notes}]",
        "ünï ✓",
    ],
)
def test_text_arrives_as_it_was_said(desk, text):
    event = filled(desk, "add-task", note="Garden", text=text)
    assert changes(desk, event) == {"Projects/Garden.md": f"colour and colour\n- [ ] {text}\n"}


@pytest.mark.parametrize("text", ["${x} $${y} ${now}", "$steps.a.b", "$$vars.a"])
def test_a_template_is_literal_but_for_its_variables(make_vault, text):
    desk = Desk(make_vault({"Templates/T.md": text}))
    assert desk.changes("create a note 'N' from the template T") == {"N.md": text}


def test_a_property_can_have_any_name(desk):
    event = filled(
        desk, "set-property", property="${x} ${note} $steps.find", value="1", notes="Garden"
    )
    assert "${x} ${note} $steps.find: 1" in changes(desk, event)["Projects/Garden.md"]


def test_a_description_may_hold_what_looks_like_a_reference(desk):
    event = filled(desk, "find-notes", notes='text:"${milk}"')
    assert isinstance(event, Answer)
    assert event.sources == ("Inbox.md",)


# --- macros ---


def macro(name: str = "New project", **fields: Any) -> Macro:
    plan = {
        "version": "1.0",
        "goal": "Start a project",
        "riskLevel": "writes",
        "parameters": {"projectName": {"description": "Its name"}},
        "steps": [
            {
                "id": "n",
                "tool": "vault.createFile",
                "args": {"path": "Projects/${projectName}.md", "content": "# ${projectName}\n"},
            }
        ],
    }
    return Macro(name, ActionPlan.model_validate(plan), **fields)


def test_a_macro_is_found_by_its_phrases(desk):
    desk.macros = [macro(phrases=("kick off {projectName}", "broken ( phrase"))]
    assert desk.changes("kick off 'Moon base'") == {"Projects/Moon base.md": "# Moon base\n"}


def test_a_macro_whose_input_is_missing_asks_for_it(desk):
    desk.macros = [macro(), macro("Other")]
    event = desk.decide("run New project")
    assert isinstance(event, NeedsInput)
    assert (event.missing, event.candidates[0].recipe) == (("projectName",), "macro:New project")
    assert desk.changes("New project", projectName="VPN rollout") == {
        "Projects/VPN rollout.md": "# VPN rollout\n"
    }


def test_the_planner_yields_one_event(desk):
    async def events() -> list[AgentEvent]:
        return [
            event async for event in played(desk.planner, desk.request("rename Website to 'Home'"))
        ]

    assert [type(event) for event in asyncio.run(events())] == [PlanReady]
    assert desk.planner.name == "offline"


def test_recipes_whose_tools_are_missing_are_left_out(desk):
    planner = OfflinePlanner(
        lambda: DiskView(desk.store), {"vault.createFile": TOOLS["vault.createFile"]}
    )
    event = planner.decide(PlanRequest("rename Website to 'Home'", RunContext("vault", NOW)))
    assert not isinstance(event, PlanReady)


@pytest.mark.parametrize(
    ("yesterday", "today", "expected"),
    [
        (
            "# Fri\n\n## Tasks\n\n- [ ] a\n\n## Log\n",
            "# Sat\n\n## Tasks\n\n- [ ] b\n\n## Log\n\nx\n",
            "# Sat\n\n## Tasks\n\n- [ ] b\n- [ ] a\n\n## Log\n\nx\n",
        ),
        ("# Fri\n\n## Tasks\n\n- [ ] a\n", "# Sat\n\nx\n", "# Sat\n\nx\n- [ ] a\n"),
    ],
)
def test_tasks_are_rolled_over_under_their_heading(
    make_vault: MakeVault, yesterday: str, today: str, expected: str
) -> None:
    desk = Desk(make_vault({"2026-03-13.md": yesterday, "2026-03-14.md": today}))
    assert desk.changes("Roll over yesterday's tasks")["2026-03-14.md"] == expected
