"""An answer as the Markdown of a note: its links suit the vault, and its own words tag nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from obsidian_agent.expression import expression
from obsidian_agent.vault.links.link_text import LinkStyle, link_style, link_target
from obsidian_agent.vault.links.resolve import LinkResolver
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse

if TYPE_CHECKING:
    from obsidian_agent.services.open_vault import OpenVault

_ASIDES: Final = expression(r"\n\n(?:Not used: |Or did you mean: |Notes with most of the words )")
"""The remarks below an answer that concern the question, not the notes."""
_QUERY: Final = expression(
    r"(?:Yes: )?(?:[\d,]+ .*:|No .*\.|.* of .*: .*|.* first: .*|Dates in .*|Words in .*)"
    r"|Notes with most of the words .*"
)
"""The first line of an answer without a model, which states the query and its result."""
_ITEM: Final = expression(r"(\s*(?:[-*+]|\d+[.)])\s+)(.+)")
_LINKED: Final = expression(r"\[\[([^\[\]|#^]+)\]\]")
_TAG: Final = expression(r"(?<![^\s(>])#(?=[^\s#])")


def answer_markdown(answer: str, note: str, vault: OpenVault) -> str:
    """Return an answer as text for a note of the vault. May block."""
    text = _ASIDES.split(answer, maxsplit=1)[0]
    if not _QUERY.fullmatch(text.partition("\n")[0]):
        return text
    files = [entry.path for entry in vault.view().walk(ROOT) if entry.kind == "file"]
    links = _Links(parse(note, PathUse.READ), LinkResolver(files), link_style(vault.store))
    return "\n".join(map(links.in_line, text.split("\n")))


class _Links(Struct, frozen=True):
    note: VaultPath
    resolver: LinkResolver
    style: LinkStyle

    def in_line(self, line: str) -> str:
        """Return a line; if it is an item, with the vault's kind of link where it has a note."""
        item = _ITEM.fullmatch(line)
        if item is None:
            return _untagged(line)
        mark, text = item[1], item[2]
        before, colon, last = text.rpartition(": ")
        if first := _LINKED.match(text):
            return mark + self._link(first[1]) + _untagged(text[first.end() :])
        if linked := _LINKED.fullmatch(last):
            return f"{mark}{_untagged(before)}{colon}{self._link(linked[1])}"
        return mark + _untagged(text)

    def _link(self, text: str) -> str:
        path = self.resolver.resolve(text, self.note)
        if path is None:
            return f"[[{text}]]"
        target = link_target(self.resolver, path, self.note, self.style)
        return f"[{path.stem}]({target})" if self.style.markdown else f"[[{target}]]"


def _untagged(text: str) -> str:
    """Return a text in which each `#` before a word is only that character."""
    return _TAG.sub(r"\\#", text)
