"""Create files and folders, replace whole files, and fill in note templates.

Also new names and paths: of the note of a day, week, month, quarter or year, by a pattern, or short
ones from titles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field

from obsidian_agent.errors import Conflict, Problem, ToolError
from obsidian_agent.tools.core.filters import FilterContext, LinkWriter, ListTemplate, text_of
from obsidian_agent.tools.core.lookup import content_change, find_file, new_path, now_ms, read_text
from obsidian_agent.tools.core.models import SparseOutput, ToolModel, Whole, path_of
from obsidian_agent.tools.core.moment import format_moment, parse_moment
from obsidian_agent.tools.core.tool import LongText, PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.files.move import new_file_warnings
from obsidian_agent.vault.frontmatter.properties import edit_properties
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.paths.rules import clean_component, marked, slug
from obsidian_agent.vault.text import decode, encode
from obsidian_agent.vault.views.changes import CreateFile, MakeFolder, content_hash
from obsidian_agent.vault.views.overlay import OverlayVault
from obsidian_agent.vault.views.view import VaultView

_TRIED_ONE_BY_ONE = 50
"""The numbers that are tried in turn.

Beyond them the search doubles its steps, so that thousands of equal names stay quick.
"""

_VARIABLE: Final = re.compile(
    r"\{\{[ \t]*(?P<name>[^\W\d][\w -]*?)[ \t]*(?::(?P<format>[^{}\n]*))?\}\}"
)

_TEMPLATER: Final = re.compile(
    r"<%[-_]?\s*tp\.(?:file\.(?P<title>title)|date\.(?P<day>now|today|tomorrow|yesterday)"
    r"\((?:\s*(?P<quote>[\"'])(?P<format>[^\"'\n]*)(?P=quote)\s*)?\))\s*[-_]?%>"
)

_TEMPLATER_COMMAND: Final = re.compile(r"<%[\s\S]*?%>")

_DAY_MS: Final = 86_400_000

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
"""The days before the requested one in which a daily note is searched."""


class EnsureFolderInput(ToolModel):
    path: PathText


class EnsureFolderOutput(ToolModel):
    path: str
    created: bool


@tool("vault.ensureFolder", Risk.WRITES)
def ensure_folder(args: EnsureFolderInput, ctx: ToolContext) -> Proposal[EnsureFolderOutput]:
    """Create a folder, with its missing parents, unless it exists."""
    existing = ctx.view.twin(paths.parse(args.path, PathUse.FOLDER))
    if existing is None:
        path = new_path(ctx.view, args.path, PathUse.MAKE_FOLDER)
        return Proposal(EnsureFolderOutput(path=path.text, created=True), (MakeFolder(path),))
    if not _is_folder(ctx.view, existing):
        raise ToolError(
            f"{existing} is a file, so it cannot be a folder.",
            code="NOT_A_FOLDER",
            path=existing.text,
        )
    return Proposal(EnsureFolderOutput(path=existing.text, created=False))


class CreateFileInput(ToolModel):
    path: PathText = Field(
        min_length=1,
        description="Path of the new file with its extension; missing folders are created.",
    )
    content: LongText
    if_not_exists: bool = Field(
        default=True,
        description="true: an existing file is unchanged, with a warning; false: it is an error.",
    )
    frontmatter: dict[str, Any] | None = Field(
        default=None, description="Properties, merged into the frontmatter that content may have."
    )
    on_conflict: Literal["suffix"] | None = Field(
        default=None, description="suffix: use the next free name instead, such as 'Note 2.md'."
    )


class CreateFileOutput(ToolModel):
    path: str
    created: bool
    hash: str
    mtime_ms: float | None = None


@tool("vault.createFile", Risk.WRITES, aliases=("obsidian.create_note",))
def create_file(args: CreateFileInput, ctx: ToolContext) -> Proposal[CreateFileOutput]:
    """Create a new file. An existing file is never overwritten."""
    path = new_path(ctx.view, args.path)
    is_made_here = _is_made_by_plan(ctx.view, path)
    twin = ctx.view.twin(path)
    if args.on_conflict == "suffix":
        if is_made_here or twin is not None:
            path = _free_name(path, ctx.view)
    elif is_made_here:
        raise ToolError(
            f"Another step of this plan already creates {twin or path}.",
            code="DUPLICATE_PATH",
            path=path.text,
            hint="Give each file its own name.",
            advice='Or set onConflict: "suffix".',
        )
    elif twin is not None:
        return _existing_file(args, ctx, path, twin)
    text = edit_properties(args.content, set=args.frontmatter) if args.frontmatter else args.content
    data = encode(text)
    output = CreateFileOutput(
        path=path.text, created=True, hash=content_hash(data), mtime_ms=now_ms(ctx.run)
    )
    return Proposal(output, (CreateFile(path, data),), new_file_warnings(ctx, path))


def _existing_file(
    args: CreateFileInput, ctx: ToolContext, path: VaultPath, twin: VaultPath
) -> Proposal[CreateFileOutput]:
    if _is_folder(ctx.view, twin):
        raise ToolError(
            f"{twin} is a folder.", code="FILE_EXISTS", path=path.text, hint="Choose another name."
        )
    if not args.if_not_exists:
        raise ToolError(
            f"{twin} already exists.",
            code="FILE_EXISTS",
            path=path.text,
            hint="Choose another name.",
            advice="Or edit it with vault.updateFile.",
        )
    stat = ctx.view.stat(twin)
    output = CreateFileOutput(
        path=twin.text,
        created=False,
        hash=content_hash(ctx.view.read(twin)),
        mtime_ms=stat.mtime_ms,
    )
    return Proposal(
        output,
        warnings=(
            Problem("FILE_EXISTS", f"{twin} already exists and is unchanged.", path=twin.text),
        ),
    )


def _is_made_by_plan(view: VaultView, path: VaultPath) -> bool:
    """Return whether an earlier step created this path, which only an overlay knows."""
    return isinstance(view, OverlayVault) and view.was_created_here(path)


def _free_name(path: VaultPath, view: VaultView) -> VaultPath:
    """Return the path with the smallest free number, or any free number after many used ones."""
    folder = path.text[: len(path.text) - len(path.name)]

    def numbered(number: int) -> VaultPath | None:
        candidate = new_path(view, folder + marked(path.name, f" {number}"))
        return candidate if view.twin(candidate) is None else None

    for number in range(2, _TRIED_ONE_BY_ONE):
        if free := numbered(number):
            return free
    used, step = _TRIED_ONE_BY_ONE - 1, 1
    while (free := numbered(used + step)) is None:
        used, step = used + step, step * 2
    while step > 1:
        step //= 2
        if nearer := numbered(used + step):
            free = nearer
        else:
            used += step
    return free


class WriteFileInput(ToolModel):
    path: PathText = Field(min_length=1)
    content: LongText = Field(
        description="The whole new content, which replaces the old one. "
        "Only text can be replaced, not a picture."
    )
    if_match: str | None = Field(
        default=None, description="Write only while the file has this hash."
    )


class WriteFileOutput(ToolModel):
    path: str
    created: bool
    bytes: int
    hash: str
    mtime_ms: float


@tool("vault.writeFile", Risk.WRITES)
def write_file(args: WriteFileInput, ctx: ToolContext) -> Proposal[WriteFileOutput]:
    """Replace the whole content of a file, or create it."""
    path, before = _target(args.path, ctx.view)
    if before is not None:
        decode(before, path.text)
    if args.if_match is not None and (
        before is None or content_hash(before) != args.if_match.lower()
    ):
        state = "does not exist" if before is None else "does not match the hash in ifMatch"
        raise Conflict(
            f"{path} {state}.", path=path.text, hint="Read the file again and use its hash."
        )
    data = encode(args.content)
    changes = content_change(path, before, data)
    mtime = now_ms(ctx.run) if changes else ctx.view.stat(path).mtime_ms
    return Proposal(
        WriteFileOutput(
            path=path.text,
            created=before is None,
            bytes=len(data),
            hash=content_hash(data),
            mtime_ms=mtime,
        ),
        changes,
        new_file_warnings(ctx, path) if before is None else (),
    )


def _target(text: str, view: VaultView) -> tuple[VaultPath, bytes | None]:
    """Return the file to write and its bytes, `None` for a new file.

    A file that exists in another spelling is never written instead of the named one.
    """
    path = paths.parse(text, PathUse.UPDATE)
    entry = view.locate(path)
    if entry is not None:
        return entry.path, view.read(entry.path)
    return new_file(text, view), None


def new_file(text: str, view: VaultView) -> VaultPath:
    """Return the path of a file to create. Raise FILE_EXISTS if it exists in another spelling."""
    path = new_path(view, text)
    twin = view.twin(path)
    if twin is not None:
        raise ToolError(
            f"{twin} exists in another spelling.",
            code="FILE_EXISTS",
            path=path.text,
            hint=f"Use {twin.text!r}.",
        )
    return path


def _is_folder(view: VaultView, path: VaultPath) -> bool:
    entry = view.locate(path)
    return entry is not None and entry.kind == "folder"


class RenderInput(ToolModel):
    path: PathText = Field(min_length=1, description="The template.")
    title: str = Field(default="", description="The value of {{title}}: the new note's name.")
    when: str | None = Field(
        default=None,
        description="The ISO date and time of {{date}} and {{time}}; by default that of the run.",
    )
    values: dict[str, Any] = Field(default={}, description="The values of other variables by name.")
    date_format: str | None = Field(
        default=None,
        min_length=1,
        description="The format of {{date}} in Moment.js tokens; "
        "by default from Obsidian's settings.",
    )
    time_format: str | None = Field(default=None, min_length=1)


class RenderOutput(ToolModel):
    path: str
    title: str
    text: str
    unknown: list[str] = Field(description="Variables without a value, which stay unchanged.")


@tool("template.render", Risk.READ_ONLY)
def render(args: RenderInput, ctx: ToolContext) -> Proposal[RenderOutput]:
    """Fill in a note template: {{title}}, {{date}}, {{time}}, {{date:FORMAT}} and named values."""
    path = find_file(ctx.view, args.path)
    rendering = _Rendering(args, ctx)
    text = _TEMPLATER.sub(
        rendering.templater, _VARIABLE.sub(rendering.variable, read_text(ctx.view, path))
    )
    warnings: tuple[Problem, ...] = ()
    if left := _TEMPLATER_COMMAND.search(text):
        message = (
            f"{path} contains commands of the plugin Templater that only Obsidian can run, "
            f"such as {left[0][:60]}; they stay as text."
        )
        warnings = (Problem("TEMPLATE_COMMANDS", message, path=path.text),)
    return Proposal(
        RenderOutput(path=path.text, title=args.title, text=text, unknown=list(rendering.unknown)),
        warnings=warnings,
    )


class _Rendering:
    """The values of variables in one call."""

    def __init__(self, args: RenderInput, ctx: ToolContext) -> None:
        self._args = args
        self._now = ctx.run.now
        self._settings = ctx.run.notes
        self._when = (
            ctx.run.now
            if args.when is None
            else parse_moment(args.when, ctx.run.now) or ctx.run.now
        )
        self._values = {name.casefold(): text_of(value) for name, value in args.values.items()}
        self.unknown: dict[str, None] = {}

    def variable(self, match: re.Match[str]) -> str:
        """Replace a variable of Obsidian's own templates or a named value; any other stays."""
        name = match["name"].casefold()
        if name in self._values:
            return self._values[name]
        match name:
            case "title":
                return self._args.title
            case "date":
                return format_moment(
                    self._when,
                    match["format"] or self._args.date_format or self._settings.date_format,
                )
            case "time":
                return format_moment(
                    self._when,
                    match["format"] or self._args.time_format or self._settings.time_format,
                )
            case _:
                self.unknown[match["name"]] = None
                return match[0]

    def templater(self, match: re.Match[str]) -> str:
        """Replace the title and dates of the plugin Templater; a date with an offset stays."""
        if match["title"]:
            return self._args.title
        days = {"tomorrow": 1, "yesterday": -1}.get(match["day"], 0)
        moment = (
            parse_moment(self._when.timestamp() * 1000 + days * _DAY_MS, self._now) or self._when
        )
        return format_moment(moment, match["format"] or "YYYY-MM-DD")


