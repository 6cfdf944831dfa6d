"""Periodic notes: their paths, and those that exist, as the settings and names of the vault say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Final, Literal, NamedTuple

from pydantic import Field

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools.core.models import SparseOutput, ToolModel, Whole
from obsidian_agent.tools.core.moment import format_moment
from obsidian_agent.tools.core.tool import Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.paths.rules import display_name

Period = Literal["day", "week", "month", "quarter", "year"]

_MONTHS: Final = (
    "January|February|March|April|May|June|July|August|September|October|November|December"
)

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
"""The names of periodic notes in Moment.js tokens, the most common first."""

_NAMED: Final[dict[Period, re.Pattern[str]]] = {
    "week": re.compile(r"\bweek(?:ly|s)?\b|\bwochen?\b", re.IGNORECASE),
    "month": re.compile(r"\bmonth(?:ly|s)?\b|\bmonate?\b", re.IGNORECASE),
    "quarter": re.compile(r"\bquarter(?:ly|s)?\b|\bquartale?\b", re.IGNORECASE),
    "year": re.compile(r"\byear(?:ly|s)?\b|\bannual\b|\bjahre?\b", re.IGNORECASE),
}

_TEMPLATE: Final = re.compile(r"template|vorlage", re.IGNORECASE)

_YEAR: Final = re.compile(r"\d{4}")

LONGEST_GAP: Final = 3660
"""The periods before the current one in which an existing note is searched."""


class PeriodNoteInput(ToolModel):
    period: Period
    offset: Whole = Field(
        default=0, ge=-400, le=400, description="0 is the current one, 1 the next, -1 the last."
    )


class PeriodNoteOutput(SparseOutput):
    path: str = Field(
        description="Next to the existing notes of that kind and named like them, "
        "else in a folder for them, else in the root."
    )
    title: str
    day: str = Field(description="Its first day, YYYY-MM-DD.")
    template: str | None = Field(
        default=None, description="The only template whose name matches the period."
    )
    bare: bool = Field(description="Whether there is no template.")


class PeriodHabit(NamedTuple):
    """The folder and the format of the notes of one kind of period."""

    folder: str
    yearly: bool
    """True if each year has a subfolder of its own."""
    format: str


@tool("util.periodNote", Risk.READ_ONLY)
def period_note(args: PeriodNoteInput, ctx: ToolContext) -> Proposal[PeriodNoteOutput]:
    """Find the path and title of a periodic note (day, week, month, quarter or year).

    It is that of the current period or another one; the result includes its template if there is
    one.
    """
    return Proposal(Periods(args.period, ctx).note(int(args.offset)))


class PeriodNotesInput(ToolModel):
    period: Period
    count: Whole = Field(
        default=1, ge=1, le=400, description="The number of periods before the current one."
    )


class PeriodNotesOutput(ToolModel):
    files: list[PeriodNoteOutput] = Field(description="The oldest first.")
    count: int


@tool("util.periodNotes", Risk.READ_ONLY)
def period_notes(args: PeriodNotesInput, ctx: ToolContext) -> Proposal[PeriodNotesOutput]:
    """List the existing notes of the last days, weeks, months, quarters or years.

    If none of these periods has a note, it is the last earlier note.
    """
    periods = Periods(args.period, ctx)
    existing = {path.text for path in ctx.view.index.notes(ROOT)}
    offsets = [-number for number in range(1, args.count + 1) if periods.path(-number) in existing]
    warnings = []
    if not offsets:
        requested = periods.path(-1)
        earlier = range(args.count + 1, LONGEST_GAP)
        offset = next((-number for number in earlier if periods.path(-number) in existing), None)
        if offset is None:
            raise ToolError(
                f"The note {requested} does not exist, and neither does an earlier one.",
                code="FILE_NOT_FOUND",
                path=requested,
            )
        offsets = [offset]
        message = f"{requested} does not exist; {periods.path(offset)} is the last note before it."
        warnings = [Problem("FILE_NOT_FOUND", message, path=requested)]
    files = [periods.note(offset) for offset in reversed(offsets)]
    return Proposal(PeriodNotesOutput(files=files, count=len(files)), warnings=tuple(warnings))


class Periods:
    """The notes of one kind of period, by their distance from the current one.

    `usual` and `template` take a look at all notes, `habit` at all folders; they may be set by
    callers that know them.
    """

    def __init__(self, period: Period, ctx: ToolContext) -> None:
        self._period = period
        self._ctx = ctx

    def path(self, offset: int) -> str:
        """Return the path of a note, which need not exist; "" if the year is out of range."""
        moment = self._moment(offset)
        if moment is None:
            return ""
        if self._period == "day":
            return _daily_path(self._ctx, moment)
        habit = self.habit
        year = "gggg" if self._period == "week" else "YYYY"
        folder = format_moment(moment, year) if habit.yearly else ""
        name = f"{format_moment(moment, habit.format)}.md"
        return "/".join(filter(None, (habit.folder, folder, name)))

    def note(self, offset: int) -> PeriodNoteOutput:
        """Return the note of a period. Raise ToolError if its year is out of range."""
        moment = self._moment(offset)
        if moment is None:
            raise ToolError("The year is out of range (1 to 9999).")
        if self._period == "day":
            return _daily_note(self._ctx, moment)
        path, template = self.path(offset), self.template
        return PeriodNoteOutput(
            path=path,
            title=display_name(path),
            day=moment.date().isoformat(),
            template=template,
            bare=template is None,
        )

    def _moment(self, offset: int) -> datetime | None:
        now = self._ctx.run.now
        try:
            if self._period == "day":
                return now + timedelta(days=offset)
            first = _first_day(self._period, now.date(), offset)
        except (ToolError, OverflowError):
            return None
        return datetime(first.year, first.month, first.day, tzinfo=now.tzinfo)

    @cached_property
    def _notes(self) -> list[VaultPath]:
        return list(self._ctx.view.notes(ROOT))

    @cached_property
    def habit(self) -> PeriodHabit:
        """The folder and format for a note of this kind."""
        return self.usual or _expected_habit(self._period, self._folders())

    @cached_property
    def usual(self) -> PeriodHabit | None:
        """The folder and format that most of the notes of this kind have; None without any."""
        return _usual_habit(self._period, self._notes)

    def _folders(self) -> Iterator[VaultPath]:
        for entry in self._ctx.view.walk(ROOT):
            if entry.kind == "folder":
                yield entry.path

    @cached_property
    def template(self) -> str | None:
        """The path of the only template whose name matches the period."""
        named = [
            path.text
            for path in self._notes
            if _NAMED[self._period].search(path.stem)
            and _TEMPLATE.search(path.text)
            and not _matching(self._period, path)
        ]
        return named[0] if len(named) == 1 else None


def _daily_path(ctx: ToolContext, moment: datetime) -> str:
    name = format_moment(moment, ctx.run.notes.daily_format)
    return "/".join(filter(None, [ctx.run.notes.daily_folder, f"{name}.md"]))


def _daily_note(ctx: ToolContext, moment: datetime) -> PeriodNoteOutput:
    """Return the note of a day, according to Obsidian's settings for daily notes."""
    settings = ctx.run.notes
    template = (
        None
        if settings.daily_template is None
        else settings.daily_template.strip("/").removesuffix(".md") + ".md"
    )
    if template is not None and ctx.view.locate(parse(template, PathUse.READ)) is None:
        template = None
    path = _daily_path(ctx, moment)
    title = display_name(path)
    return PeriodNoteOutput(
        path=path,
        title=title,
        day=moment.date().isoformat(),
        template=template,
        bare=template is None,
    )


