from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from obsidian_agent.errors import Conflict, ObsidianAgentError, ToolError
from obsidian_agent.tools.core.tool import EditorPosition, Risk, utf16_length
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.tools.workspace import CommandItem, shift_range
from obsidian_agent.vault.links.link_text import LinkStyle


def test_open_file(bench):
    vault = bench({"a#b.md": ""})
    assert vault.run("workspace.openFile", path="a#b.md", line=3, newPane=False) == {
        "path": "a#b.md",
        "opened": False,
        "via": "none",
    }
    vault.run_context = replace(vault.run_context, has_screen=True)
    assert vault.run("workspace.openFile", path="a#b.md") == {
        "path": "a#b.md",
        "opened": True,
        "via": "app",
    }
    vault.run_context = replace(vault.run_context, has_screen=False, has_desktop=lambda: True)
    assert vault.run("workspace.openFile", path="a#b.md")["via"] == "desktop"
    vault.run_context = replace(vault.run_context, has_screen=True)
    assert TOOLS["workspace.openFile"].risk is Risk.READ_ONLY
    vault.run("vault.createFile", path="new.md", content="")
    assert vault.run("workspace.openFile", path="new.md")["opened"] is True


@pytest.mark.parametrize(
    ("path", "code"),
    [("no.md", "FILE_NOT_FOUND"), ("D", "NOT_TEXT"), ("../x.md", "PATH_OUTSIDE_VAULT")],
)
def test_open_file_needs_a_file(bench, path, code):
    assert bench({"D/": ""}).refusal("workspace.openFile", path=path) == code


@pytest.mark.parametrize("has_screen", [True, False])
def test_a_new_pane_is_refused_where_nothing_has_panes(bench, has_screen):
    vault = bench({"a.md": ""})
    vault.run_context = replace(vault.run_context, has_screen=has_screen)
    with pytest.raises(ToolError) as caught:
        vault.propose("workspace.openFile", path="a.md", newPane=True)
    assert caught.value.problem().code == "ARGUMENT_INVALID"
    assert "newPane" in caught.value.problem().message


def test_get_context(bench):
    vault = bench(
        {"a.md": "text"}, active="a.md", selected=("text", None, None), open_files=("a.md",)
    )
    assert vault.run("workspace.getContext") == {
        "vaultName": vault.folder.name,
        "activeFilePath": "a.md",
        "selection": "text",
        "openFiles": ["a.md"],
        "recentFiles": [],
    }


def test_get_context_of_nothing_open(bench):
    vault = bench()
    expected = {
        "vaultName": vault.folder.name,
        "activeFilePath": None,
        "openFiles": [],
        "recentFiles": [],
    }
    assert vault.run("workspace.getContext") == expected
    assert vault.last.output.model_dump(by_alias=True, exclude_unset=True) == expected


def test_without_obsidian_there_are_no_commands(bench):
    assert bench().run("commands.list", filter="daily") == {"commands": [], "count": 0}


def test_running_a_command_is_never_previewed(bench):
    vault = bench()
    reload = CommandItem(id="app:reload", name="Reload without saving", source="app")
    vault.run_context = replace(vault.run_context, runs_commands=True, commands=lambda: (reload,))
    assert vault.run("commands.list", filter="RELOAD") == {
        "commands": [reload.model_dump()],
        "count": 1,
    }
    assert vault.refusal("commands.run", id="app:other") == "COMMANDS_UNAVAILABLE"
    assert vault.run("commands.run", id="app:reload") == {"id": "app:reload", "executed": False}
    assert vault.last.changes == ()
    assert (TOOLS["commands.run"].risk, TOOLS["commands.run"].opaque) == (Risk.COMMANDS, True)


def test_without_obsidian_no_command_can_be_run(bench):
    assert bench().refusal("commands.run", id="app:reload") == "COMMANDS_UNAVAILABLE"


