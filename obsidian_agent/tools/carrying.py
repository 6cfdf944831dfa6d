"""Text that goes from one note to another: its links still lead where they did, and links to its headings and blocks follow it."""

from __future__ import annotations

from dataclasses import dataclass

from obsidian_agent.errors import Problem
from obsidian_agent.tools.base import ToolContext
from obsidian_agent.tools.places import Place, place_key, redirected, rewritten, subpath_keys, targets
from obsidian_agent.vault import paths
from obsidian_agent.vault.changes import ModifyFile
from obsidian_agent.vault.index import index_of
from obsidian_agent.vault.paths import PathUse, VaultPath
from obsidian_agent.vault.relink_shape import Shape, shape_of
from obsidian_agent.vault.relink_text import Edit, apply, target_edit
from obsidian_agent.vault.scan import scan_text
from obsidian_agent.vault.scan_model import Link

INTO = "The note that it will be put into: links in it lead where they did, and links to its headings and blocks follow."


@dataclass(frozen=True, slots=True)
class Carried:
    """The text as it must stand in the other note, the rest of the note it came from, and the other notes whose links follow."""

    text: str
    rest: str
    changes: tuple[ModifyFile, ...] = ()
    problems: tuple[Problem, ...] = ()


def destination(into: str | None, ctx: ToolContext) -> VaultPath | None:
    """The note that `into` names; it need not exist yet. What leads out of the vault is refused."""
    if into is None:
        return None
    path = paths.parse(into, PathUse.READ)
    entry = ctx.view.locate(path)
    return path if entry is None else entry.path


def copied(text: str, source: VaultPath, target: VaultPath | None, ctx: ToolContext) -> str:
    """A part of a note as it must stand in another note, while the first one keeps it."""
    if target is None or target == source:
        return text
    return _adjusted(text, source, target, ctx, here=_places(text))


def taken(text: str, rest: str, source: VaultPath, target: VaultPath | None, ctx: ToolContext, title: str | None = None) -> Carried:
    """A part of a note that leaves it for another one; `rest` is what remains. Links to the heading `title` lead to the other note itself."""
    if target is None or target == source:
        return Carried(text, rest)
    gone = _places(text) - _places(rest)
    problems: list[Problem] = []

    def follow(subpath: str) -> Place | None:
        keys = subpath_keys(subpath)
        if not keys or keys[-1] not in gone:
            return None
        return Place(target, "" if title is not None and keys[-1] == place_key(title) else subpath)

    index = index_of(ctx.view)
    left, _ = rewritten(rest.encode(), source, source, follow, index, ctx.run.link_style)
    files = redirected(ctx, source, follow, problems) if gone else {}
    changes = tuple(ModifyFile(path, data) for path, (data, _) in files.items() if path != source)
    moved = _adjusted(text, source, target, ctx, here=_places(text))
    if gone:
        moved = rewritten(moved.encode(), target, source, follow, index, ctx.run.link_style)[0].decode()
    return Carried(moved, left.decode(), changes, tuple(problems))


def _places(text: str) -> set[str]:
    """The headings and blocks of a text, as links to them are compared."""
    scanned = scan_text(text)
    return {place_key(heading.text) for heading in scanned.headings} | {f"^{block.name}" for block in scanned.blocks}


def _adjusted(text: str, source: VaultPath, target: VaultPath, ctx: ToolContext, here: set[str]) -> str:
    """The text with those links written anew that would mean something else in the other note."""
    data = text.encode()
    edits = [edit for link in scan_text(text).links if (edit := _edit(data, link, source, target, ctx, here)) is not None]
    return apply(data, edits).decode() if edits else text


def _edit(data: bytes, link: Link, source: VaultPath, target: VaultPath, ctx: ToolContext, here: set[str]) -> Edit | None:
    index, style = index_of(ctx.view), ctx.run.link_style
    if not link.target:
        keys = subpath_keys(link.subpath)
        if not keys or keys[-1] in here:
            return None
        meant, shape = source, Shape("name", extension=link.is_markdown)
    else:
        found = index.resolve(link.target, source)
        if found is None or index.resolve(link.target, target) == found:
            return None
        meant, shape = found, shape_of(link.target, found, source, style)
    texts = targets(shape, meant, target, index, style)
    return next((edit for text in texts if (edit := target_edit(data, link, text, canvas=False)) is not None), None)
