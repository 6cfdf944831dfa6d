"""Add text to a note or replace it: `vault.updateFile`, `vault.replaceText`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, assert_never

from msgspec import Struct
from pydantic import Field, model_validator

from obsidian_agent import budget
from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.lookup import (
    content_change,
    find_file,
    find_folder,
    not_found,
    read_text,
)
from obsidian_agent.tools.core.models import ChangedFile, ChangedFiles, ToolModel, Whole
from obsidian_agent.tools.core.patterns import TimedPattern, compile_pattern, expand
from obsidian_agent.tools.core.tool import LongText, PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.files.create import new_file
from obsidian_agent.tools.files.move import NAMED_IN_A_WARNING, new_file_warnings
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.markdown.note import links_in
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.text import BOM, encode, newline_of, with_newlines
from obsidian_agent.vault.views.changes import ModifyFile, content_hash


class UpdateFileInput(ToolModel):
    path: PathText = Field(min_length=1)
    mode: Literal["append", "prepend", "insert", "replace"]
    content: LongText
    line: Whole | None = Field(
        default=None,
        ge=1,
        description="insert: before this line, from 1; the number of lines + 1 is the end.",
    )
    marker: str | None = Field(
        default=None, description="insert: after the only line that equals this."
    )
    heading: str | None = Field(
        default=None,
        description="append, prepend, replace: in the section below this heading "
        "(its text, without #).",
    )
    create: bool = Field(default=False, description="Create the file if it is missing.")

    @model_validator(mode="after")
    def _one_position(self) -> UpdateFileInput:
        if self.mode == "insert":
            if (self.line is None) == (self.marker is None):
                raise ValueError("insert needs exactly one of line and marker")
            if self.heading is not None:
                raise ValueError("insert takes no heading; use append or prepend")
        elif self.line is not None or self.marker is not None:
            raise ValueError(f"{self.mode} takes no line and no marker; use insert")
        return self


class UpdateFileOutput(ToolModel):
    path: str
    changed: bool
    hash: str


@tool("vault.updateFile", Risk.WRITES, aliases=("obsidian.update_note",))
def update_file(args: UpdateFileInput, ctx: ToolContext) -> Proposal[UpdateFileOutput]:
    """Append, prepend, insert or replace text in a note; all other text stays."""
    path = paths.parse(args.path, PathUse.UPDATE)
    entry = ctx.view.locate(path)
    if entry is None and not args.create:
        raise not_found(ctx.view, path)
    path = new_file(args.path, ctx.view) if entry is None else entry.path
    before = None if entry is None else read_text(ctx.view, path)
    after = _edit(before or "", args)
    changes = content_change(path, before, after)
    warnings = new_file_warnings(ctx, path) if before is None else ()
    return Proposal(
        UpdateFileOutput(path=path.text, changed=bool(changes), hash=content_hash(encode(after))),
        changes,
        warnings,
    )


def _edit(text: str, args: UpdateFileInput) -> str:
    content, heading = args.content, args.heading
    match args.mode:
        case "append":
            return (
                edits.append(text, content)
                if heading is None
                else edits.append_to_section(text, heading, content)
            )
        case "prepend":
            if heading is None:
                return edits.prepend_below_frontmatter(text, content)
            return edits.prepend_below_heading(text, heading, content)
        case "insert":
            if args.line is not None:
                return edits.insert_line(text, args.line, content)
            return edits.insert_after_marker(text, args.marker or "", content)
        case "replace":
            return (
                _replace_all(text, content)
                if heading is None
                else edits.replace_section_body(text, heading, content)
            )
        case _:
            assert_never(args.mode)


def _replace_all(text: str, content: str) -> str:
    newline = newline_of(text if "\n" in text else content)
    lines = with_newlines(content, newline)
    mark = BOM if text.startswith(BOM) and not lines.startswith(BOM) else ""
    return mark + (lines if not lines or lines.endswith(newline) else lines + newline)


class ReplaceTextInput(ToolModel):
    find: str = Field(
        min_length=1,
        description="A text, or with regex a Python regular expression (MULTILINE).",
    )
    replace: str = Field(
        description="With regex, $1 is a group and $$ a dollar sign; else literal."
    )
    path: PathText | None = None
    folder: PathText | None = None
    paths: list[PathText] | None = None
    regex: bool = False
    case_sensitive: bool = True
    expect_count: Whole | None = Field(
        default=None, ge=0, description="The required total number of matches."
    )

    @model_validator(mode="after")
    def _one_scope(self) -> ReplaceTextInput:
        if sum(scope is not None for scope in (self.path, self.folder, self.paths)) > 1:
            raise ValueError("give only one of path, folder and paths")
        return self


@tool("vault.replaceText", Risk.WRITES)
def replace_text(args: ReplaceTextInput, ctx: ToolContext) -> Proposal[ChangedFiles]:
    """Replace a text or a pattern in Markdown files: one, several, a folder, or the whole vault."""
    replacement = _Replacement(args.find, args.replace, args.regex, args.case_sensitive)
    files: list[ChangedFile] = []
    changes: list[ModifyFile] = []
    warnings: list[Problem] = []
    dead_links: dict[str, str] = {}
    for path in _find_notes(args, ctx):
        try:
            text = read_text(ctx.view, path)
            changed, count = replacement.apply(text)
            if changed != text:
                changes.append(ModifyFile(paths.parse(path.text, PathUse.UPDATE), encode(changed)))
                ctx.show(changes)
                for target in _dead_links(ctx, path, text, changed):
                    dead_links.setdefault(target, path.text)
        except VaultError as error:
            if args.path is not None or args.paths is not None:
                raise
            warnings.append(
                Problem(error.code, f"{path} is skipped: {error.message}", path=path.text)
            )
            continue
        if count:
            files.append(ChangedFile(path=path.text, count=count))
    total = sum(file.count for file in files)
    if args.expect_count is not None and total != args.expect_count:
        raise ToolError(
            f"{args.find[:80]!r} occurs {total} times, not {args.expect_count} times as expected.",
            code="COUNT_MISMATCH",
            path=args.path,
            advice="Check with vault.searchText, then correct find or expectCount.",
        )
    if not total:
        warnings.append(
            Problem(
                "TEXT_NOT_FOUND",
                f"{args.find[:80]!r} does not occur, so nothing is replaced.",
                path=args.path,
            )
        )
    if dead_links:
        warnings.append(_dead_links_warning(dead_links))
    return Proposal(ChangedFiles(files=files, total=total), tuple(changes), tuple(warnings))


def _dead_links(ctx: ToolContext, path: VaultPath, before: str, after: str) -> list[str]:
    """Return the new targets of links that lead to files now and will lead nowhere."""
    old = {link.target for link in links_in(encode(before)) if link.target}
    new = {link.target for link in links_in(encode(after)) if link.target}
    resolve = ctx.view.index.resolve
    if all(resolve(target, path) is None for target in old - new):
        return []
    return sorted(target for target in new - old if resolve(target, path) is None)


def _dead_links_warning(targets: Mapping[str, str]) -> Problem:
    """Return the warning about targets that no file has, each with a note that links to it."""
    names = [f"“{target}”" for target in targets]
    more = len(names) - NAMED_IN_A_WARNING
    listed = ", ".join(names[:NAMED_IN_A_WARNING]) + (f" and {more} more" if more > 0 else "")
    message = f"Links will lead nowhere, because no file is called {listed}."
    return Problem("LINKS_UNRESOLVED", message, path=next(iter(targets.values())))


def _find_notes(args: ReplaceTextInput, ctx: ToolContext) -> Iterable[VaultPath]:
    named = args.paths
    if named is None and args.path is not None:
        named = [args.path]
    if named is None:
        return ctx.view.notes(find_folder(ctx.view, args.folder))
    notes = {find_file(ctx.view, text, PathUse.UPDATE) for text in named}
    for path in notes:
        if not path.is_note:
            raise ToolError(
                f"{path} is not a Markdown file.",
                code="NOT_TEXT",
                path=path.text,
                advice="vault.replaceText changes .md files only.",
            )
    return sorted(notes)


class _FlatText(Struct, frozen=True):
    """A text with a line feed for every line ending.

    `$` and line feeds in a pattern therefore mean the same in every file.
    """

    flat: str
    crlf: tuple[int, ...]
    """The positions in `flat` of the line feeds that were a carriage return and a line feed."""

    @classmethod
    def of(cls, text: str) -> _FlatText:
        if "\r\n" not in text:
            return cls(text, ())
        crlf: list[int] = []
        end = -1
        while (end := text.find("\r\n", end + 1)) >= 0:
            crlf.append(end - len(crlf))
        return cls(text.replace("\r\n", "\n"), tuple(crlf))

    def original(self, index: int) -> int:
        """Return the position in the original text of a position in `flat`."""
        return index + bisect_left(self.crlf, index)


class _Replacement:
    """A search text or pattern with its replacement, for use in many texts."""

    def __init__(self, find: str, replace: str, regex: bool, case_sensitive: bool) -> None:
        self._find = find.replace("\r\n", "\n")
        self._replace = replace.replace("\r\n", "\n")
        self._has_groups = regex
        self._pattern: TimedPattern | None = None
        if regex or not case_sensitive:
            self._pattern = compile_pattern(
                self._find, literal=not regex, case_sensitive=case_sensitive
            )

    def apply(self, text: str) -> tuple[str, int]:
        """Return the text with every match replaced, and the number of matches.

        Inserted line endings are those of the text.
        """
        source = _FlatText.of(text)
        parts: list[str] = []
        end = count = 0
        newline = newline_of(text)
        for start, stop, inserted in self._matches(source.flat):
            budget.spend(len(inserted))
            parts.append(text[end : source.original(start)])
            parts.append(with_newlines(inserted, newline))
            end = source.original(stop)
            count += 1
        return ("".join([*parts, text[end:]]), count) if count else (text, 0)

    def _matches(self, flat: str) -> Iterator[tuple[int, int, str]]:
        if self._pattern is None:
            start = flat.find(self._find)
            while start >= 0:
                stop = start + len(self._find)
                yield start, stop, self._replace
                start = flat.find(self._find, stop)
            return
        for match in self._pattern.finditer(flat):
            inserted = self._replace
            if self._has_groups:
                inserted = expand(self._replace, match, self._pattern.groups)
            yield match.start(), match.end(), inserted
