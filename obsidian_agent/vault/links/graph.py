"""The links between the files of a vault: who links to what, what leads nowhere, who links back; and references that are no links of Obsidian's graph.

Those are what a definition (`[label]: Note.md`) and an attribute of HTML name. They lead somewhere in a preview or in another program, so a rename
keeps their meaning, with the rules of Markdown links. Where they can stand is told by a reader of CommonMark (markdown-it-py) and one of HTML; only
notes in which a quick look finds something go through them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from html import unescape
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import VaultError
from obsidian_agent.expression import expression
from obsidian_agent.vault.frontmatter.properties import find_frontmatter
from obsidian_agent.vault.links.resolve import LinkResolver, normal_text
from obsidian_agent.vault.markdown import note as scan
from obsidian_agent.vault.markdown.canvas import CANVAS, canvas_links
from obsidian_agent.vault.markdown.inline import decoded, is_external, markdown_link
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.markdown.note import links_in
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import BOM

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


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
    def notes(self) -> tuple[VaultPath, ...]:
        """The notes, sorted."""
        return tuple(sorted(path for path in self.links if path.is_note))

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
    notes, canvases = defaultdict[VaultPath, list[VaultPath]](list), defaultdict[VaultPath, list[VaultPath]](list)
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
        graph[file] = NoteLinks(tuple(sorted(outgoing)), tuple(sorted(lost)), tuple(notes[file]), tuple(canvases[file]))
    return LinkGraph(graph, tuple(unreadable))


LONGEST: Final = 100_000
"""Characters of a note that is read properly; one made to be hard takes seconds then. Longer ones are only looked at."""

_NAMED: Final = r"\]:[ \t]*(?:\r?\n[ \t>]*)?(?:<([^<>\r\n]+)>|([^\s<]\S*))"
_LABEL_END: Final = expression(rb"\]:")
_ASSIGNED: Final = expression(rb"=(?<=[fFcC\s\x80-\xff]=)")
"""What a note with definitions, or with attributes that name files, certainly holds."""

_BEHIND_LABEL: Final = expression(_NAMED)
_DEFINITION: Final = expression(rf"\[(?!\^)(?>(?:[^\[\]\\]|\\.){{1,999}}){_NAMED}")
_OPENING: Final = expression(r"(?>(?:[ \t>]|(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*)")
_VALUE: Final = r"""\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+))"""
_NAMING: Final = expression(rf"\b(?:href|src){_VALUE}", re.IGNORECASE)
_ATTRIBUTE: Final = expression(rf"""[\s/]*+([^\s"'<>/=]+)(?:{_VALUE})?""")
_TAG_NAME: Final = expression(r"<[^\s/>]*")
_LINE_END: Final = expression(r"\r\n?|\n")
_SUBPATH: Final = expression(r"(?<!&)#|%23")


class References(NamedTuple):
    """The references to files in a note, in order. Not `sure`: the note is too long to tell code from text, and nothing may be written."""

    links: tuple[Link, ...] = ()
    sure: bool = True


NONE: Final = References()


def references_in(data: bytes) -> References:
    """The references in a note to what can be files; bytes that are not UTF-8 count as U+FFFD."""
    labels = _LABEL_END.search(data) is not None
    attributes = _ASSIGNED.search(data) is not None and ((lowered := data.lower()).find(b"href") >= 0 or lowered.find(b"src") >= 0)
    if not labels and not attributes:
        return NONE
    note = _Note(data.decode(errors="replace"))
    seen = tuple(note.seen(attributes=attributes))
    if not seen or len(note.text) > LONGEST:
        return References(seen, sure=not seen)
    return References(tuple(sorted(note.read(), key=lambda link: link.target_start)))


class _Note:
    """The text of one note, and links made of what is found in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._counted = (0, 0, 1)

    def seen(self, *, attributes: bool) -> Iterator[Link]:
        """Whatever looks like a reference, also in code."""
        for found in _BEHIND_LABEL.finditer(self.text):
            label = self.text.rfind("[", max(0, found.start() - 1_000), found.start())
            if label >= 0 and not self.text.startswith("[^", label):
                yield from self._definition(found)
        for found in _NAMING.finditer(self.text) if attributes else ():
            yield from self._attribute(found, 1, found.start(), found.end())

    def read(self) -> Iterator[Link]:
        """The references, as the reader of Markdown finds them."""
        text = self.text
        front = find_frontmatter(text)
        base = front.body_start if front else len(BOM) if text.startswith(BOM) else 0
        lines = [base, *(end.end() for end in _LINE_END.finditer(text, base)), len(text)]
        found: dict[str, Any] = {}
        for token in _reader().parse(text[base:], found):
            if token.map is None:
                continue
            start, end = lines[token.map[0]], lines[min(token.map[1], len(lines) - 1)]
            if token.type == "html_block":
                yield from self._tags(start, end, start)
            block = start
            for child in token.children or ():
                if child.type in ("html_inline", "code_inline") and (place := _written(child.content).search(text, start, end)):
                    start = place.end()
                    if child.type == "html_inline":
                        yield from self._tags(*place.span(), block)
        for definition in (*found.get("references", {}).values(), *found.get("duplicate_refs", ())):
            opening = _OPENING.match(text, lines[definition["map"][0]])
            if opening and (place := _DEFINITION.match(text, opening.end())):
                yield from self._definition(place)

    def _tags(self, start: int, end: int, block: int) -> Iterator[Link]:
        """What the tags of HTML between two places name, in a block that begins at a third."""
        opening = _OPENING.match(self.text, block)
        quotes = re.compile(rf"(?<=\n)(?:[ \t]*>){{0,{opening[0].count('>') if opening else 0}}}")
        piece = quotes.sub(lambda mark: " " * len(mark[0]), self.text[start:end])
        for at, tag in _Tags(piece).found:
            named = _TAG_NAME.match(tag)
            for attribute in _ATTRIBUTE.finditer(piece, at + (named.end() if named else 0), at + len(tag)):
                if attribute[1].lower() in ("href", "src"):
                    yield from self._attribute(attribute, 2, start + at, start + at + len(tag), start)

    def _definition(self, found: re.Match[str]) -> Iterator[Link]:
        group = 1 if found[1] is not None else 2
        raw = found[group].encode()
        if not is_external(raw) and not raw.startswith(b"#"):
            start, first, end, line = self._places(found.start(), found.start(group), found.end())
            link = markdown_link(b"", raw, start, end, first, line, embed=False, angle=group == 1)
            yield link._replace(kind="definition", display=None)

    def _attribute(self, found: re.Match[str], first_group: int, start: int, end: int, base: int = 0) -> Iterator[Link]:
        """The link of an attribute whose value is in one of three groups; `base` is where in the note the matched text begins."""
        group = next((group for group in range(first_group, first_group + 3) if found[group] is not None), 0)
        raw = found[group] if group else ""
        piece = _SUBPATH.split(raw, 1)[0]
        path = decoded(unescape(piece).encode("utf-8", "replace"))
        if not piece.strip() or "\\" in raw or is_external(unescape(raw).strip().encode("utf-8", "replace")):
            return
        blank = len(piece) - len(piece.lstrip())
        begin, first, behind, line = self._places(start, base + found.start(group) + blank, end)
        last = first + len(piece.strip().encode())
        yield Link("html", path.strip(), raw[len(piece) :], None, begin, behind, first, last, line)

    def _places(self, start: int, first: int, end: int) -> tuple[int, int, int, int]:
        """Three places in bytes, and the line of the first; quick when asked in ascending order."""
        known, at, line = self._counted if start >= self._counted[0] else (0, 0, 1)
        between = self.text[known:start]
        at += len(between.encode())
        line += between.count("\n")
        self._counted = start, at, line
        inner = at + len(self.text[start:first].encode())
        return at, inner, inner + len(self.text[first:end].encode()), line


class _Tags(HTMLParser):
    """The opening tags of a piece of HTML, each with its place; those in comments, scripts and styles are none."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[tuple[int, str]] = []
        self._lines = [0, *(at + 1 for at, sign in enumerate(text) if sign == "\n")]
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        line, column = self.getpos()
        self.found.append((self._lines[line - 1] + column, self.get_starttag_text() or ""))


@lru_cache(maxsize=1)
def _reader() -> MarkdownIt:
    """Blocks, definitions, code and HTML: nothing else of Markdown hides or holds a reference."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["link", "image", "emphasis", "entity", "newline"])


def _written(content: str) -> re.Pattern[str]:
    """A pattern for a piece of text as it stands in the note: behind line ends there may be quote marks and blanks."""
    return re.compile(r"(?:\r\n?|\n)[ \t>]*".join(map(re.escape, re.split(r"[ ]?\n[ ]?", content))))
