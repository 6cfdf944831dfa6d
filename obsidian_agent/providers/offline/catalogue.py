"""What can be asked for without a model, as a page: `python -m obsidian_agent.providers.offline.catalogue > docs/recipes.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from obsidian_agent.providers.offline.recipe import Recipe, packaged

_INTRODUCTION = """# Recipes: what can be asked for without a model

Made from the recipes that ship, by `python -m obsidian_agent.providers.offline.catalogue`; a test keeps it up to date.

The sentences are examples. Word order, politeness, plurals and small slips don't matter, and names may stand bare, in quotes or as
[[wikilinks]]. Notes can be described instead of named: “all notes tagged #x in Projects except the drafts”, “active projects with a
deadline before May”, “daily notes from 3 to 9 March”, “my books with a rating of 4 or more”, “Q1 to Q4 2022”, “this note”. What a vault
calls its things counts: folders, tags, aliases and values of properties are recognised. What is not certain is asked, never guessed.
"""


def page() -> str:
    """The page, with a table each for what changes notes, what answers questions, and what is refused."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    groups = (
        ("Changes", [recipe for recipe in packaged() if recipe.answer is None and recipe.refusal is None]),
        ("Questions", [recipe for recipe in packaged() if recipe.answer is not None]),
        ("Refused", [recipe for recipe in packaged() if recipe.refusal is not None]),
    )
    for title, recipes in groups:
        yield f"## {title}\n"
        yield "| recipe | does | for example |\n|---|---|---|"
        yield from (_row(recipe) for recipe in recipes)
        yield ""


def _row(recipe: Recipe) -> str:
    cells = (recipe.title, recipe.description, f"“{recipe.example}”")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.stdout.write(page())
