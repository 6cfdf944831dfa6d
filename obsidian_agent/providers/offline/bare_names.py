"""Bare names behind "except": of folders, tags, values of properties and notes."""

from __future__ import annotations

from collections.abc import Iterator

from obsidian_agent.providers.offline.names import Closeness, NameIndex
from obsidian_agent.providers.offline.set_holes import LONGEST_NAME, SetHoles
from obsidian_agent.providers.offline.set_modifiers import Where, either
from obsidian_agent.providers.offline.stretch import Stretch
from obsidian_agent.providers.offline.strict import Part


def bare(holes: SetHoles, start: int) -> Iterator[Part]:
    """The names that begin at a token; leaving out too much is better than too little, so a value is everything it may mean."""

    def read(words: Stretch) -> Part | None:
        found = list(_meanings(words, holes.index))
        return (
            Part(words.end, {"where": either(found), "kind": "any"}, 0.05 * (len(found) - 1) + _doubt(words, holes.index))
            if found
            else None
        )

    return holes.each(start, LONGEST_NAME, read)


def _doubt(words: Stretch, index: NameIndex) -> float:
    found = index.find(words.quoted or words.raw, ("note",))
    return _BY_STEMS if found is not None and found.closeness > Closeness.EXACT else 0.0


def _meanings(words: Stretch, index: NameIndex) -> Iterator[Where]:
    if words.first.kind == "tag" and len(words) == 1:
        yield {"tag": words.first.text}
        return
    inner = words.trimmed(("the", "my", "all", "every", "folder", "any"), ("folder", "notes"))
    name = inner.quoted or inner.raw
    folders = index.find(name, ("folder",))
    for path in folders.paths if folders is not None else ():
        yield {"folder": path}
    for key, value in index.valued(name):
        yield {"property": {key: value}}
    tag = index.tag(name)
    if tag is not None:
        yield {"tag": tag}
    notes = index.find(name, ("note",))
    if notes is not None and folders is None:
        yield {"paths": list(notes.paths)}


_BY_STEMS = 0.1
"""The doubt about a note whose name only resembles what was said: "lectures" is rather a kind than the note Lecture."""