NOTE = "# T\n- one\n- two\nend\n"
SELECTED = ("- one\n- two", (1, 0), (2, 5))


# --- looking ---


def test_get_selection(bench):
    output = bench({"a.md": NOTE}, active="a.md", selected=SELECTED).run("editor.getSelection")
    place = {"from": {"line": 1, "ch": 0}, "to": {"line": 2, "ch": 5}}
    assert output == {"text": "- one\n- two", "isEmpty": False, "filePath": "a.md", "range": place}


def test_get_selection_without_one(bench):
    assert bench().run("editor.getSelection") == {"text": "", "isEmpty": True}


def test_get_active_file_path(bench):
    assert bench({"a.md": ""}, active="a.md").run("editor.getActiveFilePath") == {"path": "a.md"}
    assert bench().run("editor.getActiveFilePath") == {"path": None}


# --- editor.replaceSelection ---


def test_replace_selection(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=SELECTED)
    output = vault.run("editor.replaceSelection", text="- [[1]]\n- [[😀]]")
    place = {"from": {"line": 1, "ch": 0}, "to": {"line": 2, "ch": 8}}
    assert output == {"filePath": "a.md", "range": place, "insertedChars": 16}
    assert vault.text("a.md") == "# T\n- [[1]]\n- [[😀]]\nend\n"


def test_columns_are_utf16(bench):
    vault = bench({"a.md": "😀 old 😀\n"}, active="a.md", selected=("old", (0, 3), (0, 6)))
    vault.run("editor.replaceSelection", text="new")
    assert vault.text("a.md") == "😀 new 😀\n"


def test_line_ends_are_those_of_the_note(bench):
    vault = bench({"a.md": NOTE.replace("\n", "\r\n")}, active="a.md", selected=SELECTED)
    vault.run("editor.replaceSelection", text="x\ny")
    assert vault.text("a.md") == "# T\r\nx\r\ny\r\nend\r\n"


def test_a_backward_selection_is_the_same(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=("- one\n- two", (2, 5), (1, 0)))
    vault.run("editor.replaceSelection", text="x")
    assert vault.text("a.md") == "# T\nx\nend\n"


def test_edits_of_earlier_steps_shift_the_selection(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=SELECTED)
    vault.run("vault.updateFile", path="a.md", mode="prepend", content="above")
    vault.run("vault.updateFile", path="a.md", mode="append", content="below")
    vault.run("vault.rename", **{"from": "a.md", "to": "moved/b.md"})
    output = vault.run("editor.replaceSelection", text="x")
    assert (output["filePath"], output["range"]["from"]) == ("moved/b.md", {"line": 2, "ch": 0})
    assert vault.text("moved/b.md") == "above\n# T\nx\nend\nbelow\n"


def test_replacing_twice_is_a_conflict(bench):
    for first in ("x", "- one\n- two\n- three", "> - one\n- two"):
        vault = bench({"a.md": NOTE}, active="a.md", selected=SELECTED)
        vault.run("editor.replaceSelection", text=first)
        with pytest.raises(Conflict):
            vault.run("editor.replaceSelection", text="y")


def test_an_edit_inside_the_selection_is_a_conflict(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=SELECTED)
    vault.run("vault.updateFile", path="a.md", mode="insert", line=3, content="- between")
    with pytest.raises(Conflict):
        vault.run("editor.replaceSelection", text="y")


def test_a_note_that_was_replaced_or_removed_is_a_conflict(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=SELECTED)
    vault.run("vault.writeFile", path="a.md", content="other")
    with pytest.raises(Conflict):
        vault.run("editor.replaceSelection", text="y")
    vault.run("vault.delete", path="a.md")
    with pytest.raises(Conflict):
        vault.run("editor.replaceSelection", text="y")


