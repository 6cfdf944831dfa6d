"""`vault.updateFile`: add to a note or replace a part of it, and keep every other byte."""

from __future__ import annotations

from typing import Literal, assert_never

from pydantic import Field, model_validator

from obsidian_agent.tools.base import LongText, PathText, Proposal, Risk, Tool, ToolContext, ToolModel, Whole
from obsidian_agent.tools.files import new_file
from obsidian_agent.tools.notes import not_found, read_text
from obsidian_agent.tools.renaming import links_caught
from obsidian_agent.vault import markdown, paths
from obsidian_agent.vault.changes import CreateFile, FileChange, ModifyFile, content_hash
from obsidian_agent.vault.paths import PathUse
from obsidian_agent.vault.text import BOM, encode, newline_of, with_newlines


class UpdateFileInput(ToolModel):
    path: PathText = Field(min_length=1)
    mode: Literal["append", "prepend", "insert", "replace"]
    content: LongText
    line: Whole | None = Field(default=None, ge=1, description="insert: before this line, from 1; the number of lines + 1 is the end.")
    marker: str | None = Field(default=None, description="insert: behind the one line that equals this.")
    heading: str | None = Field(
        default=None, description="append, prepend, replace: in the section below this heading (its text, without #)."
    )
    create: bool = Field(default=False, description="Make the file when it is missing.")

    @model_validator(mode="after")
    def _one_place(self) -> UpdateFileInput:
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


def _update_file(args: UpdateFileInput, ctx: ToolContext) -> Proposal:
    path = paths.parse(args.path, PathUse.UPDATE)
    entry = ctx.view.locate(path)
    if entry is None and not args.create:
        raise not_found(ctx.view, path)
    path = new_file(args.path, ctx.view) if entry is None else entry.path
    before = None if entry is None else read_text(ctx.view, path)
    after = _edited(before or "", args)
    data = encode(after)
    changes: tuple[FileChange, ...] = ()
    if before is None:
        changes = (CreateFile(path, data),)
    elif before != after:
        changes = (ModifyFile(path, data),)
    warnings = links_caught(ctx, path) if before is None else ()
    return Proposal(UpdateFileOutput(path=path.text, changed=bool(changes), hash=content_hash(data)), changes, warnings)


def _edited(text: str, args: UpdateFileInput) -> str:
    content, heading = args.content, args.heading
    match args.mode:
        case "append":
            return markdown.append(text, content) if heading is None else markdown.append_to_section(text, heading, content)
        case "prepend":
            if heading is None:
                return markdown.prepend_below_frontmatter(text, content)
            return markdown.prepend_below_heading(text, heading, content)
        case "insert":
            if args.line is not None:
                return markdown.insert_line(text, args.line, content)
            return markdown.insert_after_marker(text, args.marker or "", content)
        case "replace":
            return _replaced(text, content) if heading is None else markdown.replace_section_body(text, heading, content)
        case _:
            assert_never(args.mode)


def _replaced(text: str, content: str) -> str:
    newline = newline_of(text if "\n" in text else content)
    lines = with_newlines(content, newline)
    mark = BOM if text.startswith(BOM) and not lines.startswith(BOM) else ""
    return mark + (lines if not lines or lines.endswith(newline) else lines + newline)


UPDATE_FILE = Tool(
    name="vault.updateFile",
    summary="Append, prepend, insert or replace text in a note; all else in it stays.",
    risk=Risk.WRITES,
    input=UpdateFileInput,
    output=UpdateFileOutput,
    propose=_update_file,
    aliases=("obsidian.update_note",),
)
