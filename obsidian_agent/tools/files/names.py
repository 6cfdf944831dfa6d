"""Names and places for files: of the note of a day, week, month, quarter or year, new names by a pattern, short names from titles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.filters import FilterContext, LinkWriter, ListTemplate
from obsidian_agent.tools.core.models import SparseOutput, ToolModel, Whole, path_of
from obsidian_agent.tools.core.moment import format_moment
from obsidian_agent.tools.core.tool import Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.paths.rules import clean_component, slug

Period = Literal["day", "week", "month", "quarter", "year"]
_MONTHS: Final = "January|February|March|April|May|June|July|August|September|October|November|December"
_FORMATS: Final[dict[Period, tuple[tuple[str, re.Pattern[str]], ...]]] = {
    "week": (
        ("gggg-[W]ww", re.compile(r"\d{4}-W\d{2}")),
        ("gggg[W]ww", re.compile(r"\d{4}W\d{2}")),
        ("gggg [W]ww", re.compile(r"\d{4} W\d{2}")),
        ("[Week] ww gggg", re.compile(r"Week \d{2} \d{4}")),
    ),
    "month": (
        ("YYYY-MM", re.compile(r"\d{4}-\d{2}")),
        ("YYYY-MM MMMM", re.compile(rf"\d{{4}}-\d{{2}} (?:{_MONTHS})")),
        ("MMMM YYYY", re.compile(rf"(?:{_MONTHS}) \d{{4}}")),
        ("YYYY MMMM", re.compile(rf"\d{{4}} (?:{_MONTHS})")),
    ),
    "quarter": (
        ("YYYY-[Q]Q", re.compile(r"\d{4}-Q[1-4]")),
        ("YYYY [Q]Q", re.compile(r"\d{4} Q[1-4]")),
        ("[Q]Q YYYY", re.compile(r"Q[1-4] \d{4}")),
    ),
    "year": (("YYYY", re.compile(r"(?:19|20)\d{2}")),),
}
"""How notes of a period are named, in Moment's tokens, the usual way first."""

_NAMED: Final[dict[Period, re.Pattern[str]]] = {
    "week": re.compile(r"\bweek(?:ly|s)?\b|\bwochen?\b", re.IGNORECASE),
    "month": re.compile(r"\bmonth(?:ly|s)?\b|\bmonate?\b", re.IGNORECASE),
    "quarter": re.compile(r"\bquarter(?:ly|s)?\b|\bquartale?\b", re.IGNORECASE),
    "year": re.compile(r"\byear(?:ly|s)?\b|\bannual\b|\bjahre?\b", re.IGNORECASE),
}
_TEMPLATE: Final = re.compile(r"template|vorlage", re.IGNORECASE)

_YEAR: Final = re.compile(r"\d{4}")


class NewNamesInput(ToolModel):
    items: list[Any] = Field(description="The files of another step, as vault.find gives them.")
    pattern: str = Field(
        default="{name}",
        min_length=1,
        description="The new name without extension: {name}, {index}, {mtimeMs|date:YYYY-MM-DD}, {frontmatter.KEY}.",
    )
    find: str | None = Field(default=None, min_length=1, description="A text to replace in the name first; case counts.")
    replace: str = ""


class NewName(ToolModel):
    path: str
    to: str


class NewNamesOutput(ToolModel):
    items: list[NewName] = Field(description="The files that get another name; the folder stays.")
    count: int


@tool("util.newNames", Risk.READ_ONLY)
def new_names(args: NewNamesInput, ctx: ToolContext) -> Proposal[NewNamesOutput]:
    """Other names for files by a pattern, to rename them with; those whose name would stay are left out."""
    template = ListTemplate(args.pattern, FilterContext(LinkWriter(ctx.view), ctx.run.now))
    made: list[NewName] = []
    for index, item in enumerate([item for item in args.items if item is not None], 1):
        path = parse(path_of(item), PathUse.READ)
        name = path.stem.replace(args.find, args.replace) if args.find is not None else path.stem
        fields = {**(item if isinstance(item, dict) else {}), "name": name, "folder": path.parent.name}
        filled = template.fill(fields, index).strip()
        if not filled:
            raise ToolError(f"{path} would have no name.", path=path.text)
        new = f"{clean_component(filled)}{path.suffix}"
        to = new if path.parent.is_root else f"{path.parent.text}/{new}"
        if to != path.text:
            made.append(NewName(path=path.text, to=to))
    return Proposal(NewNamesOutput(items=made, count=len(made)))


class SlugifyInput(ToolModel):
    title: str
    separator: str = "-"
    max_length: Whole | None = Field(default=None, ge=1)


class SlugifyOutput(ToolModel):
    slug: str


