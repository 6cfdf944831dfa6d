"""The plugin in a real browser, over a socket like Obsidian's: its answers, edits and refusals."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from companion.conftest import OpenWindow
from companion.window import ID, Refused, Window, eventually, sha256

pytestmark = pytest.mark.browser

DAILY = "# Daily\n\n- call Ada\n- write to Grace\n- ask Edsger\n\nbelow\n"


def units(text: str) -> int:
    """UTF-16 units, which Obsidian counts in."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def replacing(before: str, old: str, new: str) -> dict[str, Any]:
    """Return an edit of the text `before` that replaces `old` with `new`."""
    start = before.index(old)
    change = [units(before[:start]), units(before[:start] + old), new]
    return {
        "before": sha256(before),
        "after": sha256(before.replace(old, new, 1)),
        "changes": [change],
    }


def refusal(window: Window, action: str, **fields: Any) -> str:
    with pytest.raises(Refused) as refused:
        window.ask(action, **fields)
    return str(refused.value.code)


def test_real_keys_select_three_bullets_while_unsaved_words_stand_below(
    open_window: OpenWindow,
) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.press("Control+End")
    window.type("not yet saved: ü 🎉")
    window.at(2)
    window.press("Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown")
    told = window.ask("context", text=True)
    assert told["active"] == "Daily.md"
    assert told["mode"] == "source"
    assert told["open"] == ["Daily.md"]
    assert told["selected"] == "- call Ada\n- write to Grace\n- ask Edsger\n"
    assert told["selections"] == [
        {"anchor": {"line": 2, "ch": 0}, "head": {"line": 5, "ch": 0}, "from": 9, "to": 50}
    ]
    assert told["text"] == DAILY + "not yet saved: ü 🎉"
    assert told["hash"] == sha256(told["text"])
    assert told["length"] == units(told["text"])
    assert window.disk("Daily.md") == DAILY
    [settled] = window.ask("settle", paths=["Daily.md"])["files"]
    assert settled == {
        "path": "Daily.md",
        "open": True,
        "mode": "source",
        "hash": told["hash"],
        "saved": True,
        "dirty": True,
    }
    assert window.disk("Daily.md") == told["text"]
    assert window.ask("context")["selected"] == told["selected"], "saving moves nothing"
    assert "text" not in window.ask("context")


def test_what_is_not_open_is_told_so(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY, "Other.md": "x\n"})
    told = window.ask("context")
    assert (told["active"], told["mode"], told["hash"], told["open"], told["selections"]) == (
        None,
        None,
        None,
        [],
        [],
    )
    window.open("Daily.md")
    files = window.ask("settle", paths=["Daily.md", "Other.md", "Nowhere.md"])["files"]
    assert [(each["path"], each["open"]) for each in files] == [
        ("Daily.md", True),
        ("Other.md", False),
        ("Nowhere.md", False),
    ]
    assert files[0]["dirty"] is False
    assert refusal(window, "edit", path="Other.md", **replacing("x\n", "x", "y")) == "NOT_OPEN"
    assert window.disk("Other.md") == "x\n"


@pytest.mark.parametrize(
    ("before", "old", "new"),
    [
        ("- one\n- two\n", "two", "[[two]]"),
        ("a 🎉 b\n", "🎉", "🎈🎈"),
        ("🎉🎉🎉", "🎉🎉", ""),
        ("日本語のノート\n", "本語", "本"),
        ("👩‍👩‍👧‍👦 family\n", "👩‍👧", "x"),
        ("\ud83d\udc69 pair".encode("utf-16", "surrogatepass").decode("utf-16"), "pair", "👩"),
        ("e\u0301 and \u00e9\n", "e\u0301", "\u00e9"),
        ("tab\t \u2028 nbsp\u00a0 zero\u200b\n", "\u2028", "\n"),
        ("", "", "first words 日本\n\n"),
        ("\n\n\n", "\n\n", "\\n \\t 100% & #\n"),
    ],
)
def test_one_ctrl_z_takes_an_edit_back_exactly(
    open_window: OpenWindow, before: str, old: str, new: str
) -> None:
    window = open_window({"Note.md": before})
    window.open("Note.md")
    edit = replacing(before, old, new)
    reply = window.ask("edit", path="Note.md", **edit)
    after = before.replace(old, new, 1)
    assert reply["saved"] is True
    assert reply["hash"] == sha256(after)
    assert window.text() == after == window.disk("Note.md")
    assert window.depths() == (1, 0)
    window.press("Control+z")
    assert window.text() == before
    window.press("Control+y")
    assert window.text() == after
    assert window.notices() == []