@pytest.mark.parametrize(
    "selected", [("- ONE\n- two", (1, 0), (2, 5)), ("x", (9, 0), (9, 1)), ("x", (0, 7), (0, 8))]
)
def test_a_selection_that_is_not_there_is_a_conflict(bench, selected):
    with pytest.raises(Conflict):
        bench({"a.md": NOTE}, active="a.md", selected=selected).run(
            "editor.replaceSelection", text="y"
        )


def test_text_without_a_place_cannot_be_replaced(bench):
    with pytest.raises(ObsidianAgentError) as caught:
        bench({"a.md": NOTE}, active="a.md", selected=("- one", None, None)).run(
            "editor.replaceSelection", text="y"
        )
    assert caught.value.code == "NO_SELECTION"
    assert "place" in caught.value.message


def test_without_an_active_note_there_is_no_selection(bench):
    for tool in ("editor.replaceSelection", "editor.insertAtCursor"):
        with pytest.raises(ObsidianAgentError) as caught:
            bench().run(tool, text="y")
        assert caught.value.code == "NO_SELECTION"


def test_an_empty_range_is_the_cursor(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=("", (0, 3), (0, 3)))
    vault.run("editor.replaceSelection", text="itle")
    vault.run("editor.replaceSelection", text="!")
    assert vault.text("a.md").startswith("# Title!\n")


# --- editor.insertAtCursor ---


def test_insert_at_cursor(bench):
    vault = bench({"a.md": NOTE}, active="a.md", cursor=(1, 5))
    output = vault.run("editor.insertAtCursor", text="!\n- more")
    assert output == {"filePath": "a.md", "position": {"line": 1, "ch": 5}, "insertedChars": 8}
    assert vault.text("a.md") == "# T\n- one!\n- more\n- two\nend\n"
    assert vault.warnings == []


@pytest.mark.parametrize(
    ("cursor", "text"), [((1, 5), "\n- one"), ((1, 0), "- one\n"), ((0, 1), "#"), ((4, 0), "x\n")]
)
def test_several_insertions_stand_in_order(bench, cursor, text):
    vault = bench({"a.md": NOTE}, active="a.md", cursor=cursor)
    once = bench({"a.md": NOTE}, active="a.md", cursor=cursor)
    for mark in "123":
        vault.run("editor.insertAtCursor", text=f"{mark}{text}")
    once.run("editor.insertAtCursor", text="".join(f"{mark}{text}" for mark in "123"))
    assert vault.text("a.md") == once.text("a.md")


def test_an_insertion_stays_at_its_place_when_others_write_too(bench):
    vault = bench({"a.md": NOTE}, active="a.md", cursor=(1, 5))
    vault.run("editor.insertAtCursor", text="A")
    vault.run("vault.updateFile", path="a.md", mode="prepend", content="top")
    vault.run("vault.updateFile", path="a.md", mode="append", content="bottom")
    vault.run("editor.insertAtCursor", text="B")
    assert vault.text("a.md") == "top\n# T\n- oneAB\n- two\nend\nbottom\n"


def test_the_cursor_is_behind_the_selection_and_behind_what_replaced_it(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=("one", (1, 2), (1, 5)))
    vault.run("editor.insertAtCursor", text="?")
    assert vault.text("a.md") == "# T\n- one?\n- two\nend\n"
    vault.run("editor.replaceSelection", text="1")
    vault.run("editor.insertAtCursor", text="!")
    assert vault.text("a.md") == "# T\n- 1!?\n- two\nend\n"


def test_without_a_cursor_text_goes_to_the_end_in_lines_of_its_own(bench):
    vault = bench({"a.md": "end"}, active="a.md")
    for text in ("- a", "- b"):
        vault.run("editor.insertAtCursor", text=text)
        assert vault.warnings == ["NO_SELECTION"]
    assert vault.text("a.md") == "end\n- a\n- b"
    assert bench({"a.md": ""}, active="a.md").run("editor.replaceSelection", text="x")["range"][
        "from"
    ] == {"line": 0, "ch": 0}


