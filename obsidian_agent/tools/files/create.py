"""Create files and folders, replace whole files, and fill in note templates.

Also new names and paths: of the note of a day, week, month, quarter or year, by a pattern, or short
ones from titles.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from pydantic import Field

from obsidian_agent import budget
from obsidian_agent.errors import Conflict, Problem, ToolError
from obsidian_agent.tools.core.filters import FilterContext, LinkWriter, ListTemplate, text_of
from obsidian_agent.tools.core.lookup import content_change, find_file, new_path, now_ms, read_text
from obsidian_agent.tools.core.models import ToolModel, Whole, path_of
from obsidian_agent.tools.core.moment import format_moment, parse_moment
from obsidian_agent.tools.core.tool import LongText, PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.files.move import new_file_warnings
from obsidian_agent.vault.frontmatter.properties import edit_properties
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse
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
            budget.spend(len(self._values[name]))
            return self._values[name]
        match name:
            case "title":
                budget.spend(len(self._args.title))
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
            budget.spend(len(self._args.title))
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
