from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.obsidian.editing import text_changes
from obsidian_stand_in import Cli, StandIn

OLD = "# Day 😀\n- Alpha\n- Beta\n"
NEW = OLD.replace("- Alpha", "- Alpha 日本")


@pytest.fixture
def plan(tmp_path: Path, folder: Path) -> str:
    """Return a plan that changes an open note and one that is not."""
    (folder / "Day.md").write_text(OLD)
    (folder / "Other.md").write_text("- Alpha\n")
    steps = [
        {
            "id": f"s{at}",
            "tool": "vault.replaceText",
            "args": {"path": path, "find": "- Alpha", "replace": "- Alpha 日本"},
        }
        for at, path in enumerate(["Day.md", "Other.md"])
    ]
    file = tmp_path / "plan.json"
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": steps})
    )
    return str(file)


def test_an_invalid_plan_saves_nothing_in_obsidian(
    running: StandIn, folder: Path, plan: str, cli: Cli
) -> None:
    note = running.open_note("Day.md")
    note.text += "typed"
    document = json.loads(Path(plan).read_text())
    document["steps"][0]["tool"] = "vault.noSuchTool"
    Path(plan).write_text(json.dumps(document))
    assert cli("preview", plan)["exit"] == 2
    assert (folder / "Day.md").read_text() == OLD


def warnings_of(result: dict[str, Any]) -> str:
    return " ".join(each["message"] for each in result["warnings"])


def test_a_run_its_undo_and_redo_go_through_the_editor(
    running: StandIn, folder: Path, plan: str, cli: Cli
) -> None:
    note = running.open_note("Day.md")
    before = (folder / "Day.md").stat().st_ino
    assert cli("run", plan, "--yes")["exit"] == 0
    assert note.text == (folder / "Day.md").read_text() == NEW
    assert (folder / "Other.md").read_text() == "- Alpha 日本\n"
    assert note.undo == [OLD]
    assert cli("undo", "--yes")["exit"] == 0
    assert note.text == (folder / "Day.md").read_text() == OLD
    assert cli("redo", "--yes")["exit"] == 0
    assert note.text == (folder / "Day.md").read_text() == NEW
    assert len(note.undo) == 3
    assert (folder / "Day.md").stat().st_ino == before


def test_words_that_are_not_saved_yet_are_part_of_the_preview_and_of_the_run(
    running: StandIn, folder: Path, plan: str, cli: Cli
) -> None:
    note = running.open_note("Day.md")
    note.text += "unsaved words\n"
    assert cli("run", plan, "--yes")["exit"] == 0
    assert note.text == (folder / "Day.md").read_text() == NEW + "unsaved words\n"


def test_what_is_typed_between_the_look_and_the_edit_stops_the_run(
    running: StandIn, folder: Path, plan: str, cli: Cli
) -> None:
    note = running.open_note("Day.md")

    def type_on() -> None:
        note.text += "typed"

    running.before_edit = type_on
    result = cli("run", plan, "--yes")
    assert (result["exit"], result["status"]) == (4, "conflict")
    assert note.text == OLD + "typed"
    assert (folder / "Other.md").read_text() == "- Alpha\n"


