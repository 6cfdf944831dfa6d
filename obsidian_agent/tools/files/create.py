"""Folders and files that are made, or replaced as a whole, and the text of a note template with its variables filled in.

Also the names and places that they get: of the note of a day, week, month, quarter or year, by a pattern, or short ones from titles."""

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


class EnsureFolderInput(ToolModel):
    path: PathText


class EnsureFolderOutput(ToolModel):
    path: str
    created: bool


@tool("vault.ensureFolder", Risk.WRITES)
def ensure_folder(args: EnsureFolderInput, ctx: ToolContext) -> Proposal[EnsureFolderOutput]:
    """Make a folder, with the parents it lacks, unless it exists."""
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
        description="Path of the new file with its extension; missing folders are made.",
    )
    content: LongText
    if_not_exists: bool = Field(
        default=True,
        description="true: an existing file is left alone with a warning; false: it is an error.",
    )
    frontmatter: dict[str, Any] | None = Field(
        default=None, description="Properties, merged into the frontmatter that content may have."
    )
    on_conflict: Literal["suffix"] | None = Field(
        default=None, description="suffix: take the next free name, 'Note 2.md', instead."
    )


class CreateFileOutput(ToolModel):
    path: str
    created: bool
    hash: str
    mtime_ms: float | None = None


@tool("vault.createFile", Risk.WRITES, aliases=("obsidian.create_note",))
def create_file(args: CreateFileInput, ctx: ToolContext) -> Proposal[CreateFileOutput]:
    """Make a new file. Never overwrites: an existing file is left alone."""
    path = new_path(ctx.view, args.path)
    made_here = _is_made_by_plan(ctx.view, path)
    twin = ctx.view.twin(path)
    if args.on_conflict == "suffix":
        if made_here or twin is not None:
            path = _free_name(path, ctx.view)
    elif made_here:
        raise ToolError(
            f"Another step of this plan already makes {twin or path}.",
            code="DUPLICATE_PATH",
            path=path.text,
            hint="Give each file its own name.",
            advice='Or say onConflict: "suffix".',
        )
    elif twin is not None:
        return _existing_file(args, ctx, path, twin)
    text = edit_properties(args.content, set=args.frontmatter) if args.frontmatter else args.content
    data = encode(text)
    output = CreateFileOutput(
        path=path.text, created=True, hash=content_hash(data), mtime_ms=now_ms(ctx.run)
    )
    return Proposal(output, (CreateFile(path, data),), new_file_warnings(ctx, path))


_TRIED_ONE_BY_ONE = 50
"""Numbers that are tried in turn; beyond them the search doubles its steps, so that thousands of equal names stay quick."""


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
            Problem("FILE_EXISTS", f"{twin} already exists and is left as it is.", path=twin.text),
        ),
    )


def _is_made_by_plan(view: VaultView, path: VaultPath) -> bool:
    """Whether an earlier step made this path: an overlay knows that, the disk does not."""
    return isinstance(view, OverlayVault) and view.created_here(path)


def _free_name(path: VaultPath, view: VaultView) -> VaultPath:
    """The path with the smallest free number; when many are taken, with one that follows a taken number."""
    folder = path.text[: len(path.text) - len(path.name)]

    def numbered(number: int) -> VaultPath | None:
        candidate = new_path(view, folder + marked(path.name, f" {number}"))
        return candidate if view.twin(candidate) is None else None

    for number in range(2, _TRIED_ONE_BY_ONE):
        if free := numbered(number):
            return free
    taken, step = _TRIED_ONE_BY_ONE - 1, 1
    while (free := numbered(taken + step)) is None:
        taken, step = taken + step, step * 2
    while step > 1:
        step //= 2
        if nearer := numbered(taken + step):
            free = nearer
        else:
            taken += step
    return free