@tool("util.slugifyTitle", Risk.READ_ONLY)
def slugify_title(args: SlugifyInput, ctx: ToolContext) -> Proposal[SlugifyOutput]:
    """A short lower-case name made from a title."""
    return Proposal(SlugifyOutput(slug=slug(args.title, args.separator, args.max_length)))


class PeriodNoteInput(ToolModel):
    period: Period
    offset: Whole = Field(default=0, ge=-400, le=400, description="0 is the current one, 1 the next, -1 the last.")


class PeriodNoteOutput(SparseOutput):
    path: str = Field(
        description="Beside the notes of that kind there are and named like them, else in a folder for them, else in the root."
    )
    title: str
    day: str = Field(description="Its first day, YYYY-MM-DD.")
    template: str | None = Field(default=None, description="The one template whose name says that it is for them.")
    bare: bool = Field(description="Whether there is no template.")


class _Habit(NamedTuple):
    folder: str
    yearly: bool
    """Whether each year has a folder of its own below."""
    format: str


@tool("util.periodNote", Risk.READ_ONLY)
def period_note(args: PeriodNoteInput, ctx: ToolContext) -> Proposal[PeriodNoteOutput]:
    """Where the note of this day, week, month, quarter or year (or another one) belongs, its title, and its template if there is one."""
    if args.period == "day":
        return Proposal(_daily_note(ctx, int(args.offset)))
    notes = [entry.path for entry in ctx.view.walk(ROOT) if entry.kind == "file" and entry.path.is_note]
    folders = [entry.path for entry in ctx.view.walk(ROOT) if entry.kind == "folder"]
    habit = _habit(args.period, notes, folders)
    first = _first_day(args.period, ctx.run.now.date(), int(args.offset))
    moment = datetime(first.year, first.month, first.day, tzinfo=ctx.run.now.tzinfo)
    title = format_moment(moment, habit.format)
    parts = [
        part for part in (habit.folder, format_moment(moment, "gggg" if args.period == "week" else "YYYY") if habit.yearly else "") if part
    ]
    named = [
        path for path in notes if _NAMED[args.period].search(path.stem) and _TEMPLATE.search(path.text) and not _matching(args.period, path)
    ]
    template = named[0].text if len(named) == 1 else None
    path = "/".join([*parts, f"{title}.md"])
    return Proposal(PeriodNoteOutput(path=path, title=title, day=first.isoformat(), template=template, bare=template is None))


def _daily_note(ctx: ToolContext, offset: int) -> PeriodNoteOutput:
    """The note of a day, as the settings of Obsidian's daily notes have it."""
    settings = ctx.run.notes
    moment = ctx.run.now + timedelta(days=offset)
    name = format_moment(moment, settings.daily_format)
    template = None if settings.daily_template is None else settings.daily_template.strip("/").removesuffix(".md") + ".md"
    if template is not None and ctx.view.locate(parse(template, PathUse.READ)) is None:
        template = None
    path = "/".join(filter(None, [settings.daily_folder, f"{name}.md"]))
    title = name.rpartition("/")[2]
    return PeriodNoteOutput(path=path, title=title, day=moment.date().isoformat(), template=template, bare=template is None)


def _habit(period: Period, notes: Iterable[VaultPath], folders: Iterable[VaultPath]) -> _Habit:
    """The place and form that most of the notes of this kind have."""
    found: Counter[_Habit] = Counter()
    for path in notes:
        form = _matching(period, path)
        if form is not None and not _TEMPLATE.search(path.parent.text):
            yearly = bool(_YEAR.fullmatch(path.parent.name)) and path.parent.name in path.stem
            found[_Habit(path.parent.parent.text if yearly else path.parent.text, yearly, form)] += 1
    if found and not (period == "year" and len(found) > 1):
        return found.most_common(1)[0][0]
    named = [folder.text for folder in folders if _NAMED[period].search(folder.name)]
    return _Habit(named[0] if len(named) == 1 else "", False, _FORMATS[period][0][0])


def _matching(period: Period, path: VaultPath) -> str | None:
    return next((form for form, pattern in _FORMATS[period] if pattern.fullmatch(path.stem)), None)


def _first_day(period: Period, today: date, offset: int) -> date:
    """The first day of the period that lies so many periods away. A week is told by its Monday."""
    if period == "week":
        return today - timedelta(days=today.weekday()) + timedelta(weeks=offset)
    length = {"month": 1, "quarter": 3, "year": 12}[period]
    months = today.year * 12 + (today.month - 1) // length * length + offset * length
    if not 1 <= months // 12 <= 9999:
        raise ToolError("There is no such year.")
    return date(months // 12, months % 12 + 1, 1)
