from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.agent.events import NeedsInput, PlanReady, TurnEvent, TurnFailed
from obsidian_agent.agent.macros import Macro
from obsidian_agent.agent.offline import NO_SELECTION, OfflinePlanner
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.plan.binding import bind
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.preview import preview
from obsidian_agent.plan.result import Preview
from obsidian_agent.plan.validate import validate
from obsidian_agent.providers.offline.recipe import RECIPE_NAMES, packaged
from obsidian_agent.tools.base import Position, RunContext, Selection
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.disk import DiskView
from obsidian_agent.vault.paths import PathUse, parse
from obsidian_agent.vault.store import VaultStore

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)

FILES: dict[str, str | bytes] = {
    "Inbox.md": "# Inbox\n\n- [ ] call the bank\n- [x] done\n- [ ] buy ${milk}\n",
    "Groceries.md": "## Dairy\n\n- milk\n\n## Fruit\n\n- apple\n",
    "Ideas.md": "- Alpha\n- [x] Beta: two\n\t- Gamma\n",
    "Projects/Website.md": "---\nstatus: open\n---\n# Goals\n\nfast\n\n# Risks\n\nslow colour\n",
    "Projects/Garden.md": "colour and colour\n",
    "Meetings/Retro.md": "---\ntags:\n  - x\n---\n# Retro\n\nwell done\n",
    "Archive/": "",
    "Templates/Meeting.md": "# {{title}}\n\n{{date:DD.MM.YYYY}} {{time}} ${literal} {{unknown}}\n",
    "Templates/Day.md": "# {{title}}\n{{date}}\n",
    "Twin/Plan.md": "",
    "Old/dusty.md": "#done\n",
    "Old/fresh.md": "#donelike #topic/done\n",
    "Other/Plan.md": "",
    ".obsidian/daily-notes.json": '{"folder": "Daily", "format": "YYYY/MM-DD", "template": "Templates/Day"}',
}


@dataclass
class Desk:
    """A vault, what the person looks at, and the offline planner over both."""

    store: VaultStore
    macros: list[Macro] = field(default_factory=list)

    def decide(self, message: str, *, active: str | None = None, selected: Selection | None = None, **params: Any) -> TurnEvent:
        self.context = RunContext(
            vault_name="vault",
            now=NOW,
            active_file=parse(active, PathUse.READ) if active else None,
            selection=selected,
        )
        planner = OfflinePlanner(lambda: DiskView(self.store), self.store.obsidian_config, TOOLS, lambda: self.macros)
        return planner.decide(PlanRequest(message, self.context, params=params))

    def plan(self, message: str, **around: Any) -> ActionPlan:
        event = self.decide(message, **around)
        assert isinstance(event, PlanReady), event
        return event.plan

    def preview(self, message: str, **around: Any) -> Preview:
        return self.dry_run(self.plan(message, **around))

    def dry_run(self, plan: ActionPlan, values: Mapping[str, Any] | None = None) -> Preview:
        checked = validate(plan.to_json(), TOOLS, Policy(allow_deletes=True))
        assert checked.plan is not None, [problem.to_json() for problem in checked.problems]
        bound = bind(checked.plan, values or {})
        assert not bound.missing
        assert not bound.problems
        return preview(checked, TOOLS, DiskView(self.store), dataclasses.replace(self.context, params=bound.values))

    def changes(self, message: str, **around: Any) -> dict[str, Any]:
        """The net effect: path -> text, new path of a rename, or kind."""
        done = self.preview(message, **around)
        assert not done.errors, [problem.to_json() for problem in done.errors]
        return effect(done)


def effect(done: Preview) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for change in done.change_set.changes:
        match change.kind:
            case "create" | "modify":
                assert change.content is not None
                found[change.path.text] = change.content.decode()
            case "rename":
                assert change.new_path is not None
                found[change.path.text] = f"-> {change.new_path.text}"
            case _:
                found[change.path.text] = change.kind
    return found


@pytest.fixture
def desk(make_vault: Callable[[Mapping[str, str | bytes]], VaultStore]) -> Desk:
    store = make_vault(FILES)
    long_ago = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    os.utime(Path(store.real_path) / "Old" / "dusty.md", (long_ago, long_ago))
    return Desk(store)


def lines(text: str, first: int, last: int) -> Selection:
    """Whole lines of a note, selected."""
    chosen = text.split("\n")[first : last + 1]
    return Selection("\n".join(chosen), Position(first, 0), Position(last, len(chosen[-1])))


IDEAS = lines(str(FILES["Ideas.md"]), 0, 2)

