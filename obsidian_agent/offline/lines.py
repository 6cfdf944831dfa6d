"""The line of the vault that a sentence names by the line's own words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.offline.words import WORD, Word, folded, is_function_word, stem
from obsidian_agent.tools.core.lookup import without_properties
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.index.text_search import folded_needle
from obsidian_agent.vault.markdown.lines import read_item
from obsidian_agent.vault.paths.path import ROOT
from obsidian_agent.vault.text import decode

_MAX_WORDS: Final = 3
"""Words of a sentence by which lines are looked for."""
_MAX_NOTES: Final = 200
"""Notes with one of these words that are read."""
_ENDING: Final = 2
"""Letters at the end of a word that may differ in the line."""
_OPEN: Final = " /"
_MIN_WORD: Final = 4
"""Letters of the only word by which a line may be named."""


class NamedLine(Struct, frozen=True):
    """A line of a note without its marker, its status if it is a task, and the words naming it."""

    note: str
    status: str
    text: str
    words: tuple[Word, ...] = ()

    @property
    def is_open(self) -> bool:
        """True for an open task."""
        return bool(self.status) and self.status in _OPEN


def find_line(
    spoken: Sequence[Word], lines: Sequence[NamedLine], names: Collection[Word] = ()
) -> NamedLine | None:
    """Return the line that has the most words of a sentence in common with it, if it is the only.

    One word is enough if it is not one of `names` and is in no other line.
    """
    own = {stem(folded(word.text)): word for word in spoken if not word.is_small}
    best: list[NamedLine] = []
    for line in lines:
        content = {
            stem(folded(match[0]))
            for match in WORD.finditer(line.text)
            if not is_function_word(match[0]) and not match[0].isdecimal()
        }
        shared = tuple(word for key, word in own.items() if key in content)
        size = len(best[0].words) if best else 1
        if len(shared) >= size:
            named = NamedLine(line.note, line.status, line.text, shared)
            best = [named, *(best if len(shared) == size else ())]
    best = [one for one in best if one.is_open] or best
    if len({(one.note, one.text) for one in best}) != 1:
        return None
    own_words = [word for word in best[0].words if word not in names]
    is_enough = len(best[0].words) > 1 or any(len(word.text) >= _MIN_WORD for word in own_words)
    return best[0] if own_words and is_enough else None


def lines_with(texts: Sequence[str], index: VaultIndex) -> Iterator[NamedLine]:
    """Yield the lines of the notes that hold one of the first texts, without headings.

    The end of a text may differ, as in “eggs” and “egg”.
    """
    read: set[str] = set()
    for text in texts[:_MAX_WORDS]:
        beginning = text[:-_ENDING] if len(text) > _ENDING + _MIN_WORD else text
        for path, data in index.texts(ROOT, folded_needle(beginning)):
            if path.text in read or len(read) >= _MAX_NOTES or isinstance(data, Problem):
                continue
            try:
                content = decode(data, path.text)
            except VaultError:
                continue
            # An index without words yields notes that hold other texts, too.
            if beginning.casefold() not in content.casefold():
                continue
            read.add(path.text)
            yield from lines_of(path.text, content)


def lines_of(note: str, content: str) -> Iterator[NamedLine]:
    """Yield the lines of a note that hold more than a heading."""
    for line in map(str.strip, without_properties(content).splitlines()):
        item = read_item(line)
        text = item.text if item is not None else line
        if text and not line.startswith("#"):
            yield NamedLine(note, (item.status if item else None) or "", text.strip())
