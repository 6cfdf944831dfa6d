"""Questions without a model: a plan that only reads, run as a dry run, and its outputs put into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from obsidian_agent.agent.events import Answer, TurnFailed
from obsidian_agent.errors import ToolError
from obsidian_agent.plan.binding import bind
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.preview import preview
from obsidian_agent.plan.validate import validate
from obsidian_agent.providers.offline.recipe import Answer as Wording
from obsidian_agent.tools.base import Risk, RunContext, Tool
from obsidian_agent.tools.filters import FilterContext, text_of
from obsidian_agent.tools.linktext import LinkWriter
from obsidian_agent.tools.templates import ListTemplate
from obsidian_agent.vault.view import VaultView

MOST_LINES = 200
"""Lines of a list in an answer; of what is more, the number is told."""


@dataclass(frozen=True, slots=True)
class Asking:
    """What an answer is made from: the vault, the run's context, the tools, and how values of the question read."""

    view: VaultView
    context: RunContext
    tools: Mapping[str, Tool]
    shown: Mapping[str, str]


def answer(plan: ActionPlan, wording: Wording, asking: Asking) -> Answer | TurnFailed:
    """The answer to a question, with the notes that it rests on. A plan that would change anything is no question."""
    checked = validate(plan.to_json(), asking.tools, Policy())
    if checked.plan is None:
        return TurnFailed(checked.problems[0], checked.problems)
    if any(asking.tools[step.tool].risk is not Risk.READ_ONLY for step in checked.plan.steps):
        raise ValueError(f"the plan of a question changes something: {plan.goal}")
    bound = bind(checked.plan, {})
    done = preview(checked, asking.tools, asking.view, replace(asking.context, params={**asking.context.params, **bound.values}))
    if done.errors:
        return TurnFailed(done.errors[0], done.errors)
    items = _items(_at(done.outputs, wording.items, asking.shown))
    counted = _at(done.outputs, wording.count, asking.shown) if wording.count else len(items)
    text = wording.none if not counted else wording.one if counted == 1 and wording.one else wording.some
    heading = _filled(text, asking.shown, counted)
    lines = _lines(items, wording.item, asking) if counted and wording.item else []
    return Answer("\n".join([heading, *lines]), _sources(items, wording.sources, asking.shown) if wording.sources else ())


def _lines(items: list[Any], template: str | None, asking: Asking) -> list[str]:
    if template is None:
        return []
    item = ListTemplate(template, FilterContext(LinkWriter(asking.view), asking.context.now))
    lines = [item.fill(each, index) for index, each in enumerate(items[:MOST_LINES])]
    return lines + ([f"… and {len(items) - MOST_LINES} more."] if len(items) > MOST_LINES else [])


def _sources(items: list[Any], field: str, shown: Mapping[str, str]) -> tuple[str, ...]:
    """The paths of the notes, each once; `${name}` is the note of a parameter."""
    if field.startswith("${"):
        return (shown[field[2:-1]],)
    found: dict[str, None] = {}
    for item in items:
        value = item.get(field) if isinstance(item, dict) else item if field == "item" else None
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, dict):
                path = path.get("path")
            if isinstance(path, str):
                found[path] = None
    return tuple(found)


def _items(value: Any) -> list[Any]:
    """A list as it is; of anything else a list of one, of nothing an empty one."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [{"key": key, "value": each} for key, each in value.items()]
    return [] if value is None or value == "" else [value]


def _at(outputs: Mapping[str, Any], place: str, shown: Mapping[str, str]) -> Any:
    """The value at a place such as `find.files`, where `<<name>>` is the value of a parameter; None when there is none."""
    value: Any = outputs
    for part in place.split("."):
        key = shown.get(part.strip("<>"), part) if part.startswith("<<") else part
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _filled(text: str, shown: Mapping[str, str], count: Any) -> str:
    try:
        made = text.replace("{count}", text_of(count))
    except ToolError:
        made = text
    for name, said in shown.items():
        made = made.replace(f"${{{name}}}", said)
    return made
