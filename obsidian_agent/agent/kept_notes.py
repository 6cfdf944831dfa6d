"""Whether a plan keeps the notes that an aside wants kept: "My meeting notes can stay as they are." May read the vault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from obsidian_agent.providers.offline.asides import Kept
from obsidian_agent.providers.offline.matcher import SURE_COST
from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.readings import Surroundings
from obsidian_agent.providers.offline.recipe import RecipeParameter
from obsidian_agent.providers.offline.slots import SlotReader
from obsidian_agent.providers.offline.tokens import tokenise
from obsidian_agent.vault.changes import NetChange

Meant = Callable[[Mapping[str, Any]], Iterable[str] | None]
"""The paths that a description of notes means, None when that cannot be told."""

_ANY_NOTES = RecipeParameter(kind="anyNotes", description="")


def keeps(changes: Sequence[NetChange], wanted: Kept, described: set[str] | None) -> bool:
    """Whether these changes leave the notes alone, or, of a kind whose others are wanted, leave some alone. False when unknown."""
    if described is None:
        return False
    touched = {path for path in described if any(_touches(change, path) for change in changes)}
    return bool(described - touched) if wanted.others else not touched


def notes_of(noun: str, index: NameIndex, around: Surroundings, meant: Meant) -> set[str] | None:
    """The notes that a text describes or names, None when it is not surely understood."""
    tokens = tokenise(noun)
    if not tokens:
        return None
    reading = SlotReader(noun, tokens, index, around).read(_ANY_NOTES, "any", 0, len(tokens))
    if reading is None or reading.issue is not None or reading.cost > SURE_COST:
        return None
    if isinstance(reading.value, str):
        return {reading.value}
    found = meant({**reading.value, "kind": "notes"})
    return None if found is None else set(found)


def _touches(change: NetChange, path: str) -> bool:
    """A folder that moves or goes takes along what is in it."""
    return path == change.path.text or (change.folder and change.kind != "mkdir" and path.startswith(f"{change.path.text}/"))
