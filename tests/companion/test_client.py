"""Our client against the real plugin: every action, and the messages for every failure."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from companion.conftest import OpenWindow
from companion.window import Window, sha256
from obsidian_agent.cli.main import main
from obsidian_agent.errors import ObsidianError
from obsidian_agent.obsidian.live import Obsidian

pytestmark = pytest.mark.browser

NOTE = "# Projects\n\n- Mühle\n- 日本 🎉\n"
ODD = "a 'b' \"c\" & #1 50%.md"


@pytest.fixture
def window(open_window: OpenWindow) -> Window:
    window = open_window({"Note.md": NOTE, ODD: "odd\n", "Other.md": "x\n"})
    window.open("Note.md")
    return window


@pytest.fixture
def obsidian(window: Window) -> Obsidian:
    return Obsidian(str(window.folder), lambda: None, timeout=1.0)


def test_the_context_is_what_the_person_selected(window: Window, obsidian: Obsidian) -> None:
    window.at(2)
    window.press("Shift+ArrowDown", "Shift+ArrowDown")
    told = obsidian.companion().context()
    assert (told.active, told.mode, told.selected) == ("Note.md", "source", "- Mühle\n- 日本 🎉\n")
    assert told.hash == sha256(NOTE)
    assert (told.selections[0].anchor.line, told.selections[0].head.line) == (2, 4)


def test_settle_edit_and_one_ctrl_z(window: Window, obsidian: Obsidian) -> None:
    companion = obsidian.companion()
    window.press("Control+End")
    window.type("typed")
    [settled, closed] = companion.save(["Note.md", "Other.md"])
    assert (settled.open, settled.saved, settled.hash) == (True, True, sha256(NOTE + "typed"))
    assert not closed.open
    after = "🎈" + NOTE + "typed"
    companion.edit("Note.md", sha256(NOTE + "typed"), sha256(after), [(0, 0, "🎈")])
    assert window.text() == after == window.disk("Note.md")
    window.press("Control+z")
    assert window.text() == NOTE + "typed"
    with pytest.raises(ObsidianError) as refused:
        companion.edit("Note.md", sha256(after), sha256(NOTE), [(0, 2, "")])
    assert refused.value.problem().code == "STALE"


def test_open_commands_run_and_watch(window: Window, obsidian: Obsidian) -> None:
    assert obsidian.open(ODD) == "companion"
    companion = obsidian.companion()
    assert companion.context().active == ODD
    command = next(each for each in obsidian.commands() if each.source == "quickadd")
    obsidian.run(command.id, command.name)
    assert window.js("app.ran") == [command.id]
    with pytest.raises(ObsidianError, match="now"):
        obsidian.run("workspace:unready", "Not now")
    assert companion.watch(0, 5.0).active == ODD


def test_no_request_is_code(window: Window, obsidian: Obsidian) -> None:
    obsidian.status()
    obsidian.context()
    obsidian.commands()
    assert {argv[1] for argv in window.calls()} <= {"agent-companion", "vault"}


def _closed(window: Window) -> None:
    window.socket.unlink()


def _stolen(window: Window) -> None:
    """Let another program with another vault listen in place of Obsidian, and agree to all."""
    window.socket.unlink()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(window.socket))
    listener.listen(8)

    def say_yes() -> None:
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as lines:
                lines.readline()
                connection.sendall(
                    b'OA1 {"protocol": 1, "vault": "/somewhere/else", "ok": true, "executed": true, "opened": true}'
                )

    threading.Thread(target=say_yes, daemon=True).start()


def _fault(name: str) -> Callable[[Window], None]:
    return lambda window: window.fault(name)


def _page(code: str) -> Callable[[Window], None]:
    def happens(window: Window) -> None:
        window.js(f"void ({code})")

    return happens


FAULTS: list[tuple[Callable[[Window], None], str, str]] = [
    (_fault("off"), "command line is off", "uri"),
    (_closed, "Obsidian is not running", "uri"),
    (_fault("hang"), "did not answer within 1 seconds", "uri"),
    (_fault("not open"), "does not have this vault open", "uri"),
    (_fault("half"), "reply was truncated", "uri"),
    (_fault("flood"), "longer than 8 MB", "uri"),
    (_stolen, "has another vault open", "uri"),
    (_fault("old"), "has another version", "cli"),
    (_page("plugin.unload()"), "not installed in this vault, or not enabled", "cli"),
    (_page("plugin.base = '/somewhere/else'"), "has another vault open", "cli"),
]


@pytest.mark.parametrize(
    ("happens", "sentence", "next_way"),
    FAULTS,
    ids=[
        "off",
        "closed",
        "hung",
        "no vault",
        "half",
        "60 MB",
        "stolen",
        "old",
        "disabled",
        "another",
    ],
)
def test_what_fails_is_one_sentence_in_time_then_the_next_way_and_notes_are_changed_all_the_same(
    window: Window,
    obsidian: Obsidian,
    desktop: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    happens: Callable[[Window], None],
    sentence: str,
    next_way: str,
) -> None:
    happens(window)
    began = time.monotonic()
    with pytest.raises(ObsidianError, match=sentence) as told:
        obsidian.companion().context()
    assert "\n" not in told.value.problem().message
    assert obsidian.context() is None
    assert obsidian.open(ODD) == next_way
    assert time.monotonic() - began < 6
    with pytest.raises(ObsidianError):
        obsidian.run("editor:toggle-bold", "Another name than it has")
    assert window.js("app.ran") == []
    places = [
        "--vault",
        str(window.folder),
        "--state-dir",
        str(tmp_path / "s"),
        "--config",
        str(tmp_path / "none.toml"),
        "--json",
    ]
    file = tmp_path / "plan.json"
    step = {
        "id": "s",
        "tool": "vault.updateFile",
        "args": {"path": "Other.md", "mode": "append", "content": "more"},
    }
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step]})
    )
    assert main(["run", str(file), "--yes", *places]) == 0, capsys.readouterr().out
    assert window.disk("Other.md") == "x\nmore\n"


def test_where_a_call_waits_for_the_one_before_watch_ends_by_itself(
    window: Window, obsidian: Obsidian
) -> None:
    window.fault("serial")
    version = obsidian.companion().context().version
    assert obsidian.companion().watch(version, 0.5).version == version
    assert obsidian.companion().context().active == "Note.md"
