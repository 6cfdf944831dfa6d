from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from obsidian_agent.errors import PlanError
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.preview import dry_run
from obsidian_agent.services.macro import MacroError, literals, macro_from_run, promote, read_macro
from obsidian_agent.tools.core.tool import RunContext, Selection
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.views.disk import DiskView

SEED: dict[str, Any] = {
    "version": "1.0",
    "goal": "Notes in Projects",
    "assumptions": ["Projects is the folder", "bullets are selected"],
    "riskLevel": "writes",
    "steps": [
        {
            "id": "folder",
            "tool": "vault.ensureFolder",
            "args": {"path": "Projects"},
            "preview": "Make Projects",
        },
        {
            "id": "bullets",
            "tool": "util.parseMarkdownBullets",
            "args": {"text": "${selection}"},
            "captureAs": "found",
        },
        {
            "id": "notes",
            "tool": "vault.createFile",
            "args": {
                "path": "Projects/${item.text}.md",
                "content": "# ${item.text} ${i} in Projects, not MyProjects\n",
            },
            "foreach": {"from": "$vars.found.items", "itemName": "item", "indexName": "i"},
            "preview": "One note each",
        },
    ],
}


def seed() -> ActionPlan:
    return ActionPlan.model_validate(json.loads(json.dumps(SEED)))


def test_literals_are_short_texts_without_references_folders_of_paths_and_numbers():
    steps = [
        {
            "id": "a",
            "tool": "t",
            "args": {
                "path": "Projects/Sub/${name}.md",
                "content": "line\nline",
                "tags": ["work", "work"],
                "n": 2,
            },
        },
        {"id": "b", "tool": "t", "args": {"path": "Inbox/A.md", "text": "x" * 300, "on": True}},
    ]
    assert literals(ActionPlan.model_validate({**SEED, "steps": steps})) == [
        "Projects",
        "Sub",
        "work",
        2,
        "Inbox/A.md",
        "Inbox",
        True,
    ]


# --- a literal becomes a parameter ---


def test_a_text_is_replaced_wherever_it_stands_as_a_word_of_its_own():
    plan = promote(seed(), "Projects", "folderName")
    assert plan.steps[0].args == {"path": "${folderName}"}
    assert plan.steps[2].args == {
        "path": "${folderName}/${item.text}.md",
        "content": "# ${item.text} ${i} in ${folderName}, not MyProjects\n",
    }
    assert plan.parameters["folderName"].type == "path"
    assert plan.parameters["folderName"].default == "Projects"


def test_a_literal_that_is_no_text_keeps_its_type():
    steps = [
        {"id": "l", "tool": "util.parseHeadings", "args": {"path": "a.md", "level": 2}},
        {
            "id": "f",
            "tool": "vault.setFrontmatter",
            "args": {"path": "a.md", "set": {"read": True, "level": 2}},
        },
    ]
    plan = ActionPlan.model_validate({**SEED, "steps": steps})
    numbered = promote(plan, 2, "depth")
    assert numbered.parameters["depth"].type == "number"
    assert numbered.steps[0].args["level"] == "${depth}"
    assert numbered.steps[1].args["set"] == {"read": True, "level": "${depth}"}
    flagged = promote(plan, True, "flag")
    assert flagged.parameters["flag"].type == "boolean"
    assert flagged.steps[1].args["set"] == {"read": "${flag}", "level": 2}
    assert promote(plan, "a.md", "note").parameters["note"].type == "path"


@pytest.mark.parametrize(
    "name", ["", "1st", "a-b", "item", "i", "notes", "selection", "steps", "vars"]
)
def test_names_that_cannot_be_parameters(name):
    with pytest.raises(MacroError):
        promote(seed(), "Projects", name)


@pytest.mark.parametrize("text", ["nowhere", "", "Project", "item"])
def test_a_text_that_the_plan_does_not_hold(text):
    with pytest.raises(MacroError):
        promote(seed(), text, "x")


# --- from a run to a macro and back ---


