"""The literal texts of a plan that a person may turn into parameters of a saved action."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from obsidian_agent.plan.model import ActionPlan

LONGEST = 200
"""Longer texts are content, not values to ask for."""


def literals(plan: ActionPlan) -> list[str]:
    """Short texts without references in the arguments of the steps, each once, in the order of the plan.

    Of a path its folders and its name count too: `Projects/A.md` offers `Projects/A.md` and `Projects`.
    """
    found: dict[str, None] = {}
    for step in plan.steps:
        for text in _strings(step.args):
            for part in _parts(text):
                found.setdefault(part)
    return list(found)


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _strings(item)
        case list():
            for item in value:
                yield from _strings(item)
        case _:
            return


def _parts(text: str) -> Iterator[str]:
    usable = bool(text.strip()) and len(text) <= LONGEST and "\n" not in text
    if usable and "$" not in text:
        yield text
    if usable and "/" in text:
        yield from (part for part in text.split("/")[:-1] if part and "$" not in part)
