"""The links between the files of a vault: who links to what, what leads nowhere, who links back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import VaultError
from obsidian_agent.vault.links.resolve import LinkResolver, normal_text
from obsidian_agent.vault.markdown import note as scan
from obsidian_agent.vault.markdown.canvas import CANVAS, canvas_links
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.markdown.note import links_in
from obsidian_agent.vault.paths.path import VaultPath


@dataclass(frozen=True, slots=True)
class NoteLinks:
    """The links of a note: sorted sets. A link to the note itself is in `outgoing` and not in `backlinks`.

    `backlinks` come from notes only, as in Obsidian's own index; `canvases` are those with a card that is the note or links to it.
    """

    outgoing: tuple[VaultPath, ...] = ()
    unresolved: tuple[str, ...] = ()
    """Targets as written, in NFC and without `.md`."""
    backlinks: tuple[VaultPath, ...] = ()
    canvases: tuple[VaultPath, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """All links of one state of a vault: those of each note and canvas, and of each file that one leads to."""

    links: Mapping[VaultPath, NoteLinks]
    unreadable: tuple[VaultPath, ...] = ()
    """Notes and canvases that could not be read; they count as files without links."""

    @property
    def sources(self) -> tuple[VaultPath, ...]:
        """The notes and canvases, sorted."""
        return tuple(sorted(path for path in self.links if path.is_note or path.suffix == CANVAS))

    def of(self, file: VaultPath) -> NoteLinks:
        """The links of one note or canvas (or of any file: then only who links to it)."""
        return self.links.get(file, NoteLinks())


def links_of(path: VaultPath, data: bytes) -> tuple[Link, ...]:
    """The links in a file's bytes: of a note or a canvas; other files have none."""
    if path.is_note:
        return links_in(data)
    if path.suffix == CANVAS:
        return canvas_links(data)
    return ()


def links_where(path: VaultPath, data: bytes, wanted: Callable[[str], bool]) -> tuple[Link, ...]:
    """Those of `links_of` whose targets are wanted, faster where few are."""
    if path.is_note:
        return scan.links_where(data, wanted)
    return tuple(link for link in links_of(path, data) if wanted(link.target))


def unresolved_name(target: str) -> str:
    """The name under which a target that leads nowhere is listed."""
    name = normal_text(target)
    return name[:-3] if name.lower().endswith(".md") else name


def link_graph(paths: Iterable[VaultPath], read: Callable[[VaultPath], bytes]) -> LinkGraph:
    """The links between files, whose bytes `read` gives. Links of a note to a place in itself are in it too, which an index leaves out."""
    files = sorted(paths)
    resolver = LinkResolver(files)
    found: dict[VaultPath, tuple[set[VaultPath], set[str]]] = {}
    notes, canvases = (
        defaultdict[VaultPath, list[VaultPath]](list),
        defaultdict[VaultPath, list[VaultPath]](list),
    )
    unreadable: list[VaultPath] = []
    for source in files:
        if not source.is_note and source.suffix != CANVAS:
            continue
        outgoing, lost = found[source] = set[VaultPath](), set[str]()
        try:
            links = links_of(source, read(source))
        except VaultError:
            unreadable.append(source)
            continue
        for link in links:
            target = resolver.resolve(link.target, source)
            if target is None:
                lost.add(unresolved_name(link.target))
            else:
                outgoing.add(target)
        linking = notes if source.is_note else canvases
        for target in outgoing - {source}:
            linking[target].append(source)
    graph: dict[VaultPath, NoteLinks] = {}
    for file in {**found, **notes, **canvases}:
        outgoing, lost = found.get(file, (set(), set()))
        graph[file] = NoteLinks(
            tuple(sorted(outgoing)), tuple(sorted(lost)), tuple(notes[file]), tuple(canvases[file])
        )
    return LinkGraph(graph, tuple(unreadable))
