"""Another agent in the app: its first line, its plan under the same key, and a red warning."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from obsidian_agent.bootstrap import Wiring
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import Settings
from obsidian_agent.tui.widgets.panes import TopBar
from support import MakeVault
from tui.driving import driving_real

AGENT = Path(__file__).parent.parent / "acp_agent.py"
STEP = {
    "id": "e",
    "tool": "vault.updateFile",
    "args": {"path": "Plan.md", "mode": "append", "content": "Bring cake\n"},
}
PLAN = {"version": "1.0", "goal": "Add a line", "riskLevel": "writes", "steps": [STEP]}


async def test_another_agent_works_in_the_app(make_vault: MakeVault, tmp_path: Path) -> None:
    store = make_vault({"Plan.md": "May\n"})
    agents = {"script": f"{sys.executable} {AGENT} {tmp_path / 'prompts'}"}
    settings = LiveSettings(current=Settings(model="acp/script", agents=agents))
    note = tmp_path / "vault" / "Plan.md"
    async with driving_real(
        Wiring(store, tmp_path / "state", policy=None, settings=settings)
    ) as driver:
        bar = driver.main.query_one(TopBar)
        driver.main.submit(f"write {tmp_path / 'vault' / 'Behind.md'}")
        await driver.until(lambda: "no plan did it: Behind.md" in driver.transcript())
        assert "acp/script ready" in str(bar.query_one("#planner").render())
        assert any(
            "Behind.md" in str(entry.render())
            for entry in driver.panes.chat.transcript.query(".-bad")
        )
        await driver.until(lambda: driver.main.turn.phase == "idle")
        driver.main.submit(f"propose {json.dumps(PLAN)}")
        await driver.until(lambda: driver.main.turn.pending is not None)
        assert note.read_text() == "May\n"
        await driver.settle()
        driver.wait_out_grace()
        driver.panes.go("work")
        await driver.press("a")
        await driver.until(lambda: note.read_text() == "May\nBring cake\n")