def _usual_habit(period: Period, notes: Iterable[VaultPath]) -> PeriodHabit | None:
    """Return the folder and format that most of the notes of this kind have."""
    habits: Counter[PeriodHabit] = Counter()
    for path in notes:
        form = _matching(period, path)
        if form is not None and not _TEMPLATE.search(path.parent.text):
            yearly = bool(_YEAR.fullmatch(path.parent.name)) and path.parent.name in path.stem
            folder = path.parent.parent.text if yearly else path.parent.text
            habits[PeriodHabit(folder, yearly, form)] += 1
    if not habits or (period == "year" and len(habits) > 1):
        return None
    return habits.most_common(1)[0][0]


def _expected_habit(period: Period, folders: Iterable[VaultPath]) -> PeriodHabit:
    """Return the only folder that is named after the period, and the most common format."""
    named = [folder.text for folder in folders if _NAMED[period].search(folder.name)]
    return PeriodHabit(named[0] if len(named) == 1 else "", False, _FORMATS[period][0][0])


def _matching(period: Period, path: VaultPath) -> str | None:
    stem = path.stem
    return next((form for form, pattern in _FORMATS[period] if pattern.fullmatch(stem)), None)


def _first_day(period: Period, today: date, offset: int) -> date:
    """Return the first day of the period `offset` periods away; a week starts on Monday."""
    if period == "week":
        return today - timedelta(days=today.weekday()) + timedelta(weeks=offset)
    length = {"month": 1, "quarter": 3, "year": 12}[period]
    months = today.year * 12 + (today.month - 1) // length * length + offset * length
    if not 1 <= months // 12 <= 9999:
        raise ToolError("The year is out of range (1 to 9999).")
    return date(months // 12, months % 12 + 1, 1)
