"""Tools that order, group and thin out items of a list; they change nothing.

Fields are named as in templates: `path`, `frontmatter.status`. Items without the field sort last and are in the last group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from obsidian_agent.tools.core.filters import FilterContext, LinkWriter, ListTemplate
from obsidian_agent.tools.core.tool import LongText, Proposal, Risk, ToolContext, ToolModel, tool


class ItemsOutput(ToolModel):
    items: list[Any]
    count: int


class ItemsInput(ToolModel):
    items: list[Any] = Field(description="Items of another step, such as $steps.find.files; null ones (skipped instances) are left out.")

    def present(self) -> list[Any]:
        """The items that are not null."""
        return [item for item in self.items if item is not None]


def field_value(item: Any, field: str | None) -> Any:
    """The value of a field, `a.b` for one within another; the item itself for None; None when it is missing."""
    value = item
    for part in field.split(".") if field else ():
        value = value.get(part) if isinstance(value, dict) else None
    return value


class SortItemsInput(ItemsInput):
    by: str | None = Field(default=None, description="A field such as name or frontmatter.year; the items themselves when absent.")
    descending: bool = False


@tool("util.sortItems", Risk.READ_ONLY)
def sort_items(args: SortItemsInput, ctx: ToolContext) -> Proposal[ItemsOutput]:
    """Items in the order of a field, numbers before texts, those without it last."""
    items = args.present()
    known = [item for item in items if _order(field_value(item, args.by)) is not None]
    known.sort(key=lambda item: _order(field_value(item, args.by)) or (0, 0.0, ""), reverse=args.descending)
    ordered = known + [item for item in items if _order(field_value(item, args.by)) is None]
    return Proposal(ItemsOutput(items=ordered, count=len(ordered)))


def _order(value: Any) -> tuple[int, float, str] | None:
    """Numbers before texts, texts without regard to case; a list by its first value."""
    if isinstance(value, list):
        value = value[0] if value else None
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0, float(value), ""
    return 1, 0.0, str(value).casefold()


class FieldValuesInput(ItemsInput):
    by: str = Field(min_length=1, description="The field whose values are wanted, such as path.")


@tool("util.fieldValues", Risk.READ_ONLY)
def field_values(args: FieldValuesInput, ctx: ToolContext) -> Proposal[ItemsOutput]:
    """The values of one field of all items, for example their paths; lists are joined, missing ones left out."""
    values = [value for item in args.present() for value in _each(field_value(item, args.by))]
    return Proposal(ItemsOutput(items=values, count=len(values)))


def _each(value: Any) -> Iterator[Any]:
    """The members of a list, the value itself, nothing for None."""
    if isinstance(value, list):
        yield from value
    elif value is not None:
        yield value


class GroupItemsInput(ItemsInput):
    by: str = Field(min_length=1, description="A field; an item with a list of values is in the group of each.")
    none: str = Field(default="Other", description="The name of the group of items without a value, which comes last.")
    template: LongText | None = Field(default=None, description="One item as in util.formatList; then each group has a text.")
    separator: str = "\n"


class ItemGroup(ToolModel):
    key: str
    items: list[Any]
    count: int
    text: str = Field(description="The items as the template says, joined; empty without a template.")


class GroupMember(ToolModel):
    key: str = Field(description="The name of its first group.")
    item: Any


class GroupItemsOutput(ToolModel):
    groups: list[ItemGroup]
    members: list[GroupMember] = Field(description="Each item that has a value, once, in the order of the items.")
    count: int


@tool("util.groupItems", Risk.READ_ONLY)
def group_items(args: GroupItemsInput, ctx: ToolContext) -> Proposal[GroupItemsOutput]:
    """Items by the values of a field, groups in alphabetical order, each with the text of its items when a template is given."""
    groups: dict[str, tuple[str, list[Any]]] = {}
    rest: list[Any] = []
    members: list[GroupMember] = []
    for item in args.present():
        names = list(dict.fromkeys(filter(None, map(_group_name, _each(field_value(item, args.by))))))
        for name in names:
            groups.setdefault(name.casefold(), (name, []))[1].append(item)
        if names:
            members.append(GroupMember(key=names[0], item=item))
        else:
            rest.append(item)
    ordered = [groups[key] for key in sorted(groups)] + ([(args.none, rest)] if rest else [])
    template = ListTemplate(args.template, FilterContext(LinkWriter(ctx.view), ctx.run.now)) if args.template is not None else None
    made = [
        ItemGroup(
            key=name,
            items=items,
            count=len(items),
            text="" if template is None else args.separator.join(template.fill(item, index) for index, item in enumerate(items)),
        )
        for name, items in ordered
    ]
    return Proposal(GroupItemsOutput(groups=made, members=members, count=len(made)))


def _group_name(value: Any) -> str:
    """A value as the name of its group; a link as the text that it shows."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value).strip()
    if text.startswith("[[") and text.endswith("]]"):
        target, bar, shown = text[2:-2].partition("|")
        return (shown if bar else target.rpartition("/")[2]).strip()
    return text


class FormatListInput(ToolModel):
    items: list[Any]
    template: LongText = Field(description="One item: {field}, {field|filter}, {item} and {index} (from 0), such as - {path|link}")
    separator: str = "\n"


class FormatListOutput(ToolModel):
    text: str
    count: int


@tool("util.formatList", Risk.READ_ONLY)
def format_list(args: FormatListInput, ctx: ToolContext) -> Proposal[FormatListOutput]:
    """Join items into one text; items that are null (skipped instances) are left out."""
    template = ListTemplate(args.template, FilterContext(LinkWriter(ctx.view), ctx.run.now))
    texts = [template.fill(item, index) for index, item in enumerate(args.items) if item is not None]
    return Proposal(FormatListOutput(text=args.separator.join(texts), count=len(texts)))
