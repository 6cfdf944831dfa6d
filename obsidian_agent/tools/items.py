"""Items that steps pass on, such as the files of a search: sort, group, add up, join to a text.

Fields are named as in templates: `path`, `frontmatter.status`. Items without the field come last
and are in the last group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final

from pydantic import Field

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools.core.filters import FilterContext, LinkWriter, ListTemplate
from obsidian_agent.tools.core.lookup import sort_key
from obsidian_agent.tools.core.models import Items, SparseOutput, ToolModel
from obsidian_agent.tools.core.tool import LongText, Proposal, Risk, ToolContext, tool

_NUMBER: Final = re.compile(r"[-−]?\d[\d.,'’  ]*")
_AFFIX: Final = re.compile(r"[^\W\d_]{0,4}[€$£¥%]?\.?", re.UNICODE)
_PROPERTIES: Final = "frontmatter"

_USUAL: Final = (
    "amount",
    "total",
    "sum",
    "price",
    "cost",
    "costs",
    "value",
    "betrag",
    "preis",
    "summe",
)
"""The fields to prefer if several are numbers and `by` is missing."""


class ItemsInput(ToolModel):
    items: list[Any] = Field(
        description="Items of another step, such as $steps.find.files; "
        "null ones (skipped instances) are omitted."
    )

    def present(self) -> list[Any]:
        """Return the items that are not null."""
        return [item for item in self.items if item is not None]


def field_value(item: Any, field: str | None) -> Any:
    """Return the value of a field (`a.b` for a nested one), or the item itself without a field.

    A missing value is `None`.
    """
    value = item
    for part in field.split(".") if field else ():
        value = value.get(part) if isinstance(value, dict) else None
    return value


class SortItemsInput(ItemsInput):
    by: str | None = Field(
        default=None,
        description="A field such as name or frontmatter.year; by default the items themselves.",
    )
    descending: bool = False


@tool("util.sortItems", Risk.READ_ONLY)
def sort_items(args: SortItemsInput, ctx: ToolContext) -> Proposal[Items[Any]]:
    """Sort items by a field, numbers before texts; items without it come last."""
    keys = [(sort_key(field_value(item, args.by)), item) for item in args.present()]
    known = sorted(
        ((key, item) for key, item in keys if key is not None),
        key=itemgetter(0),
        reverse=args.descending,
    )
    ordered = [item for _, item in known] + [item for key, item in keys if key is None]
    return Proposal(Items.of(ordered))


class FieldValuesInput(ItemsInput):
    by: str = Field(min_length=1, description="The field to collect, such as path.")


@tool("util.fieldValues", Risk.READ_ONLY)
def field_values(args: FieldValuesInput, ctx: ToolContext) -> Proposal[Items[Any]]:
    """Collect the values of one field of all items, for example their paths.

    Lists are joined, missing values skipped.
    """
    values = [value for item in args.present() for value in _members(field_value(item, args.by))]
    return Proposal(Items.of(values))


def _members(value: Any) -> Iterator[Any]:
    """Yield the members of a list, or a single value unless it is `None`."""
    if isinstance(value, list):
        yield from value
    elif value is not None:
        yield value


class GroupItemsInput(ItemsInput):
    by: str = Field(
        min_length=1, description="A field; an item with a list is in the group of each value."
    )
    rest_name: str = Field(
        default="Other",
        alias="none",
        description="The name of the group of items without a value, which comes last.",
    )
    template: LongText | None = Field(
        default=None, description="One item as in util.formatList; then each group has a text."
    )
    separator: str = "\n"


class ItemGroup(ToolModel):
    key: str
    items: list[Any]
    count: int
    text: str = Field(
        description="The items formatted by the template and joined; empty without a template."
    )


class GroupMember(ToolModel):
    key: str = Field(description="The name of its first group.")
    item: Any


class GroupItemsOutput(ToolModel):
    groups: list[ItemGroup]
    members: list[GroupMember] = Field(
        description="Each item that has a value, once, in the order of the items."
    )
    count: int


@tool("util.groupItems", Risk.READ_ONLY)
def group_items(args: GroupItemsInput, ctx: ToolContext) -> Proposal[GroupItemsOutput]:
    """Group items by the values of a field, in alphabetical order.

    With a template each group has the text of its items.
    """
    groups: dict[str, tuple[str, list[Any]]] = {}
    rest: list[Any] = []
    members: list[GroupMember] = []
    for item in args.present():
        names = list(
            dict.fromkeys(filter(None, map(_group_name, _members(field_value(item, args.by)))))
        )
        for name in names:
            groups.setdefault(name.casefold(), (name, []))[1].append(item)
        if names:
            members.append(GroupMember(key=names[0], item=item))
        else:
            rest.append(item)
    ordered = [groups[key] for key in sorted(groups)] + ([(args.rest_name, rest)] if rest else [])
    template = (
        ListTemplate(args.template, FilterContext(LinkWriter(ctx.view), ctx.run.now))
        if args.template is not None
        else None
    )
    result = [
        ItemGroup(
            key=name,
            items=items,
            count=len(items),
            text=""
            if template is None
            else args.separator.join(
                template.fill(item, index) for index, item in enumerate(items)
            ),
        )
        for name, items in ordered
    ]
    return Proposal(GroupItemsOutput(groups=result, members=members, count=len(result)))


def _group_name(value: Any) -> str:
    """Return a value as the name of its group; a link counts as its display text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value).strip()
    if text.startswith("[[") and text.endswith("]]"):
        target, bar, display = text[2:-2].partition("|")
        return (display if bar else target.rpartition("/")[2]).strip()
    return text


