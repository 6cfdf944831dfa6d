from __future__ import annotations

import pytest

from obsidian_agent.offline.names import Surroundings
from obsidian_agent.tools.core.tool import NoteSettings, RunContext
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.disk import DiskView
from offline.golden import SMALL
from offline_desk import NOW
from support import MakeVault


@pytest.fixture
def around(make_vault: MakeVault) -> Surroundings:
    """Return a small vault with Inbox.md open."""
    view = DiskView(make_vault(SMALL))
    return Surroundings(
        view,
        RunContext(
            "vault",
            NOW,
            active_file=parse("Inbox.md", PathUse.READ),
            notes=NoteSettings(templates="Templates"),
        ),
    )
