"""What an answer rests on, told apart from what merely went to the model: a person who checks an answer wants to know where to look.

A note that the answer names is a source. Where it names none, the notes are that somebody wanted to be read: the model by a call, the person
by a mention. What went along besides, or was only found, was sent and is told as that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from obsidian_agent.agent.privacy.consent import Level, Part


@dataclass(frozen=True, slots=True)
class Credit:
    """Vault paths: the `sources` of an answer, and what the model was shown `besides`, each in the order in which it was sent."""

    sources: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()


@dataclass(slots=True)
class Shown:
    """What of which files a model was shown in one turn."""

    _levels: dict[str, Level] = field(default_factory=dict)
    _wanted: set[str] = field(default_factory=set)
    """Those that somebody wanted to be read whole."""

    def add(self, parts: Iterable[Part], wanted: Collection[str] | None = None) -> None:
        """Something went out, of which these files were `wanted` (None: all of them)."""
        for part in parts:
            self._levels[part.path] = max(part.level, self._levels.get(part.path, Level.NAME))
            if part.level is Level.TEXT and (wanted is None or part.path in wanted):
                self._wanted.add(part.path)

    def credit(self, answer: str) -> Credit:
        """What an answer rests on. A file of which only the name was told is no source, and nothing was sent of it."""
        shown = [path for path, level in self._levels.items() if path and level > Level.NAME]
        folded = answer.casefold()
        named = [path for path in shown if _named(path).search(folded)]
        sources = named or [path for path in shown if path in self._wanted]
        return Credit(tuple(sources), tuple(path for path in shown if path not in sources))


@lru_cache(maxsize=512)
def _named(path: str) -> re.Pattern[str]:
    """Finds a file's path or name as a word of its own, without its extension where it is a note."""
    name = path.rpartition("/")[2].removesuffix(".md").casefold()
    before, after = (r"(?<!\w)" if name[:1].isalnum() else ""), (r"(?!\w)" if name[-1:].isalnum() else "")
    return re.compile(f"{before}{re.escape(name)}{after}")
