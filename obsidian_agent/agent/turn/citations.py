"""The sources of an answer, among the files that the model was sent in a turn.

A note that the answer names is a source. An answer that names none is based on the notes that were
requested: by a call of the model, or by a mention of the user. All other notes were only sent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from msgspec import Struct, field

from obsidian_agent.agent.privacy.consent import Level, SharedPart
from obsidian_agent.vault.paths.rules import display_name


class Credit(Struct, frozen=True):
    """The `sources` of an answer, and other files that were sent, as paths in order of sending."""

    sources: tuple[str, ...] = ()
    also_sent: tuple[str, ...] = ()


class SharedFiles(Struct):
    """The files that a model was sent parts of in one turn."""

    _levels: dict[str, Level] = field(default_factory=dict)
    _requested: set[str] = field(default_factory=set)
    """Files whose text was requested."""

    def add(self, parts: Iterable[SharedPart], requested: Collection[str] | None = None) -> None:
        """Add sent parts. `requested` are the paths that were asked for; None means all of them."""
        for part in parts:
            self._levels[part.path] = max(part.level, self._levels.get(part.path, Level.NAME))
            if part.level is Level.TEXT and (requested is None or part.path in requested):
                self._requested.add(part.path)

    def credit(self, answer: str) -> Credit:
        """Return the sources of an answer.

        Files of which only the name was sent are neither sources nor count as sent.
        """
        sent = [path for path, level in self._levels.items() if path and level > Level.NAME]
        folded = answer.casefold()
        sources = [path for path in sent if _name_pattern(path).search(folded)]
        if not sources:
            sources = [path for path in sent if path in self._requested]
        return Credit(tuple(sources), tuple(path for path in sent if path not in sources))


@lru_cache(maxsize=512)
def _name_pattern(path: str) -> re.Pattern[str]:
    """Return a pattern that matches a file's name as a whole word, that of a note without `.md`."""
    name = display_name(path).casefold()
    before = r"(?<!\w)" if name[:1].isalnum() else ""
    after = r"(?!\w)" if name[-1:].isalnum() else ""
    return re.compile(f"{before}{re.escape(name)}{after}")
