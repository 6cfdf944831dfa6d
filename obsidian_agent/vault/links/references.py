"""References of a note to files that are no links of Obsidian's graph: what a definition (`[label]: Note.md`), an attribute of HTML and an
address of Obsidian (`obsidian://open?vault=Notes&file=Note`) name.

They lead somewhere in a preview or in another program, so a rename keeps their meaning, with the rules of Markdown links. Where they can stand is
told by a reader of CommonMark (markdown-it-py) and one of HTML; only notes in which a quick look finds something go through them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import unescape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from obsidian_agent.expression import expression
from obsidian_agent.vault.frontmatter.properties import find_frontmatter
from obsidian_agent.vault.markdown.inline import decoded, is_external, markdown_link
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.text import BOM

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

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
_ADDRESS_SIGN: Final = expression(rb"obsidian://", re.IGNORECASE)
_ADDRESS: Final = expression(
    r"obsidian://[a-z-]+/?\?((?:[^\s<>\"`|\\()\[\]{}]|\([^\s<>\"`|\\()]*\))*)", re.IGNORECASE
)
"""The parameters of an address; brackets are balanced, as in the destination of a Markdown link."""
_PARAMETER: Final = expression(r"(?<=[?&;])([a-z]+)=([^&]*)", re.IGNORECASE)
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
    attributes = _ASSIGNED.search(data) is not None and (
        (lowered := data.lower()).find(b"href") >= 0 or lowered.find(b"src") >= 0
    )
    if not labels and not attributes and not _ADDRESS_SIGN.search(data):
        return NONE
    note = _Note(data.decode(errors="replace"))
    seen = (*note.seen(attributes=attributes), *note.addresses())
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
        code: list[tuple[int, int]] = []
        for token in _reader().parse(text[base:], found):
            if token.map is None:
                continue
            start, end = lines[token.map[0]], lines[min(token.map[1], len(lines) - 1)]
            if token.type == "fence":
                code.append((start, end))
            if token.type == "html_block":
                yield from self._tags(start, end, start)
            block = start
            for child in token.children or ():
                if child.type in ("html_inline", "code_inline") and (
                    place := _written(child.content).search(text, start, end)
                ):
                    start = place.end()
                    if child.type == "html_inline":
                        yield from self._tags(*place.span(), block)
                    else:
                        code.append(place.span())
        for definition in (*found.get("references", {}).values(), *found.get("duplicate_refs", ())):
            opening = _OPENING.match(text, lines[definition["map"][0]])
            if opening and (place := _DEFINITION.match(text, opening.end())):
                yield from self._definition(place)
        yield from self.addresses(code)

    def addresses(self, code: Sequence[tuple[int, int]] = ()) -> Iterator[Link]:
        """The addresses of Obsidian that name a file, outside of `code`. Their `display` is the name of the vault."""
        for found in _ADDRESS.finditer(self.text):
            if any(start <= found.start() < end for start, end in code):
                continue
            vault: str | None = None
            file: re.Match[str] | None = None
            for parameter in _PARAMETER.finditer(self.text, found.start(1), found.end(1)):
                name = parameter[1].lower()
                if name == "vault":
                    vault = decoded(parameter[2].encode("utf-8", "replace"))
                elif name in ("file", "filepath"):
                    file = parameter
            piece = "" if file is None else _SUBPATH.split(file[2], maxsplit=1)[0].rstrip(".,;:!?'")
            path = decoded(piece.encode("utf-8", "replace"))
            if file is not None and path.strip() and path == path.strip():
                start, first, end, line = self._places(
                    *found.span()[:1], file.start(2), found.end()
                )
                last = first + len(piece.encode())
                subpath = decoded(file[2][len(piece) :].encode("utf-8", "replace"))
                yield Link("uri", path, subpath, vault, start, end, first, last, line)

    def _tags(self, start: int, end: int, block: int) -> Iterator[Link]:
        """What the tags of HTML between two places name, in a block that begins at a third."""
        opening = _OPENING.match(self.text, block)
        quotes = re.compile(rf"(?<=\n)(?:[ \t]*>){{0,{opening[0].count('>') if opening else 0}}}")
        piece = quotes.sub(lambda mark: " " * len(mark[0]), self.text[start:end])
        from obsidian_agent.vault.links.html_tags import (
            opening_tags,
        )  # few notes need the reader of HTML

        for at, tag in opening_tags(piece):
            named = _TAG_NAME.match(tag)
            for attribute in _ATTRIBUTE.finditer(
                piece, at + (named.end() if named else 0), at + len(tag)
            ):
                if attribute[1].lower() in ("href", "src"):
                    yield from self._attribute(
                        attribute, 2, start + at, start + at + len(tag), start
                    )

    def _definition(self, found: re.Match[str]) -> Iterator[Link]:
        group = 1 if found[1] is not None else 2
        raw = found[group].encode()
        if not is_external(raw) and not raw.startswith(b"#"):
            start, first, end, line = self._places(found.start(), found.start(group), found.end())
            link = markdown_link(b"", raw, start, end, first, line, embed=False, angle=group == 1)
            yield link._replace(kind="definition", display=None)

    def _attribute(
        self, found: re.Match[str], first_group: int, start: int, end: int, base: int = 0
    ) -> Iterator[Link]:
        """The link of an attribute whose value is in one of three groups; `base` is where in the note the matched text begins."""
        group = next(
            (group for group in range(first_group, first_group + 3) if found[group] is not None), 0
        )
        raw = found[group] if group else ""
        piece = _SUBPATH.split(raw, 1)[0]
        path = decoded(unescape(piece).encode("utf-8", "replace"))
        if (
            not piece.strip()
            or "\\" in raw
            or is_external(unescape(raw).strip().encode("utf-8", "replace"))
        ):
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


@lru_cache(maxsize=1)
def _reader() -> MarkdownIt:
    """Blocks, definitions, code and HTML: nothing else of Markdown hides or holds a reference."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["link", "image", "emphasis", "entity", "newline"])


def _written(content: str) -> re.Pattern[str]:
    """A pattern for a piece of text as it stands in the note: behind line ends there may be quote marks and blanks."""
    return re.compile(r"(?:\r\n?|\n)[ \t>]*".join(map(re.escape, re.split(r"[ ]?\n[ ]?", content))))
