"""`vault.linkMentions`: the name of a note, where texts say it without a link, becomes one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

import regex
from pydantic import Field

from obsidian_agent.errors import Problem
from obsidian_agent.tools.core.filters import LinkWriter
from obsidian_agent.tools.core.lookup import NotesInput, find_file
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.links.retarget import ChangedLinks, ChangedLinksOutput
from obsidian_agent.vault.index.index import index_of
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.markdown.lines import scan
from obsidian_agent.vault.markdown.text import encode
from obsidian_agent.vault.paths import path
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.scan.note import links_in
from obsidian_agent.vault.views.changes import ModifyFile

_TAKEN: Final = re.compile(r"!?\[\[[^\[\]\n]*\]\]|!?\[[^\[\]\n]*\]\([^()\n]*\)|`[^`\n]*`|<[^<>\n]*>|\S+://\S+|\[\^[^\]\n]*\]|#[^\s#]\S*")
"""What holds words that are no plain text: links, code, addresses, footnotes, tags."""


class LinkMentionsInput(NotesInput):
    to: PathText = Field(min_length=1, description="The note that is mentioned: by its name, or by one of its aliases.")
    occurrences: Literal["all", "first"] = Field(default="all", description="first: only the first one in each note.")
    aliases: bool = Field(default=True, description="Whether its aliases count as its name.")


@tool("vault.linkMentions", Risk.WRITES)
def link_mentions(args: LinkMentionsInput, ctx: ToolContext) -> Proposal[ChangedLinksOutput]:
    """Turn what mentions a note by its name or an alias, without a link, into links; headings, code and tags stay."""
    target = find_file(ctx.view, args.to)
    names = [target.stem, *(index_of(ctx.view).facts(target).aliases if args.aliases else ())]
    pattern = _pattern([name for name in names if name.strip()])
    name = LinkWriter(ctx.view).target(target)
    problems: list[Problem] = []
    counts: list[ChangedLinks] = []
    changes: list[ModifyFile] = []
    for source, text in args.texts(ctx, problems):
        if source == target or not pattern.search(text):
            continue
        content, count = _linked(text, pattern, name, target, first=args.occurrences == "first")
        if count:
            path.parse(source.text, PathUse.UPDATE)
            counts.append(ChangedLinks(path=source.text, count=count))
            changes.append(ModifyFile(source, encode(content)))
    if not counts:
        problems.append(Problem("TEXT_NOT_FOUND", f"Nothing mentions {target} without a link, so nothing is changed.", path=args.path))
    return Proposal(ChangedLinksOutput(files=counts, total=sum(file.count for file in counts)), tuple(changes), tuple(problems))


def _pattern(names: list[str]) -> regex.Pattern[str]:
    """One of the names in any case, long ones first, not as parts of longer words."""
    each = (r"[ \t]+".join(map(regex.escape, name.split())) for name in sorted(names, key=len, reverse=True))
    return regex.compile(rf"(?<![\w/#])(?:{'|'.join(each)})(?![\w/])", regex.IGNORECASE | regex.FULLCASE)


def _linked(text: str, pattern: regex.Pattern[str], name: str, target: VaultPath, *, first: bool) -> tuple[str, int]:
    """The text with links in place of mentions. One that would be no link where it stands (in code, say) stays as it is."""
    hidden: set[int] = set()
    while True:
        mentions = [found for found in _mentions(text, pattern) if found.start() not in hidden][: 1 if first else None]
        content, places = _written(text, mentions, name)
        there = {link.start for link in links_in(encode(content))}
        lost = {found.start() for found, at in zip(mentions, places, strict=True) if at not in there}
        if not lost:
            return content, len(mentions)
        hidden |= lost


def _mentions(text: str, pattern: regex.Pattern[str]) -> Iterator[regex.Match[str]]:
    """Where the names stand in paragraphs, lists, quotes and tables, not in headings, links, code, addresses and tags."""
    headings = [(heading.start, heading.end) for heading in edits.headings(text)]
    for line in scan(text):
        if line.hidden or any(start <= line.start < end for start, end in headings):
            continue
        taken = [found.span() for found in _TAKEN.finditer(text, line.start, line.end)]
        for found in pattern.finditer(text, line.start, line.end):
            if not any(start < found.end() and found.start() < end for start, end in taken):
                yield found


def _written(text: str, mentions: list[regex.Match[str]], name: str) -> tuple[str, list[int]]:
    """The text with the links, and the offset of each in its bytes."""
    pieces: list[str] = []
    places: list[int] = []
    end = size = 0
    for found in mentions:
        before = text[end : found.start()]
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        pipe = "\\|" if line.lstrip(" \t>").startswith("|") else "|"
        link = f"[[{name}]]" if found[0] == name else f"[[{name}{pipe}{found[0]}]]"
        places.append(size + len(before.encode()))
        size = places[-1] + len(link.encode())
        pieces += before, link
        end = found.end()
    return "".join([*pieces, text[end:]]), places