def test_words_that_cannot_be_saved_refuse_the_run_before_anything_happened(
    running: StandIn, folder: Path, plan: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.open_note("Day.md")
    running.open_note("Other.md")
    settled = StandIn._settled
    monkeypatch.setattr(
        StandIn, "_settled", lambda self, path: {**settled(self, path), "saved": path != "Other.md"}
    )
    result = cli("run", plan, "--yes")
    assert result["exit"] == 4
    assert "could not be saved" in result["errors"][0]["message"]
    assert (folder / "Day.md").read_text() == OLD


def _reading_view(running: StandIn) -> None:
    running.open_note("Day.md", "preview")


def _closed_meanwhile(running: StandIn) -> None:
    running.open_note("Day.md")
    running.before_edit = running.notes.clear


def _switched_off_meanwhile(running: StandIn) -> None:
    running.open_note("Day.md")

    def answer(argv: list[str]) -> bytes:
        running.companion = running.asked.count("settle") < 2
        return running.answer(argv).encode()

    running.raw = answer


def _file(text: bytes) -> Callable[[StandIn], None]:
    def prepare(running: StandIn) -> None:
        (running.folder / "Day.md").write_bytes(text)
        running.open_note("Day.md")

    return prepare


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (_reading_view, "not open for editing"),
        (_closed_meanwhile, "no longer open for editing"),
        (_switched_off_meanwhile, "turned off meanwhile"),
        (_file(OLD.replace("\n", "\r\n").encode()), "has Windows line ends"),
        (_file(b"\xef\xbb\xbf" + OLD.encode()), "byte order mark"),
        (_file((OLD + "long\n" * 200_000).encode()), "larger than 200 KB"),
    ],
)
def test_what_cannot_go_through_the_editor_is_written_on_the_disk_with_a_warning(
    running: StandIn,
    folder: Path,
    plan: str,
    cli: Cli,
    prepare: Callable[[StandIn], None],
    why: str,
) -> None:
    prepare(running)
    before = (folder / "Day.md").read_bytes()
    result = cli("run", plan, "--yes")
    assert result["exit"] == 0
    assert why in warnings_of(result)
    changed = (folder / "Day.md").read_bytes()
    assert changed == before.replace(b"- Alpha", "- Alpha 日本".encode())
    assert cli("undo", "--yes")["exit"] == 0
    assert (folder / "Day.md").read_bytes() == before


def test_a_moved_open_note_is_saved_first(
    running: StandIn, folder: Path, tmp_path: Path, cli: Cli
) -> None:
    (folder / "Sub").mkdir()
    (folder / "Sub" / "Day.md").write_text(OLD)
    note = running.open_note("Sub/Day.md")
    steps = [{"id": "s", "tool": "vault.rename", "args": {"from": "Sub", "to": "Moved"}}]
    file = tmp_path / "move.json"
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": steps})
    )
    note.text += "unsaved\n"
    assert cli("run", str(file), "--yes")["exit"] == 0
    assert (folder / "Moved" / "Day.md").read_text() == OLD + "unsaved\n"


def test_an_edit_that_was_done_though_its_answer_was_lost_counts(
    running: StandIn, folder: Path, plan: str, cli: Cli
) -> None:
    note = running.open_note("Day.md")

    def lose(argv: list[str]) -> bytes | None:
        edits = running.asked.count("edit")
        answer = running.answer(argv).encode()
        return answer if running.asked.count("edit") == edits else None

    running.raw = lose
    assert cli("run", plan, "--yes")["exit"] == 0
    assert note.text == (folder / "Day.md").read_text() == NEW


def test_an_edit_that_is_said_to_be_done_and_is_not_stops_the_run(
    running: StandIn, folder: Path, plan: str, cli: Cli
) -> None:
    note = running.open_note("Day.md")

    def lie(argv: list[str]) -> bytes:
        answer = running.answer(["vault=0123456789abcdef", "vault"]) if argv[1] == "vault" else ""
        request = (
            json.loads(base64.urlsafe_b64decode(argv[2].removeprefix("req=") + "==="))
            if not answer
            else {}
        )
        if request.get("action") == "edit":
            return ("OA1 " + json.dumps({"protocol": 1, "vault": str(folder), "ok": True})).encode()
        return running.answer(argv).encode()

    running.raw = lie
    stopped = cli("run", plan, "--yes")
    assert (stopped["exit"], stopped["status"]) == (1, "failed")
    assert "Day.md" in stopped["errors"][0]["message"]
    assert note.text == (folder / "Day.md").read_text() == OLD
    running.raw = None
    assert cli("recover", "--finish")["exit"] == 0
    assert note.text == (folder / "Day.md").read_text() == NEW


@pytest.mark.parametrize(("option", "expected"), [("--finish", NEW), ("--roll-back", OLD)])
def test_recovery_saves_what_the_editor_holds_and_ends_the_run_through_it(
    running: StandIn, folder: Path, plan: str, cli: Cli, option: str, expected: str
) -> None:
    note = running.open_note("Day.md")
    running.unsaved = True
    result = cli("run", plan, "--yes")
    assert (result["exit"], note.text) == (1, NEW)
    assert (folder / "Day.md").read_text() == OLD
    running.unsaved = False
    assert cli("recover", option)["exit"] == 0
    assert note.text == (folder / "Day.md").read_text() == expected
    assert (folder / "Other.md").read_text() == (
        "- Alpha 日本\n" if option == "--finish" else "- Alpha\n"
    )


