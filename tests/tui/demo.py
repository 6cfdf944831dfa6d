"""The app with the fake session, for looking at it.

`python tests/tui/demo.py [light]` runs it; `--shots FOLDER` writes pictures (SVG) of its screens.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from obsidian_agent.tui.themes import DARK, LIGHT
from tui.driving import fake_app
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
    """A session with something in it."""
    session = FakeSession(name="Notebook", planner_name="offline planner", pace=pace)
    session.runs.entries = history_entries()
    session.texts["Daily/2025-12-16.md"] = NOTE
    session.texts |= {f"Projects/Old/Idea {number}.md": f"# Idea {number}\n" for number in range(60)}
    session.saved.macros = [
        saved("Bullets to projects", plan_of(parameters={"folder": {"type": "path"}}), "A note for each selected bullet"),
        saved("Weekly review", plan_of(), "Collects open tasks of the week"),
        saved("Sort inbox"),
    ]
    return session


if __name__ == "__main__":
    if "--shots" in sys.argv:
        from tui.pictures import take_all

        folder = Path(sys.argv[-1])
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(take_all(folder, demo_session))
    else:
        with fake_app(demo_session(), theme=LIGHT if "light" in sys.argv else DARK) as app:
            app.run()
