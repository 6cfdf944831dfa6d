"""`util.noteBody`: a note's text without its properties, for putting it into another note."""

from __future__ import annotations

from pydantic import Field

from obsidian_agent.tools import carrying
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.notes import find_file, read_text
from obsidian_agent.vault import frontmatter


class NoteBodyInput(ToolModel):
    path: PathText = Field(min_length=1)
    into: PathText | None = Field(default=None, description="The note that the text will be put into: links in it lead where they did.")


class NoteBodyOutput(ToolModel):
    path: str
    body: str = Field(description="The text below the properties, without blank lines at both ends.")


def _note_body(args: NoteBodyInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path)
    text = read_text(ctx.view, path)
    front = frontmatter.span(text)
    body = text[front.body_start :] if front is not None else text
    body = carrying.copied(body, path, carrying.destination(args.into, ctx), ctx)
    return Proposal(NoteBodyOutput(path=path.text, body=body.strip("\r\n")))


NOTE_BODY = Tool(
    name="util.noteBody",
    summary="The text of a note without its properties.",
    risk=Risk.READ_ONLY,
    input=NoteBodyInput,
    output=NoteBodyOutput,
    propose=_note_body,
)