def test_the_selection_stays_through_an_edit_and_its_undo(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.at(2)
    window.press("Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown")
    selected = window.ask("context")["selected"]
    window.ask(
        "edit", path="Daily.md", **replacing(DAILY, "# Daily\n", "# Daily 日記 🎉\n\nnew line\n")
    )
    assert window.ask("context")["selected"] == selected
    window.press("Control+z")
    assert window.text() == DAILY
    assert window.ask("context")["selected"] == selected


def test_several_changes_are_one_step(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    after = (
        DAILY.replace("call Ada", "[[call Ada]]")
        .replace("ask Edsger", "[[ask Edsger 🎉]]")
        .replace("below\n", "")
    )
    changes = [
        [DAILY.index(old), DAILY.index(old) + len(old), new]
        for old, new in (
            ("call Ada", "[[call Ada]]"),
            ("ask Edsger", "[[ask Edsger 🎉]]"),
            ("below\n", ""),
        )
    ]
    window.ask("edit", path="Daily.md", before=sha256(DAILY), after=sha256(after), changes=changes)
    assert window.text() == after == window.disk("Daily.md")
    window.press("Control+z")
    assert window.text() == DAILY


def test_an_edit_is_a_step_apart_from_what_is_typed_before_and_after_it(
    open_window: OpenWindow,
) -> None:
    window = open_window({"Note.md": "start"})
    window.open("Note.md")
    window.press("Control+End")
    window.type(" typed")
    before = "start typed"
    window.ask("edit", path="Note.md", **replacing(before, " typed", " typed and changed"))
    window.type("!")
    assert window.text() == "start typed and changed!"
    window.press("Control+z")
    assert window.text() == "start typed and changed"
    window.press("Control+z")
    assert window.text() == before
    window.press("Control+z")
    assert window.text() == "start"


@pytest.mark.parametrize(
    "changes",
    [
        [[0, 99, "x"]],
        [[4, 5, "b"], [0, 1, "a"]],
        [[0, 3, "a"], [2, 4, "b"]],
        [],
        "no list",
        [["a", 1, "x"]],
        [[0, 1]],
    ],
)
def test_changes_that_do_not_give_what_was_approved_change_nothing(
    open_window: OpenWindow, changes: object
) -> None:
    window = open_window({"Note.md": "hello\n"})
    window.open("Note.md")
    assert refusal(
        window,
        "edit",
        path="Note.md",
        before=sha256("hello\n"),
        after=sha256("approved\n"),
        changes=changes,
    ) in {
        "DIFFERENT",
        "FAILED",
    }
    assert window.text() == "hello\n" == window.disk("Note.md")
    assert window.depths() == (0, 0)


@pytest.mark.parametrize(
    "another",
    [
        "transactionFilter.of((tr) => tr.isUserEvent('agent') ? [tr, {changes: {from: 0, insert: '!'}}] : tr)",
        "changeFilter.of((tr) => !tr.isUserEvent('agent'))",
    ],
    ids=["alters", "prevents"],
)
def test_an_edit_that_another_plugin_alters_or_prevents_leaves_nothing_behind(
    open_window: OpenWindow, another: str
) -> None:
    window = open_window({"Note.md": "hello\n"})
    window.open("Note.md")
    window.type("oh ")
    window.js(f"app.extend(cm.state.EditorState.{another})")
    assert (
        refusal(window, "edit", path="Note.md", **replacing("oh hello\n", "hello", "bye"))
        == "DIFFERENT"
    )
    assert window.text() == "oh hello\n", "and what was typed before is not undone"
    assert window.ask("settle", paths=["Note.md"])["files"][0]["saved"]
    assert window.disk("Note.md") == "oh hello\n"


def test_words_typed_since_the_hash_was_taken_refuse_the_edit(open_window: OpenWindow) -> None:
    window = open_window({"Note.md": "hello\n"})
    window.open("Note.md")
    window.press("Control+Home")
    window.type("x")
    assert (
        refusal(window, "edit", path="Note.md", **replacing("hello\n", "hello", "bye")) == "STALE"
    )
    assert window.text() == "xhello\n"


def test_a_key_between_the_plugins_look_at_the_note_and_its_change_refuses_the_edit(
    open_window: OpenWindow,
) -> None:
    window = open_window({"Note.md": "hello\n"})
    window.open("Note.md")
    # A key that comes while the hash is made, which is the only time there is for one.
    window.js("""{
      const digest = crypto.subtle.digest.bind(crypto.subtle);
      crypto.subtle.digest = async (...given) => {
        const hash = await digest(...given);
        app.workspace.active.view.cm.dispatch({changes: {from: 0, insert: 'k'}});
        return hash;
      };
      undefined
    }""")
    assert (
        refusal(window, "edit", path="Note.md", **replacing("hello\n", "hello", "bye")) == "STALE"
    )
    assert window.text().strip("k") == "hello\n"


def test_reading_view_is_told_and_refused(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.js("app.workspace.active.view.setMode('preview')")
    told = window.ask("context")
    assert (told["mode"], told["selections"], told["selected"]) == ("preview", [], "")
    assert told["hash"] == sha256(DAILY)
    assert window.ask("settle", paths=["Daily.md"])["files"][0]["mode"] == "preview"
    assert (
        refusal(window, "edit", path="Daily.md", **replacing(DAILY, "Ada", "Eve")) == "NOT_SOURCE"
    )
    assert window.disk("Daily.md") == DAILY


@pytest.mark.parametrize(
    "raw",
    [b"one\r\ntwo\r\n", b"\xef\xbb\xbfone\ntwo\n", b"\xef\xbb\xbfone\r\ntwo\r\n", b"one\rtwo\n"],
)
def test_line_ends_and_a_byte_order_mark_stay_where_nothing_is_typed(
    open_window: OpenWindow, raw: bytes
) -> None:
    window = open_window({"Note.md": raw})
    window.open("Note.md")
    [settled] = window.ask("settle", paths=["Note.md"])["files"]
    assert (settled["saved"], settled["dirty"], settled["hash"]) == (
        True,
        False,
        sha256("one\ntwo\n"),
    )
    assert (window.folder / "Note.md").read_bytes() == raw


def test_a_note_of_a_megabyte_is_read_changed_and_taken_back(open_window: OpenWindow) -> None:
    long = "".join(f"- line {number} with some words in it 日本 🎉\n" for number in range(25_000))
    window = open_window({"Long.md": long})
    window.open("Long.md")
    began = time.monotonic()
    assert window.ask("context", text=True)["text"] == long
    window.ask("edit", path="Long.md", **replacing(long, "line 24000 with", "line 24000 without"))
    assert time.monotonic() - began < 8
    assert window.disk("Long.md") == long.replace("line 24000 with", "line 24000 without", 1)
    window.press("Control+z")
    assert sha256(window.text()) == sha256(long)


def test_a_reply_longer_than_8_mb_is_refused_in_a_sentence(open_window: OpenWindow) -> None:
    window = open_window({"Huge.md": "🎉" * 800_000})
    window.open("Huge.md")
    assert refusal(window, "context", text=True) == "TOO_LARGE"
    assert window.ask("context")["length"] == 1_600_000


def test_two_panes_of_one_note_both_show_an_edit(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.open("Daily.md", new_pane=True)
    window.press("Control+End")
    window.type("typed in the second")
    before = DAILY + "typed in the second"
    window.ask("edit", path="Daily.md", **replacing(before, "Ada", "Eve"))
    after = before.replace("Ada", "Eve")
    assert window.js("app.workspace.leaves.map((leaf) => leaf.view.editor.getValue())") == [
        after,
        after,
    ]
    assert window.disk("Daily.md") == after
    time.sleep(2.3)
    assert window.disk("Daily.md") == after, "saving by itself changes nothing"
    assert window.notices() == []
    assert window.ask("context")["open"] == ["Daily.md"]


def test_panes_that_hold_different_words_are_neither_saved_nor_changed(
    open_window: OpenWindow,
) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.open("Daily.md", new_pane=True)
    window.js("for (const leaf of app.workspace.leaves) leaf.view.follow = () => {}")
    window.type("second ")
    window.js("app.workspace.leaves[0].view.cm.dispatch({changes: {from: 0, insert: 'first '}})")
    window.js("for (const leaf of app.workspace.leaves) clearTimeout(leaf.view.timer)")
    assert window.ask("settle", paths=["Daily.md"])["files"][0]["saved"] is False
    assert (
        refusal(window, "edit", path="Daily.md", **replacing("first " + DAILY, "Ada", "Eve"))
        == "STALE"
    )
    assert window.disk("Daily.md") == DAILY


def test_a_pane_that_does_not_show_what_was_saved_yet_is_told(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.open("Daily.md", new_pane=True)
    window.js(
        "app.changed = () => {}; for (const leaf of app.workspace.leaves) leaf.view.follow = () => {}; app.workspace.setActiveLeaf(app.workspace.leaves[0], {focus: true})"
    )
    window.type("first ")
    assert window.ask("settle", paths=["Daily.md"])["files"][0]["saved"] is False
    assert window.disk("Daily.md") == "first " + DAILY


def test_a_note_in_reading_view_beside_its_editor_is_changed_in_the_editor(
    open_window: OpenWindow,
) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.js("app.workspace.active.view.setMode('preview')")
    window.open("Daily.md", new_pane=True)
    assert window.ask("settle", paths=["Daily.md"])["files"][0]["mode"] == "source"
    window.ask("edit", path="Daily.md", **replacing(DAILY, "Ada", "Eve"))
    assert (
        window.js("app.workspace.leaves.map((leaf) => leaf.view.getViewData())")
        == [DAILY.replace("Ada", "Eve")] * 2
    )
    window.press("Control+z")
    assert window.text() == DAILY


def test_what_another_program_wrote_is_not_overwritten_before_the_app_sees_it(
    open_window: OpenWindow,
) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.js("app.changed = () => {}")  # the watcher is late
    (window.folder / "Daily.md").write_text("written by another program\n")
    assert window.ask("settle", paths=["Daily.md"])["files"][0]["saved"] is False
    assert window.disk("Daily.md") == "written by another program\n"


def test_a_save_that_is_under_way_is_waited_for(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.js(
        "{ const write = __write; window.__write = async (...given) => { await sleep(400); await write(...given); }; undefined }"
    )
    window.type("first ")
    window.js("void app.workspace.active.view.save()")
    window.type("second ")
    assert window.ask("settle", paths=["Daily.md"])["files"][0]["saved"] is True
    assert window.disk("Daily.md") == "first second " + DAILY


def test_a_disk_that_takes_nothing_is_told(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.js("window.__write = async () => {}; undefined")
    assert refusal(window, "edit", path="Daily.md", **replacing(DAILY, "Ada", "Eve")) == "UNSAVED"
    assert window.text() == DAILY.replace("Ada", "Eve")


def test_a_note_closed_meanwhile_is_not_open(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.type("unsaved ")
    window.js("app.workspace.active.detach()")
    assert refusal(window, "edit", path="Daily.md", **replacing(DAILY, "Ada", "Eve")) == "NOT_OPEN"
    assert window.ask("settle", paths=["Daily.md"])["files"] == [
        {"path": "Daily.md", "open": False}
    ]
    assert window.disk("Daily.md") == "unsaved " + DAILY


def test_a_note_renamed_in_the_app_is_open_by_its_new_name_only(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.type("unsaved ")
    version = window.ask("context")["version"]
    window.js("app.rename('Daily.md', 'Today & #1 50%.md')")
    told = window.ask("context")
    assert told["active"] == "Today & #1 50%.md"
    assert told["version"] > version
    assert (
        refusal(window, "edit", path="Daily.md", **replacing("unsaved " + DAILY, "Ada", "Eve"))
        == "NOT_OPEN"
    )
    window.ask("edit", path="Today & #1 50%.md", **replacing("unsaved " + DAILY, "Ada", "Eve"))
    time.sleep(2.3)
    assert not (window.folder / "Daily.md").exists()
    assert window.disk("Today & #1 50%.md") == "unsaved " + DAILY.replace("Ada", "Eve")


def test_a_note_deleted_by_another_program_is_not_open_and_does_not_come_back(
    open_window: OpenWindow,
) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    (window.folder / "Daily.md").unlink()
    assert eventually(lambda: window.ask("context")["active"] is None)
    assert refusal(window, "edit", path="Daily.md", **replacing(DAILY, "Ada", "Eve")) == "NOT_OPEN"
    time.sleep(2.3)
    assert not (window.folder / "Daily.md").exists()


def test_open_shows_the_pane_that_is_there_at_the_line(open_window: OpenWindow) -> None:
    odd = 'odd\'s "name" & #1 50%\nnew.md'
    window = open_window({"Daily.md": DAILY, "Other.md": "x\n", odd: "y\n"})
    window.open("Daily.md")
    window.ask("open", path="Other.md", newPane=True)
    assert window.ask("context")["open"] == ["Daily.md", "Other.md"]
    window.ask("open", path="Daily.md", line=4)
    told = window.ask("context")
    assert (told["active"], told["selections"][0]["head"]) == ("Daily.md", {"line": 3, "ch": 0})
    assert window.js("app.workspace.leaves.length") == 2
    window.ask("open", path="Daily.md", newPane=True)
    assert window.js("app.workspace.leaves.length") == 3
    window.ask("open", path=odd)
    assert window.ask("context")["active"] == odd
    window.ask("edit", path=odd, **replacing("y\n", "y", "z"))
    assert window.disk(odd) == "z\n"
    for nowhere in ("Nowhere.md", "../outside.md", str(window.folder / "Other.md"), ""):
        assert refusal(window, "open", path=nowhere) == "NOT_FOUND"


def test_commands_are_listed_with_the_plugin_they_are_of(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    listed = {
        each["id"]: (each["name"], each["source"]) for each in window.ask("commands")["commands"]
    }
    assert listed["app:delete-file"] == ("Delete current file", "core")
    assert listed['quickadd:choice:ab 1"x'] == ('QuickAdd: it\'s "odd" & 5 %', "quickadd")


def test_only_the_very_command_that_was_named_runs(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    odd = {"id": 'quickadd:choice:ab 1"x', "name": 'QuickAdd: it\'s "odd" & 5 %'}
    assert window.ask("run", **odd)["executed"] is True
    assert window.js("app.ran") == [odd["id"]]
    assert refusal(window, "run", id=odd["id"], name="QuickAdd") == "STALE"
    assert refusal(window, "run", id="quickadd:choice:ab", name=odd["name"]) == "COMMAND_NOT_FOUND"
    assert refusal(window, "run", id="toString", name="toString") == "COMMAND_NOT_FOUND"
    assert refusal(window, "run", id="quickadd:broken", name="Broken") == "FAILED"
    assert window.ask("run", id="workspace:unready", name="Not now")["executed"] is False
    assert window.js("app.ran") == [odd["id"]]


def test_watch_answers_when_something_moves_and_when_the_time_is_up(
    open_window: OpenWindow,
) -> None:
    window = open_window({"Daily.md": DAILY, "Other.md": "x\n"})
    window.open("Daily.md")
    version = window.ask("context")["version"]

    def moved(act: Callable[[], object]) -> dict[str, Any]:
        found: list[dict[str, Any]] = []
        since = window.ask("context")["version"]
        asking = threading.Thread(
            target=lambda: found.append(window.ask("watch", since=since, wait=20_000))
        )
        asking.start()
        time.sleep(0.3)
        assert not found
        act()
        asking.join(5)
        assert found[0]["version"] > since
        return found[0]

    assert moved(lambda: window.press("Shift+ArrowDown"))["selected"] == "# Daily\n"
    assert moved(lambda: window.type("z"))["selected"] == ""
    assert (
        moved(
            lambda: window.js(
                "app.workspace.active.view.cm.dispatch({changes: {from: 9, insert: 'y'}})"
            )
        )["length"]
        == len(DAILY) - 6
    )
    window.open("Other.md", new_pane=True)
    assert (
        moved(lambda: window.js("app.workspace.setActiveLeaf(app.workspace.leaves[0])"))["active"]
        == "Daily.md"
    )
    assert (
        moved(
            lambda: window.js("app.workspace.active.openFile(app.vault.getFileByPath('Other.md'))")
        )["active"]
        == "Other.md"
    )
    assert (
        moved(lambda: window.js("app.workspace.active.view.setMode('preview')"))["mode"]
        == "preview"
    )
    assert window.ask("watch", since=version, wait=20_000)["version"] != version, "at once"
    began = time.monotonic()
    assert (
        window.ask("watch", since=window.ask("context")["version"], wait=300)["active"]
        == "Other.md"
    )
    assert 0.25 < time.monotonic() - began < 3


def test_a_selection_in_a_pop_out_window_counts(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    window.js("""(async () => {
      const leaf = app.workspace.getLeaf('window');
      await leaf.openFile(app.vault.getFileByPath('Daily.md'));
      app.workspace.setActiveLeaf(leaf, {focus: true});
    })()""")
    version = window.ask("context")["version"]
    window.press("Shift+ArrowDown")
    told = window.ask("context")
    assert told["version"] > version
    assert told["selected"] == "# Daily\n"
    window.ask("edit", path="Daily.md", **replacing(DAILY, "Ada", "Eve"))
    assert window.disk("Daily.md") == DAILY.replace("Ada", "Eve")


def test_after_disabling_nothing_answers_and_after_enabling_it_does(
    open_window: OpenWindow,
) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    version = window.ask("context")["version"]
    window.js("plugin.unload()")
    assert 'Command "agent-companion" not found' in window.call(
        f"vault={ID}", "agent-companion", "req=x"
    )
    assert window.js("app.extensions.length") == 0
    window.js("enable()")
    assert window.ask("context")["version"] > version


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"protocol": 2}, "PROTOCOL"),
        ({"protocol": "1"}, "PROTOCOL"),
        ({}, "PROTOCOL"),
        ([], "PROTOCOL"),
        (None, "FAILED"),
        ({"protocol": 1, "vault": "/another", "action": "context"}, "OTHER_VAULT"),
        ({"protocol": 1, "action": "context"}, "OTHER_VAULT"),
        ({"protocol": 1, "vault": "", "action": "context"}, "OTHER_VAULT"),
        ({"protocol": 1, "vault": "HERE", "action": "erase"}, "UNKNOWN_ACTION"),
        ({"protocol": 1, "vault": "HERE"}, "UNKNOWN_ACTION"),
        ({"protocol": 1, "vault": "HERE", "action": "settle", "paths": 5}, "FAILED"),
        ({"protocol": 1, "vault": "HERE", "action": "edit"}, "NOT_OPEN"),
    ],
)
def test_a_request_that_is_not_as_agreed_is_answered_and_does_nothing(
    open_window: OpenWindow, request_: Any, code: str
) -> None:
    window = open_window({"Daily.md": DAILY})
    if isinstance(request_, dict) and request_.get("vault") == "HERE":
        request_ = {**request_, "vault": str(window.folder)}
    reply = window.answer(request_)
    assert (reply["ok"], reply["code"], reply["vault"]) == (False, code, str(window.folder))
    assert window.disk("Daily.md") == DAILY


@pytest.mark.parametrize(
    "parameter", ["req=%%%", "req=", "req", "", "req=eyJw", f"req={'A' * 1001}"]
)
def test_a_parameter_that_was_cut_or_garbled_is_a_bad_request(
    open_window: OpenWindow, parameter: str
) -> None:
    window = open_window({"Daily.md": DAILY})
    line = window.call(f"vault={ID}", "agent-companion", parameter).strip()
    assert json.loads(line.removeprefix("OA1 "))["code"] == "BAD_REQUEST"


def test_the_folder_may_be_written_with_a_slash_at_its_end(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    assert window.answer({"protocol": 1, "vault": f"{window.folder}/", "action": "context"})["ok"]
    assert not window.answer({"protocol": 1, "vault": f"{window.folder}2", "action": "context"})[
        "ok"
    ]


def test_autosave_after_an_edit_changes_nothing(open_window: OpenWindow) -> None:
    window = open_window({"Daily.md": DAILY})
    window.open("Daily.md")
    window.ask("edit", path="Daily.md", **replacing(DAILY, "Ada", "Eve"))
    file = window.folder / "Daily.md"
    seen = (os.stat(file).st_mtime_ns, hashlib.sha256(file.read_bytes()).hexdigest())
    time.sleep(2.5)
    assert (os.stat(file).st_mtime_ns, hashlib.sha256(file.read_bytes()).hexdigest()) == seen
    assert window.notices() == []
