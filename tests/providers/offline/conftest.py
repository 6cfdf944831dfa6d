"""A vault of names for the matcher: no disk, only what `VaultNames` asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import pytest

from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.readings import Surroundings


@dataclass
class Names:
    """Names as given."""

    notes: Sequence[str] = ()
    files: Sequence[str] = ()
    folders: Sequence[str] = ()
    sections: dict[str, list[str]] = field(default_factory=dict)
    tags: Sequence[str] = ()
    properties: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    daily_set: Mapping[str, Any] = field(default_factory=lambda: {"folder": "Daily", "name": "????-??-??"})

    def headings(self, note: str) -> Sequence[str]:
        return self.sections.get(note, [])

    def levels(self, note: str) -> Sequence[int]:
        return [2] * len(self.headings(note))

    def lines(self, note: str) -> Sequence[str] | None:
        return self.texts.get(note, ())

    def meant(self, described: Mapping[str, Any]) -> frozenset[str] | None:
        return None

    templates: str | None = None
    daily_template: str | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def daily_note(self, day: date) -> str:
        return f"Daily/{day.isoformat()}.md"


@pytest.fixture
def names() -> Names:
    return Names(
        notes=[
            "Groceries.md",
            "Ideas.md",
            "Reading list.md",
            "Projects/Website.md",
            "Projects/Apollo/Plan.md",
            "Projects/Apollo/Budget.md",
            "Meetings/2026-03-01 Kickoff.md",
            "Meetings/Retro.md",
            "People/Ada Lovelace.md",
            "People/Bob Stone.md",
            "Recipes/Pancakes.md",
            "Archive/2023/Plan.md",
            "Daily/2026-03-13.md",
            "Templates/Daily.md",
            "Templates/Meeting.md",
            "Clippings/Article one.md",
        ],
        files=["Attachments/logo.png"],
        folders=[
            "Archive",
            "Archive/2023",
            "Attachments",
            "Clippings",
            "Daily",
            "Inbox",
            "Meetings",
            "People",
            "Projects",
            "Projects/Apollo",
            "Recipes",
            "Templates",
        ],
        sections={
            "Groceries.md": ["Dairy", "Fruit"],
            "Reading list.md": ["Fiction", "Science"],
            "Projects/Website.md": ["Next steps", "Log"],
            "Ideas.md": ["Log", "Later"],
        },
        texts={
            "Groceries.md": ["- [ ] buy milk", "- [x] apples", "- oat flakes"],
            "Projects/Website.md": ["- some words", "- [ ] call Bob", "- step one", "| Lyon | April |"],
            "Ideas.md": ["- [ ] write intro", "- [ ] pay rent", "- [ ] go to the bank", "- buy a boat", "| Lyon | 3 |"],
            "Reading list.md": ["- Dune", "- Emma"],
        },
        tags=["project/apollo", "done", "draft", "idea", "Health"],
        properties={
            "status": {"active": "active", "done": "done", "on hold": "on hold"},
            "categories": {"Books": "Books", "Movies": "Movies", "Board games": "Board games", "People": "People"},
            "author": {"Ada Lovelace": "Ada Lovelace"},
            "rating": {"5": 5, "4": 4},
        },
    )


@pytest.fixture
def index(names: Names) -> NameIndex:
    return NameIndex(names)


@pytest.fixture
def around() -> Surroundings:
    return Surroundings(datetime(2026, 3, 14, 9, 30), "Ideas.md", has_selection=True, macros=("New project", "Weekly review"))