class NewNamesInput(ToolModel):
    items: list[Any] = Field(description="The files of another step, as vault.find returns them.")
    pattern: str = Field(
        default="{name}",
        min_length=1,
        description="The new name without extension: {name}, {index}, "
        "{mtimeMs|date:YYYY-MM-DD}, {frontmatter.KEY}.",
    )
    find: str | None = Field(
        default=None, min_length=1, description="A text to replace in the name first; case counts."
    )
    replace: str = ""


class NewName(ToolModel):
    path: str
    to: str


class NewNamesOutput(ToolModel):
    items: list[NewName] = Field(description="The files with another name; the folder stays.")
    count: int


@tool("util.newNames", Risk.READ_ONLY)
def new_names(args: NewNamesInput, ctx: ToolContext) -> Proposal[NewNamesOutput]:
    """Suggest new names for files by a pattern; files that keep their name are omitted."""
    template = ListTemplate(args.pattern, FilterContext(LinkWriter(ctx.view), ctx.run.now))
    names: list[NewName] = []
    for index, item in enumerate([item for item in args.items if item is not None], 1):
        path = parse(path_of(item), PathUse.READ)
        name = path.stem.replace(args.find, args.replace) if args.find is not None else path.stem
        fields = {
            **(item if isinstance(item, dict) else {}),
            "name": name,
            "folder": path.parent.name,
        }
        filled = template.fill(fields, index).strip()
        if not filled:
            raise ToolError(f"The new name of {path} would be empty.", path=path.text)
        new = f"{clean_component(filled)}{path.suffix}"
        to = new if path.parent.is_root else f"{path.parent.text}/{new}"
        if to != path.text:
            names.append(NewName(path=path.text, to=to))
    return Proposal(NewNamesOutput(items=names, count=len(names)))


