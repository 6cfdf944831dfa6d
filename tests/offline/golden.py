"""The result of a sentence on the sample vault, in the notation of the golden cases."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from obsidian_agent.agent.events import Answer, NeedsInput, PlanReady, TurnFailed
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.views.disk import DiskView
from offline_desk import Desk, effect, lines

SAMPLE = Path(__file__).parents[2] / "fixtures" / "vault"
NOW = datetime(2025, 12, 17, 10, tzinfo=UTC)


SMALL: dict[str, str | bytes] = {
    "Inbox.md": "- one\n",
    "Home.md": "---\naliases: [Start here]\n---\n[[Sourdough]]\n",
    "Notes/Sourdough.md": "---\ntags: [recipe]\nrating: 5\ndue: 2026-01-01\n---\n## Dough\n\n## Baking (hot)\n",
    "Notes/Rye bread.md": "---\ntags: [recipe, done]\nrating: 5/5\nstatus: to do\nfinished: true\n---\n",
    "Projects/Thesis.md": "#done\n",
    "Projects/Thesis/Method.md": "## Log\n\n## Log\n",
    "Twin/Plan.md": "",
    "Other/Plan.md": "",
    "Templates/Meeting.md": "#done\n",
    "Bilder/Überblick.md": "",
    "日记/計画.md": "#計画\n",
    "Empty/": "",
}
"""The vault of the fixture `around`, with Inbox.md open."""

STORES: dict[str, str | bytes] = {
    "Notes/a.md": "#done\n",
    "Projects/p.md": "#done\n",
    "Work/Store/w.md": "#done\n",
    "Home/Store/h.md": "#done\n",
    "Attic/x.md": "",
}
"""A vault in which two folders have one name."""


@cache
def desk(vault: Path = SAMPLE) -> Desk:
    """Return the planner over a vault that no test changes."""
    store = VaultStore.open(vault)
    return Desk(store, now=NOW, kept=DiskView(store))


def outcome(case: Mapping[str, Any], vault: Path = SAMPLE) -> dict[str, Any]:
    """Return `changes`, `answer` with `sources`, `asks` (recipes, doubt) or `refuses` (code)."""
    chosen, active = case.get("lines"), case.get("active")
    selected = (
        lines((vault / active).read_text(encoding="utf-8"), *chosen) if chosen and active else None
    )
    event = desk(vault).decide(case["say"], active=active, selected=selected)
    match event:
        case PlanReady():
            done = desk(vault).dry_run(event.plan)
            return {"refuses": done.errors[0].code} if done.errors else {"changes": effect(done)}
        case Answer():
            return {"answer": event.text, "sources": list(event.sources)}
        case NeedsInput():
            doubt = event.candidates[0].doubt if event.candidates else event.message
            return {"asks": [candidate.recipe for candidate in event.candidates]} | (
                {"doubt": doubt} if doubt else {}
            )
        case TurnFailed():
            return {"refuses": event.problem.code}
        case _:
            raise AssertionError(event)
