"""`editor.linkSelection`: the selected words become a link and stay the text that it shows."""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.editor import ActiveNote, Range, ReplaceSelectionOutput, edit_at, wire
from obsidian_agent.tools.notes import find_file
from obsidian_agent.vault.linktext import LinkStyle, link_target, markdown_encoded
from obsidian_agent.vault.paths import ROOT
from obsidian_agent.vault.resolve import LinkResolver

_UNSAFE: Final = re.compile(r"[\[\]\n\r|]")
_LEAD: Final = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[^\]\r\n]\][ \t]+)?|#{1,6}[ \t]+)?")
"""What stands before the words of a line: the mark of a list item, a checkbox, the marks of a heading."""

_ROW: Final = re.compile(r"[ \t>]*\|.*\|")


class LinkSelectionInput(ToolModel):
    path: PathText = Field(min_length=1, description="The file that the link leads to.")
    heading: str | None = Field(default=None, min_length=1, description="A heading of it (its text, without #).")


def _link_selection(args: LinkSelectionInput, ctx: ToolContext) -> Proposal:
    target = find_file(ctx.view, args.path)
    note, selection = ActiveNote(ctx), ctx.run.selection
    if selection is None or not selection.text.strip():
        raise ToolError("No text is selected, so there is nothing to link.", code="NO_SELECTION", hint="Select the words first.")
    lead = _LEAD.match(selection.text)
    words = selection.text[lead.end() if lead is not None else 0 :].strip()
    if not words or _UNSAFE.search(words):
        raise ToolError(
            "The selected text cannot be the text of a link: it holds a link, a bracket, a | or a line end.", path=note.path.text
        )
    place = note.selection(selection)
    style = ctx.run.link_style
    resolver = LinkResolver(entry.path for entry in ctx.view.walk(ROOT) if entry.kind == "file")
    name = link_target(resolver, target, note.path, style)
    subpath = f"#{args.heading}" if args.heading else ""
    line = place.text[place.text.rfind("\n", 0, place.start) + 1 :].partition("\n")[0]
    link = _written(name, subpath, words, style, in_table=_ROW.fullmatch(line.rstrip()) is not None)
    before, _, after = selection.text.rpartition(words)
    edit = edit_at(place, before + link + after)
    output = ReplaceSelectionOutput(
        file_path=note.path.text, range=Range(from_=wire(edit.start), to=wire(edit.end)), inserted_chars=edit.length
    )
    return edit.proposal(output, place, replaced=True)


def _written(name: str, subpath: str, words: str, style: LinkStyle, *, in_table: bool) -> str:
    """A wikilink, or a Markdown link where the vault's settings say so; the words are left out where the link shows them anyway."""
    if style.markdown:
        return f"[{words}]({name}{markdown_encoded(subpath)})"
    if name == words and not subpath:
        return f"[[{words}]]"
    return f"[[{name}{subpath}{chr(92) if in_table else ''}|{words}]]"


LINK_SELECTION = Tool(
    name="editor.linkSelection",
    summary="Turn the selected words into a link to a file; the words stay the text that it shows.",
    risk=Risk.WRITES,
    input=LinkSelectionInput,
    output=ReplaceSelectionOutput,
    propose=_link_selection,
)