class FormatListInput(ToolModel):
    items: list[Any]
    template: LongText = Field(
        description="One item: {field}, {field|filter}, {item} and {index} (from 0), "
        "such as - {path|link}"
    )
    separator: str = "\n"


class FormatListOutput(ToolModel):
    text: str
    count: int


@tool("util.formatList", Risk.READ_ONLY)
def format_list(args: FormatListInput, ctx: ToolContext) -> Proposal[FormatListOutput]:
    """Join items into one text; null items (skipped instances) are omitted."""
    template = ListTemplate(args.template, FilterContext(LinkWriter(ctx.view), ctx.run.now))
    texts = [
        template.fill(item, index) for index, item in enumerate(args.items) if item is not None
    ]
    return Proposal(FormatListOutput(text=args.separator.join(texts), count=len(texts)))


class SummarizeInput(ItemsInput):
    by: str | None = Field(
        default=None,
        min_length=1,
        description="A field such as frontmatter.amount; "
        "by default the only property that is a number in most items.",
    )


class Measured(ToolModel):
    of: Any = Field(description="The item.")
    value: int | float


class SummarizeOutput(SparseOutput):
    by: str
    count: int = Field(description="The number of items that have a number there.")
    items: list[Measured] = Field(
        description="Those items with their numbers, in the order of the items."
    )
    sum: int | float
    average: int | float | None = Field(default=None, description="Rounded to two decimals.")
    least: list[Measured] = Field(description="The items with the smallest number.")
    most: list[Measured] = Field(description="The items with the largest number.")
    smallest: int | float | None = None
    largest: int | float | None = None
    missing: list[Any] = Field(description="The items without a number there.")


@tool("util.summarize", Risk.READ_ONLY)
def summarize(args: SummarizeInput, ctx: ToolContext) -> Proposal[SummarizeOutput]:
    """Compute the sum, average, least and most of a numeric field, such as a property of notes."""
    items = args.present()
    by = args.by or _guess_field(items)
    measured: list[tuple[Any, Decimal]] = []
    missing: list[Any] = []
    for item in items:
        number = parse_number(field_value(item, by))
        if number is None:
            missing.append(item)
        else:
            measured.append((item, number))
    numbers = [number for _, number in measured]
    total = sum(numbers, Decimal(0))
    output = SummarizeOutput(
        by=by.removeprefix(f"{_PROPERTIES}."),
        count=len(measured),
        items=_measured(measured),
        sum=_as_number(total),
        average=_as_number(round(total / len(numbers), 2)) if numbers else None,
        least=_measured((item, number) for item, number in measured if number == min(numbers)),
        most=_measured((item, number) for item, number in measured if number == max(numbers)),
        smallest=_as_number(min(numbers)) if numbers else None,
        largest=_as_number(max(numbers)) if numbers else None,
        missing=missing,
    )
    message = f"{len(missing)} of {len(items)} items have no number in {output.by} and are skipped."
    has_gaps = bool(missing and measured)
    return Proposal(output, warnings=(Problem("ITEMS_LEFT", message),) if has_gaps else ())


def _measured(measured: Iterable[tuple[Any, Decimal]]) -> list[Measured]:
    return [Measured(of=item, value=_as_number(number)) for item, number in measured]


def _as_number(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def parse_number(value: Any) -> Decimal | None:
    """Return a number, or the only number of a text such as "€ 1,250.00" or "12 kg", or `None`."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return Decimal(str(value))
    if not isinstance(value, str):
        return None
    match = _NUMBER.search(value)
    if match is None:
        return None
    before, after = value[: match.start()].strip(), value[match.end() :].strip()
    if not (_AFFIX.fullmatch(before) and _AFFIX.fullmatch(after)):
        return None
    return _parse_decimal(match[0].strip(" .,'’").replace("−", "-"))


def _parse_decimal(text: str) -> Decimal:
    """Parse a number with separators.

    Of several kinds of separators the last one is the decimal point. A single kind is, unless it
    occurs twice or is a comma before three digits.
    """
    text = re.sub(r"['’\s]", "", text)
    last = max(text.rfind("."), text.rfind(","))
    if last < 0:
        return Decimal(text)
    mark, decimals = text[last], text[last + 1 :]
    both = "." in text and "," in text
    thousands = not both and (text.count(mark) > 1 or (mark == "," and len(decimals) == 3))
    whole = re.sub(r"[.,]", "", text[:last])
    return Decimal(whole + decimals) if thousands else Decimal(f"{whole}.{decimals}")


def _guess_field(items: list[Any]) -> str:
    """Return the property that is a number in most items.

    Raise ToolError if there is none, or if there are several candidates.
    """
    counts: dict[str, int] = {}
    for item in items:
        properties = item.get(_PROPERTIES) if isinstance(item, dict) else None
        for name, value in properties.items() if isinstance(properties, dict) else ():
            if isinstance(value, int | float) and not isinstance(value, bool):
                counts[name] = counts.get(name, 0) + 1
    often = [name for name, count in counts.items() if count * 2 >= len(items)] or list(counts)
    usual = [name for name in often if name.casefold() in _USUAL]
    chosen = often if len(often) == 1 else usual
    if len(chosen) != 1:
        names = ", ".join(sorted(often))
        message = (
            f"Several properties are numbers: {names}." if often else "No property is a number."
        )
        raise ToolError(message, code="ARGUMENT_INVALID", hint="Name the property.")
    return f"{_PROPERTIES}.{chosen[0]}"
