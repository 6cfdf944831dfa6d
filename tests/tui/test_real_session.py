"""The app on a real vault with the offline planner: the whole way from words to files and back."""

from __future__ import annotations

from pathlib import Path

from obsidian_agent.bootstrap import Wiring
from obsidian_agent.vault.filesystem.store import VaultStore
from tui.driving import Driver, driving_real

INBOX = "# Inbox\n\n- Garden\n- Kitchen 👍\n- Roof\n\nThe end.\n"


def toggle(driver: Driver, step: str) -> None:
    pending = driver.main.turn.pending
    assert pending is not None
    driver.main.turn.toggle(pending.plan, step)


def files(vault: Path) -> dict[str, bytes]:
    """Everything that is not the app's own or Obsidian's."""
    return {
        str(path.relative_to(vault)): path.read_bytes()
        for path in vault.rglob("*")
        if path.is_file() and not path.relative_to(vault).parts[0].startswith(".")
    }


async def test_from_a_selection_to_notes_and_back_and_again_as_a_saved_action(
    tmp_path: Path,
) -> None:
    vault = tmp_path / "Vault"
    vault.mkdir()
    (vault / "Inbox.md").write_bytes(INBOX.encode())
    before = files(vault)
    with VaultStore.open(vault) as store:
        async with driving_real(Wiring(store, tmp_path / "state")) as driver:
            await driver.press("ctrl+o", *"inbox", "enter", "down", "down", "x", "x", "x")
            await driver.planned("Create a note for each bullet in 'Projects'")
            assert driver.stage == "plan", driver.transcript()
            assert "3 new" in driver.plan_head()
            assert files(vault) == before
            await driver.press("a")
            assert driver.stage == "result"
            assert set(files(vault)) - set(before) == {
                "Projects/Garden.md",
                "Projects/Kitchen 👍.md",
                "Projects/Roof.md",
            }
            assert "[[" in driver.panes.note.area.text
            await driver.press("f3", "b")
            assert "Back to which step?" in driver.screen()
            await driver.press("end", "enter")
            await driver.settle()
            assert files(vault)["Inbox.md"] == before["Inbox.md"], (
                "the links are taken back, the notes stay"
            )
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


async def test_a_step_that_was_switched_off_is_off_in_the_saved_action(tmp_path: Path) -> None:
    vault = tmp_path / "Vault"
    vault.mkdir()
    (vault / "Inbox.md").write_bytes(INBOX.encode())
    steps = [
        {
            "id": "keep",
            "tool": "vault.createFile",
            "args": {"path": "Keep.md", "content": "kept\n"},
        },
        {"id": "read", "tool": "vault.readFile", "args": {"path": "Inbox.md"}},
        {
            "id": "drop",
            "tool": "vault.createFile",
            "args": {"path": "Drop.md", "content": "${read.content}"},
        },
    ]
    with VaultStore.open(vault) as store:
        async with driving_real(Wiring(store, tmp_path / "state")) as driver:
            document = {
                "version": "1.0",
                "goal": "Two notes",
                "riskLevel": "writes",
                "steps": steps,
            }
            driver.main.turn.preview(document, frozenset(), {})
            await driver.settle()
            for step in ("keep", "read", "drop"):
                toggle(driver, step)
                await driver.settle()
            assert "Nothing to do." in driver.screen(), "every step is off"
            await driver.press("a")
            driver.main.turn.approve(driver.main.turn.pending.preview)  # type: ignore[union-attr]
            await driver.settle()
            assert driver.stage == "plan"
            toggle(driver, "keep")
            await driver.settle()
            driver.panes.go("work")
            await driver.settle()
            await driver.press("a")
            assert driver.stage == "result", driver.transcript()
            assert set(files(vault)) == {"Inbox.md", "Keep.md"}
            await driver.press("m")
            await driver.press("ctrl+s")
            await driver.settle()
            (macro,) = driver.session.saved.list()
            assert [step.id for step in macro.plan.steps] == ["keep"]


async def test_what_a_plan_that_only_reads_found_is_in_the_conversation(tmp_path: Path) -> None:
    vault = tmp_path / "Vault"
    vault.mkdir()
    (vault / "Inbox.md").write_bytes(INBOX.encode())
    with VaultStore.open(vault) as store:
        async with driving_real(Wiring(store, tmp_path / "state")) as driver:
            step = {
                "id": "find",
                "tool": "vault.searchText",
                "args": {"query": "Kitchen"},
                "preview": "Look for kitchens",
            }
            driver.main.turn.preview(
                {"version": "1.0", "goal": "Look", "riskLevel": "read-only", "steps": [step]},
                frozenset(),
                {},
            )
            await driver.settle()
            driver.panes.go("work")
            await driver.settle()
            await driver.press("a")
            assert "Look for kitchens:" in driver.transcript()
            assert "Inbox.md" in driver.transcript()
            assert "Kitchen 👍" in driver.transcript()