class WriteFileInput(ToolModel):
    path: PathText = Field(min_length=1)
    content: LongText = Field(
        description="The whole new content; nothing of the old one is kept. Only text is replaced, never a picture."
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
    """Replace the whole content of a file, or make it."""
    path, before = _target(args.path, ctx.view)
    if before is not None:
        decode(before, path.text)
    if args.if_match is not None and (
        before is None or content_hash(before) != args.if_match.lower()
    ):
        state = (
            "does not exist"
            if before is None
            else "has other content than the hash in ifMatch says"
        )
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
    """The file to write and its bytes (None: it is new). A file that exists in another spelling is never taken for the one named."""
    path = paths.parse(text, PathUse.UPDATE)
    entry = view.locate(path)
    if entry is not None:
        return entry.path, view.read(entry.path)
    return new_file(text, view), None


def new_file(text: str, view: VaultView) -> VaultPath:
    """The path of a file that is about to be made. FILE_EXISTS when it exists in another spelling."""
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


_VARIABLE: Final = re.compile(
    r"\{\{[ \t]*(?P<name>[^\W\d][\w -]*?)[ \t]*(?::(?P<format>[^{}\n]*))?\}\}"
)
_TEMPLATER: Final = re.compile(
    r"<%[-_]?\s*tp\.(?:file\.(?P<title>title)|date\.(?P<day>now|today|tomorrow|yesterday)"
    r"\((?:\s*(?P<quote>[\"'])(?P<format>[^\"'\n]*)(?P=quote)\s*)?\))\s*[-_]?%>"
)
_FOREIGN: Final = re.compile(r"<%[\s\S]*?%>")
_DAY_MS: Final = 86_400_000


class RenderInput(ToolModel):
    path: PathText = Field(min_length=1, description="The template.")
    title: str = Field(default="", description="What {{title}} stands for: the new note's name.")
    when: str | None = Field(
        default=None,
        description="The moment of {{date}} and {{time}}, ISO; that of the run when absent.",
    )
    values: dict[str, Any] = Field(
        default={}, description="What other variables stand for, by name."
    )
    date_format: str | None = Field(
        default=None,
        min_length=1,
        description="How {{date}} looks, in Moment's tokens; as Obsidian's settings say when absent.",
    )
    time_format: str | None = Field(default=None, min_length=1)


class RenderOutput(ToolModel):
    path: str
    title: str
    text: str
    unknown: list[str] = Field(
        description="Variables that stay as they are, because nothing says what they stand for."
    )


@tool("template.render", Risk.READ_ONLY)
def render(args: RenderInput, ctx: ToolContext) -> Proposal[RenderOutput]:
    """The text of a note template with {{title}}, {{date}}, {{time}}, {{date:FORMAT}} and named values filled in."""
    path = find_file(ctx.view, args.path)
    rendering = _Rendering(args, ctx)
    text = _TEMPLATER.sub(
        rendering.templater, _VARIABLE.sub(rendering.variable, read_text(ctx.view, path))
    )
    warnings: tuple[Problem, ...] = ()
    if left := _FOREIGN.search(text):
        message = f"{path} holds commands of the plugin Templater that only Obsidian can run, such as {left[0][:60]}; they stay as text."
        warnings = (Problem("TEMPLATE_COMMANDS", message, path=path.text),)
    return Proposal(
        RenderOutput(path=path.text, title=args.title, text=text, unknown=list(rendering.unknown)),
        warnings=warnings,
    )


class _Rendering:
    """What variables stand for in one call."""

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

    def variable(self, found: re.Match[str]) -> str:
        """A variable of Obsidian's own templates, or a named value; any other stays."""
        name = found["name"].casefold()
        if name in self._values:
            return self._values[name]
        match name:
            case "title":
                return self._args.title
            case "date":
                return format_moment(
                    self._when,
                    found["format"] or self._args.date_format or self._settings.date_format,
                )
            case "time":
                return format_moment(
                    self._when,
                    found["format"] or self._args.time_format or self._settings.time_format,
                )
            case _:
                self.unknown[found["name"]] = None
                return found[0]

    def templater(self, found: re.Match[str]) -> str:
        """The title and dates of the plugin Templater; a date with an offset or anything else stays."""
        if found["title"]:
            return self._args.title
        days = {"tomorrow": 1, "yesterday": -1}.get(found["day"], 0)
        moment = (
            parse_moment(self._when.timestamp() * 1000 + days * _DAY_MS, self._now) or self._when
        )
        return format_moment(moment, found["format"] or "YYYY-MM-DD")


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
    find: str | None = Field(
        default=None, min_length=1, description="A text to replace in the name first; case counts."
    )
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
        fields = {
            **(item if isinstance(item, dict) else {}),
            "name": name,
            "folder": path.parent.name,
        }
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
    offset: Whole = Field(
        default=0, ge=-400, le=400, description="0 is the current one, 1 the next, -1 the last."
    )
    existing: bool = Field(
        default=False,
        description="For days: where that day has no note, the last day before it that has one.",
    )


class PeriodNoteOutput(SparseOutput):
    path: str = Field(
        description="Beside the notes of that kind there are and named like them, else in a folder for them, else in the root."
    )
    title: str
    day: str = Field(description="Its first day, YYYY-MM-DD.")
    template: str | None = Field(
        default=None, description="The one template whose name says that it is for them."
    )
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
        moment = ctx.run.now + timedelta(days=int(args.offset))
        wanted = _daily_path(ctx, moment)
        if not args.existing or ctx.view.locate(parse(wanted, PathUse.READ)) is not None:
            return Proposal(_daily_note(ctx, moment))
        return _last_daily_note(ctx, moment, wanted)
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


LONGEST_GAP: Final = 3660
"""Days without a daily note after which no earlier one is looked for."""


def _last_daily_note(ctx: ToolContext, moment: datetime, wanted: str) -> Proposal[PeriodNoteOutput]:
    """The last daily note before a day that has none. Raise FILE_NOT_FOUND where there is none."""
    notes = {path.text for path in ctx.view.index.notes(ROOT)}
    earlier = (moment - timedelta(days=days) for days in range(1, LONGEST_GAP))
    last = next((day for day in earlier if _daily_path(ctx, day) in notes), None)
    if last is None:
        raise ToolError(
            f"There is no daily note {wanted}, and none before it.",
            code="FILE_NOT_FOUND",
            path=wanted,
        )
    found = _daily_note(ctx, last)
    message = f"There is no daily note {wanted}; {found.path} is the last one before it."
    return Proposal(found, warnings=(Problem("FILE_NOT_FOUND", message, path=wanted),))


def _daily_path(ctx: ToolContext, moment: datetime) -> str:
    name = format_moment(moment, ctx.run.notes.daily_format)
    return "/".join(filter(None, [ctx.run.notes.daily_folder, f"{name}.md"]))


def _daily_note(ctx: ToolContext, moment: datetime) -> PeriodNoteOutput:
    """The note of a day, as the settings of Obsidian's daily notes have it."""
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
    """The place and form that most of the notes of this kind have."""
    found: Counter[_Habit] = Counter()
    for path in notes:
        form = _matching(period, path)
        if form is not None and not _TEMPLATE.search(path.parent.text):
            yearly = bool(_YEAR.fullmatch(path.parent.name)) and path.parent.name in path.stem
            found[
                _Habit(path.parent.parent.text if yearly else path.parent.text, yearly, form)
            ] += 1
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