def test_recovery_waits_for_an_editor_that_runs_and_does_not_answer(
    running: StandIn, folder: Path, plan: str, cli: Cli
) -> None:
    note = running.open_note("Day.md")
    running.unsaved = True
    cli("run", plan, "--yes")
    running.raw = lambda argv: None
    assert cli("recover", "--roll-back")["exit"] != 0
    running.raw, running.unsaved = None, False
    assert cli("recover", "--roll-back")["exit"] == 0
    assert note.text == (folder / "Day.md").read_text() == OLD


def test_without_an_obsidian_notes_are_written_as_ever(
    home: Path, folder: Path, plan: str, cli: Cli
) -> None:
    result = cli("run", plan, "--yes")
    assert (result["exit"], result["warnings"]) == (0, [])
    assert (folder / "Day.md").read_text() == NEW


def test_a_command_takes_the_note_and_the_selection_from_obsidian_unless_options_name_one(
    running: StandIn, folder: Path, tmp_path: Path, cli: Cli
) -> None:
    (folder / "Day.md").write_text(OLD)
    (folder / "Other.md").write_text("other\n")
    running.open_note("Day.md").text += "unsaved\n"
    running.select("Day.md", (1, 0), (2, 6), "- Alpha\n- Beta")
    steps = [{"id": "s", "tool": "editor.replaceSelection", "args": {"text": "instead"}}]
    file = tmp_path / "selection.json"
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": steps})
    )
    assert cli("run", str(file), "--yes")["exit"] == 0
    assert (folder / "Day.md").read_text() == "# Day 😀\ninstead\nunsaved\n"
    assert (
        cli("run", str(file), "--yes", "--active-file", "Other.md", "--selection-range", "0:0-0:5")[
            "exit"
        ]
        == 0
    )
    assert (folder / "Other.md").read_text() == "instead\n"


# --- what changed between two texts ---

LINES = st.lists(
    st.sampled_from(
        [
            "a\n",
            "b\n",
            "\n",
            "- 日本\n",
            "😀x\n",
            "😀y\n",
            "\u2028",
            "long line of words\n",
            "e\u0301",
        ]
    ),
    max_size=12,
)


def applied(old: str, changes: list[tuple[int, int, str]]) -> str:
    """As an editor does it, in UTF-16 units."""
    units, at, parts = old.encode("utf-16-le"), 0, []
    for start, end, text in changes:
        assert at <= start <= end
        parts += [units[2 * at : 2 * start], text.encode("utf-16-le")]
        at = end
    return b"".join([*parts, units[2 * at :]]).decode("utf-16-le")


@given(LINES, LINES)
def test_the_changes_lead_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    assert applied("".join(old), text_changes("".join(old), "".join(new))) == "".join(new)


@given(st.text(), st.text())
def test_the_changes_fit_any_texts(old: str, new: str) -> None:
    changes = text_changes(old, new)
    assert applied(old, changes) == new
    assert bool(changes) == (old != new)


def test_changes_are_cut_to_what_differs() -> None:
    old = "# 😀\n- Alpha\nsame\n- Beta\n"
    new = old.replace("Alpha", "[[Alpha]]").replace("Beta", "[[Beta]]")
    assert text_changes(old, new) == [(7, 12, "[[Alpha]]"), (20, 24, "[[Beta]]")]
    assert text_changes("a😀b", "a😁b") == [(1, 3, "😁")]


def test_a_long_note_takes_no_time() -> None:
    old = "".join(f"- [[Old name]] is linked in line {number % 7}\n" for number in range(5000))
    started = time.process_time()
    for new in (old.replace("Old", "New"), "first\n" + old.replace("Old", "New"), old[::-1]):
        assert applied(old, text_changes(old, new)) == new
    assert time.process_time() - started < 5
