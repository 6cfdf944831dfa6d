"""The graph of links between the files of a vault: outgoing, unresolved and backlinks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.links.resolve import LinkResolver, normal_text
from obsidian_agent.vault.markdown import note as scan
from obsidian_agent.vault.markdown.canvas import CANVAS, canvas_links
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.markdown.note import links_in
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.paths.rules import extension

ATTACHMENTS: Final = frozenset((
    ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".bmp", ".pdf",
    ".mp3", ".mp4", ".mov", ".mkv", ".webm", ".wav", ".ogg", ".m4a", ".flac",
    ".tif", ".tiff", ".heic", ".3gp", ".zip", ".docx", ".xlsx", ".pptx",
))  # fmt: skip
"""The extensions of attachments."""

_OTHER_FILES: Final = ATTACHMENTS | {".base", ".canvas", ".csv", ".txt", ".json", ".excalidraw"}


class NoteLinks(Struct, frozen=True):
    """The links of a file, each set sorted.

    A link of a note to itself is in `outgoing` but not in `backlinks`.
    """

    outgoing: tuple[VaultPath, ...] = ()
    unresolved: tuple[str, ...] = ()
    """Targets as written, in NFC and without `.md`."""
    backlinks: tuple[VaultPath, ...] = ()
    """Notes that link to the file. Canvases are not counted, as in Obsidian's own index."""
    canvases: tuple[VaultPath, ...] = ()
    """Canvases with a card that is the file or links to it."""


class LinkGraph(Struct, frozen=True):
    """The links of one state of a vault."""

    links: Mapping[VaultPath, NoteLinks]
    """The links of every note, every canvas and every file that one of them links to."""
    unreadable: tuple[VaultPath, ...] = ()
    """Notes and canvases that could not be read. They count as files without links."""

    @property
    def sources(self) -> tuple[VaultPath, ...]:
        """The notes and canvases, sorted."""
        return tuple(sorted(path for path in self.links if path.is_note or path.suffix == CANVAS))

    def of(self, file: VaultPath) -> NoteLinks:
        """Return the links of a file. Files other than notes and canvases have backlinks only."""
        return self.links.get(file, NoteLinks())


def links_of(path: VaultPath, data: bytes) -> tuple[Link, ...]:
    """Return the links in the bytes of a note or canvas. Other files have none."""
    if path.is_note:
        return links_in(data)
    if path.suffix == CANVAS:
        return canvas_links(data)
    return ()


def links_where(path: VaultPath, data: bytes, matches: Callable[[str], bool]) -> tuple[Link, ...]:
    """Return the links whose target `matches`. Faster than `links_of` if few do."""
    if path.is_note:
        return scan.links_where(data, matches)
    return tuple(link for link in links_of(path, data) if matches(link.target))


def links_to(path: VaultPath, data: bytes, targets: Collection[str]) -> tuple[Link, ...]:
    """Return the links with some targets, each of which is known to be one of the file."""
    if path.is_note:
        return scan.links_to(data, targets)
    return links_where(path, data, targets.__contains__)


def unresolved_name(target: str) -> str:
    """Return the name under which an unresolved target is listed."""
    name = normal_text(target)
    return name[:-3] if name.lower().endswith(".md") else name


def means_note(target: str) -> bool:
    """Return whether an unresolved target is the name of a note: "Dr. Who" is, "cat.png" is not."""
    return extension(target).lower() not in _OTHER_FILES


def link_graph(paths: Iterable[VaultPath], read: Callable[[VaultPath], bytes]) -> LinkGraph:
    """Build the graph of the links between files, whose bytes `read` returns.

    Links of a note to one of its own headings are included, although the index omits them.
    """
    files = sorted(paths)
    resolver = LinkResolver(files)
    targets: dict[VaultPath, tuple[set[VaultPath], set[str]]] = {}
    notes = defaultdict[VaultPath, list[VaultPath]](list)
    canvases = defaultdict[VaultPath, list[VaultPath]](list)
    unreadable: list[VaultPath] = []
    for source in files:
        if not source.is_note and source.suffix != CANVAS:
            continue
        outgoing, unresolved = targets[source] = set[VaultPath](), set[str]()
        try:
            links = links_of(source, read(source))
        except VaultError:
            unreadable.append(source)
            continue
        for link in links:
            target = resolver.resolve(link.target, source)
            if target is None:
                unresolved.add(unresolved_name(link.target))
            else:
                outgoing.add(target)
        linking = notes if source.is_note else canvases
        for target in outgoing - {source}:
            linking[target].append(source)
    graph: dict[VaultPath, NoteLinks] = {}
    for file in {**targets, **notes, **canvases}:
        outgoing, unresolved = targets.get(file, (set(), set()))
        graph[file] = NoteLinks(
            outgoing=tuple(sorted(outgoing)),
            unresolved=tuple(sorted(unresolved)),
            backlinks=tuple(notes[file]),
            canvases=tuple(canvases[file]),
        )
    return LinkGraph(graph, tuple(unreadable))
