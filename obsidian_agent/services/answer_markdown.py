"""An answer as the Markdown of a note: its paths become links, and its own words tag nothing."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from obsidian_agent.expression import expression
from obsidian_agent.vault.links.link_text import LinkStyle, link_style, link_target
from obsidian_agent.vault.links.resolve import LinkResolver
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse

if TYPE_CHECKING:
    from obsidian_agent.services.open_vault import OpenVault

_ASIDES: Final = expression(r"\n\n(?:Not used|Or did you mean): ")
"""The remarks below an answer that concern the question, not the notes."""
_QUERY: Final = expression(r".*: (?:[\d,]+|nothing found\.)")
"""The first line of an answer without a model, which states the query and a count."""
_ITEM: Final = expression(r"(\s*(?:[-*+]|\d+[.)])\s+)(.+)")
_ENDING: Final = expression(r"\.\w+(?=$|:| ›)")
_TAG: Final = expression(r"(?<![^\s(>])#(?=[^\s#])")
_COUNTED_TAG: Final = expression(r"- #\S+ \([\d,]+\)")
_NOT_IN_LINK: Final = frozenset("[]|#^")


def answer_markdown(answer: str, note: str, vault: OpenVault) -> str:
    """Return an answer as text for a note of the vault. May block."""
    files = [entry.path for entry in vault.view().walk(ROOT) if entry.kind == "file"]
    links = _Links(
        parse(note, PathUse.READ),
        LinkResolver(files),
        link_style(vault.store),
        frozenset(path.text for path in files),
    )
    first, *lines = _ASIDES.split(answer, maxsplit=1)[0].split("\n")
    linked = [links.in_item(line) for line in lines]
    if linked != lines or _QUERY.fullmatch(first):
        first = _untagged(first)
    return "\n".join([first, *linked])


class _Links(Struct, frozen=True):
    note: VaultPath
    resolver: LinkResolver
    style: LinkStyle
    paths: Set[str]

    def in_item(self, line: str) -> str:
        """Return a line of a list with a link for the path that it starts or ends with."""
        item = _ITEM.fullmatch(line)
        if item is None or _COUNTED_TAG.fullmatch(line):
            return _untagged(line) if item is not None else line
        mark, text = item[1], item[2]
        for ending in _ENDING.finditer(text):
            if text[: ending.end()] in self.paths:
                return mark + self._link(text[: ending.end()]) + _untagged(text[ending.end() :])
        before, colon, last = text.rpartition(": ")
        if last in self.paths:
            return f"{mark}{_untagged(before)}{colon}{self._link(last)}"
        return line

    def _link(self, text: str) -> str:
        path = parse(text, PathUse.READ)
        if not _NOT_IN_LINK.isdisjoint(text):
            return text
        target = link_target(self.resolver, path, self.note, self.style)
        return f"[{path.stem}]({target})" if self.style.markdown else f"[[{target}]]"


def _untagged(text: str) -> str:
    """Return a text in which each `#` before a word is only that character."""
    return _TAG.sub(r"\\#", text)
