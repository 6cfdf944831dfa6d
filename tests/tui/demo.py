"""A session with something in it, for pictures of the screens."""

from __future__ import annotations

from tui.fakes import FakeSession, history_entries, plan_of, saved

NOTE = """---
tags: [daily, planning]
mood: calm
---
# Tuesday, 16 December

Long talk with [[Anna]] about the **house**. Things that should become projects:

- Garden
- Kitchen
- Roof
- Taxes 2025
- Holiday in Norway

## Tasks

- [ ] Call the roofer #house
- [x] Buy paint for `Kitchen/wall`

> The best time to plant a tree was twenty years ago.
"""


def demo_session(pace: float = 0.05) -> FakeSession:
    """Notes, runs of the past and saved actions."""
    session = FakeSession(name="Notebook", planner_name="offline planner", pace=pace)
    session.runs.entries = history_entries()
    session.texts["Daily/2025-12-16.md"] = NOTE
    session.texts |= {
        f"Projects/Old/Idea {number}.md": f"# Idea {number}\n" for number in range(60)
    }
    session.saved.macros = [
        saved(
            "Bullets to projects",
            plan_of(parameters={"folder": {"type": "path"}}),
            "A note for each selected bullet",
        ),
        saved("Weekly review", plan_of(), "Collects open tasks of the week"),
        saved("Sort inbox"),
    ]
    return session