def test_a_cursor_beyond_the_note_is_a_conflict(bench):
    with pytest.raises(Conflict):
        bench({"a.md": NOTE}, active="a.md", cursor=(40, 0)).run("editor.insertAtCursor", text="x")


def test_an_active_note_that_is_missing(bench):
    with pytest.raises(ObsidianAgentError):
        bench(active="gone.md").run("editor.insertAtCursor", text="x")


def test_instructions_for_other_agents_are_never_written(bench):
    assert (
        bench({"AGENTS.md": "x"}, active="AGENTS.md", cursor=(0, 0)).refusal(
            "editor.insertAtCursor", text="y"
        )
        == "PATH_NOT_ALLOWED"
    )


def test_nothing_inserted_is_no_change(bench):
    vault = bench({"a.md": NOTE}, active="a.md", cursor=(0, 0))
    assert vault.run("editor.insertAtCursor", text="")["insertedChars"] == 0
    assert vault.changes() == []


VAULT = {
    "a.md": "see cell theory now\n| x |\n|---|\n| cell |\n",
    "Notes/Cells.md": "",
    "Notes/cell.md": "",
}


def test_the_selected_words_stay_what_is_shown(bench):
    vault = bench(VAULT, active="a.md", selected=("cell theory", (0, 4), (0, 15)))
    vault.run("editor.linkSelection", path="Notes/Cells.md")
    assert vault.text("a.md").startswith("see [[Cells|cell theory]] now\n")


def test_a_heading_and_blanks_around_the_words(bench):
    vault = bench(VAULT, active="a.md", selected=(" cell theory ", (0, 3), (0, 16)))
    vault.run("editor.linkSelection", path="Notes/Cells.md", heading="One")
    assert vault.text("a.md").startswith("see [[Cells#One|cell theory]] now\n")


def test_the_pipe_in_a_table_and_words_that_are_the_name(bench):
    vault = bench(VAULT, active="a.md", selected=("cell", (3, 2), (3, 6)))
    vault.run("editor.linkSelection", path="Notes/Cells.md")
    assert "| [[Cells\\|cell]] |" in vault.text("a.md")
    vault = bench(VAULT, active="a.md", selected=("cell", (3, 2), (3, 6)))
    vault.run("editor.linkSelection", path="Notes/cell.md")
    assert "| [[cell]] |" in vault.text("a.md")


def test_markdown_links_where_the_vault_wants_them(bench):
    vault = bench(VAULT, active="a.md", selected=("cell theory", (0, 4), (0, 15)))
    vault.run_context = replace(vault.run_context, link_style=LinkStyle("relative", markdown=True))
    vault.run("editor.linkSelection", path="Notes/Cells.md")
    assert vault.text("a.md").startswith("see [cell theory](Notes/Cells.md) now\n")


@pytest.mark.parametrize("selected", [None, ("see\nmore", (0, 0), (0, 3))])
def test_no_words_no_link(bench, selected):
    with pytest.raises(ObsidianAgentError):
        bench(VAULT, active="a.md", selected=selected).run(
            "editor.linkSelection", path="Notes/Cells.md"
        )


def test_the_mark_of_a_list_item_stays_outside(bench):
    vault = bench(
        VAULT | {"a.md": "- [ ] one two\n"},
        active="a.md",
        selected=("- [ ] one two", (0, 0), (0, 13)),
    )
    vault.run("editor.linkSelection", path="Notes/Cells.md")
    assert vault.text("a.md") == "- [ ] [[Cells|one two]]\n"


