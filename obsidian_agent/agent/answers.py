"""Questions without a model: a plan that only reads, run as a dry run, and its outputs put into words.

The first line says what was looked for and how much of it there is: an answer is about the question that was understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from obsidian_agent.agent.events import Answer, TurnFailed
from obsidian_agent.errors import PlanError
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.recipe import AnswerFrom
from obsidian_agent.plan.flags import Policy
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.preview import dry_run
from obsidian_agent.tools.core.filters import FilterContext, LinkWriter, ListTemplate, text_of
from obsidian_agent.tools.core.tool import Tool

MOST_LINES = 200
"""Lines of a list in an answer; of what is more, the number is told."""


def answer(
    plan: ActionPlan, wording: AnswerFrom, shown: Mapping[str, str], around: Surroundings, tools: Mapping[str, Tool]
) -> Answer | TurnFailed:
    """The answer to a question, with the notes that it rests on; `shown` are its values as text. Such a plan may change nothing."""
    try:
        done = dry_run(plan.to_json(), tools, Policy(allow_writes=False), around.view, around.context)
    except PlanError as error:
        return TurnFailed(error.problems[0], error.problems)
    if done.errors:
        return TurnFailed(done.errors[0], done.errors)
    items = _items(value_at(done.outputs, wording.items, shown))
    count = value_at(done.outputs, wording.count, shown) if wording.count else len(items)
    if not items and not count:
        return Answer(f"{plan.goal}: nothing found.")
    lines = _lines(items, wording.item, around) if wording.item else []
    return Answer("\n".join([f"{plan.goal}: {text_of(count)}", *lines]), _sources(items, wording.sources, shown) if wording.sources else ())


def _lines(items: list[Any], template: str, around: Surroundings) -> list[str]:
    item = ListTemplate(template, FilterContext(LinkWriter(around.view), around.context.now))
    lines = [item.fill(each, index) for index, each in enumerate(items[:MOST_LINES])]
    return lines + ([f"… and {len(items) - MOST_LINES} more."] if len(items) > MOST_LINES else [])


def _sources(items: list[Any], field: str, shown: Mapping[str, str]) -> tuple[str, ...]:
    """The paths of the notes, each once; `${name}` is the note of a parameter."""
    if field.startswith("${"):
        return (shown[field[2:-1]],)
    found: dict[str, None] = {}
    for item in items:
        value = item.get(field) if isinstance(item, dict) else None
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, dict):
                path = path.get("path")
            if isinstance(path, str):
                found[path] = None
    return tuple(found)


def _items(value: Any) -> list[Any]:
    """A list as it is; of an object its fields, of anything else a list of one, of nothing an empty one."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [{"key": key, "value": each} for key, each in value.items()]
    return [] if value is None or value == "" else [value]


def value_at(outputs: Mapping[str, Any], place: str, shown: Mapping[str, str]) -> Any:
    """The value at a place such as `find.files`, where `${name}` is the value of a parameter; None when there is none."""
    value: Any = outputs
    for part in place.split("."):
        key = shown.get(part[2:-1], part) if part.startswith("${") else part
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
