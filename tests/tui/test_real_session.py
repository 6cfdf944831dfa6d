"""The app on a real vault with the offline planner: the whole way from words to files and back."""

from __future__ import annotations

from pathlib import Path

from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.tui.app import ObsidianAgentApp
from obsidian_agent.vault.store import VaultStore
from tui.driving import Driver

INBOX = "# Inbox\n\n- Garden\n- Kitchen 👍\n- Roof\n\nThe end.\n"


def files(vault: Path) -> dict[str, bytes]:
    """Everything that is not the app's own or Obsidian's."""
    return {
        str(path.relative_to(vault)): path.read_bytes()
        for path in vault.rglob("*")
        if path.is_file() and not path.relative_to(vault).parts[0].startswith(".")
    }


async def test_from_a_selection_to_notes_and_back_and_again_as_a_saved_action(tmp_path: Path) -> None:
    vault = tmp_path / "Vault"
    vault.mkdir()
    (vault / "Inbox.md").write_bytes(INBOX.encode())
    before = files(vault)
    with VaultStore.open(vault) as store:
        session = build_session(Wiring(store, tmp_path / "state"))
        app = ObsidianAgentApp(session)
        async with app.run_test(size=(120, 40)) as pilot:
            driver = Driver(app, session, pilot)  # type: ignore[arg-type]
            await driver.settle()
            await driver.press("ctrl+o", *"inbox", "enter", "down", "down", "x", "x", "x")
            await driver.planned("Create a note for each bullet in 'Projects'")
            assert driver.stage == "plan", driver.transcript()
            assert "3 new" in driver.plan_head()
            assert files(vault) == before
            await driver.press("a")
            assert driver.stage == "result"
            assert set(files(vault)) - set(before) == {"Projects/Garden.md", "Projects/Kitchen 👍.md", "Projects/Roof.md"}
            assert "[[" in driver.panes.note.area.text
            await driver.press("f3", "b")
            assert "Back to which step?" in driver.screen()
            await driver.press("end", "enter")
            await driver.settle()
            assert files(vault)["Inbox.md"] == before["Inbox.md"], "the links are taken back, the notes stay"
            assert len(files(vault)) == 4
            await driver.press("u")
            await driver.settle()
            assert files(vault) == before
            await driver.press("f3")
            assert "undone" in driver.screen()
            await driver.press("escape", "escape")
            await driver.send("Rename Inbox to 'Tray'")
            driver.wait_out_grace()
            await driver.press("a")
            assert "Tray.md" in files(vault)