@pytest.mark.parametrize(
    ("text", "line", "ch", "offset"),
    [
        ("abc", 0, 0, 0),
        ("abc", 0, 3, 3),
        ("abc", 0, 4, None),
        ("a\nb", 1, 1, 3),
        ("a\n", 1, 0, 2),
        ("a\n", 2, 0, None),
        ("a\r\nb", 0, 1, 1),
        ("a\r\nb", 0, 2, None),
        ("a\r\nb", 1, 0, 3),
        ("😀b", 0, 2, 1),
        ("😀b", 0, 1, None),
        ("é😀", 0, 3, 2),
        ("\ufeffab\nc", 0, 1, 2),
        ("\ufeffab\nc", 1, 1, 5),
        ("", 0, 0, 0),
        ("a", 0, -1, None),
        ("é", 0, -1, None),
    ],
)
def test_the_offset_of_a_position(text, line, ch, offset):
    assert EditorPosition(line, ch).offset_in(text) == offset


@given(st.text("aé😀\n", max_size=30), st.data())
def test_positions_and_offsets_are_inverse(text, data):
    offset = data.draw(st.integers(0, len(text)))
    assert EditorPosition.at(text, offset).offset_in(text) == offset


def test_utf16_length():
    assert (utf16_length("abc"), utf16_length("é"), utf16_length("a😀")) == (3, 1, 3)


TEXT = "# T\n\n- a\n- b\n\nend"


@pytest.mark.parametrize(
    "after",
    [
        TEXT,
        "---\nx: 1\n---\n" + TEXT,
        TEXT + "\nmore\n",
        TEXT.replace("# T", "# Title"),
        TEXT.replace("\n\nend", "\n- c\n\nthe end"),
        "- a\n- b\n" + TEXT.replace("# T\n", ""),
        TEXT.replace("\n", "\r\n"),
    ],
)
def test_what_was_not_edited_is_found_again(after):
    start = TEXT.index("b")
    found = shift_range(TEXT, after, start, start + 1)
    assert found is not None
    assert after[slice(*found)] == "b"
    assert after[: found[0]].endswith("- a\n- ") or after[: found[0]].endswith("- a\r\n- ")


@pytest.mark.parametrize(
    "after", ["# T\n\n- a\n- x\n\nend", "", "other", TEXT.replace("- b\n", "")]
)
def test_what_was_edited_is_not_found(after):
    start = TEXT.index("b")
    assert shift_range(TEXT, after, start, start + 1) is None


def test_edits_beside_it_in_its_own_line():
    assert shift_range("one two three", "one two 3", 4, 7) == (4, 7)
    assert shift_range("one two three", "1 two three", 4, 7) == (2, 5)
    assert shift_range("one two three", "1 two 3", 4, 7) is None


def test_a_range_over_lines_between_which_something_was_put_is_edited():
    assert shift_range("a\nb\n", "a\nnew\nb\n", 0, 3) is None


@pytest.mark.parametrize(
    ("before", "place", "after", "expected"),
    [
        ("foo\n", 3, "foo\nbar\n", "foo|\nbar\n"),
        ("foo", 3, "foo\nbar", "foo|\nbar"),
        ("foo\n", 4, "foo\nbar\n", "foo\nbar\n|"),
        ("# T\n- b\n", 4, "# T\n- x\n- b\n", "# T\n- x\n|- b\n"),
        ("", 0, "all new", "|all new"),
        ("a b", 2, "a x b", "a |x b"),
    ],
)
def test_a_cursor_keeps_its_line(before, place, after, expected):
    found = shift_range(before, after, place, place)
    assert found is not None
    assert f"{after[: found[0]]}|{after[found[0] :]}" == expected


def test_huge_changed_parts_are_not_compared_line_by_line():
    before = "start\n" + "\n" * 3000 + "x\n" + "\n" * 3000
    after = "begin\n" + "\n" * 3100 + "y\n" + "\n" * 2000 + "end"
    assert shift_range(before, after, 0, 5) is None


@given(st.text("ab\n", max_size=20), st.text("ab\n", max_size=20), st.data())
def test_a_range_is_found_with_its_text_or_not_at_all(before, after, data):
    start = data.draw(st.integers(0, len(before)))
    end = data.draw(st.integers(start, len(before)))
    found = shift_range(before, after, start, end)
    if found is not None:
        assert after[slice(*found)] == before[start:end]
