"""A selection becomes notes and links through a live editor, with undo, redo and crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from companion.conftest import OpenWindow
from companion.window import Window, eventually
from obsidian_agent.bootstrap import Wiring
from obsidian_agent.cli.main import main
from obsidian_agent.vault.filesystem.store import VaultStore
from tui.driving import Driver, driving_real

pytestmark = pytest.mark.browser

BULLETS = "- Mühle\n- 日本 🎉\n- Roof\n"
BELOW = "\nThe end.\n"
DAILY = "# Daily\n\n" + BULLETS + BELOW
TYPED = "not saved yet 🎈"
LINKED = "- [[Mühle]]\n- [[日本 🎉]]\n- [[Roof]]\n"
NOTES = {"Projects/Mühle.md", "Projects/日本 🎉.md", "Projects/Roof.md"}
JOB = (
    "do",
    "Create a note for each bullet in 'Projects'",
    "--offline",
    "--active-file",
    "Daily.md",
    "--selection-range",
    "2:0-5:0",
)

Cli = Callable[..., dict[str, Any]]


@pytest.fixture
def window(open_window: OpenWindow) -> Window:
    """Three bullets are selected with real keys, and words that are not saved stand below."""
    window = open_window({"Daily.md": DAILY, "Other.md": "- Mühle\n"})
    window.open("Daily.md")
    window.press("Control+End")
    window.type(TYPED)
    window.at(2)
    window.press("Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown")
    assert window.disk("Daily.md") == DAILY
    return window


@pytest.fixture
def places(window: Window, tmp_path: Path) -> list[str]:
    return [
        "--vault",
        str(window.folder),
        "--state-dir",
        str(tmp_path / "state"),
        "--config",
        str(tmp_path / "none.toml"),
        "--json",
    ]


@pytest.fixture
def cli(places: list[str], capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command on the vault. Return its document, with the exit code."""

    def call(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        code = main([*arguments, *places])
        return {**json.loads(capsys.readouterr().out), "exit": code}

    return call


def files(window: Window) -> set[str]:
    """Return the notes, without the files of the app and of Obsidian."""
    paths = (path.relative_to(window.folder) for path in window.folder.rglob("*.md"))
    return {str(path) for path in paths if not path.parts[0].startswith(".")}


def autosaved(window: Window) -> None:
    """Assert that Obsidian has saved the displayed text, without a notice."""
    shown = window.text()
    time.sleep(2.3)
    assert window.text() == window.disk("Daily.md") == shown
    assert window.notices() == []


def test_three_selected_bullets_become_notes_and_links_and_one_ctrl_z_takes_the_edit_back(
    window: Window, cli: Cli
) -> None:
    selected = window.ask("context")["selected"]
    assert selected == BULLETS
    before = DAILY + TYPED
    after = before.replace(BULLETS, LINKED)
    done = cli(*JOB, "--yes")
    assert (done["exit"], done["status"], done["warnings"]) == (0, "done", [])
    assert window.text() == window.disk("Daily.md") == after
    assert files(window) == {"Daily.md", "Other.md", *NOTES}
    assert "edit" in window.actions()
    window.press("Control+z")
    assert window.text() == before
    assert window.ask("context")["selected"] == selected
    window.press("Control+y")
    assert window.text() == after
    autosaved(window)
    undone = cli("undo", "--yes")
    assert undone["exit"] == 0
    assert window.text() == window.disk("Daily.md") == before
    assert files(window) == {"Daily.md", "Other.md"}
    assert window.actions().count("edit") == 2
    redone = cli("redo", "--yes")
    assert redone["exit"] == 0
    assert window.text() == window.disk("Daily.md") == after
    assert window.actions().count("edit") == 3
    assert window.notices() == []
    window.press("Control+z")
    assert window.text() == before, "a step of the editor's undo, as every change"
    autosaved(window)


@asynccontextmanager
async def app(window: Window, tmp_path: Path) -> AsyncIterator[Driver]:
    """Open the app next to Obsidian, with the plan for the selected bullets on its screen."""
    with VaultStore.open(window.folder) as store:
        async with driving_real(Wiring(store, tmp_path / "state"), (140, 40)) as driver:
            await driver.until(lambda: "3 lines · Daily.md in Obsidian" in driver.screen())
            await driver.planned("Create a note for each bullet in 'Projects'")
            assert driver.stage == "plan", driver.transcript()
            assert "3 new" in driver.plan_head()
            yield driver


async def test_the_app_takes_the_live_selection_and_its_undo_goes_through_the_editor(
    window: Window, tmp_path: Path
) -> None:
    after = (DAILY + TYPED).replace(BULLETS, LINKED)
    async with app(window, tmp_path) as driver:
        assert window.text() == window.disk("Daily.md") == DAILY + TYPED, (
            "what was typed is saved before the preview"
        )
        await driver.press("a")
        assert driver.stage == "result"
        assert window.text() == window.disk("Daily.md") == after
        assert files(window) == {"Daily.md", "Other.md", *NOTES}
        window.press("Control+z")
        assert (window.text(), window.ask("context")["selected"]) == (DAILY + TYPED, BULLETS)
        window.press("Control+y")
        assert window.text() == after
        await driver.press("u")
        await driver.settle()
        assert window.text() == window.disk("Daily.md") == DAILY + TYPED
        assert files(window) == {"Daily.md", "Other.md"}
        assert window.actions().count("edit") == 2
    autosaved(window)


async def test_the_app_follows_what_is_selected_with_real_keys(
    window: Window, tmp_path: Path
) -> None:
    with VaultStore.open(window.folder) as store:
        async with driving_real(Wiring(store, tmp_path / "state"), (140, 40)) as driver:
            await driver.until(lambda: "3 lines · Daily.md in Obsidian" in driver.screen())
            window.press("Shift+ArrowUp")
            await driver.until(lambda: "2 lines · Daily.md in Obsidian" in driver.screen())
            window.open("Other.md", new_pane=True)
            await driver.until(lambda: "Other.md in Obsidian" in driver.screen())
            await driver.press("ctrl+o", *"daily", "enter", "down", "down", "o")
            assert window.ask("context")["active"] == "Daily.md"
            assert window.ask("context")["selections"][0]["head"]["line"] == 2


async def test_words_typed_between_approval_and_run_refuse_it_before_anything_happened(
    window: Window, tmp_path: Path
) -> None:
    async with app(window, tmp_path) as driver:
        window.press("Control+End")
        window.type("!")
        await driver.press("a")
        assert files(window) == {"Daily.md", "Other.md"}
        assert window.text() == window.disk("Daily.md") == DAILY + TYPED + "!"
        assert "edit" not in window.actions()


# --- kill -9 ---


def _journal_and_edit(window: Window) -> Callable[[], bool]:
    window.fault("edit unheard")
    return lambda: "edit" in window.actions()


def _edit_and_save(window: Window) -> Callable[[], bool]:
    window.js(
        "{ const write = __write; window.__write = (...given) => new Promise((done) => { window.release = () => { window.__write = write; done(write(...given)); }; }); undefined }"
    )
    return lambda: "[[" in window.text()


def _save_and_end(window: Window) -> Callable[[], bool]:
    window.fault("edit unanswered")
    return lambda: "[[" in window.disk("Daily.md")


@pytest.mark.parametrize("option", ["--finish", "--roll-back"])
@pytest.mark.parametrize("between", [_journal_and_edit, _edit_and_save, _save_and_end])
def test_recovery_ends_a_run_that_was_killed(
    window: Window,
    cli: Cli,
    places: list[str],
    between: Callable[[Window], Callable[[], bool]],
    option: str,
) -> None:
    before = DAILY + TYPED
    window.ask("settle", paths=["Daily.md"])
    there = between(window)
    running = subprocess.Popen(
        [sys.executable, "-m", "obsidian_agent", *JOB, "--yes", *places],
        stdout=subprocess.DEVNULL,
        env=dict(os.environ),
    )
    assert eventually(there)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    window.fault(None)
    if between is _edit_and_save:
        assert window.disk("Daily.md") == before
        window.js("release()")  # what Obsidian does sooner or later
    recovered = cli("recover", option)
    assert recovered["exit"] == 0, recovered
    expected = before.replace(BULLETS, LINKED) if option == "--finish" else before
    assert window.text() == window.disk("Daily.md") == expected
    assert files(window) == {"Daily.md", "Other.md", *(NOTES if option == "--finish" else ())}
    window.js("window.release?.()")
    autosaved(window)
    assert cli("doctor")["exit"] == 0


# --- what does not go through the editor ---

OLD = "- Mühle\nmore\n"


def _reading_view(window: Window) -> None:
    window.js("app.workspace.active.view.setMode('preview')")


def _nothing(window: Window) -> None:
    pass


@pytest.mark.parametrize(
    ("raw", "prepare", "why"),
    [
        (OLD.encode(), _reading_view, "not open for editing"),
        (OLD.replace("\n", "\r\n").encode(), _nothing, "has Windows line ends"),
        (b"\xef\xbb\xbf" + OLD.encode(), _nothing, "byte order mark"),
        ((OLD + "long line of a note\n" * 50_000).encode(), _nothing, "larger than 200 KB"),
    ],
    ids=["reading", "crlf", "bom", "1 MB"],
)
def test_the_disk_is_written_and_the_open_note_loaded_again(
    open_window: OpenWindow,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    raw: bytes,
    prepare: Callable[[Window], None],
    why: str,
) -> None:
    window = open_window({"Daily.md": raw})
    window.open("Daily.md")
    prepare(window)
    places = [
        "--vault",
        str(window.folder),
        "--state-dir",
        str(tmp_path / "state"),
        "--config",
        str(tmp_path / "none.toml"),
        "--json",
    ]
    file = tmp_path / "plan.json"
    step = {
        "id": "s",
        "tool": "vault.replaceText",
        "args": {"path": "Daily.md", "find": "- Mühle", "replace": "- Mühle 日本"},
    }
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step]})
    )
    assert main(["run", str(file), "--yes", *places]) == 0
    assert why in capsys.readouterr().out
    after = raw.replace("- Mühle".encode(), "- Mühle 日本".encode())
    assert (window.folder / "Daily.md").read_bytes() == after
    shown = after.decode("utf-8-sig").replace("\r\n", "\n")
    assert eventually(lambda: window.js("app.workspace.active.view.getViewData()") == shown)
    assert "edit" not in window.actions()
    assert main(["undo", "--yes", *places]) == 0
    assert (window.folder / "Daily.md").read_bytes() == raw
    assert eventually(
        lambda: (
            window.js("app.workspace.active.view.getViewData()")
            == raw.decode("utf-8-sig").replace("\r\n", "\n")
        )
    )
    time.sleep(2.3)
    assert (window.folder / "Daily.md").read_bytes() == raw
    assert window.notices() == []


