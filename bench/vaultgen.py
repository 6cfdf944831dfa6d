"""A vault for measurements: notes of 2 to 3 KB, with links that follow a power law.

The same number of notes gives the same bytes. It contains what takes a scanner time: properties of
several kinds, tags, headings, tasks, tables, fences and comments with false links.
"""

from __future__ import annotations

import random
import re
import shutil
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

NEEDLE = "quillfern"
"""A word of one note in a thousand."""

COMMON = "research"
"""A word of about a quarter of the notes."""

HUB_SHARE = 6
"""One note in this many links to the hub."""

_SYLLABLES = re.findall("..", "anarbecadadeelfagaheinkalamanopequrisotaunvewaxiyoze")
_FOREIGN = ("Caf\u00e9", "\u65e5\u8a18", "\u00dcberblick")
_STATUS = ("draft", "active", "done", "someday")
_CODE = "```python\nitems[[0]] = load('[[Not a link]]')  # #notatag\n```\n"
_HIDDEN = "%%\n[[Not a link either]]\n%%\n"
_TAGS = 120


@dataclass(frozen=True, slots=True)
class Generated:
    """A vault on disk: folder, number of notes, path of the most linked note, size in bytes."""

    folder: Path
    notes: int
    hub: str
    size: int


class _Zipf:
    """Draws 0 to n-1, small numbers more often."""

    def __init__(self, rng: random.Random, count: int, exponent: float) -> None:
        self._random = rng.random
        self._sums = list(accumulate((index + 3.0) ** -exponent for index in range(count)))

    def draw(self) -> int:
        return bisect_left(self._sums, self._random() * self._sums[-1])


class _Writer:
    def __init__(self, notes: int) -> None:
        self.rng = rng = random.Random(f"vault of {notes}")
        self.words = sorted(
            {
                "".join(rng.choice(_SYLLABLES) for _ in range(rng.choice((2, 3, 3, 4))))
                for _ in range(9_000)
            }
        )
        rng.shuffle(self.words)
        self.word = _Zipf(rng, len(self.words), 1.0)
        self.target = _Zipf(rng, notes, 0.9)
        self.tag = _Zipf(rng, _TAGS, 1.0)
        folders = max(3, notes // 60)
        self.folders = [self._folder(number) for number in range(folders)]
        self.paths = [
            f"{rng.choice(self.folders)}/{self._name(number)}.md" for number in range(notes)
        ]
        self.names = [path.rpartition("/")[2][:-3] for path in self.paths]
        self.pool = [self.words[self.word.draw()] for _ in range(100_000)]

    def _folder(self, number: int) -> str:
        own = f"{self.words[number % len(self.words)].title()} {number}"
        return own if number < 20 else f"{self.words[number % 20].title()} {number % 20}/{own}"

    def _name(self, number: int) -> str:
        rng = self.rng
        if number % 33 == 5:
            return f"{rng.choice(_FOREIGN)} {number}"
        words = " ".join(
            self.words[self.word.draw()] for _ in range(rng.choice((1, 2, 2, 3)))
        ).capitalize()
        return words if number % 100 == 7 else f"{words} {number}"

    def _text(self, low: int, high: int) -> list[str]:
        start = self.rng.randrange(len(self.pool) - high)
        return self.pool[start : start + self.rng.randint(low, high)]

    def _link(self) -> str:
        rng = self.rng
        at = self.target.draw()
        name = self.names[at]
        return rng.choices(
            (
                f"[[{name}]]",
                f"[[{name}|{self.words[at % 500]}]]",
                f"[[{name}#Heading {at % 3}]]",
                f"![[{name}]]",
                f"[[{self.paths[at][:-3]}]]",
                f"[[{name.lower()}]]",
                f"[text](<{self.paths[at]}>)",
                f"[[{name} missing {at}]]",
            ),
            (50, 14, 8, 5, 6, 3, 9, 5),
        )[0]

    def note(self, number: int, hub: str) -> str:
        """Return the text of a note."""
        rng = self.rng
        parts = [self._properties(number)]
        for section in range(rng.randint(1, 3)):
            parts.append(f"## Heading {section}\n")
            for _ in range(rng.randint(1, 4)):
                words = self._text(25, 70)
                words.insert(len(words) // 2, self._link())
                if rng.random() < 0.25:
                    words.insert(3, f"#{self._tag()}")
                if rng.random() < 0.06:
                    words.append(COMMON)
                parts.append(" ".join(words) + ".\n")
            parts.append(self._block())
        if number % HUB_SHARE == 1:
            parts.append(f"See [[{hub}]].\n")
        if number % 1_000 == 500:
            parts.append(f"The {NEEDLE} was here.\n")
        return "\n".join(parts)

    def _properties(self, number: int) -> str:
        rng = self.rng
        if number % 7 == 3:
            return ""
        tags = "".join(f"\n  - {self._tag()}" for _ in range(rng.randint(1, 3)))
        related = f'\nrelated: "[[{self.names[self.target.draw()]}]]"' if number % 10 == 0 else ""
        return (
            f"---\ntags:{tags}\nstatus: {rng.choice(_STATUS)}\nrating: {number % 6}\n"
            f"created: 2024-0{number % 9 + 1}-11{related}\n---\n"
        )

    def _tag(self) -> str:
        at = self.tag.draw()
        return f"{self.words[at]}/{self.words[at + 200]}" if at % 4 == 3 else self.words[at]

    def _block(self) -> str:
        roll = self.rng.random()
        if roll < 0.3:
            return "".join(
                f"- [{self.rng.choice(' x')}] {' '.join(self._text(3, 8))}\n" for _ in range(4)
            )
        if roll < 0.5:
            return "".join(f"- {' '.join(self._text(3, 8))} {self._link()}\n" for _ in range(2))
        if roll < 0.6:
            return f"| a | b |\n| --- | --- |\n| {self._link().replace('|', chr(92) + '|')} | 1 |\n"
        return _CODE if roll < 0.7 else _HIDDEN if roll < 0.75 else ""


def generate(folder: Path, notes: int) -> Generated:
    """Make the vault anew at `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    writer = _Writer(notes)
    hub = writer.target.draw() % notes
    size = 0
    for path in {path.rpartition("/")[0] for path in writer.paths}:
        (folder / path).mkdir(parents=True, exist_ok=True)
    (folder / ".obsidian").mkdir()
    for number, path in enumerate(writer.paths):
        data = writer.note(number, writer.names[hub]).encode()
        size += len(data)
        (folder / path).write_bytes(data)
    return Generated(folder, notes, writer.paths[hub], size)
