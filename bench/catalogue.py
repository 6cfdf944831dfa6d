"""The page of everything that works without a model: docs/recipes.md."""

from __future__ import annotations

from collections.abc import Iterator

from obsidian_agent.offline.note_set import KEYS, STATES
from obsidian_agent.offline.recipe import SUBJECTS, packaged

_INTRODUCTION = f"""# Recipes: everything that works without a model

Written by `make docs` from the recipes that ship with the program; a test compares them.

A recipe is a plan with inputs. Choose one from the menu, name it
(`obsidian-agent recipe run NAME --param INPUT=VALUE`), or write a sentence: one that is an example
below, word for word, is certain, with names of the vault as they are and free text in quotes. Any
other sentence gets the three likeliest recipes, filled in with the names that it contains.

Where a recipe asks for notes, answer with a note, several separated by commas, a folder, a `#tag`,
`*` for all, or a search such as
`tag:#done folder:Projects [rating>=4] [due:] changed:<2026-01-01 -folder:Projects/Old`.
Fields: {", ".join(f"`{key}:`" for key in KEYS)}, and `[property]`, `[property:value]`,
`[property>=value]`, `[property:]` (missing).
`is:` takes {", ".join(STATES)}; `-` in front excludes.
"""


def page() -> str:
    """Return the page, with a table for each subject."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    for subject in SUBJECTS:
        recipes = [recipe for recipe in packaged() if recipe.subject == subject]
        if recipes:
            yield f"## {subject}\n"
            yield "| name | does | inputs | examples |\n|---|---|---|---|"
            for recipe in recipes:
                inputs = ", ".join(
                    f"{name}{'' if wanted.needed else '?'}"
                    for name, wanted in recipe.inputs.items()
                )
                cells = (
                    f"`{recipe.name}`",
                    recipe.description,
                    inputs,
                    "<br>".join(recipe.examples),
                )
                yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
            yield ""
