from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from typing import Any

import pytest
from pydantic import ValidationError

from obsidian_agent.providers.offline.recipe import RECIPE_NAMES, Recipe, packaged

PLAN = {"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": []}


def recipe(**fields: Any) -> dict[str, Any]:
    return {
        "name": "x",
        "title": "X",
        "description": "Does x.",
        "phrases": ["do {a}"],
        "parameters": {"a": {"kind": "text", "description": "A"}},
        "plan": PLAN,
    } | fields


def test_every_file_is_listed_and_named_after_its_recipe():
    folder = resources.files("obsidian_agent.providers.offline").joinpath("recipes")
    files = sorted(file.name.removesuffix(".json") for file in folder.iterdir() if file.name.endswith(".json"))
    assert files == sorted(RECIPE_NAMES) == list(RECIPE_NAMES)
    assert tuple(each.name for each in packaged()) == RECIPE_NAMES


def test_every_recipe_says_what_it_does_in_one_line():
    for each in packaged():
        assert each.description.endswith(".")
        assert "\n" not in each.description + each.title
        assert all(parameter.description for parameter in each.parameters.values())


def test_only_deleting_is_destructive():
    deleting = {each.name for each in packaged() if "vault.delete" in json.dumps([each.plan, [variant.plan for variant in each.variants]])}
    assert deleting == {each.name for each in packaged() if each.destructive}


@pytest.mark.parametrize(
    "flaw",
    [
        {"phrases": []},
        {"phrases": ["do {b}"]},
        {"phrases": ["do (a"]},
        {"plan": None},
        {"refusal": {"code": "X", "message": "no"}},
        {"parameters": {"a": {"kind": "text", "description": "A", "of": "nobody"}}},
        {"parameters": {"a": {"kind": "spell", "description": "A"}}},
        {"autoRun": True},
        {"name": "Not A Name"},
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(flaw):
    with pytest.raises(ValidationError):
        Recipe.model_validate(recipe(**flaw))


def test_the_first_variant_whose_needs_are_met_is_taken():
    plans = [{**PLAN, "goal": str(number)} for number in range(3)]
    made = Recipe.model_validate(
        recipe(plan=None, variants=[{"requires": ["selection"], "plan": plans[0]}, {"given": ["a"], "plan": plans[1]}, {"plan": plans[2]}])
    )
    assert made.plan_for(frozenset({"selection"}), frozenset({"a"})) == plans[0]
    assert made.plan_for(frozenset(), frozenset({"a"})) == plans[1]
    assert made.plan_for(frozenset({"activeFile"}), frozenset()) == plans[2]


def test_importing_the_package_reads_no_recipe():
    code = "import sys, obsidian_agent.providers.offline.recipe as r; print(r.packaged.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
