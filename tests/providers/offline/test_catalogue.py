from __future__ import annotations

from pathlib import Path

import pytest

from obsidian_agent.providers.offline.catalogue import page
from obsidian_agent.providers.offline.matcher import match
from obsidian_agent.providers.offline.phrases import parse
from obsidian_agent.providers.offline.recipe import packaged

PAGE = Path(__file__).parents[3] / "docs" / "recipes.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m obsidian_agent.providers.offline.catalogue > docs/recipes.md"


@pytest.mark.parametrize("recipe", packaged(), ids=lambda recipe: recipe.name)
def test_every_example_is_understood(index, around, recipe):
    found = match(recipe.example, packaged(), index, around)
    assert found
    assert found[0].recipe.name == recipe.name
    assert found[0].sure or all(parse(phrase).vague for phrase in recipe.phrases)
