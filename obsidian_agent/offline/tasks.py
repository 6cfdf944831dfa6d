"""The task of the vault that a sentence names by the task's own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.offline.words import WORD, Word, folded, is_function_word, stem
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.index.text_search import folded_needle
from obsidian_agent.vault.markdown.lines import tasks as tasks_of
from obsidian_agent.vault.paths.path import ROOT
from obsidian_agent.vault.text import decode

_MAX_WORDS: Final = 3
"""Words of a sentence by which tasks are looked for, the longest ones."""
_MAX_NOTES: Final = 200
"""Notes with one of these words that are read."""
_OPEN: Final = " /"
_FEW: Final = 2
"""Words that a sentence and a task must share, unless it is a task of one word."""


VaultTask = tuple[str, str, str]
"""A task of a note: the note's path, the status and the text."""


class NamedTask(Struct, frozen=True):
    """A task, and the words of a sentence that name it."""

    note: str
    text: str
    is_open: bool
    words: tuple[Word, ...]


def find_task(
    spoken: Sequence[Word], tasks: Sequence[VaultTask], notes: Sequence[str] = ()
) -> NamedTask | None:
    """Return the task that has the most words of a sentence in common with it, if it is the only.

    With `notes` it is in one of them. The words are those that may name a task.
    """
    own = {stem(folded(word.text)): word for word in spoken if not word.is_small}
    best: list[NamedTask] = []
    for note, status, text in tasks:
        content = {
            stem(folded(match[0]))
            for match in WORD.finditer(text)
            if not is_function_word(match[0]) and not match[0].isdecimal()
        }
        shared = [word for key, word in own.items() if key in content]
        is_enough = len(shared) >= _FEW or (shared and len(content) == 1)
        if not is_enough or 2 * len(shared) < len(content) or (notes and note not in notes):
            continue
        task = NamedTask(note, text, status in _OPEN, tuple(shared))
        size = len(best[0].words) if best else 0
        if len(shared) >= size:
            best = [task, *(best if len(shared) == size else ())]
    best = [one for one in best if one.is_open] or best
    return best[0] if len({(one.note, one.text) for one in best}) == 1 else None


def tasks_with(texts: Sequence[str], index: VaultIndex) -> Iterator[VaultTask]:
    """Yield the tasks of the notes that hold one of the longest texts."""
    read: set[str] = set()
    for text in sorted(texts, key=len, reverse=True)[:_MAX_WORDS]:
        for path, data in index.texts(ROOT, folded_needle(text)):
            if path.text in read or len(read) >= _MAX_NOTES or isinstance(data, Problem):
                continue
            read.add(path.text)
            try:
                content = decode(data, path.text)
            except VaultError:
                continue
            yield from ((path.text, task.status, task.text.strip()) for task in tasks_of(content))