def test_texts_with_old_values_are_not_kept():
    made = macro_from_run(SEED, "Split up", TOOLS, parameters={"folderName": "Projects"})
    assert made.plan.goal == "Split up"
    assert made.plan.assumptions == ["bullets are selected"]
    assert [step.preview for step in made.plan.steps] == [None, None, "One note each"]


def test_without_parameters_the_plan_stays_as_it_was():
    made = macro_from_run(SEED, "Split up", TOOLS, "From bullets")
    assert made.plan == seed()
    assert made.description == "From bullets"


def test_a_parameter_whose_text_is_not_there_is_an_error():
    with pytest.raises(MacroError):
        macro_from_run(SEED, "x", TOOLS, parameters={"folderName": "Nowhere"})
    with pytest.raises(PlanError):
        macro_from_run({}, "x", TOOLS)


def test_a_macro_runs_again_on_other_bullets_in_another_folder(make_vault):
    made = macro_from_run(SEED, "Split up", TOOLS, parameters={"folderName": "Projects"})
    again = read_macro(json.loads(json.dumps(made.to_json())), TOOLS).macro
    created = run(make_vault({"a.md": ""}), again.plan, {"folderName": "Ideas"}, "- One\n- Two")
    assert created == {
        "Ideas/One.md": "# One 0 in Ideas, not MyProjects\n",
        "Ideas/Two.md": "# Two 1 in Ideas, not MyProjects\n",
    }


def run(
    store: VaultStore, plan: ActionPlan, values: Mapping[str, Any], selection: str | None = None
) -> dict[str, str]:
    context = RunContext(
        "vault",
        datetime(2026, 3, 14, tzinfo=UTC),
        selection=Selection(selection) if selection else None,
    )
    done = dry_run(
        plan.to_json(), TOOLS, policy=Policy(), view=DiskView(store), context=context, values=values
    )
    assert not done.errors, done.errors
    return {
        change.path.text: (change.content or b"").decode()
        for change in done.change_set.changes
        if change.kind == "create"
    }


ECHO = {
    "version": "1.0",
    "goal": "Echo",
    "riskLevel": "writes",
    "parameters": {"text": {}},
    "steps": [
        {"id": "n", "tool": "vault.createFile", "args": {"path": "n.md", "content": "<${text}>"}}
    ],
}


@pytest.mark.parametrize(
    "value",
    [
        "a \"quoted\" 'text'",
        "two\nlines",
        "${selection} ${text}",
        "$steps.n.path",
        "$${x",
        "{field|link}",
        "ünï\t✓",
        "\\n",
        "",
    ],
)
def test_hostile_values_arrive_as_they_are(make_vault, value):
    assert run(make_vault({"a.md": ""}), ActionPlan.model_validate(ECHO), {"text": value}) == {
        "n.md": f"<{value}>"
    }


@pytest.fixture(scope="module")
def one_vault(tmp_path_factory: pytest.TempPathFactory) -> VaultStore:
    return VaultStore.open(tmp_path_factory.mktemp("vault"))


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60))
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_text_binds_verbatim_also_through_the_file(one_vault, text):
    kept = read_macro(json.loads(json.dumps({"name": "Echo", "plan": ECHO})), TOOLS).macro
    assert run(one_vault, kept.plan, {"text": text}) == {"n.md": f"<{text}>"}


def test_values_in_paths_cannot_climb(make_vault):
    plan = ActionPlan.model_validate(
        {
            **ECHO,
            "steps": [
                {
                    "id": "n",
                    "tool": "vault.createFile",
                    "args": {"path": "P/${text}.md", "content": ""},
                }
            ],
        }
    )
    context = RunContext("vault", datetime(2026, 3, 14, tzinfo=UTC))
    done = dry_run(
        plan.to_json(),
        TOOLS,
        policy=Policy(),
        view=DiskView(make_vault({"a.md": ""})),
        context=context,
        values={"text": "../../x"},
    )
    assert [problem.code for problem in done.errors] == ["PATH_INVALID"]
