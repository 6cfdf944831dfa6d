"""Tools that pick and order items of a list; they change nothing."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.base import Proposal, Risk, Tool, ToolContext, ToolModel


class ItemsOutput(ToolModel):
    items: list[Any]
    count: int


# --- util.filterItems ---------------------------------------------------------------------------------------------------------


class FilterItemsInput(ToolModel):
    items: list[Any]
    where: dict[str, Any] = Field(description="Field: the value it must have, or a list of values of which it must have one.")
    exclude: bool = Field(default=False, description="Keep the items that do not match.")


def _filter_items(args: FilterItemsInput, ctx: ToolContext) -> Proposal:
    kept = [item for item in args.items if item is not None and _matches(item, args.where) != args.exclude]
    return Proposal(ItemsOutput(items=kept, count=len(kept)))


def _matches(item: Any, where: dict[str, Any]) -> bool:
    if not isinstance(item, dict):
        raise ToolError("util.filterItems takes objects with fields.", hint="Give the items of another step, such as $steps.tasks.items.")
    return all(_fits(item.get(field), wanted) for field, wanted in where.items())


def _fits(value: Any, wanted: Any) -> bool:
    """Equal and of one kind: true is not 1."""
    if isinstance(wanted, list):
        return any(_fits(value, each) for each in wanted)
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted


FILTER_ITEMS = Tool(
    name="util.filterItems",
    summary="The items whose fields have these values, for example the open tasks: where {status: a blank}.",
    risk=Risk.READ_ONLY,
    input=FilterItemsInput,
    output=ItemsOutput,
    propose=_filter_items,
)