def test_two_panes_of_the_note_both_show_the_run(window: Window, cli: Cli) -> None:
    window.open("Daily.md", new_pane=True)
    assert cli(*JOB, "--yes")["exit"] == 0
    after = (DAILY + TYPED).replace(BULLETS, LINKED)
    assert window.js("app.workspace.leaves.map((leaf) => leaf.view.editor.getValue())") == [
        after,
        after,
    ]
    autosaved(window)


def test_a_note_that_is_closed_before_the_run_is_written_with_the_words_it_was_closed_with(
    window: Window, cli: Cli
) -> None:
    window.js("app.workspace.active.detach()")
    assert eventually(lambda: window.disk("Daily.md") == DAILY + TYPED)
    assert cli(*JOB, "--yes")["exit"] == 0
    assert window.disk("Daily.md") == (DAILY + TYPED).replace(BULLETS, LINKED)


@pytest.mark.parametrize(
    "step",
    [
        {"tool": "vault.rename", "args": {"from": "Daily.md", "to": "Today & 50%.md"}},
        {"tool": "vault.delete", "args": {"path": "Daily.md"}},
    ],
    ids=["rename", "delete"],
)
def test_an_open_note_that_a_run_moves_takes_its_unsaved_words_along_and_back(
    window: Window, cli: Cli, tmp_path: Path, step: dict[str, Any]
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(
        json.dumps(
            {"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [{"id": "s", **step}]}
        )
    )
    done = cli("run", str(file), "--yes", "--allow-deletes")
    assert done["exit"] == 0, done["errors"]
    assert not (window.folder / "Daily.md").exists()
    assert eventually(lambda: "Daily.md" not in window.ask("context")["open"])
    time.sleep(2.3)
    assert not (window.folder / "Daily.md").exists(), "autosave does not bring it back"
    assert cli("undo", "--yes")["exit"] == 0
    assert window.disk("Daily.md") == DAILY + TYPED


def test_a_command_runs_once_and_only_the_one_that_was_shown(
    window: Window, cli: Cli, tmp_path: Path
) -> None:
    odd = {"id": 'quickadd:choice:ab 1"x', "name": 'QuickAdd: it\'s "odd" & 5 %'}
    file = tmp_path / "plan.json"
    steps = [
        {"id": "make", "tool": "vault.createFile", "args": {"path": "Log.md", "content": "made\n"}},
        {"id": "command", "tool": "commands.run", "args": {"id": odd["id"]}},
    ]
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "commands", "steps": steps})
    )
    [flag] = cli("preview", str(file), "--allow-commands")["flags"]
    assert odd["name"] in flag["detail"]
    done = cli("run", str(file), "--yes", "--allow-commands")
    assert (done["exit"], done["effects"]["commands"]) == (0, [odd["id"]]), done["errors"]
    assert window.js("app.ran") == [odd["id"]]
    assert window.disk("Log.md") == "made\n"


def test_what_a_command_did_to_an_open_note_is_kept_and_what_follows_is_asked_about_again(
    window: Window, cli: Cli, tmp_path: Path
) -> None:
    window.js("""void app.commands.listCommands().push({
      id: 'x:stamp', name: 'Stamp', act: () => app.workspace.active.view.cm.dispatch({changes: {from: 0, insert: 'stamped '}}),
    })""")
    file = tmp_path / "plan.json"
    append = {"path": "Daily.md", "mode": "append", "content": "\nafter\n"}
    steps = [
        {"id": "command", "tool": "commands.run", "args": {"id": "x:stamp"}},
        {"id": "add", "tool": "vault.updateFile", "args": append},
    ]
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "commands", "steps": steps})
    )
    stopped = cli("run", str(file), "--yes", "--allow-commands")
    assert stopped["exit"] == 4, stopped["errors"]
    assert window.text() == "stamped " + DAILY + TYPED
    autosaved(window)
