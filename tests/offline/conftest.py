from __future__ import annotations

import pytest

from obsidian_agent.offline.names import Surroundings
from obsidian_agent.tools.core.tool import NoteSettings, RunContext
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.disk import DiskView
from offline_desk import NOW
from support import MakeVault

FILES: dict[str, str | bytes] = {
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


@pytest.fixture
def around(make_vault: MakeVault) -> Surroundings:
    """Return a small vault with Inbox.md open."""
    view = DiskView(make_vault(FILES))
    return Surroundings(
        view,
        RunContext(
            "vault",
            NOW,
            active_file=parse("Inbox.md", PathUse.READ),
            notes=NoteSettings(templates="Templates"),
        ),
    )
