"""This program's own client against the real plugin: every action, and what it says when Obsidian or the plugin is not as it should be."""

from __future__ import annotations

import time

import pytest

from companion.conftest import OpenWindow
from companion.window import Window, sha256
from obsidian_agent.errors import ObsidianError
from obsidian_agent.obsidian.companion_client import NoCompanion
from obsidian_agent.obsidian.live import Obsidian
from obsidian_agent.obsidian.transport import Unreachable

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
    return Obsidian(str(window.folder), lambda: None, patience=1.0)


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
    [settled, closed] = companion.settle(["Note.md", "Other.md"])
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


def test_the_plugin_disabled_leaves_what_the_command_line_can_do(window: Window, obsidian: Obsidian) -> None:
    window.js("plugin.unload()")
    with pytest.raises(NoCompanion, match="not installed in this vault, or not enabled"):
        obsidian.companion().context()
    assert obsidian.status().best == "cli"
    assert obsidian.context() is None
    found = obsidian.active_file()
    assert found is not None
    assert (found.path, found.via) == ("Note.md", "cli")
    assert obsidian.open(ODD) == "cli"
    assert window.js("app.workspace.active.view.file.path") == ODD
    obsidian.run('quickadd:choice:ab 1"x', 'quickadd:choice:ab 1"x')
    assert window.js("app.ran") == ['quickadd:choice:ab 1"x']


@pytest.mark.parametrize(("fault", "said"), [("off", "command line is off"), ("hang", "did not answer within 1 seconds")])
def test_an_obsidian_that_cannot_be_asked_is_a_sentence_in_time(window: Window, obsidian: Obsidian, fault: str, said: str) -> None:
    window.fault(fault)
    began = time.monotonic()
    with pytest.raises(Unreachable, match=said):
        obsidian.companion().context()
    assert time.monotonic() - began < 3
    assert obsidian.context() is None


def test_half_a_reply_is_no_reply(window: Window, obsidian: Obsidian) -> None:
    window.fault("half")
    with pytest.raises(NoCompanion, match="cut off"):
        obsidian.companion().context()


def test_where_a_call_waits_for_the_one_before_watch_ends_by_itself(window: Window, obsidian: Obsidian) -> None:
    window.fault("serial")
    version = obsidian.companion().context().version
    assert obsidian.companion().watch(version, 0.5).version == version
    assert obsidian.companion().context().active == "Note.md"