GOLDEN: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "notes-from-bullets": (
        "Create a note for each bullet in Projects",
        {"active": "Ideas.md", "selected": IDEAS},
        {
            "Ideas.md": "- [[Alpha]]\n- [x] [[Beta - two]]\n\t- [[Gamma]]\n",
            "Projects/Alpha.md": "# Alpha\n\nFrom [[Ideas]]\n",
            "Projects/Beta - two.md": "# Beta: two\n\nFrom [[Ideas]]\n",
            "Projects/Gamma.md": "# Gamma\n\nFrom [[Ideas]]\n",
        },
    ),
    "new-note": ("Create a note called 'Trip' in Projects", {}, {"Projects/Trip.md": ""}),
    "new-folder": ("make a folder Travel/Rome", {}, {"Travel": "mkdir", "Travel/Rome": "mkdir"}),
    "rename": ("rename Website to Home page", {}, {"Projects/Website.md": "-> Projects/Home page.md"}),
    "move": ("move the folder Meetings into Archive", {}, {"Meetings": "-> Archive/Meetings"}),
    "set-property-in-folder": (
        "set status: done on all notes in Projects",
        {},
        {
            "Projects/Garden.md": "---\nstatus: done\n---\ncolour and colour\n",
            "Projects/Website.md": str(FILES["Projects/Website.md"]).replace("open", "done"),
        },
    ),
    "set-property": ("set rating to 5 in Garden", {}, {"Projects/Garden.md": "---\nrating: 5\n---\ncolour and colour\n"}),
    "split-by-heading": (
        "split Website by heading",
        {},
        {
            "Projects/Goals.md": "# Goals\n\nfast\n\nFrom [[Website]]\n",
            "Projects/Risks.md": "# Risks\n\nslow colour\n\nFrom [[Website]]\n",
        },
    ),
    "merge-notes": ("merge Retro into Garden", {}, {"Projects/Garden.md": "colour and colour\n\n# Retro\n\nwell done\n"}),
    "daily-note": (
        "create today's daily note",
        {},
        {"Daily": "mkdir", "Daily/2026": "mkdir", "Daily/2026/03-14.md": "# 03-14\n2026-03-14\n"},
    ),
    "append-under-heading": (
        "add '- butter' under Dairy in Groceries",
        {},
        {"Groceries.md": "## Dairy\n\n- milk\n- butter\n\n## Fruit\n\n- apple\n"},
    ),
    "append-to-note": ("append '${pear} $steps.x' to Groceries", {}, {"Groceries.md": f"{FILES['Groceries.md']}${{pear}} $steps.x\n"}),
    "add-task": ("add a task 'water it' to Garden", {}, {"Projects/Garden.md": "colour and colour\n- [ ] water it\n"}),
    "replace-text": (
        "replace 'colour' with 'color' in the folder Projects",
        {},
        {
            "Projects/Garden.md": "color and color\n",
            "Projects/Website.md": str(FILES["Projects/Website.md"]).replace("colour", "color"),
        },
    ),
    "replace-text-in-note": ("replace 'colour' with 'color' in Garden", {}, {"Projects/Garden.md": "color and color\n"}),
    "tasks-to-new-note": (
        "copy the open tasks of Inbox to a new note Todo",
        {},
        {"Todo.md": "# Todo\n\n- [ ] call the bank\n- [ ] buy ${milk}\n\nFrom [[Inbox]]\n"},
    ),
    "copy-note": ("copy Garden to Archive/Garden.md", {}, {"Archive/Garden.md": "colour and colour\n"}),
    "delete": ("delete the note Garden", {}, {"Projects/Garden.md": "delete"}),
    "add-tag-in-folder": (
        "tag all notes in Meetings with #team",
        {},
        {"Meetings/Retro.md": str(FILES["Meetings/Retro.md"]).replace("  - x\n", "  - x\n  - team\n")},
    ),
    "note-from-template": (
        "create a note 'Kickoff' in Meetings from the Meeting template",
        {},
        {"Meetings/Kickoff.md": "# Kickoff\n\n14.03.2026 09:30 ${literal} {{unknown}}\n"},
    ),
    "folder-index": (
        "create a note 'All projects' that links to all notes in Projects",
        {},
        {"All projects.md": "# All projects\n\n- [[Garden]]\n- [[Website]]\n"},
    ),
    "rename-tag": ("rename the tag #done to #finished", {}, {"Old/dusty.md": "#finished\n"}),
    "move-old-notes": ("move all notes in Old not changed for 30 days to Archive", {}, {"Old/dusty.md": "-> Archive/dusty.md"}),
    "move-tagged-notes": ("move all notes tagged #done to Archive", {}, {"Old/dusty.md": "-> Archive/dusty.md"}),
    "complete-tasks": (
        "mark all tasks in Inbox as done",
        {},
        {"Inbox.md": "# Inbox\n\n- [x] call the bank\n- [x] done\n- [x] buy ${milk}\n"},
    ),
    "move-tasks": (
        "move the open tasks of Inbox to Garden under a heading 'Left'",
        {},
        {
            "Inbox.md": "# Inbox\n\n- [x] done\n",
            "Projects/Garden.md": "colour and colour\n\n## Left\n\n- [ ] call the bank\n- [ ] buy ${milk}\n",
        },
    ),
}
NO_PLAN = {"obsidian-settings", "run-macro"}


def there(name: str) -> bool:
    """Whether all tools of a recipe are registered."""
    recipe = next(recipe for recipe in packaged() if recipe.name == name)
    plans = [recipe.plan] if recipe.plan else [variant.plan for variant in recipe.variants]
    return all(step["tool"] in TOOLS for plan in plans for step in plan["steps"])


def test_every_recipe_has_a_golden_example():
    assert set(RECIPE_NAMES) - NO_PLAN == GOLDEN.keys()
    assert sum(map(there, GOLDEN)) >= 20


@pytest.mark.parametrize("name", [name for name in GOLDEN if there(name)])
def test_recipe(desk, name):
    message, around, expected = GOLDEN[name]
    assert desk.changes(message, **around) == expected


def test_every_variant_of_every_recipe_is_a_plan():
    for recipe in packaged():
        for variant in recipe.variants:
            assert ActionPlan.model_validate({**variant.plan, "goal": variant.plan["goal"]}).steps
        if recipe.plan is not None:
            assert ActionPlan.model_validate(recipe.plan).goal


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
