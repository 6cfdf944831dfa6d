"""The app on a real vault with the offline planner: the whole way from words to files and back."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from obsidian_agent.bootstrap import Wiring
from obsidian_agent.tui.screens.conflicts import UndoPreview
from obsidian_agent.tui.screens.dialogs import DiffScreen
from obsidian_agent.tui.widgets.run import ResultList, RunLog
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.transaction.actions import Action, MoveEntry
from obsidian_agent.vault.transaction.apply import Applier
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
            await driver.press("enter")
            await driver.on_top(DiffScreen)
            assert "- - Garden" in driver.screen(), "the diff of the finished run"
            await driver.press("escape")
            assert driver.stage == "result"
            await driver.press("f3", "b")
            assert "Undo back to which step?" in driver.screen()
            await driver.press("end", "enter")
            await driver.on_top(UndoPreview)
            await driver.press("y")
            await driver.press("escape")
            assert files(vault)["Inbox.md"] == before["Inbox.md"], (
                "the links are taken back, the notes stay"
            )
            assert len(files(vault)) == 4
            await driver.press("f3", "enter")
            await driver.settle()
            assert "partly undone" in driver.screen()
            assert len(files(vault)) == 4, "Enter in the history changes nothing"
            await driver.press("u")
            await driver.on_top(UndoPreview)
            assert "Undo restores" in driver.screen()
            await driver.press("escape")
            assert len(files(vault)) == 4, "declined"
            await driver.press("u")
            await driver.on_top(UndoPreview)
            assert len(files(vault)) == 4, "asked first"
            await driver.press("y")
            assert files(vault) == before
            assert "Undone" in driver.screen()
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
            assert "all steps are off or skipped" in driver.screen(), "every step is off"
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


async def test_a_cancelled_run_says_of_each_step_and_file_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first step changes notes that the second one, which is cancelled, would write."""
    vault = tmp_path / "Vault"
    vault.mkdir()
    names = [f"n{number}" for number in range(4)]
    for name in names:
        (vault / f"{name}.md").write_text(f"{name}\n")
    before = files(vault)
    steps = [
        {
            "id": kind,
            "tool": tool,
            "foreach": {"from": names, "itemName": "item"},
            "args": args,
            "preview": kind.capitalize(),
        }
        for kind, tool, args in (
            (
                "append",
                "vault.updateFile",
                {"path": "${item}.md", "mode": "append", "content": "more\n"},
            ),
            ("move", "vault.rename", {"from": "${item}.md", "to": "Moved/${item}.md"}),
        )
    ]
    document = {"version": "1.0", "goal": "Two steps", "riskLevel": "writes", "steps": steps}
    reached, cancelled = threading.Event(), threading.Event()
    carry_out = Applier.carry_out

    def held(self: Applier, action: Action, number: int, content: bytes = b"") -> bool:
        if isinstance(action, MoveEntry) and action.path.name == "n2.md":
            reached.set()
            assert cancelled.wait(30)
        return carry_out(self, action, number, content)

    with VaultStore.open(vault) as store:
        async with driving_real(Wiring(store, tmp_path / "state")) as driver:
            driver.main.turn.preview(document, frozenset(), {})
            await driver.settle()
            driver.wait_out_grace()
            monkeypatch.setattr(Applier, "carry_out", held)
            await driver.pilot.press("a")
            await driver.until(reached.is_set)
            driver.wait_out_grace()
            await driver.pilot.press("escape")
            await driver.until(lambda: "Stopping after the current file" in driver.screen())
            cancelled.set()
            await driver.finished()
            await driver.settle()
            rows = [(row.word, row.text) for row in driver.main.query_one(ResultList).entries]
            words = [text for word, text in rows if word == "step"]
            assert len(words) == 2
            assert words == [
                "◐ Append: partly applied, 3 of 4 changes",
                "◐ Move: partly applied, 7 of 9 changes",
            ]
            assert [text for word, text in rows if word == "pending"] == [
                "rename n3.md → Moved/n3.md"
            ]
            assert "6 of 8 steps are applied. Remaining: 1 file." in driver.transcript()
            log = [
                row.text for row in driver.main.query_one(RunLog).entries if row.kind == "applied"
            ]
            assert not any("n3" in text for text in log), "nothing of n3 was written"
            await driver.press("u")
            await driver.on_top(UndoPreview)
            await driver.press("y")
            await driver.settle()
            assert files(vault) == before
            rows = [(row.word, row.text) for row in driver.main.query_one(ResultList).entries]
            assert rows == [("step", "↶ Append: undone"), ("step", "↶ Move: undone")]
