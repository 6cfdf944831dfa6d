"""References to files that are not in Obsidian's graph: definitions, HTML attributes and URIs.

Definitions (`[label]: Note.md`), attributes such as `href`, and URIs such as
`obsidian://open?vault=Notes&file=Note` work in previews and other programs, so a rename updates
them by the rules of Markdown links. markdown-it-py and an HTML parser locate them, but only in
notes where a quick search finds a candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import unescape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from obsidian_agent.expression import expression
from obsidian_agent.vault.frontmatter.properties import find_frontmatter
from obsidian_agent.vault.markdown.inline import decoded, is_external, read_destination
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.text import BOM

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MAX_PARSED: Final = 100_000
"""Characters of a note that is parsed. Hostile notes of this length take seconds; longer ones are
only searched for candidates."""

_LABEL_DESTINATION: Final = r"\]:[ \t]*(?:\r?\n[ \t>]*)?(?:<([^<>\r\n]+)>|([^\s<]\S*))"
_LABEL_END: Final = expression(rb"\]:")
_ASSIGNED: Final = expression(rb"=(?<=[fFcC\s\x80-\xff]=)")
"""A part of every attribute `href` or `src`, as `_LABEL_END` is of every definition."""

_AFTER_LABEL: Final = expression(_LABEL_DESTINATION)
_DEFINITION: Final = expression(rf"\[(?!\^)(?>(?:[^\[\]\\]|\\.){{1,999}}){_LABEL_DESTINATION}")
_OPENING: Final = expression(r"(?>(?:[ \t>]|(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*)")
_VALUE: Final = r"""\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+))"""
_FILE_ATTRIBUTE: Final = expression(rf"\b(?:href|src){_VALUE}", re.IGNORECASE)
_ATTRIBUTE: Final = expression(rf"""[\s/]*+([^\s"'<>/=]+)(?:{_VALUE})?""")
_TAG_NAME: Final = expression(r"<[^\s/>]*")
_URI_SCHEME: Final = expression(rb"obsidian://", re.IGNORECASE)
_URI: Final = expression(
    r"obsidian://[a-z-]+/?\?((?:[^\s<>\"`|\\()\[\]{}]|\([^\s<>\"`|\\()]*\))*)", re.IGNORECASE
)
"""The parameters of a URI. Brackets are balanced, as in the destination of a Markdown link."""
_PARAMETER: Final = expression(r"(?<=[?&;])([a-z]+)=([^&]*)", re.IGNORECASE)
_LINE_END: Final = expression(r"\r\n?|\n")
_SUBPATH: Final = expression(r"(?<!&)#|%23")


class References(NamedTuple):
    """The references to files in a note, in order."""

    links: tuple[Link, ...] = ()
    is_certain: bool = True
    """False if the note is too long to distinguish code from text. It must not be edited then."""


NO_REFERENCES: Final = References()


def references_in(data: bytes) -> References:
    """Return the references to possible files in a note. Invalid UTF-8 counts as U+FFFD."""
    labels = _LABEL_END.search(data) is not None
    attributes = _ASSIGNED.search(data) is not None and (
        (lowered := data.lower()).find(b"href") >= 0 or lowered.find(b"src") >= 0
    )
    if not labels and not attributes and not _URI_SCHEME.search(data):
        return NO_REFERENCES
    note = _Note(data.decode(errors="replace"))
    candidates = (*note.candidates(attributes=attributes), *note.uris())
    if not candidates or len(note.text) > MAX_PARSED:
        return References(candidates, is_certain=not candidates)
    return References(tuple(sorted(note.references(), key=lambda link: link.target_start)))


class _Note:
    """The text of a note, and the references in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._counted = (0, 0, 1)

    def candidates(self, *, attributes: bool) -> Iterator[Link]:
        """Yield everything that looks like a reference, including code."""
        for match in _AFTER_LABEL.finditer(self.text):
            label = self.text.rfind("[", max(0, match.start() - 1_000), match.start())
            if label >= 0 and not self.text.startswith("[^", label):
                yield from self._definition(match)
        for match in _FILE_ATTRIBUTE.finditer(self.text) if attributes else ():
            yield from self._attribute(match, 1, match.start(), match.end())

    def references(self) -> Iterator[Link]:
        """Yield the references that the Markdown parser locates."""
        text = self.text
        front = find_frontmatter(text)
        base = len(BOM) if text.startswith(BOM) else 0
        if front is not None:
            base = front.body_start
        lines = [base, *(end.end() for end in _LINE_END.finditer(text, base)), len(text)]
        env: dict[str, Any] = {}
        code: list[tuple[int, int]] = []
        for token in _parser().parse(text[base:], env):
            if token.map is None:
                continue
            start, end = lines[token.map[0]], lines[min(token.map[1], len(lines) - 1)]
            if token.type == "fence":
                code.append((start, end))
            if token.type == "html_block":
                yield from self._tags(start, end, start)
            block = start
            for child in token.children or ():
                if child.type not in ("html_inline", "code_inline"):
                    continue
                source = _source_pattern(child.content).search(text, start, end)
                if source is None:
                    continue
                start = source.end()
                if child.type == "html_inline":
                    yield from self._tags(*source.span(), block)
                else:
                    code.append(source.span())
        for definition in (*env.get("references", {}).values(), *env.get("duplicate_refs", ())):
            opening = _OPENING.match(text, lines[definition["map"][0]])
            if opening and (match := _DEFINITION.match(text, opening.end())):
                yield from self._definition(match)
        yield from self.uris(code)

    def uris(self, code: Sequence[tuple[int, int]] = ()) -> Iterator[Link]:
        """Yield the obsidian:// URIs that name a file, outside of `code`.

        Their `display` is the name of the vault, or None.
        """
        for uri in _URI.finditer(self.text):
            if any(start <= uri.start() < end for start, end in code):
                continue
            vault: str | None = None
            file: re.Match[str] | None = None
            for parameter in _PARAMETER.finditer(self.text, uri.start(1), uri.end(1)):
                name = parameter[1].lower()
                if name == "vault":
                    vault = decoded(parameter[2].encode("utf-8", "replace"))
                elif name in ("file", "filepath"):
                    file = parameter
            if file is None:
                continue
            piece = _SUBPATH.split(file[2], maxsplit=1)[0].rstrip(".,;:!?'")
            path = decoded(piece.encode("utf-8", "replace"))
            if not path.strip() or path != path.strip():
                continue
            start, first, end, line = self._positions(uri.start(), file.start(2), uri.end())
            yield Link(
                kind="uri",
                target=path,
                subpath=decoded(file[2][len(piece) :].encode("utf-8", "replace")),
                display=vault,
                start=start,
                end=end,
                target_start=first,
                target_end=first + len(piece.encode()),
                line=line,
            )

    def _tags(self, start: int, end: int, block: int) -> Iterator[Link]:
        """Yield the references of HTML tags in a range, within a block that starts at `block`."""
        # Few notes need the HTML parser.
        from obsidian_agent.vault.links.html_tags import opening_tags

        opening = _OPENING.match(self.text, block)
        depth = opening[0].count(">") if opening else 0
        quotes = re.compile(rf"(?<=\n)(?:[ \t]*>){{0,{depth}}}")
        piece = quotes.sub(lambda mark: " " * len(mark[0]), self.text[start:end])
        for at, tag in opening_tags(piece):
            name = _TAG_NAME.match(tag)
            name_end = at + (name.end() if name else 0)
            for attribute in _ATTRIBUTE.finditer(piece, name_end, at + len(tag)):
                if attribute[1].lower() in ("href", "src"):
                    tag_end = start + at + len(tag)
                    yield from self._attribute(attribute, 2, start + at, tag_end, start)

    def _definition(self, match: re.Match[str]) -> Iterator[Link]:
        group = 1 if match[1] is not None else 2
        raw = match[group].encode()
        if is_external(raw) or raw.startswith(b"#"):
            return
        start, first, end, line = self._positions(match.start(), match.start(group), match.end())
        target, subpath, target_start, target_end = read_destination(raw, first)
        yield Link(
            kind="definition",
            target=target,
            subpath=subpath,
            display=None,
            start=start,
            end=end,
            target_start=target_start,
            target_end=target_end,
            line=line,
            form="angle" if group == 1 else "plain",
        )

    def _attribute(
        self, match: re.Match[str], first_group: int, start: int, end: int, base: int = 0
    ) -> Iterator[Link]:
        """Yield the reference of an attribute whose value is in one of three groups, if any.

        `base` is the offset of the searched text in the note.
        """
        groups = range(first_group, first_group + 3)
        group = next((group for group in groups if match[group] is not None), 0)
        raw = match[group] if group else ""
        piece = _SUBPATH.split(raw, 1)[0]
        path = decoded(unescape(piece).encode("utf-8", "replace"))
        external = is_external(unescape(raw).strip().encode("utf-8", "replace"))
        if not piece.strip() or "\\" in raw or external:
            return
        blanks = len(piece) - len(piece.lstrip())
        target_start = base + match.start(group) + blanks
        start, first, end, line = self._positions(start, target_start, end)
        yield Link(
            kind="html",
            target=path.strip(),
            subpath=raw[len(piece) :],
            display=None,
            start=start,
            end=end,
            target_start=first,
            target_end=first + len(piece.strip().encode()),
            line=line,
        )

    def _positions(self, start: int, first: int, end: int) -> tuple[int, int, int, int]:
        """Return three offsets in bytes, and the line of the first. Fast in ascending order."""
        counted, at, line = self._counted if start >= self._counted[0] else (0, 0, 1)
        between = self.text[counted:start]
        at += len(between.encode())
        line += between.count("\n")
        self._counted = start, at, line
        inner = at + len(self.text[start:first].encode())
        return at, inner, inner + len(self.text[first:end].encode()), line


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Return a parser of blocks, definitions, code and HTML, the only parts that matter here."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["link", "image", "emphasis", "entity", "newline"])


def _source_pattern(content: str) -> re.Pattern[str]:
    """Return a pattern for inline content in the note, where lines may start with quote marks."""
    return re.compile(r"(?:\r\n?|\n)[ \t>]*".join(map(re.escape, re.split(r"[ ]?\n[ ]?", content))))
