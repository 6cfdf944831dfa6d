from __future__ import annotations

import pytest

from obsidian_agent.agent.compound import joined
from obsidian_agent.agent.events import NeedsInput, PlanReady
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.validate import validate
from obsidian_agent.providers.offline.clauses import clauses
from obsidian_agent.tools.registry import TOOLS
from offline_desk import FILES, Desk, effect
from support import MakeVault


@pytest.fixture
def desk(make_vault: MakeVault) -> Desk:
    return Desk(make_vault(FILES))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("move a to b", ["move a to b"]),
        ("create a note X and link it from Y", ["create a note X", "link it from Y"]),
        ("Rename a to b. Then please tag it with #c", ["Rename a to b", "tag it with #c"]),
        ("tag a with #b, rename it to c, and move it to d", ["tag a with #b", "rename it to c", "move it to d"]),
        ('replace "salt and add pepper" with "spices"', ['replace "salt and add pepper" with "spices"']),
        ("move a and b to c", ["move a and b to c"]),
        ("tag a. tag b. tag c. tag d. tag e", ["tag a. tag b. tag c. tag d. tag e"]),
        ("", [""]),
    ],
)
def test_a_message_is_divided_before_verbs(message, expected):
    assert clauses(message) == expected


def test_later_parts_speak_of_what_earlier_ones_made(desk):
    assert desk.changes("create a note 'Shed' in Projects and link it from Garden") == {
        "Projects/Shed.md": "",
        "Projects/Garden.md": "colour and colour\n[[Shed]]\n",
    }
    assert desk.changes("Rename Garden to Yard, then add the tag #outside to it") == {"Projects/Garden.md": "-> Projects/Yard.md"}
    assert desk.changes("create a folder Old/Notes and move Ideas there") == {"Old/Notes": "mkdir", "Ideas.md": "-> Old/Notes/Ideas.md"}


def test_them_are_all_notes_that_were_meant_also_unchanged_ones(desk):
    found = desk.changes("set seen: true on all notes in Old and add the tag #looked to them")
    assert found == {
        "Old/dusty.md": "---\nseen: true\ntags:\n  - looked\n---\n#done\n",
        "Old/fresh.md": "---\nseen: true\ntags:\n  - looked\n---\n#donelike #topic/done\n",
    }


@pytest.mark.parametrize(
    "message",
    [
        "rename Garden to Yard and publish it on the web",
        "move Garden to Archive and translate it",
        "move Garden to Archive and delete it if it is old",
        "tag Plan with #x and move it to Archive",
        "delete Gardn and archive Ideas",
    ],
)
def test_where_one_part_is_unsure_nothing_is_sure(desk, message):
    assert isinstance(desk.decide(message), NeedsInput)


def test_out_of_bounds_stays_out_of_bounds(desk):
    event = desk.decide("create a note Shed and move it to ../elsewhere")
    assert not isinstance(event, PlanReady) or desk.dry_run(event.plan).errors


def test_names_and_references_of_parts_do_not_meet():
    step = {
        "id": "find",
        "tool": "vault.find",
        "args": {"where": {"folder": "${folder}"}},
        "captureAs": "kept",
    }
    write = {
        "id": "write",
        "tool": "vault.createFile",
        "args": {
            "path": "${folder}/${note.name|filename}.md",
            "content": "${$steps.find.count} ${steps.find.count} ${$vars.kept.count} $${folder} $${steps.find} ${date} steps.find ${other}",
        },
        "foreach": {"from": "$steps.find.files", "itemName": "note"},
        "dependsOn": ["find"],
        "when": "$vars.kept.count",
    }
    plan = ActionPlan.model_validate(
        {
            "version": "1.0",
            "goal": "g",
            "riskLevel": "writes",
            "parameters": {"folder": {"type": "path", "default": "A"}},
            "steps": [step, write],
        }
    )
    both = joined([plan, plan])
    assert [each.id for each in both.steps] == ["find_part1", "write_part1", "find_part2", "write_part2"]
    assert list(both.parameters) == ["folder_part1", "folder_part2"]
    last = both.to_json()["steps"][3]
    assert last["args"] == {
        "path": "${folder_part2}/${note.name|filename}.md",
        "content": "${$steps.find_part2.count} ${steps.find_part2.count} ${$vars.kept_part2.count} $${folder} $${steps.find} ${date}"
        " steps.find ${other}",
    }
    assert last["foreach"]["from"] == "$steps.find_part2.files"
    assert (last["dependsOn"], last["when"]) == (["find_part2"], "$vars.kept_part2.count")
    assert validate(both.to_json(), TOOLS, Policy()).plan is not None


def test_the_joined_plan_runs_as_a_macro_with_other_values(desk):
    event = desk.decide("create a note 'Shed' in Projects and link it from Garden")
    assert isinstance(event, PlanReady)
    done = desk.dry_run(event.plan, {"path_part1": "Projects/Barn.md"})
    assert "Projects/Barn.md" in effect(done)


def test_one_verb_goes_with_several_pairs_of_names():
    assert clauses("Please rename [[a]] to 'b', [[c]] to 'd' and [[e]] to 'f'.") == [
        "rename [[a]] to 'b'",
        "rename [[c]] to 'd'",
        "rename [[e]] to 'f'",
    ]
    assert clauses("Rename [[a]] to b and [[c]] to d") == ["Rename [[a]] to b and [[c]] to d"]


def test_pairs_of_names_become_one_plan(desk):
    found = desk.changes("Rename [[Garden]] to 'Yard' and [[Ideas]] to 'Thoughts'")
    assert found == {"Projects/Garden.md": "-> Projects/Yard.md", "Ideas.md": "-> Thoughts.md"}
