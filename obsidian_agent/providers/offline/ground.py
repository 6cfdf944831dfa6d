"""What the holes of descriptions of notes are read against."""

from __future__ import annotations

from dataclasses import dataclass

from obsidian_agent.providers.offline.lexicon import word_set
from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.readings import Surroundings

NO_TEXT = word_set("in from to into and or of with that which the a an all any as is are by on for under tagged")
"""Words that neither begin nor end a text that a description speaks of."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a hole is read against; `of` is the property that was read before its values."""

    index: NameIndex
    around: Surroundings
    of: str | None