class SlugifyInput(ToolModel):
    title: str
    separator: str = "-"
    max_length: Whole | None = Field(default=None, ge=1)


class SlugifyOutput(ToolModel):
    slug: str


@tool("util.slugifyTitle", Risk.READ_ONLY)
def slugify_title(args: SlugifyInput, ctx: ToolContext) -> Proposal[SlugifyOutput]:
    """Make a short lower-case name from a title."""
    return Proposal(SlugifyOutput(slug=slug(args.title, args.separator, args.max_length)))


class PeriodNoteInput(ToolModel):
    period: Period
    offset: Whole = Field(
        default=0, ge=-400, le=400, description="0 is the current one, 1 the next, -1 the last."
    )
    existing: bool = Field(
        default=False,
        description="For days: if that day has no note, use the last earlier day that has one.",
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


class _Habit(NamedTuple):
    folder: str
    yearly: bool
    """Whether each year has a subfolder of its own."""
    format: str


@tool("util.periodNote", Risk.READ_ONLY)
def period_note(args: PeriodNoteInput, ctx: ToolContext) -> Proposal[PeriodNoteOutput]:
    """Find the path and title of a periodic note (day, week, month, quarter or year).

    It is that of the current period or another one; the result includes its template if there is
    one.
    """
    if args.period == "day":
        moment = ctx.run.now + timedelta(days=int(args.offset))
        path = _daily_path(ctx, moment)
        if not args.existing or ctx.view.locate(parse(path, PathUse.READ)) is not None:
            return Proposal(_daily_note(ctx, moment))
        return _last_daily_note(ctx, moment, path)
    notes = [
        entry.path for entry in ctx.view.walk(ROOT) if entry.kind == "file" and entry.path.is_note
    ]
    folders = [entry.path for entry in ctx.view.walk(ROOT) if entry.kind == "folder"]
    habit = _habit(args.period, notes, folders)
    first = _first_day(args.period, ctx.run.now.date(), int(args.offset))
    moment = datetime(first.year, first.month, first.day, tzinfo=ctx.run.now.tzinfo)
    title = format_moment(moment, habit.format)
    parts = [
        part
        for part in (
            habit.folder,
            format_moment(moment, "gggg" if args.period == "week" else "YYYY")
            if habit.yearly
            else "",
        )
        if part
    ]
    named = [
        path
        for path in notes
        if _NAMED[args.period].search(path.stem)
        and _TEMPLATE.search(path.text)
        and not _matching(args.period, path)
    ]
    template = named[0].text if len(named) == 1 else None
    path = "/".join([*parts, f"{title}.md"])
    return Proposal(
        PeriodNoteOutput(
            path=path, title=title, day=first.isoformat(), template=template, bare=template is None
        )
    )


def _last_daily_note(
    ctx: ToolContext, moment: datetime, requested: str
) -> Proposal[PeriodNoteOutput]:
    """Return the last daily note before a day without one.

    Raise FILE_NOT_FOUND if none exists.
    """
    notes = {path.text for path in ctx.view.index.notes(ROOT)}
    earlier = (moment - timedelta(days=days) for days in range(1, LONGEST_GAP))
    last = next((day for day in earlier if _daily_path(ctx, day) in notes), None)
    if last is None:
        raise ToolError(
            f"The daily note {requested} does not exist, and neither does an earlier one.",
            code="FILE_NOT_FOUND",
            path=requested,
        )
    note = _daily_note(ctx, last)
    message = f"The daily note {requested} does not exist; {note.path} is the last one before it."
    return Proposal(note, warnings=(Problem("FILE_NOT_FOUND", message, path=requested),))


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
    title = path.rpartition("/")[2].removesuffix(".md")
    return PeriodNoteOutput(
        path=path,
        title=title,
        day=moment.date().isoformat(),
        template=template,
        bare=template is None,
    )


def _habit(period: Period, notes: Iterable[VaultPath], folders: Iterable[VaultPath]) -> _Habit:
    """Return the folder and format that most of the notes of this kind have."""
    habits: Counter[_Habit] = Counter()
    for path in notes:
        form = _matching(period, path)
        if form is not None and not _TEMPLATE.search(path.parent.text):
            yearly = bool(_YEAR.fullmatch(path.parent.name)) and path.parent.name in path.stem
            habits[
                _Habit(path.parent.parent.text if yearly else path.parent.text, yearly, form)
            ] += 1
    if habits and not (period == "year" and len(habits) > 1):
        return habits.most_common(1)[0][0]
    named = [folder.text for folder in folders if _NAMED[period].search(folder.name)]
    return _Habit(named[0] if len(named) == 1 else "", False, _FORMATS[period][0][0])


def _matching(period: Period, path: VaultPath) -> str | None:
    return next((form for form, pattern in _FORMATS[period] if pattern.fullmatch(path.stem)), None)


def _first_day(period: Period, today: date, offset: int) -> date:
    """Return the first day of the period `offset` periods away; a week starts on Monday."""
    if period == "week":
        return today - timedelta(days=today.weekday()) + timedelta(weeks=offset)
    length = {"month": 1, "quarter": 3, "year": 12}[period]
    months = today.year * 12 + (today.month - 1) // length * length + offset * length
    if not 1 <= months // 12 <= 9999:
        raise ToolError("The year is out of range (1 to 9999).")
    return date(months // 12, months % 12 + 1, 1)
