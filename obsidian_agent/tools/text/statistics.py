"""`util.summarize`: sum, average, least and most of a field that holds numbers.

`vault.countWords`: words and characters of notes, as Obsidian counts them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from pydantic import Field

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools.core.lookup import SparseOutput
from obsidian_agent.tools.core.tool import Proposal, Risk, ToolContext, ToolModel, tool
from obsidian_agent.tools.text.lists import ItemsInput, field_value

_NUMBER: Final = re.compile(r"[-−]?\d[\d.,'’  ]*")
_AFFIX: Final = re.compile(r"[^\W\d_]{0,4}[€$£¥%]?\.?", re.UNICODE)
_PROPERTIES: Final = "frontmatter"
_USUAL: Final = ("amount", "total", "sum", "price", "cost", "costs", "value", "betrag", "preis", "summe")
"""Fields that are meant where several are numbers and none is named."""


class SummarizeInput(ItemsInput):
    by: str | None = Field(
        default=None, min_length=1, description="A field such as frontmatter.amount; without it the one property that is a number in most."
    )


class Measured(ToolModel):
    of: Any = Field(description="The item.")
    value: int | float


class SummarizeOutput(SparseOutput):
    by: str
    count: int = Field(description="The number of items that have a number there.")
    items: list[Measured] = Field(description="Those items with their numbers, in the order of the items.")
    sum: int | float
    average: int | float | None = Field(default=None, description="Rounded to two places.")
    least: list[Measured] = Field(description="The items with the smallest number.")
    most: list[Measured] = Field(description="The items with the largest number.")
    smallest: int | float | None = None
    largest: int | float | None = None
    missing: list[Any] = Field(description="The items without a number there.")


@tool("util.summarize", Risk.READ_ONLY)
def summarize(args: SummarizeInput, ctx: ToolContext) -> Proposal[SummarizeOutput]:
    """The sum, average, least and most of a field that is a number in items, such as a property of notes."""
    items = args.present()
    by = args.by or _guessed(items)
    measured: list[tuple[Any, Decimal]] = []
    missing: list[Any] = []
    for item in items:
        number = number_of(field_value(item, by))
        if number is None:
            missing.append(item)
        else:
            measured.append((item, number))
    numbers = [number for _, number in measured]
    total = sum(numbers, Decimal(0))
    output = SummarizeOutput(
        by=by.removeprefix(f"{_PROPERTIES}."),
        count=len(measured),
        items=_told(measured),
        sum=_plain(total),
        average=_plain(round(total / len(numbers), 2)) if numbers else None,
        least=_told((item, number) for item, number in measured if number == min(numbers)),
        most=_told((item, number) for item, number in measured if number == max(numbers)),
        smallest=_plain(min(numbers)) if numbers else None,
        largest=_plain(max(numbers)) if numbers else None,
        missing=missing,
    )
    left = f"{len(missing)} of {len(items)} items have no number in {output.by} and are left out."
    return Proposal(output, warnings=(Problem("ITEMS_LEFT", left),) if missing and measured else ())


def _told(measured: Iterable[tuple[Any, Decimal]]) -> list[Measured]:
    return [Measured(of=item, value=_plain(number)) for item, number in measured]


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def number_of(value: Any) -> Decimal | None:
    """A number, or the one number of a text such as "€ 1,250.00" or "12 kg"; None for all else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return Decimal(str(value))
    if not isinstance(value, str):
        return None
    found = _NUMBER.search(value)
    if found is None:
        return None
    before, after = value[: found.start()].strip(), value[found.end() :].strip()
    if not (_AFFIX.fullmatch(before) and _AFFIX.fullmatch(after)):
        return None
    return _decimal(found[0].strip(" .,'’").replace("−", "-"))


def _decimal(text: str) -> Decimal:
    """Of several marks the last is that of the fraction; a single one is, unless three digits follow a comma or it stands twice."""
    text = re.sub(r"['’\s]", "", text)
    last = max(text.rfind("."), text.rfind(","))
    if last < 0:
        return Decimal(text)
    mark, behind = text[last], text[last + 1 :]
    both = "." in text and "," in text
    thousands = not both and (text.count(mark) > 1 or (mark == "," and len(behind) == 3))
    whole = re.sub(r"[.,]", "", text[:last])
    return Decimal(whole + behind) if thousands else Decimal(f"{whole}.{behind}")


def _guessed(items: list[Any]) -> str:
    """The property that most items have as a number. ToolError when there is none, or when it could be several."""
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
        message = f"The numbers could be those of {names}." if often else "None of the properties is a number."
        raise ToolError(message, code="ARGUMENT_INVALID", hint="Say which property is meant.")
    return f"{_PROPERTIES}.{chosen[0]}"
