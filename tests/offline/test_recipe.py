from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.catalogue import page
from obsidian_agent.offline.note_set import SLOTS
from obsidian_agent.offline.recipe import MAX_EXAMPLES, SLOT, SUBJECTS, Recipe, packaged
from obsidian_agent.offline.recipe_plan import fill
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.validate import validate
from obsidian_agent.services.macro import Macro
from obsidian_agent.services.offline_planner import from_macro
from obsidian_agent.tools.core.tool import Risk
from obsidian_agent.tools.registry import TOOLS

ALL = pytest.mark.parametrize("recipe", packaged(), ids=lambda recipe: recipe.name)
PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"


@ALL
def test_a_recipe_has_two_to_six_examples_and_no_more(recipe: Recipe) -> None:
    """Limit the examples: a recipe is not a collection of sentences, models read the others."""
    assert 2 <= len(recipe.examples) <= MAX_EXAMPLES


@ALL
def test_its_plan_is_a_plan_over_the_tools(recipe: Recipe) -> None:
    checked = validate(
        {**recipe.plan, "parameters": {name: {} for name in recipe.inputs}},
        TOOLS,
        Policy(allow_deletes=True),
    )
    # Descriptions of notes are put in when it is filled; until then they are references.
    assert [problem.message for problem in checked.problems if "where" not in problem.message] == []


@ALL
def test_its_examples_name_its_inputs(recipe: Recipe) -> None:
    for example in recipe.examples:
        for name, field in SLOT.findall(example):
            assert name in recipe.inputs
            assert not field or (recipe.inputs[name].kind == "notes" and field in SLOTS)
    assert all(wanted.of is None or wanted.of in recipe.inputs for wanted in recipe.inputs.values())
    assert recipe.subject in SUBJECTS


@ALL
def test_a_question_changes_nothing(recipe: Recipe) -> None:
    reads = all(TOOLS[tool].risk is Risk.READ_ONLY for tool in recipe.tools)
    assert reads == (recipe.answer is not None) or recipe.name == "open-note"


def test_no_two_recipes_share_an_example() -> None:
    said = Counter(
        text
        for recipe in packaged()
        for text in {SLOT.sub("{}", each).casefold().rstrip("?.") for each in recipe.examples}
    )
    assert [text for text, count in said.items() if count > 1] == []


def test_the_menu_is_small() -> None:
    folder = Path(__file__).parents[2] / "obsidian_agent" / "offline" / "recipes"
    assert len(packaged()) <= 85
    assert (
        sum(len(file.read_text(encoding="utf-8").splitlines()) for file in folder.glob("*.json"))
        <= 2500
    )


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


def test_a_macro_is_a_recipe_too() -> None:
    plan = {
        "version": "1.0",
        "goal": "Make ${name}",
        "riskLevel": "writes",
        "parameters": {"name": {"description": "Name"}, "selection": {}},
        "steps": [
            {
                "id": "a",
                "tool": "vault.createFile",
                "args": {"path": "${name|filename}.md", "content": "${selection}"},
            }
        ],
    }
    recipe = from_macro(
        Macro(
            "Weekly",
            ActionPlan.model_validate(plan),
            None,
            ("start the week {name}", "for {nobody}"),
        ),
        TOOLS,
    )
    assert (recipe.name, recipe.subject, recipe.description) == (
        "macro:Weekly",
        "Macros",
        "Make ${name}",
    )
    assert recipe.examples == ("Weekly", "Run Weekly", "Weekly for {name}", "start the week {name}")
    assert list(recipe.inputs) == ["name"]
    assert recipe.missing({}) == ("name",)
    filled = fill(recipe, {"name": "X"})
    assert filled.goal == "Make X"
    assert filled.steps[0].args["content"] == "${selection}"
